"""Calls, texts and errors in the form of the protocol, for every way in which a run can go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError
from acp.schema import (
    AudioContentBlock,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)

from jackfield.errors import RateLimitedError
from jackfield.events import (
    MediaDelta,
    ReasoningDelta,
    RunEvent,
    StreamReset,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from jackfield.messages import ContentItem, FunctionCall, Message, Usage
from jackfield.servers import RequestRefusedError
from jackfield_acp_server.errors import errors_of_protocol
from jackfield_acp_server.prompts import read_prompt
from jackfield_acp_server.toolcalls import TextBefore, kind_of, replaced_file, show_call
from jackfield_acp_server.updates import Updates, user_updates
from jackfield_serving import WaitingCall

PIXEL = "data:image/png;base64,iVBO"
SOUND = "data:audio/wav;base64,UklG"
KINDS = {
    "edit_file": "edit", "write_file": "edit", "delete_file": "delete", "rename_file": "move", "grep": "search",
    "retrieval": "search", "code_interpreter": "execute", "run-shell": "execute", "web_search": "fetch",
    "read_file": "read", "doc_parser": "read", "think": "think", "File.Save": "edit", "threaded": "other", "": "other",
}  # fmt: skip


@pytest.mark.parametrize(("name", "kind"), KINDS.items())
def test_the_first_known_word_of_a_name_is_the_kind(name: str, kind: str) -> None:
    assert kind_of(name) == kind


TITLES: list[tuple[str, str]] = [
    ('{"word": "oak", "other": "elm"}', "look_up oak"),
    ('{"number": 7, "blank": " ", "word": " oak\\nelm "}', "look_up oak"),
    (json.dumps({"word": "x" * 200}), f"look_up {'x' * 200}"),
    (json.dumps({"word": "x" * 201}), f"look_up {'x' * 200}…"),
    ("{}", "look_up"),
    ("no JSON", "look_up"),
    ('["a"]', "look_up"),
]


@pytest.mark.parametrize(("arguments", "title"), TITLES)
def test_a_title_is_the_name_and_the_first_short_argument(arguments: str, title: str) -> None:
    shown = show_call(FunctionCall("look_up", arguments), "/work")
    assert shown.title == title
    assert show_call(FunctionCall("look_up", arguments), "/work", agent="clerk").title == f"clerk: {title}"
    assert shown.arguments == (arguments if arguments == "no JSON" else json.loads(arguments))


PLACES: list[tuple[str, dict[str, Any], tuple[str, int | None] | None]] = [
    ("read_file", {"path": "a.txt", "start_line": 3}, ("a.txt", 3)),
    ("read_file", {"path": "a.txt", "start_line": "3"}, ("a.txt", None)),
    ("grep", {"path": "sub"}, ("sub", None)),
    ("delete_file", {"path": "a.txt"}, ("a.txt", None)),
    ("move_file", {"path": "a.txt"}, ("a.txt", None)),
    ("fetch", {"path": "a.txt"}, None),
    ("think", {"path": "a.txt"}, None),
    ("read_file", {"path": "../a.txt"}, None),
    ("read_file", {"path": 7}, None),
    ("read_file", {}, None),
]


@pytest.mark.parametrize(("name", "arguments", "place"), PLACES, ids=str)
def test_a_call_shows_the_file_of_the_workspace_that_it_touches(
    name: str, arguments: dict[str, Any], place: tuple[str, int | None] | None, tmp_path: Path
) -> None:
    call = FunctionCall(name, json.dumps(arguments))
    locations = [(one.path, one.line) for one in show_call(call, str(tmp_path)).locations]
    assert locations == ([] if place is None else [(str(tmp_path.resolve() / place[0]), place[1])])
    assert show_call(call, "").locations == []  # no tool of the agent has a workspace
    assert replaced_file(call, str(tmp_path)) is None


def test_only_a_call_that_writes_a_whole_text_replaces_a_file(tmp_path: Path) -> None:
    file = tmp_path.resolve() / "a.txt"
    edit = {"path": "a.txt", "edits": [{"old_text": "a", "new_text": "b"}, {"old_text": 1, "new_text": "b"}, "x"]}
    for name, arguments, is_whole in (
        ("write_file", {"path": "a.txt", "content": "x"}, True),
        ("write_file", {"path": "a.txt", "content": 7}, False),
        ("edit_file", edit, False),
        ("delete_file", {"path": "a.txt", "content": "x"}, False),
    ):
        call = FunctionCall(name, json.dumps(arguments))
        assert replaced_file(call, str(tmp_path)) == (file if is_whole else None)
    (change,) = show_call(FunctionCall("edit_file", json.dumps(edit)), str(tmp_path)).changes
    assert (change.path, change.old_text, change.new_text) == (str(file), "a", "b")  # type: ignore[union-attr]


class Feed:
    """Feeds one run's events, and keeps its updates as JSON."""

    def __init__(self, workspace: str = "") -> None:
        self.updates = Updates(workspace)

    def __call__(self, event: Any, depth: int = 0, run_id: str = "r") -> list[dict[str, Any]]:
        updates = self.updates.feed(RunEvent(run_id, 1, "clerk" if depth else "helper", depth, event))
        return [one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in updates]


def texts(*updates: list[dict[str, Any]]) -> list[str]:
    return [one["content"]["text"] for some in updates for one in some]


def test_texts_are_chunks_of_one_message_in_each_turn() -> None:
    feed = Feed()
    assert not feed.updates.has_text
    ids = []
    for turn in (1, 2):
        assert feed(TurnStarted(turn)) == []
        chunks = [*feed(ReasoningDelta("hm")), *feed(TextDelta("a")), *feed(MediaDelta(ContentItem(image=PIXEL)))]
        assert [one["sessionUpdate"] for one in chunks] == [
            "agent_thought_chunk", "agent_message_chunk", "agent_message_chunk",
        ]  # fmt: skip
        assert len({one["messageId"] for one in chunks}) == 1
        ids.append(chunks[0]["messageId"])
    assert ids[0] != ids[1]
    assert feed(ReasoningDelta("")) == []
    assert feed(MediaDelta(ContentItem(image="https://example.org/a.png"))) == []
    assert feed(TextDelta("inner"), depth=1) == []
    assert feed.updates.has_text


@pytest.mark.parametrize(
    ("pieces", "new", "is_same"),
    [
        (["The ", "answer."], ["answer."], True),
        (["The answer."], ["answer."], True),
        (["T", "he", " "], [], True),
        (["The ", "end."], ["end."], True),
        (["An", "other."], ["An", "other."], False),
        (["Then", " more"], ["Then", " more"], False),
    ],
)
def test_a_turn_that_begins_again_shows_only_what_is_new(pieces: list[str], new: list[str], is_same: bool) -> None:
    feed = Feed()
    feed(TurnStarted(1))
    (first,) = feed(TextDelta("The "))
    feed(StreamReset("broken"))
    assert feed(ReasoningDelta("again")) == []  # thoughts were shown
    chunks = [chunk for piece in pieces for chunk in feed(TextDelta(piece))]
    assert texts(chunks) == new
    assert all((chunk["messageId"] == first["messageId"]) == is_same for chunk in chunks)


def finished(call_id: str, *items: ContentItem, error: str = "", metadata: Any = None) -> ToolFinished:
    message = Message("function", list(items), name="look_up", extra={"function_id": call_id})
    return ToolFinished(0, call_id, message, 0.1, error, metadata or {})


CALL = FunctionCall("look_up", '{"word": "oak"}')


@pytest.mark.parametrize(("error", "status"), [("", "completed"), ("RuntimeError", "failed")])
def test_a_call_has_one_id_from_its_start_to_its_result_and_another_one_next_time(error: str, status: str) -> None:
    feed = Feed()
    ids = []
    for _ in range(2):
        (start,) = feed(ToolStarted(0, "c1", CALL))
        (progress,) = feed(ToolProgress(0, "c1", "half"))
        sources = {"sources": ["https://example.org/a", "/srv/secret.pdf"]}
        items = ContentItem(text="A tree."), ContentItem(image=PIXEL), ContentItem(file="/srv/secret.pdf")
        (end,) = feed(finished("c1", *items, error=error, metadata=sources))
        assert [start["sessionUpdate"], progress["sessionUpdate"]] == ["tool_call", "tool_call_update"]
        assert (start["status"], start["title"], start["rawInput"]) == ("in_progress", "look_up oak", {"word": "oak"})
        assert (progress["content"][0]["content"]["text"], end["status"]) == ("half", status)
        shown = [one["content"].get("text") or one["content"].get("uri", "image") for one in end["content"]]
        assert shown == ["A tree.", "image", "https://example.org/a"]
        ids.append({one["toolCallId"] for one in (start, progress, end)})
    assert [len(one) for one in ids] == [1, 1]
    assert ids[0] != ids[1]


def test_calls_of_two_runs_with_one_id_are_two_calls_and_those_of_nested_agents_are_named() -> None:
    feed = Feed()
    (outer,), (inner,) = feed(ToolStarted(0, "c1", CALL)), feed(ToolStarted(0, "c1", CALL), 1, "nested")
    assert outer["toolCallId"] != inner["toolCallId"]
    assert (outer["title"], inner["title"]) == ("look_up oak", "clerk: look_up oak")


def test_a_call_that_was_never_begun_is_shown_with_what_the_model_wanted() -> None:
    feed = Feed()
    wanted = Message("assistant", "", function_call=CALL, extra={"function_id": "c1"})
    assert feed(TurnFinished(1, (wanted,), Usage())) == []
    start, end = feed(finished("c1", ContentItem(text="No."), error="Denied"))
    assert (start["title"], start["sessionUpdate"], end["status"]) == ("look_up oak", "tool_call", "failed")
    start, _ = feed(finished("c2", ContentItem(text="No."), error="Denied"))
    assert start["title"] == "look_up"


def test_the_change_of_a_file_stays_to_be_seen_unless_the_call_failed(tmp_path: Path) -> None:
    call = FunctionCall("write_file", '{"path": "a.txt", "content": "new"}')
    for error, is_kept in (("", True), ("OSError", False)):
        feed = Feed(str(tmp_path))
        (start,) = feed(ToolStarted(0, "c1", call))
        assert [one["type"] for one in start["content"]] == ["diff"]
        (end,) = feed(finished("c1", ContentItem(text="ok"), error=error))
        assert ("content" not in end) == is_kept
        feed(ToolStarted(0, "c1", CALL))  # the next call of this id changes no file
        assert "content" in feed(finished("c1", ContentItem(text="ok")))[0]
        # It is shown from the text that the editor had before this call alone.
        feed.updates.texts_before["r", "c1"] = TextBefore("old")
        (start,) = feed(ToolStarted(0, "c1", call))
        assert start["content"][0]["oldText"] == "old"
        feed(finished("c1", ContentItem(text="ok"), error=error))
        (start,) = feed(ToolStarted(0, "c1", call))
        assert "oldText" not in start["content"][0]


@pytest.mark.parametrize(
    ("agent", "kind", "is_settled"), [("", "approval", False), ("clerk", "approval", True), ("", "question", True)]
)
@pytest.mark.parametrize(("is_allowed", "status"), [(True, "completed"), (False, "failed")])
def test_an_answer_that_no_event_shows_ends_its_call(
    agent: str, kind: Any, is_settled: bool, is_allowed: bool, status: str
) -> None:
    updates = Updates("")
    waiting = WaitingCall(call_id="c1", call=CALL, kind=kind, agent=agent)
    call_id, shown = updates.propose("r", "c1", CALL, agent)
    assert shown.title == (f"{agent}: look_up oak" if agent else "look_up oak")
    ends = list(updates.settle("r", waiting, is_allowed))
    assert [(one.tool_call_id, one.status) for one in ends] == ([(call_id, status)] if is_settled else [])  # type: ignore[union-attr]
    if is_settled:
        assert list(updates.settle("r", waiting, is_allowed)) == []


def test_only_the_last_message_of_the_person_is_repeated() -> None:
    messages = (
        Message("user", "old"),
        Message("assistant", "answer"),
        Message("user", "one"),
        Message("user", [ContentItem(text="two"), ContentItem(image=PIXEL), ContentItem(file="/srv/a.pdf")]),
    )
    shown = [one.model_dump(mode="json", by_alias=True) for one in user_updates(messages)]
    assert [one["content"].get("text") or one["content"]["mimeType"] for one in shown] == ["one", "two", "image/png"]
    assert list(user_updates((Message("assistant", "answer"),))) == []


def test_a_prompt_is_one_text_or_its_parts_in_order() -> None:
    text = TextContentBlock(type="text", text="Look: ")
    link = ResourceContentBlock(type="resource_link", name="a.md", uri="file:///a.md")
    file = EmbeddedResourceContentBlock(
        type="resource", resource=TextResourceContents(uri="file:///b.md", text="inside")
    )
    assert read_prompt([text, link, file]).content == (
        "Look: [a.md](file:///a.md)\n<file address='file:///b.md'>\ninside\n</file>\n"
    )
    image = ImageContentBlock(type="image", mime_type="image/png", data="iVBO")
    sound = AudioContentBlock(type="audio", mime_type="audio/wav", data="UklG")
    assert read_prompt([image, text, sound]).content == [
        ContentItem(image=PIXEL), ContentItem(text="Look: "), ContentItem(audio=SOUND),
    ]  # fmt: skip
    for empty in ([], [TextContentBlock(type="text", text=" \n")]):
        with pytest.raises(RequestRefusedError):
            read_prompt(empty)
    assert read_prompt([image]).content == [ContentItem(image=PIXEL)]


@pytest.mark.parametrize(
    ("error", "code", "data", "is_logged"),
    [
        (RequestRefusedError("no", status=404, code="z"), -32602, {"code": "z"}, False),
        (RequestRefusedError("no", status=500, code="z"), -32603, {"code": "z"}, False),
        (RateLimitedError("full", retry_after_s=2.6), -32603, {"retryAfter": 3}, False),
        (RateLimitedError("full", retry_after_s=0.1), -32603, {"retryAfter": 1}, False),
        (ZeroDivisionError("sk-secret"), -32603, {"code": "internal"}, True),
        (ConnectionResetError("sk-secret"), -32603, {}, False),
        (RequestError(7, "own"), 7, {}, False),
    ],
    ids=str,
)
def test_only_unexpected_errors_are_logged_and_none_shows_its_text(
    error: Exception, code: int, data: dict[str, Any], is_logged: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(RequestError) as caught, errors_of_protocol():
        raise error
    assert caught.value.code == code
    assert data.items() <= (caught.value.data or {}).items()
    assert "sk-secret" not in str(caught.value)
    assert bool(caplog.records) == is_logged
