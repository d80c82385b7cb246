"""Pages, annotations, ids of calls and of conversations, without a server."""

from __future__ import annotations

import asyncio
import re
from types import SimpleNamespace
from typing import Any

import pytest

from jackfield.citations import Citation
from jackfield.errors import RunNotFoundError
from jackfield.events import RunFailed, RunFinished
from jackfield.messages import ContentItem, FunctionCall, Message, Usage
from jackfield.results import Source
from jackfield.servers import RequestRefusedError
from jackfield_openai_server.calls import continue_run, outer_id, split_id, waiting_run
from jackfield_openai_server.chat import usage_object
from jackfield_openai_server.citations import annotations_of
from jackfield_openai_server.conversations import _check_id, _check_of, _conversation
from jackfield_openai_server.embeddings import _as_base64
from jackfield_openai_server.errors import ParameterError
from jackfield_openai_server.items import CallItem, TextItem
from jackfield_openai_server.paging import page_of
from jackfield_openai_server.response_object import _outcome, _usage, input_item, item_object
from jackfield_serving import NotWaitingError, WaitingCall

ITEMS = [{"id": f"i{number}"} for number in range(25)]


# --- pages ---


@pytest.mark.parametrize(
    ("query", "ids", "has_more"),
    [
        ({}, range(24, 4, -1), True),
        ({"limit": "25"}, range(24, -1, -1), False),
        ({"limit": "24"}, range(24, 0, -1), True),
        ({"limit": "1", "order": "asc"}, [0], True),
        ({"limit": "100", "order": "asc", "after": "i20"}, range(21, 25), False),
        ({"after": "i1", "include": "x"}, [0], False),
        ({"after": "i0"}, [], False),
    ],
    ids=["default", "all", "all but one", "the first", "after", "the last", "none"],
)
def test_a_page_has_the_items_after_one_in_the_order_that_is_asked_for(query: Any, ids: Any, has_more: bool) -> None:
    page = page_of(ITEMS, query)
    names = [f"i{number}" for number in ids]
    assert [item["id"] for item in page["data"]] == names
    assert (page["object"], page["has_more"]) == ("list", has_more)
    assert (page["first_id"], page["last_id"]) == ((names[0], names[-1]) if names else ("", ""))


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ({"limit": "0"}, "limit"),
        ({"limit": "101"}, "limit"),
        ({"limit": "-1"}, "limit"),
        ({"limit": "٣"}, "limit"),
        ({"limit": "100000000000000"}, "limit"),
        ({"limit": ""}, "limit"),
        ({"order": "up"}, "order"),
        ({"after": "i25"}, "after"),
        ({"before": "i1", "limit": "1"}, "before"),
    ],
)
def test_a_page_that_cannot_be_made_is_refused_by_its_parameter(query: Any, param: str) -> None:
    with pytest.raises(ParameterError) as caught:
        page_of(ITEMS, query)
    assert caught.value.param == param


# --- annotations ---


def test_each_mark_of_a_citation_is_an_annotation_in_the_order_of_the_text() -> None:
    citations = [
        Citation(mark="1", location="/srv/docs/a b.pdf", page=2, answer_ranges=((20, 23), (5, 8))),
        Citation(mark="2", location="https://example.org/a", page=3, answer_ranges=((10, 13),)),
        Citation(mark="3", location="/srv/docs/all.zip", part="inner.pdf", page=4, answer_ranges=((30, 33),)),
    ]
    item: Any = SimpleNamespace(text="x" * 40, citations=citations, sources=[Source("/srv/other.pdf")])
    shown = annotations_of(item, offset=100)
    assert [(one["start_index"], one["end_index"], one["url"]) for one in shown] == [
        (105, 108, "file:a%20b.pdf#page=2"),
        (110, 113, "https://example.org/a"),
        (120, 123, "file:a%20b.pdf#page=2"),
        (130, 133, "file:all.zip"),
    ]
    assert {one["type"] for one in shown} == {"url_citation"}
    assert "/srv/" not in str(shown)


def test_without_citations_the_sources_stand_behind_the_text() -> None:
    sources = [Source("/srv/docs/a.pdf", page=2), Source("http://example.org/b")]
    item: Any = SimpleNamespace(text="x" * 40, citations=[], sources=sources)
    assert [(one["start_index"], one["end_index"], one["url"]) for one in annotations_of(item, offset=2)] == [
        (42, 42, "file:a.pdf#page=2"), (42, 42, "http://example.org/b"),
    ]  # fmt: skip


# --- calls ---


def test_the_id_of_a_call_names_its_run() -> None:
    assert split_id(outer_id("call.1", "r")) == ("call.1", "r")
    assert split_id("call_1") == ("call_1", "")


class Waits:
    """A service with one run, which waits for an approval and for the result of a client's tool."""

    def __init__(self) -> None:
        self.answers: Any = None
        self.refuses = False

    async def run(self, run_id: str, *, owner: str) -> Any:
        if (run_id, owner) != ("r", "ada"):
            raise RunNotFoundError("no")
        calls: Any = [("a", "approval"), ("b", "client_tool")]
        request = {"config": {"temperature": 0}, "output": None, "client_tools": [{"name": "look"}]}
        waiting = tuple(WaitingCall(call_id=one, call=None, kind=kind) for one, kind in calls)  # type: ignore[arg-type]
        return SimpleNamespace(run_id="r", agent="clerk", request=request, waiting=waiting)

    async def answer(self, run_id: str, answers: Any, *, owner: str) -> None:
        if self.refuses:
            raise NotWaitingError("answered before")
        self.answers = (run_id, answers, owner)


@pytest.mark.parametrize(
    ("answers", "owner", "is_found"),
    [
        ({"a.r": True}, "ada", True),
        ({"a.r": False, "b.r": "seen"}, "ada", True),
        ({"b.r": True}, "ada", False),
        ({"a.r": "seen"}, "ada", False),
        ({"c.r": "seen"}, "ada", False),
        ({"a.r": True, "b.s": "seen"}, "ada", False),
        ({"a": True}, "ada", False),
        ({}, "ada", False),
        ({"a.r": True}, "eve", False),
    ],
    ids=["approval", "both", "no approval", "no result", "unknown", "two runs", "no run", "nothing", "another owner"],
)
def test_a_run_waits_for_exactly_its_own_kinds_of_answers(answers: Any, owner: str, is_found: bool) -> None:
    service: Any = Waits()
    assert (asyncio.run(waiting_run(service, answers, owner)) is not None) is is_found


SAME = {"agent": "clerk", "config": {"temperature": 0}, "output": None, "client_tools": [{"name": "look"}]}


@pytest.mark.parametrize(
    "change",
    [{}, {"agent": "other"}, {"config": {}}, {"output": {"type": "object"}}, {"client_tools": []}],
    ids=["the same", "agent", "config", "output", "tools"],
)
def test_a_run_is_continued_only_under_its_own_options(change: dict[str, Any]) -> None:
    service: Any = Waits()
    question: Any = SimpleNamespace(**{**SAME, **change})
    info = asyncio.run(continue_run(service, question, {"a.r": True, "b.r": "seen"}, "ada"))
    assert (info is not None) is (not change)
    assert service.answers == (None if change else ("r", {"a": True, "b": "seen"}, "ada"))
    service.refuses = True
    assert asyncio.run(continue_run(service, question, {"a.r": True}, "ada")) is None


# --- conversations ---


def test_the_id_of_a_conversation_has_its_time_and_is_its_owners() -> None:
    start = "0000000a" + "1" * 16
    identity = f"conv_{start}{_check_of(start, 'ada')}"
    assert re.fullmatch(r"conv_[0-9a-f]{40}", identity)
    assert _conversation(identity) == {"id": identity, "object": "conversation", "created_at": 10, "metadata": {}}
    _check_id(identity, "ada")
    for wrong, owner in (
        (identity, "eve"), (identity, ""), (identity[:-1], "ada"), (f"{identity}0", "ada"), (f"x{identity}", "ada"),
        (identity.replace("1", "2", 1), "ada"), ("conv_", "ada"),
    ):  # fmt: skip
        with pytest.raises(RequestRefusedError) as caught:
            _check_id(wrong, owner)
        assert (caught.value.status, caught.value.code) == (404, "conversation_not_found")


def test_vectors_are_floats_of_32_bits_with_the_lowest_byte_first() -> None:
    assert _as_base64([1.0, -2.0]) == "AACAPwAAAMA="


# --- items and ends of responses ---

HEAD: Any = SimpleNamespace(id="resp_1", run_id="r", model="clerk")
CALL = FunctionCall("look", '{"a": 1}')


@pytest.mark.parametrize(("status", "arguments"), [("completed", '{"a": 1}'), ("in_progress", ""), ("incomplete", "")])
def test_the_arguments_of_a_call_are_shown_once_it_is_complete(status: str, arguments: str) -> None:
    item = item_object(HEAD, CallItem(2, "c", CALL, is_of_client=True), status=status)
    assert item == {
        "type": "function_call", "id": "fc_1_2", "call_id": "c.r", "name": "look", "arguments": arguments,
        "status": status,
    }  # fmt: skip
    asked = item_object(HEAD, CallItem(2, "c", CALL, is_of_client=False), status=status)
    assert asked == {
        "type": "mcp_approval_request", "id": "mcpr_c.r", "name": "look", "arguments": '{"a": 1}',
        "server_label": "clerk",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("is_whole", "status", "shown", "has_content"),
    [
        (True, "completed", "completed", True),
        (False, "completed", "incomplete", True),
        (True, "in_progress", "in_progress", False),
    ],
)
def test_a_text_is_shown_as_far_as_it_has_come(is_whole: bool, status: str, shown: str, has_content: bool) -> None:
    item = item_object(HEAD, TextItem(0, "message", "Hi", is_whole=is_whole), status=status)
    assert (item["id"], item["role"], item["status"], bool(item["content"])) == (
        "msg_1_0",
        "assistant",
        shown,
        has_content,
    )
    thought = item_object(HEAD, TextItem(1, "reasoning", "Hm"), status=status)
    assert (thought["id"], bool(thought["summary"])) == ("rs_1_1", has_content)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            Message("function", "seen", name="look", extra={"function_id": "c"}),
            {"type": "function_call_output", "call_id": "c", "output": "seen"},
        ),
        (
            Message("assistant", "", function_call=CALL, extra={"function_id": "c"}),
            {"type": "function_call", "call_id": "c", "arguments": '{"a": 1}'},
        ),
        (Message("assistant", "Hi"), {"type": "message", "role": "assistant"}),
        (Message("assistant", ""), None),
        (
            Message(
                "user",
                [
                    ContentItem(text="See"),
                    ContentItem(image="https://example.org/a.png"),
                    ContentItem(audio="https://example.org/a.wav"),
                ],
            ),
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "See"},
                    {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "auto"},
                    {"type": "input_text", "text": "[audio]"},
                ],
            },
        ),
        (
            Message("user", [ContentItem(file="data:application/pdf;name=a%20b.pdf;base64,JVBERi0=")]),
            {
                "content": [
                    {"type": "input_file", "file_data": "data:application/pdf;base64,JVBERi0=", "filename": "a b.pdf"}
                ]
            },
        ),
        (
            Message("user", [ContentItem(file="data:application/pdf;base64,JVBERi0=")]),
            {
                "content": [
                    {"type": "input_file", "file_data": "data:application/pdf;base64,JVBERi0=", "filename": "file"}
                ]
            },
        ),
        (
            Message(
                "user", [ContentItem(file="https://example.org/a.pdf"), ContentItem(audio="data:audio/wav;base64,")]
            ),
            {
                "content": [
                    {"type": "input_file", "file_url": "https://example.org/a.pdf"},
                    {"type": "input_text", "text": "[audio]"},
                ]
            },
        ),
        (
            Message("user", [ContentItem(image="/srv/a.png"), ContentItem(file="file:///srv/a.pdf")]),
            {"content": [{"type": "input_text", "text": "[image]"}, {"type": "input_text", "text": "[file]"}]},
        ),
    ],
    ids=[
        "a result",
        "a call",
        "an answer",
        "nothing",
        "an image",
        "a file",
        "no name",
        "at an address",
        "on the server",
    ],
)
def test_a_message_of_the_input_is_an_item(message: Message, expected: Any) -> None:
    item = input_item(message, "i")
    if expected is None:
        assert item is None
    else:
        assert item is not None
        assert expected.items() <= item.items()
        assert (item["id"], item["status"]) == ("i", "completed")


@pytest.mark.parametrize(
    ("end", "finish", "status", "reason"),
    [
        (RunFinished("finished", (), Usage()), "stop", "completed", None),
        (RunFinished("empty_reply", (), Usage()), "stop", "completed", None),
        (RunFinished("approval_needed", (), Usage()), "stop", "completed", None),
        (RunFinished("finished", (), Usage()), "length", "incomplete", "max_output_tokens"),
        (RunFinished("finished", (), Usage()), "content_filter", "incomplete", "content_filter"),
        (RunFinished("cancelled", (), Usage()), "length", "cancelled", None),
        (RunFinished("time_limit", (), Usage()), "stop", "incomplete", "max_output_tokens"),
        (RunFailed("sk-secret", "ZeroDivisionError"), "stop", "failed", None),
    ],
)
def test_a_response_has_the_status_of_its_end(end: Any, finish: str, status: str, reason: str | None) -> None:
    ended: Any = SimpleNamespace(end=end, finish_reason=finish)
    shown, incomplete, error = _outcome(ended)
    assert (shown, incomplete and incomplete["reason"], error is not None) == (status, reason, status == "failed")
    assert "sk-secret" not in str(error)


def test_a_response_counts_what_was_used_since_the_one_before_it() -> None:
    usage = Usage(prompt_tokens=10, completion_tokens=5, cached_tokens=4, reasoning_tokens=2)
    spent = Usage(prompt_tokens=4, completion_tokens=5, cached_tokens=9)
    assert _usage(usage, spent) == {
        "input_tokens": 6, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 0, "output_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 6,
    }  # fmt: skip
    spent = Usage(prompt_tokens=4, completion_tokens=2, cached_tokens=3, reasoning_tokens=2)
    assert usage_object(usage, spent) == {
        "prompt_tokens": 6, "completion_tokens": 3, "total_tokens": 9,
        "prompt_tokens_details": {"cached_tokens": 1}, "completion_tokens_details": {"reasoning_tokens": 0},
    }  # fmt: skip
