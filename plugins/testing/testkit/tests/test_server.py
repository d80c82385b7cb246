"""The fake server does what it says, seen from a plain socket."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from http.client import HTTPConnection
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield_testkit import replies
from jackfield_testkit.dialects import ChatCompletions
from jackfield_testkit.replies import Reply, ToolCall
from jackfield_testkit.server import FakeOpenAI, RecordedRequest

Client = Any  # of conftest.py, which tests cannot import
Connect = Callable[..., Client]


# --- the two forms of an answer ---


def test_a_text_is_streamed_in_pieces_and_ends_with_a_reason_and_done(server: FakeOpenAI, client: Client) -> None:
    server.reply(replies.text("hello world", chars=4))
    answer = client.ask()
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert [chunk["choices"][0]["delta"].get("content") for chunk in answer.chunks] == ["hell", "o wo", "rld", None]
    assert [chunk["choices"][0]["finish_reason"] for chunk in answer.chunks] == [None, None, None, "stop"]
    assert {chunk["object"] for chunk in answer.chunks} == {"chat.completion.chunk"}
    assert {chunk["model"] for chunk in answer.chunks} == {"m"}
    assert answer.events[-1] == "[DONE]"
    assert len(answer.pieces) == len(answer.events)


def test_who_wants_no_stream_gets_one_object(server: FakeOpenAI, client: Client) -> None:
    server.reply(replies.reasoning("hm", then="hello"))
    answer = client.ask(stream=False)
    whole = json.loads(answer.body)
    assert answer.headers["content-type"] == "application/json"
    assert whole["object"] == "chat.completion"
    assert whole["choices"][0]["message"] == {"role": "assistant", "content": "hello", "reasoning_content": "hm"}
    assert whole["choices"][0]["finish_reason"] == "stop"
    assert whole["usage"] == replies.DEFAULT_USAGE


def test_a_reply_may_ignore_that_a_stream_is_wanted(server: FakeOpenAI, client: Client) -> None:
    server.reply(replies.text("hello").written(as_one_object=True))
    assert json.loads(client.ask().body)["choices"][0]["message"]["content"] == "hello"


def test_usage_is_streamed_last_to_who_asks_for_it(server: FakeOpenAI, client: Client) -> None:
    server.reply(replies.text("a"), replies.text("b"), replies.text("c").without("usage"))
    asked = client.ask(usage=True).chunks[-1]
    assert (asked["choices"], asked["usage"]) == ([], replies.DEFAULT_USAGE)
    assert not any("usage" in chunk for chunk in client.ask().chunks)
    assert not any("usage" in chunk for chunk in client.ask(usage=True).chunks)


@given(
    calls=st.lists(
        st.tuples(
            st.text(min_size=1, max_size=9), st.dictionaries(st.text(max_size=9), st.text(max_size=9), max_size=3)
        ),
        min_size=1,
        max_size=3,
    ),
    chars=st.integers(1, 9),
    interleaved=st.booleans(),
)
def test_tool_calls_mean_the_same_in_both_forms(
    calls: list[tuple[str, dict[str, str]]], chars: int, interleaved: bool
) -> None:
    wanted = [ToolCall(name, arguments, f"id{number}") for number, (name, arguments) in enumerate(calls)]
    reply = replies.tool_calls(wanted, chars=chars, interleaved=interleaved)
    whole = json.loads(b"".join(replies.pieces(reply, "m", stream=False, with_usage=False)))
    told = whole["choices"][0]["message"]["tool_calls"]
    assert [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in told] == calls
    joined: dict[int, str] = {}
    for piece in replies.pieces(reply, "m", stream=True, with_usage=False)[:-2]:
        (part,) = json.loads(piece.removeprefix(b"data: "))["choices"][0]["delta"]["tool_calls"]
        joined[part["index"]] = joined.get(part["index"], "") + part["function"]["arguments"]
    assert [json.loads(joined[index]) for index in sorted(joined)] == [arguments for _, arguments in calls]


CALL_PARTS = [
    {"index": 1, "id": "b", "function": {"name": "g", "arguments": "{}"}},
    {"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}},
    {"index": 2, "id": "", "function": {"name": "h", "arguments": None}},
]
FOLDED: list[tuple[Reply, dict[str, Any], str | None]] = [
    (replies.reasoning("hm", then="a", field="reasoning"), {"content": "a", "reasoning": "hm"}, "stop"),
    (replies.text("a", finish_reason="length").written(empty_chunks=True), {"content": "a"}, "length"),
    (replies.text("a", finish_reason=None), {"content": "a"}, None),
    (
        replies.chunks(
            [
                {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]},
                *({"choices": [{"delta": {"tool_calls": [part]}, "finish_reason": None}]} for part in CALL_PARTS),
            ]
        ),
        {
            "content": None,
            "tool_calls": [
                {"type": "function", "id": "a", "function": {"name": "f", "arguments": ""}},
                {"type": "function", "id": "b", "function": {"name": "g", "arguments": "{}"}},
                {"type": "function", "function": {"name": "h", "arguments": None}},
            ],
        },
        "tool_calls",
    ),
]


@pytest.mark.parametrize(("reply", "message", "reason"), FOLDED)
def test_a_stream_adds_up_to_one_message_and_its_reason(
    reply: Reply, message: dict[str, Any], reason: str | None
) -> None:
    assert replies.folded(reply.chunks) == ({"role": "assistant", **message}, reason)


@pytest.mark.parametrize(("id", "sent"), [(None, {}), ("", {"id": ""}), ("a", {"id": "a"})])
def test_a_call_has_the_id_that_it_was_given_even_an_empty_one(id: str | None, sent: dict[str, str]) -> None:  # noqa: A002 - as in replies
    first = replies.tool_call("f", {}, id=id).chunks[0]
    assert not isinstance(first, str)
    (call,) = first["choices"][0]["delta"]["tool_calls"]
    assert {name: value for name, value in call.items() if name == "id"} == sent


def test_characters_can_be_sent_in_halves_which_only_escapes_can_write() -> None:
    reply = replies.text("🙂a", chars=0)
    pieces = replies.pieces(reply, "m", stream=True)
    assert [json.loads(piece[6:])["choices"][0]["delta"].get("content") for piece in pieces[:3]] == [
        "\ud83d",
        "\ude42",
        "a",
    ]
    assert b'"\\ud83d"' in pieces[0]


@pytest.mark.parametrize(
    ("body", "streams", "wants_usage"),
    [
        ({"stream": True, "stream_options": {"include_usage": True}}, True, True),
        ({"stream": 1, "stream_options": {"include_usage": 1}}, False, False),
        ({"stream": False, "stream_options": {"include_usage": False}}, False, False),
        ({"stream": True, "stream_options": None}, True, False),
        ([], False, False),
    ],
)
def test_only_true_asks_for_a_stream_or_for_usage(
    server: FakeOpenAI, client: Client, body: Any, streams: bool, wants_usage: bool
) -> None:
    server.reply(replies.text("ok"))
    client.send(body)
    client.receive()
    assert (server.requests[0].streams, server.requests[0].wants_usage) == (streams, wants_usage)


def test_interleaved_calls_come_in_turns(server: FakeOpenAI, client: Client) -> None:
    calls = [ToolCall("f", "12345678", "a"), ToolCall("g", "12345678", "b")]
    server.reply(replies.tool_calls(calls, chars=4, interleaved=True))
    parts = [chunk["choices"][0]["delta"].get("tool_calls") for chunk in client.ask().chunks]
    assert [part[0]["index"] for part in parts if part] == [0, 1, 0, 1, 0, 1]


def test_chunks_are_sent_as_they_are(server: FakeOpenAI, client: Client) -> None:
    server.reply(replies.chunks([{"a": 1}, "no JSON"]))
    assert client.ask().events == ['{"a":1}', "no JSON", "[DONE]"]


def test_raw_bytes_are_sent_as_they_are(server: FakeOpenAI, client: Client) -> None:
    server.reply(replies.raw(b"\0\xff", {"Content-Type": "image/x", "X-A": "b"}, status=203))
    answer = client.ask()
    assert (answer.status, answer.body) == (203, b"\0\xff")
    assert (answer.headers["content-type"], answer.headers["x-a"]) == ("image/x", "b")


def test_an_error_has_its_status_its_headers_and_openais_form(server: FakeOpenAI, client: Client) -> None:
    server.reply(replies.error(429, "slow down", code="slow", type="rate", headers={"Retry-After": "2"}))
    answer = client.ask()
    assert (answer.status, answer.headers["retry-after"]) == (429, "2")
    assert json.loads(answer.body) == {"error": {"message": "slow down", "type": "rate", "param": None, "code": "slow"}}


def test_the_models_are_listed_without_using_up_the_script(server: FakeOpenAI, client: Client) -> None:
    server.models = ("one", "two")
    client.send(b"", method="GET", path="/v1/models")
    assert [model["id"] for model in json.loads(client.receive().body)["data"]] == ["one", "two"]
    assert server.requests == []
    for path in ("/v1/else", "/v1/models/one", "/v1/models-of-others", "/v1/else?of=/models"):
        client.send(b"", method="GET", path=path)
        assert client.receive().status == 404
    assert [listing.path for listing in server.listings] == ["/v1/models"]


# --- delivery ---


@given(text=st.text(), chars=st.integers(1, 5), size=st.integers(1, 40), crlf=st.booleans(), comments=st.booleans())
def test_cutting_changes_no_byte(text: str, chars: int, size: int, crlf: bool, comments: bool) -> None:
    reply = replies.text(text, chars=chars)
    reply = reply.written(newline=b"\r\n") if crlf else reply
    reply = reply.written(comments=True) if comments else reply
    whole = b"".join(replies.pieces(reply, "m", stream=True, with_usage=True))
    cut = replies.pieces(reply.cut(size), "m", stream=True, with_usage=True)
    assert b"".join(cut) == whole
    assert {len(piece) for piece in cut[:-1]} <= {size}
    assert b"".join(replies.pieces(reply.cut(inside_characters=True), "m", stream=True, with_usage=True)) == whole
    assert b"".join(replies.pieces(reply.cut(at=[3, 1, 3, 10**6]), "m", stream=True, with_usage=True)) == whole


def test_cuts_are_seen_by_the_client(server: FakeOpenAI, client: Client) -> None:
    server.reply(replies.text("hello").cut(7), replies.text("hello").cut(at=[5, 9]))
    assert {len(piece) for piece in client.ask().pieces[:-1]} == {7}
    assert [len(piece) for piece in client.ask().pieces[:2]] == [5, 4]


def test_every_character_of_several_bytes_is_cut(server: FakeOpenAI, client: Client) -> None:
    server.reply(replies.text("é🙂").cut(inside_characters=True))
    answer = client.ask()
    assert answer.text == "é🙂"
    assert sum(1 for piece in answer.pieces if 0x80 <= piece[0] < 0xC0) == 1 + 3


def test_comments_and_empty_chunks_stand_between_the_events(server: FakeOpenAI, client: Client) -> None:
    server.reply(replies.text("hello", chars=1).written(comments=True, empty_chunks=True))
    answer = client.ask()
    assert answer.text == "hello"
    assert answer.body.count(b": ping\n\n") == len(answer.chunks)
    assert any(chunk["choices"] == [] for chunk in answer.chunks)


def test_a_stream_may_lack_done_or_its_end(server: FakeOpenAI, client: Client) -> None:
    server.reply(replies.text("hello").without("done"), replies.text(["one", "two"]).broken_after(1, "end"))
    assert "[DONE]" not in client.ask().events
    truncated = client.ask()
    assert (truncated.text, len(truncated.events), truncated.broken) == ("one", 1, "")


def test_a_malformed_event_is_put_between_good_ones(server: FakeOpenAI, client: Client) -> None:
    server.reply(replies.text(["one", "two"]).broken_after(1, "malformed"))
    events = client.ask().events
    with pytest.raises(ValueError, match="Unterminated"):
        json.loads(events[1])
    assert [json.loads(event)["choices"][0]["delta"]["content"] for event in (events[0], events[2])] == ["one", "two"]


def test_a_reset_comes_after_so_many_events(server: FakeOpenAI, client: Client) -> None:
    server.reply(replies.text(["one", "two"]).reset_after(1))
    answer = client.ask()
    assert (answer.text, answer.broken) == ("one", "reset")
    assert server.wait_until(lambda s: s.open_connections == 0)
    assert server.disconnects == 0, "the server itself has ended it"


def test_a_stall_lasts_until_the_client_leaves(server: FakeOpenAI, connect: Connect) -> None:
    server.reply(replies.text(["one", "two"]).stall_after(1))
    client = connect(timeout_s=0.2)
    answer = client.ask()
    assert (answer.text, answer.broken) == ("one", "silent")
    assert server.open_streams == 1
    client.close()
    assert server.wait_until(lambda s: s.disconnects == 1)
    assert server.open_streams == 0


def test_a_stall_ends_when_the_server_stops() -> None:
    with FakeOpenAI(default=replies.text("x").stall_after(1)) as server:
        import http.client

        connection = http.client.HTTPConnection(server.origin.removeprefix("http://"), timeout=5)
        connection.request("POST", "/v1/chat/completions", json.dumps({"stream": True}))
        response = connection.getresponse()
        assert server.open_streams == 1
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        response.read()
    connection.close()


@pytest.mark.parametrize("reply", [replies.text("x").delayed(60), replies.text(["a"] * 100).paced(60)])
def test_a_client_that_leaves_in_a_pause_is_noticed(server: FakeOpenAI, connect: Connect, reply: Reply) -> None:
    server.reply(reply)
    client = connect()
    client.send({"stream": True})
    assert server.wait_until(lambda s: s.open_streams == 1)
    client.close()
    assert server.wait_until(lambda s: s.disconnects == 1)


@pytest.mark.parametrize("newline", [b"\r\n", b"\r"])
def test_endless_comments_have_the_line_ends_of_their_stream(
    server: FakeOpenAI, client: Client, newline: bytes
) -> None:
    server.reply(replies.text(["one", "two"]).written(newline=newline).broken_after(1, "comment"))
    client.send({"stream": True})
    body = b""
    while body.count(b"ping") < 2:
        body += client.file.read(1)
    assert body.count(b": ping" + newline * 2) == 1


def test_a_bom_comes_once_and_first() -> None:
    for reply in (replies.text("hello"), replies.text("hello").cut(5)):
        for stream in (True, False):
            body = b"".join(replies.pieces(reply.written(bom=True), "m", stream=stream))
            assert body == b"\xef\xbb\xbf" + b"".join(replies.pieces(reply, "m", stream=stream))


def test_ways_of_writing_add_up() -> None:
    ways: list[dict[str, Any]] = [
        {"newline": b"\r\n"},
        {"comments": True},
        {"bom": True},
        {"empty_chunks": True},
        {"as_one_object": True},
        {"headers": {"A": "1"}},
        {"headers": {"B": "2"}},
    ]
    reply = plain = replies.text("hello")
    for way in ways:
        reply = reply.written(**way)
    assert (reply.newline, reply.comments, reply.bom, reply.ignores_stream) == (b"\r\n", True, True, True)
    assert len(reply.chunks) == 2 * len(plain.chunks)
    assert reply.headers == (("A", "1"), ("B", "2"))


def test_cuts_fall_where_they_are_wanted_and_once() -> None:
    reply = replies.raw(b"0123456789")

    def cut(*at: int) -> list[bytes]:
        return replies.pieces(reply.cut(at=at), "m", stream=False)

    assert cut(9, 1, 4, 1) == [b"0", b"123", b"45678", b"9"]
    assert cut(0, 10, 11) == [b"0123456789"]


@pytest.mark.parametrize("count", range(6))
def test_a_fault_comes_after_exactly_so_many_events(count: int) -> None:
    reply = replies.text(["one", "two", "three"])  # and an event with the reason, and one with the usage
    whole = replies.pieces(reply, "m", stream=True, with_usage=True)
    malformed = replies.pieces(reply.broken_after(count, "malformed"), "m", stream=True, with_usage=True)
    assert (malformed[:count], malformed[count + 1 :]) == (whole[:count], whole[count:])
    cut = replies.pieces(reply.broken_after(count, "end"), "m", stream=True, with_usage=True)
    assert cut == whole[:count]
    # An object has no events: it is sent whole unless nothing is to be sent.
    assert bool(replies.pieces(reply.reset_after(count), "m", stream=False)) == (count > 0)


def test_a_paced_stream_is_whole(server: FakeOpenAI, client: Client) -> None:
    server.reply(replies.text("hello", chars=1).paced(0.001))
    answer = client.ask()
    assert (answer.text, answer.events[-1]) == ("hello", "[DONE]")


# --- the script ---


def test_replies_are_taken_in_order_then_the_function_then_the_default(server: FakeOpenAI, client: Client) -> None:
    server.default = replies.text("default")
    server.reply(replies.text("one"), replies.text("two"))
    assert [client.ask().text for _ in range(3)] == ["one", "two", "default"]
    server.respond(lambda request: replies.text(f"you said {request.json['messages'][0]['content']}"))
    assert client.ask().text == "you said hi"
    server.respond(None)
    assert client.ask().text == "default"


class Strict(ChatCompletions):
    """A dialect that refuses requests without messages, and has an answer of its own."""

    def refuse(self, request: RecordedRequest) -> Reply | None:
        return None if request.json.get("messages") else replies.error(400)

    def unscripted(self, request: RecordedRequest) -> Reply | None:
        return replies.text("the dialect's")


def test_a_refusal_uses_up_no_reply_and_a_script_goes_before_everything_else() -> None:
    with FakeOpenAI(dialect=Strict()) as server:
        http = HTTPConnection(server.origin.removeprefix("http://"), timeout=30)

        def ask(body: object) -> str:
            http.request("POST", "/v1/chat/completions", json.dumps(body))
            answer = http.getresponse()
            told = json.loads(answer.read())
            return str(answer.status) if answer.status != 200 else told["choices"][0]["message"]["content"]

        hello = {"messages": [{"role": "user", "content": "hi"}]}
        server.respond(lambda request: replies.text("the function's"))
        server.reply(replies.text("scripted"))
        assert [ask({}), ask(hello), ask(hello), ask({})] == ["400", "scripted", "the function's", "400"]
        server.respond(None)
        assert ask(hello) == "the dialect's"
        server.default = replies.text("default")
        assert ask(hello) == "default"
        http.close()


def test_clearing_forgets_the_script_and_the_requests(server: FakeOpenAI, client: Client) -> None:
    server.default = replies.text("default")
    client.send(b"", method="GET", path="/v1/models")
    client.receive()
    client.ask()
    server.reply(replies.text("one"))
    server.reply_to_listing(replies.error(500))
    server.respond(lambda request: replies.text("the function's"))
    server.clear()
    assert (server.requests, server.listings) == ([], [])
    assert client.ask().text == "default"
    client.send(b"", method="GET", path="/v1/models")
    assert client.receive().status == 200
    assert (server.requests[0].number, server.connections) == (1, 1)


def test_one_reply_is_written_for_each_request_as_it_asks(server: FakeOpenAI, client: Client) -> None:
    reply = replies.text("hello")
    server.reply(*[reply] * 5)
    assert {chunk["model"] for chunk in client.ask(model="one").chunks} == {"one"}
    assert {chunk["model"] for chunk in client.ask(model="two").chunks} == {"two"}
    assert "usage" in client.ask(model="one", usage=True).chunks[-1]
    assert "usage" not in client.ask(model="one").chunks[-1]
    assert json.loads(client.ask(stream=False).body)["object"] == "chat.completion"


def test_an_empty_script_says_so(server: FakeOpenAI, client: Client) -> None:
    answer = client.ask()
    assert answer.status == 500
    assert json.loads(answer.body)["error"]["code"] == "script_is_over"


def test_a_function_that_fails_is_told_to_the_client(server: FakeOpenAI, client: Client) -> None:
    def fail(request: RecordedRequest) -> Reply:
        raise LookupError("no such thing")

    server.respond(fail)
    answer = client.ask()
    assert answer.status == 500
    assert "LookupError: no such thing" in json.loads(answer.body)["error"]["message"]


def test_a_reply_is_the_same_every_time(server: FakeOpenAI, client: Client) -> None:
    reply = replies.text("hello")
    server.reply(reply, reply)
    assert client.ask().body == client.ask().body


def test_refining_a_reply_leaves_it_as_it_was() -> None:
    reply = replies.text("hello")
    before = replies.pieces(reply, "m", stream=True, with_usage=True)
    reply.cut(1).written(comments=True).without("done").written(empty_chunks=True).reset_after(1).without("usage")
    assert replies.pieces(reply, "m", stream=True, with_usage=True) == before


# --- what is recorded ---


def test_requests_are_recorded_as_they_came(server: FakeOpenAI, client: Client) -> None:
    server.default = replies.text("ok")
    client.send({"a": "ü"}, path="/v1/x?y=1", head="X-Thing: 1\r\n")
    answer = client.receive()
    (request,) = server.requests
    assert (request.method, request.path, request.json) == ("POST", "/v1/x?y=1", {"a": "ü"})
    assert request.headers["x-thing"] == "1"
    assert answer.headers["x-request-id"] == request.request_id == "req_1"


def test_a_body_in_chunks_and_one_that_is_no_json_are_recorded(server: FakeOpenAI, client: Client) -> None:
    server.default = replies.text("ok")
    for spelled in ("chunked", "Chunked"):
        client.send(b"2\r\n{}\r\n0\r\n\r\n", head=f"Transfer-Encoding: {spelled}\r\n")
        assert client.receive().status == 200
    client.send(b"no json")
    assert client.receive().status == 200
    assert [(request.body, request.json) for request in server.requests] == [
        (b"{}", {}),
        (b"{}", {}),
        (b"no json", None),
    ]


def test_a_header_that_comes_twice_is_recorded_whole_and_a_chunk_may_have_an_extension(
    server: FakeOpenAI, client: Client
) -> None:
    server.default = replies.text("ok")
    client.send(b"2;a=b\r\n{}\r\n0\r\n\r\n", head="Transfer-Encoding: chunked\r\nX-A: 1\r\nx-a:  2 \r\n")
    assert client.receive().status == 200
    assert (server.requests[0].headers["x-a"], server.requests[0].body) == ("1, 2", b"{}")


def test_a_header_of_a_reply_replaces_the_servers_own(server: FakeOpenAI, client: Client) -> None:
    server.reply(replies.raw(b"ab", {"content-type": "image/x", "X-REQUEST-ID": "mine"}))
    client.send({})
    head = []
    while line := client.file.readline().strip().decode().lower():
        head.append(line)
    assert head[1:] == ["content-length: 2", "content-type: image/x", "x-request-id: mine"]


ENDS: dict[str, tuple[Reply, str, str]] = {
    "an old client": (replies.text("ok"), "HTTP/1.0", ""),
    "a client that says so": (replies.text("ok"), "HTTP/1.1", "Connection: close\r\n"),
    "in another case": (replies.text("ok"), "HTTP/1.1", "Connection: Close\r\n"),
    "unannounced": (replies.text("ok").closing(), "HTTP/1.1", ""),
    "unanswered": (replies.text("ok").closing(unanswered=True), "HTTP/1.1", ""),
    "announced": (replies.raw(b"{}", {"Connection": "close"}), "HTTP/1.1", ""),
    "a length of its own": (replies.raw(b"{}", {"Content-Length": "2"}), "HTTP/1.1", ""),
    "a framing of its own": (replies.raw(b"0\r\n\r\n", {"Transfer-Encoding": "chunked"}), "HTTP/1.1", ""),
}


@pytest.mark.parametrize(("reply", "version", "head"), ENDS.values(), ids=ENDS)
def test_a_connection_ends_after_an_answer_that_says_so(
    server: FakeOpenAI, client: Client, reply: Reply, version: str, head: str
) -> None:
    server.reply(reply)
    client.socket.sendall(f"POST /v1/x {version}\r\nHost: test\r\n{head}\r\n".encode())
    client.file.read()  # to the end of the connection
    assert server.wait_until(lambda s: s.open_connections == 0)


def test_a_stream_that_is_ended_apart_ends_once(server: FakeOpenAI, client: Client) -> None:
    server.reply(replies.text("hello").ended_apart(0.001), replies.text("again"))
    assert client.ask().text == "hello"
    assert client.ask().text == "again"


def test_connections_are_kept_and_told_apart(server: FakeOpenAI, connect: Connect) -> None:
    server.default = replies.text("ok")
    first, second = connect(), connect()
    for client in (first, first, second):
        assert client.ask().text == "ok"
    assert [request.connection for request in server.requests] == [1, 1, 2]
    assert (server.connections, server.open_connections) == (2, 2)
    assert server.wait_until(lambda s: s.open_streams == 0)


def test_a_client_that_closes_between_answers_has_left_none(server: FakeOpenAI, client: Client) -> None:
    server.default = replies.text("ok")
    client.ask()
    client.close()
    assert server.wait_until(lambda s: s.open_connections == 0)
    assert server.disconnects == 0


# --- its life ---


def test_it_can_be_started_again_and_knows_when_it_is_not_running() -> None:
    server = FakeOpenAI()
    with pytest.raises(RuntimeError, match="not running"):
        _ = server.url
    for _ in range(2):
        with server:
            assert server.url.startswith("http://127.0.0.1:")
            assert server.url.endswith("/v1")
            with pytest.raises(RuntimeError, match="already"):
                server.start()
    server.stop()


def test_waiting_for_what_does_not_happen_ends(server: FakeOpenAI) -> None:
    assert not server.wait_until(lambda s: s.connections == 1, timeout_s=0.01)


def test_the_server_needs_the_standard_library_alone() -> None:
    code = (
        "import sys; before = set(sys.modules); import jackfield_testkit.server;"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before};"
        "print(sorted(new - sys.stdlib_module_names))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['jackfield_testkit']"
