"""The fake server speaks OpenAI's Responses API, seen from a plain socket."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jackfield_testkit import replies
from jackfield_testkit.replies import ToolCall
from jackfield_testkit.responses import FakeResponses, ResponsesRequest

Client = Any  # of conftest.py, which tests cannot import
PATH = "/v1/responses"


@pytest.fixture
def server() -> Iterator[FakeResponses]:
    """The server that the clients of conftest.py connect to."""
    with FakeResponses() as running:
        yield running


@pytest.fixture
def ask(client: Client) -> Callable[..., Any]:
    """Asks for a stream, or for one object."""

    def ask(**body: Any) -> Any:
        client.send({"model": "m", "input": "hi", "stream": True, **body}, path=PATH)
        return client.receive()

    return ask


def events(answer: Any) -> list[dict[str, Any]]:
    """The data of each event; its type is the event's name, too."""
    told = []
    for frame in answer.body.decode().strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in frame.splitlines())
        event = json.loads(fields["data"])
        assert fields["event"] == event["type"]
        told.append(event)
    return told


def kinds(answer: Any) -> list[str]:
    return [event["type"].removeprefix("response.") for event in events(answer)]


# --- replies ---


def test_a_text_is_a_message_told_in_pieces_as_an_item_and_as_a_response(
    server: FakeResponses, ask: Callable[..., Any]
) -> None:
    server.reply(replies.text("hello", chars=3))
    answer = ask()
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert b"[DONE]" not in answer.body
    assert kinds(answer) == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    told = events(answer)
    assert [event["sequence_number"] for event in told] == sorted({event["sequence_number"] for event in told})
    assert [event["delta"] for event in told if "delta" in event] == ["hel", "lo"]
    message = {
        "id": "msg_0",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "hello", "annotations": []}],
    }
    response = told[-1]["response"]
    assert told[-2]["item"] == message
    assert (response["status"], response["output"], response["model"]) == ("completed", [message], "m")
    assert response["usage"] == {
        "input_tokens": 11,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 16,
    }


def test_who_asks_for_no_stream_gets_one_object(server: FakeResponses, ask: Callable[..., Any]) -> None:
    server.reply(replies.reasoning("hm", then="hello").without("usage"))
    whole = json.loads(ask(stream=False).body)
    assert [item["type"] for item in whole["output"]] == ["reasoning", "message"]
    assert (whole["object"], whole["status"], whole["usage"]) == ("response", "completed", None)


@pytest.mark.parametrize(("field", "place"), [("reasoning_content", "summary"), ("reasoning", "content")])
def test_reasoning_is_an_item_of_its_own(
    server: FakeResponses, ask: Callable[..., Any], field: Any, place: str
) -> None:
    server.reply(replies.reasoning("hm", then="hello", field=field))
    output = events(ask())[-1]["response"]["output"]
    assert [item["type"] for item in output] == ["reasoning", "message"]
    assert output[0][place][0]["text"] == "hm"
    assert "encrypted_content" not in output[0]


def test_encrypted_reasoning_is_for_who_asks_for_it(server: FakeResponses, ask: Callable[..., Any]) -> None:
    server.reply(replies.reasoning("hm", then="hello"))
    told = events(ask(include=["reasoning.encrypted_content"]))
    done = [event["item"] for event in told if event["type"] == "response.output_item.done"]
    assert done[0]["encrypted_content"] == "encrypted:rs_0"


def test_calls_are_items_of_their_own_also_when_they_are_interleaved(
    server: FakeResponses, ask: Callable[..., Any]
) -> None:
    calls = [ToolCall("f", {"a": 1}, "x"), ToolCall("g", None)]
    server.reply(replies.tool_calls(calls, content="look", chars=4, interleaved=True))
    output = events(ask())[-1]["response"]["output"]
    assert [item["type"] for item in output] == ["message", "function_call", "function_call"]
    assert [(item.get("call_id"), item["name"], item["arguments"]) for item in output[1:]] == [
        ("x", "f", '{"a": 1}'),
        (None, "g", ""),
    ]


@pytest.mark.parametrize(
    ("reason", "kind", "told"),
    [
        ("length", "incomplete", {"reason": "max_output_tokens"}),
        ("content_filter", "incomplete", {"reason": "content_filter"}),
        ("stop", "completed", None),
    ],
)
def test_an_answer_that_stopped_short_says_why(
    server: FakeResponses, ask: Callable[..., Any], reason: str, kind: str, told: Any
) -> None:
    server.reply(replies.text("hello", finish_reason=reason))
    last = events(ask())[-1]
    assert last["type"] == f"response.{kind}"
    assert (last["response"]["status"], last["response"]["incomplete_details"]) == (kind, told)


def test_an_answer_without_an_end_has_none(server: FakeResponses, ask: Callable[..., Any]) -> None:
    server.reply(replies.text("hello", finish_reason=None))
    assert kinds(ask())[-1] == "output_text.delta"


def test_an_error_inside_a_stream_is_an_event(server: FakeResponses, ask: Callable[..., Any]) -> None:
    server.reply(replies.chunks([{"error": {"message": "fire", "code": "hot"}}]))
    last = events(ask())[-1]
    assert (last["type"], last["code"], last["message"]) == ("error", "hot", "fire")


def test_events_of_its_own_and_raw_bytes_are_sent_as_they_are(server: FakeResponses, ask: Callable[..., Any]) -> None:
    own = {"type": "response.of_tomorrow", "x": 1}
    server.reply(replies.chunks([own]), replies.raw(b"\xff"), replies.error(429, "slow down", code="slow"))
    assert events(ask()) == [own]
    assert ask().body == b"\xff"
    refused = ask()
    assert (refused.status, json.loads(refused.body)["error"]["code"]) == (429, "slow")


def test_each_event_of_a_reply_is_one_piece(server: FakeResponses, ask: Callable[..., Any]) -> None:
    server.reply(
        replies.text("hello", chars=3).broken_after(1, "end"),
        replies.text("hello", chars=3).broken_after(1, "malformed"),
        replies.text("hello", chars=3).written(newline=b"\r\n", comments=True).cut(5),
        replies.text("hello", chars=3).written(empty_chunks=True),
        replies.text("hello", chars=3).reset_after(1),
    )
    assert [event.get("delta") for event in events(ask())][-1] == "hel"
    with pytest.raises(json.JSONDecodeError):
        events(ask())
    assert ask().body.count(b": ping\r\n\r\nevent:") == 3
    assert "keepalive" in kinds(ask())
    assert ask().broken == "reset"


# --- requests ---


def test_a_request_is_read_as_the_other_protocol_has_it_and_as_it_came(
    server: FakeResponses, ask: Callable[..., Any]
) -> None:
    server.reply(replies.text("ok"))
    content = [
        {"type": "input_text", "text": "look"},
        {"type": "input_image", "image_url": "http://h/a.png", "detail": "auto"},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        {"type": "input_file", "file_url": "http://h/a.pdf"},
    ]
    native = {
        "instructions": "be brief",
        "input": [
            {"type": "message", "role": "user", "content": content},
            {"type": "reasoning", "id": "rs", "summary": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "let me see"}]},
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "seen"}]},
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
        ],
        "tools": [
            {"type": "function", "name": "f", "parameters": {}, "strict": False},
            {"type": "web_search"},
        ],
        "tool_choice": {"type": "function", "name": "f"},
        "text": {"format": {"type": "json_schema", "name": "n", "schema": {}}},
        "reasoning": {"effort": "low"},
        "max_output_tokens": 17,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "seed": 7,
    }
    ask(**native)
    request = server.requests[0]
    assert isinstance(request, ResponsesRequest)
    assert request.native == {"model": "m", "stream": True, **native}
    assert (request.native_path, request.path) == (PATH, "/v1/chat/completions")
    assert request.json == {
        "model": "m",
        "stream": True,
        "messages": [
            {"role": "system", "content": "be brief"},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "look"},
                    {"type": "image_url", "image_url": {"url": "http://h/a.png"}},
                    {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
                    {"type": "file", "file": {"file_url": "http://h/a.pdf"}},
                ],
            },
            {
                "role": "assistant",
                "content": [{"type": "text", "text": "let me see"}],
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "seen"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "no"}]},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}, {"type": "web_search"}],
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}},
        "reasoning_effort": "low",
        "max_completion_tokens": 17,
        "seed": 7,
    }


def test_what_lets_the_provider_keep_something_is_shown(server: FakeResponses, ask: Callable[..., Any]) -> None:
    server.reply(replies.text("ok"))
    ask(store=True, include=["message.output_text.logprobs"])
    assert (server.requests[0].json["store"], server.requests[0].json["include"]) == (
        True,
        ["message.output_text.logprobs"],
    )


def test_a_request_of_another_protocol_is_left_as_it_is(server: FakeResponses, client: Client) -> None:
    server.reply(replies.text("ok"))
    client.send({"model": "m", "messages": []}, path="/v1/chat/completions")
    client.receive()
    assert server.requests[0].json == {"model": "m", "messages": []}


def test_when_the_script_is_over_it_says_so(ask: Callable[..., Any]) -> None:
    answer = ask()
    assert answer.status == 500
    assert "no scripted reply is left" in json.loads(answer.body)["error"]["message"]
