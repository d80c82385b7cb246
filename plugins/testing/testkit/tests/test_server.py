"""The fake server does what it says, seen from a plain socket."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield_testkit import replies
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
    client.send(b"", method="GET", path="/v1/else")
    assert client.receive().status == 404


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
