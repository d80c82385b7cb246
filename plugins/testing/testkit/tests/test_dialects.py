"""A protocol of one's own takes three methods, and gets all that the server can do wrong."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from jackfield_testkit import replies
from jackfield_testkit.anthropic import AnthropicMessages
from jackfield_testkit.dialects import Chunk, Dialect, Writer, as_json
from jackfield_testkit.replies import Reply, ToolCall
from jackfield_testkit.requests import RecordedRequest
from jackfield_testkit.server import FakeOpenAI


class LineWriter(Writer):
    """A line of JSON for each chunk."""

    comment = b"\n"
    malformed = b'{"text": \n'

    def event(self, chunk: Chunk) -> bytes:
        return chunk.encode() if isinstance(chunk, str) else as_json(chunk["choices"][0]["delta"]) + b"\n"

    def whole(self) -> bytes:
        return b"".join(map(self.event, self.reply.chunks))

    def done(self) -> bytes:
        return b'{"done": true}\n'


class Lines(Dialect):
    """What it is asked is under `ask`."""

    name = "lines"
    base_path = "/api"
    request_id_header = "x-line"
    stream_type = "application/x-ndjson"

    def request(self, arrived: RecordedRequest) -> RecordedRequest:
        said = {"messages": [{"role": "user", "content": arrived.native["ask"]}], "stream": True}
        return replace(arrived, json=said, path="/v1/chat/completions", headers={"authorization": "Bearer x"})

    def writer(self, reply: Reply, request: RecordedRequest) -> Writer:
        return LineWriter(reply, request.model)

    def error(self, status: int, problem: Mapping[str, Any], request: RecordedRequest) -> bytes:
        return as_json({"no": problem["message"], "status": status, "id": request.request_id})


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    """The server that the clients of conftest.py connect to."""
    with FakeOpenAI(dialect=Lines()) as running:
        yield running


@pytest.fixture
def ask(client: Any) -> Callable[[], Any]:
    """Asks once."""

    def ask() -> Any:
        client.send({"ask": "hi"}, path="/api/ask")
        return client.receive()

    return ask


def test_a_request_is_both_as_it_arrived_and_as_chat_completions_has_it(
    server: FakeOpenAI, ask: Callable[[], Any]
) -> None:
    server.reply(replies.text("hello"))
    ask()
    (request,) = server.requests
    assert (request.native, request.native_path) == ({"ask": "hi"}, "/api/ask")
    assert "host" in request.native_headers
    assert request.json["messages"] == [{"role": "user", "content": "hi"}]
    assert (request.path, request.headers) == ("/v1/chat/completions", {"authorization": "Bearer x"})
    assert server.url.endswith("/api")


def test_an_answer_is_written_by_the_dialect(server: FakeOpenAI, ask: Callable[[], Any]) -> None:
    server.reply(replies.text(["hel", "lo"]))
    answer = ask()
    assert (answer.headers["content-type"], answer.headers["x-line"]) == ("application/x-ndjson", "req_1")
    lines = [json.loads(line) for line in answer.body.splitlines()]
    assert lines == [{"role": "assistant", "content": "hel"}, {"content": "lo"}, {}, {"done": True}]


@pytest.mark.parametrize(
    ("spoilt", "body"),
    [
        (replies.text(["a", "b"]).broken_after(1, "end"), b'{"role":"assistant","content":"a"}\n'),
        (replies.text(["a"]).without("done").written(newline=b"\r\n"), b'{"role":"assistant","content":"a"}\r\n{}\r\n'),
        (replies.text(["a"]).broken_after(1, "end").written(comments=True), b'\n{"role":"assistant","content":"a"}\n'),
        (
            replies.text(["a"]).broken_after(1, "end").broken_after(0, "malformed"),
            b'{"text": \n{"role":"assistant","content":"a"}\n',
        ),
        (
            replies.text(["a"]).broken_after(1, "end").written(bom=True),
            b'\xef\xbb\xbf{"role":"assistant","content":"a"}\n',
        ),
    ],
    ids=["truncated", "crlf", "comments", "malformed", "byte order mark"],
)
def test_faults_are_the_same_in_any_dialect(
    server: FakeOpenAI, ask: Callable[[], Any], spoilt: Reply, body: bytes
) -> None:
    server.reply(spoilt)
    assert ask().body == body


def test_a_refusal_is_written_by_the_dialect_and_other_bytes_are_sent_as_they_are(
    server: FakeOpenAI, ask: Callable[[], Any]
) -> None:
    server.reply(replies.error(429, "slow down"), replies.raw(b"<html>", status=502))
    assert json.loads(ask().body) == {"no": "slow down", "status": 429, "id": "req_1"}
    assert ask().body == b"<html>"


# --- Anthropic's: as its SDK reads and writes it ---


@pytest.fixture
def messages_server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI(dialect=AnthropicMessages()) as server:
        yield server


def anthropic_events(server: FakeOpenAI, content: Any = "hi") -> list[dict[str, Any]]:
    """The events of a streamed answer to one message, without pings."""
    body = {"model": "m", "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": content}]}
    headers = {"x-api-key": "k", "anthropic-version": "2023-06-01", "content-type": "application/json"}
    asked = urllib.request.Request(f"{server.origin}/v1/messages", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(asked, timeout=10) as response:
        lines = [line.decode().removeprefix("data: ") for line in response if line.startswith(b"data: ")]
    return [event for event in map(json.loads, lines) if event["type"] != "ping"]


def test_content_may_be_a_text_in_place_of_blocks(messages_server: FakeOpenAI) -> None:
    messages_server.default = replies.text("ok")
    anthropic_events(messages_server, "hi")
    anthropic_events(messages_server, [{"type": "text", "text": "hi"}])
    plain, parts = (request.json["messages"] for request in messages_server.requests)
    assert plain == [{"role": "user", "content": "hi"}]
    assert parts == [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]


def test_blocks_are_numbered_by_their_place_in_the_answer(messages_server: FakeOpenAI) -> None:
    messages_server.reply(replies.reasoning("hm, hm", then="yes"))
    events = anthropic_events(messages_server)
    starts = [event for event in events if event["type"] == "content_block_start"]
    assert [(event["index"], event["content_block"]["type"]) for event in starts] == [(0, "thinking"), (1, "text")]
    assert starts[0]["content_block"] == {"type": "thinking", "thinking": "", "signature": ""}
    assert {event["index"] for event in events if "index" in event} == {0, 1}


def test_reasoning_comes_before_the_text_that_came_with_it(messages_server: FakeOpenAI) -> None:
    both = {"index": 0, "delta": {"content": "yes", "reasoning_content": "hm"}, "finish_reason": "stop"}
    messages_server.reply(replies.chunks([{"choices": [both]}]))
    events = anthropic_events(messages_server)
    starts = [event["content_block"]["type"] for event in events if event["type"] == "content_block_start"]
    assert starts == ["thinking", "text"]


@pytest.mark.parametrize("interleaved", [False, True])
def test_each_call_is_one_block_that_is_open_until_its_arguments_are_complete(
    messages_server: FakeOpenAI, interleaved: bool
) -> None:
    said = [ToolCall(name, {"of": name * 9}, id=f"call_{name}") for name in ("first", "second", "third")]
    messages_server.reply(replies.tool_calls(said, content="Wait.", interleaved=interleaved))
    names: dict[int, str] = {}
    arguments: dict[str, str] = {}
    is_open: set[int] = set()
    for event in anthropic_events(messages_server):
        match event["type"]:
            case "content_block_start":
                assert event["index"] == len(names)
                block = event["content_block"]
                names[event["index"]] = block.get("name", block["type"])
                is_open.add(event["index"])
            case "content_block_delta":
                assert event["index"] in is_open
                name = names[event["index"]]
                arguments[name] = arguments.get(name, "") + event["delta"].get("partial_json", "")
            case "content_block_stop":
                is_open.remove(event["index"])
    assert [*names.values()] == ["text", *(call.name for call in said)]
    assert {name: json.loads(text) for name, text in arguments.items() if text} == {
        call.name: call.arguments for call in said
    }
    assert is_open == set()
