"""The fake server speaks DashScope's protocol, seen from a plain socket."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jackfield_testkit import replies
from jackfield_testkit.dashscope import DashScopeRequest, FakeDashScope
from jackfield_testkit.embeddings import embeddings, tokens_in, vector_of
from jackfield_testkit.replies import ToolCall

Client = Any  # of conftest.py, which tests cannot import
TEXT_PATH = "/api/v1/services/aigc/text-generation/generation"
MULTIMODAL_PATH = "/api/v1/services/aigc/multimodal-generation/generation"


@pytest.fixture
def server() -> Iterator[FakeDashScope]:
    """The server that the clients of conftest.py connect to."""
    with FakeDashScope() as running:
        yield running


@pytest.fixture
def ask(client: Client) -> Callable[..., Any]:
    """Asks for a stream, or for one object."""

    def ask(*, stream: bool = True, path: str = TEXT_PATH, **body: Any) -> Any:
        said = {"model": "m", "input": {"messages": [{"role": "user", "content": "hi"}]}, "parameters": {}}
        head = "X-DashScope-SSE: enable\r\n" if stream else ""
        client.send({**said, **body}, path=path, head=head)
        return client.receive()

    return ask


def frames(answer: Any) -> list[dict[str, str]]:
    """The fields of each event; the comment's name is ''."""
    events = answer.body.decode().strip().split("\n\n")
    return [dict(line.partition(":")[::2] for line in event.splitlines()) for event in events]


def outputs(answer: Any) -> list[dict[str, Any]]:
    return [json.loads(frame["data"]) for frame in frames(answer)]


# --- replies ---


def test_an_event_has_a_number_a_name_a_status_and_data(server: FakeDashScope, ask: Callable[..., Any]) -> None:
    server.reply(replies.text("hello", chars=3))
    answer = ask()
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert [frame["id"] for frame in frames(answer)] == ["1", "2", "3"]
    assert {frame["event"] for frame in frames(answer)} == {"result"}
    assert {frame[""] for frame in frames(answer)} == {"HTTP_STATUS/200"}
    assert b"[DONE]" not in answer.body
    choices = [output["output"]["choices"][0] for output in outputs(answer)]
    assert [choice["message"]["content"] for choice in choices] == ["hel", "lo", ""]
    assert [choice["finish_reason"] for choice in choices] == ["null", "null", "stop"]


def test_usage_grows_in_every_event_unasked(server: FakeDashScope, ask: Callable[..., Any]) -> None:
    server.reply(replies.text("hello", chars=3), replies.text("hello").without("usage"))
    counts = [output["usage"] for output in outputs(ask())]
    assert [count["output_tokens"] for count in counts] == sorted(count["output_tokens"] for count in counts)
    assert counts[-1] == {"input_tokens": 11, "output_tokens": 5, "total_tokens": 16}
    assert not any("usage" in output for output in outputs(ask()))


def test_who_asks_for_no_stream_gets_one_object(server: FakeDashScope, ask: Callable[..., Any]) -> None:
    server.reply(replies.reasoning("hm", then="hello"))
    whole = json.loads(ask(stream=False).body)
    message = {"role": "assistant", "content": "hello", "reasoning_content": "hm"}
    assert whole["output"] == {"choices": [{"finish_reason": "stop", "message": message}]}
    assert whole["usage"]["total_tokens"] == 16


def test_at_the_multimodal_endpoint_contents_are_lists(server: FakeDashScope, ask: Callable[..., Any]) -> None:
    server.reply(replies.text("hello"))
    choices = [output["output"]["choices"][0] for output in outputs(ask(path=MULTIMODAL_PATH))]
    assert [choice["message"]["content"] for choice in choices] == [[{"text": "hello"}], []]


def test_calls_come_in_pieces_that_give_their_id_once(server: FakeDashScope, ask: Callable[..., Any]) -> None:
    server.reply(replies.tool_calls([ToolCall("f", {"a": 1}, "x")], chars=4))
    messages = [output["output"]["choices"][0]["message"] for output in outputs(ask())]
    calls = [call for message in messages for call in message.get("tool_calls", ())]
    assert [call["id"] for call in calls] == ["x", *[""] * (len(calls) - 1)]
    assert "".join(call["function"]["arguments"] for call in calls) == '{"a": 1}'


@pytest.mark.parametrize("stream", [True, False])
def test_an_error_is_an_event_for_who_wants_a_stream_else_an_object(
    server: FakeDashScope, ask: Callable[..., Any], stream: bool
) -> None:
    server.reply(replies.error(429, "slow down", headers={"Retry-After": "2"}))
    answer = ask(stream=stream)
    told = outputs(answer)[0] if stream else json.loads(answer.body)
    assert (answer.status, answer.headers["retry-after"]) == (429, "2")
    assert told == {"code": "Throttling.RateQuota", "message": "slow down", "request_id": "req_1"}
    assert answer.headers["x-request-id"] == "req_1"
    if stream:
        assert (frames(answer)[0]["event"], frames(answer)[0][""]) == ("error", "HTTP_STATUS/429")


@pytest.mark.parametrize(
    ("code", "native"),
    [("content_filter", "DataInspectionFailed"), ("context_length_exceeded", "InvalidParameter"), ("own", "own")],
)
def test_codes_of_the_other_protocol_are_translated(
    server: FakeDashScope, ask: Callable[..., Any], code: str, native: str
) -> None:
    server.reply(replies.error(400, code=code))
    assert outputs(ask())[0]["code"] == native


def test_an_error_inside_a_stream_is_an_event_of_its_own(server: FakeDashScope, ask: Callable[..., Any]) -> None:
    server.reply(replies.chunks([{"error": {"message": "fire", "code": "hot"}}]))
    (frame,) = frames(ask())
    assert frame["event"] == "error"
    assert json.loads(frame["data"]) == {"code": "hot", "message": "fire", "request_id": "req_in_stream"}


def test_raw_bytes_are_sent_as_they_are(server: FakeDashScope, ask: Callable[..., Any]) -> None:
    server.reply(replies.raw(b'{"error": 1}', status=500), replies.raw(b"\xff"))
    assert ask().body == b'{"error": 1}'
    assert ask().body == b"\xff"


def test_deliveries_and_faults_work_as_for_the_other_protocol(server: FakeDashScope, ask: Callable[..., Any]) -> None:
    server.reply(
        replies.text("hello", chars=3).written(newline=b"\r\n", comments=True).cut(5),
        replies.text("hello", chars=3).broken_after(1, "malformed"),
        replies.text("hello", chars=3).broken_after(1, "end"),
        replies.text("hello", chars=3).reset_after(1),
    )
    assert ask().body.count(b": ping\r\n\r\nid:") == 3
    broken = ask().body.decode().split("\n\n")[1].partition("data:")[2]
    with pytest.raises(json.JSONDecodeError):
        json.loads(broken)
    assert len(frames(ask())) == 1
    assert ask().broken == "reset"


# --- requests ---


def test_a_request_is_read_as_the_other_protocol_has_it_and_as_it_came(
    server: FakeDashScope, ask: Callable[..., Any]
) -> None:
    server.reply(replies.text("ok"))
    content = [
        {"text": "look"},
        {"image": "http://h/a.png"},
        {"audio": "data:audio/wav;base64,AAAA"},
        {"audio": "http://h/a.wav"},
        {"video": "http://h/a.mp4"},
        {"video": ["http://h/1.jpg"]},
    ]
    native = {
        "input": {"messages": [{"role": "user", "content": content}]},
        "parameters": {"result_format": "message", "incremental_output": True, "seed": 7},
    }
    ask(path=MULTIMODAL_PATH, **native)
    request = server.requests[0]
    assert isinstance(request, DashScopeRequest)
    assert request.native == {"model": "m", **native}
    assert (request.native_path, request.path) == (MULTIMODAL_PATH, "/api/v1/chat/completions")
    assert request.is_multimodal
    assert request.streams
    assert request.json == {
        "model": "m",
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "look"},
                    {"type": "image_url", "image_url": {"url": "http://h/a.png"}},
                    {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
                    {"type": "input_audio", "input_audio": {"data": "http://h/a.wav"}},
                    {"type": "video_url", "video_url": {"url": "http://h/a.mp4"}},
                    {"type": "video", "video": ["http://h/1.jpg"]},
                ],
            }
        ],
        "seed": 7,
        "stream": True,
    }


def test_a_request_of_another_protocol_is_left_as_it_is(server: FakeDashScope, client: Client) -> None:
    server.reply(replies.text("ok"))
    client.send({"model": "m", "messages": []}, path="/v1/chat/completions")
    client.receive()
    assert server.requests[0].json == {"model": "m", "messages": []}
    assert not server.requests[0].streams


def test_when_the_script_is_over_it_says_so_in_its_own_words(server: FakeDashScope, ask: Callable[..., Any]) -> None:
    answer = ask()
    assert answer.status == 500
    assert "no scripted reply is left" in outputs(answer)[0]["message"]


# --- embeddings and rankings ---

EMBEDDING_PATH = "/api/v1/services/embeddings/text-embedding/text-embedding"
RERANK_PATH = "/api/v1/services/rerank/text-rerank/text-rerank"


def test_texts_are_embedded_where_nothing_is_scripted(server: FakeDashScope, ask: Callable[..., Any]) -> None:
    answer = json.loads(ask(stream=False, path=EMBEDDING_PATH, input={"texts": ["a", "b"]}).body)
    items = answer["output"]["embeddings"]
    assert [item["text_index"] for item in items] == [0, 1]
    assert [tuple(item["embedding"]) for item in items] == [vector_of("a"), vector_of("b")]
    assert answer["usage"] == {"total_tokens": tokens_in(["a", "b"])}
    request = server.requests[0]
    assert (request.path, request.json) == ("/api/v1/embeddings", {"model": "m", "input": ["a", "b"]})


def test_embeddings_in_openais_form_are_put_into_dashscopes(server: FakeDashScope, ask: Callable[..., Any]) -> None:
    server.respond(lambda request: embeddings(request, [(1.0, 0.0), (0.0, 1.0)], tokens=7, order=(1, 0)))
    body = {"input": {"texts": ["a", "b"]}, "parameters": {"dimension": 2}}
    answer = json.loads(ask(stream=False, path=EMBEDDING_PATH, **body).body)
    assert answer == {
        "output": {
            "embeddings": [{"text_index": 1, "embedding": [0.0, 1.0]}, {"text_index": 0, "embedding": [1.0, 0.0]}]
        },
        "usage": {"total_tokens": 7},
        "request_id": "req_1",
    }
    assert server.requests[0].json["dimensions"] == 2


def test_documents_are_ranked_by_the_words_they_share_with_the_query(
    server: FakeDashScope, ask: Callable[..., Any]
) -> None:
    asked = {"query": "green tea", "documents": ["tea", "none", "green tea 绿茶"]}
    answer = json.loads(ask(stream=False, path=RERANK_PATH, input=asked, parameters={"top_n": 2}).body)
    assert answer["output"]["results"] == [
        {"index": 2, "relevance_score": 1.0},
        {"index": 0, "relevance_score": 0.5},
    ]
    assert server.requests[0].json == {"model": "m", **asked, "top_n": 2}


@pytest.mark.parametrize("path", [EMBEDDING_PATH, RERANK_PATH])
def test_a_request_that_makes_no_sense_is_refused_in_dashscopes_words(
    server: FakeDashScope, ask: Callable[..., Any], path: str
) -> None:
    answer = ask(stream=False, path=path, input={})
    assert answer.status == 400
    assert json.loads(answer.body)["code"] == "InvalidParameter"
    server.reply(replies.error(429))
    assert json.loads(ask(stream=False, path=path).body)["code"] == "Throttling.RateQuota"


def test_a_query_is_no_part_of_the_path_that_is_asked_for(server: FakeDashScope, ask: Callable[..., Any]) -> None:
    for path, is_multimodal in ((MULTIMODAL_PATH, True), (TEXT_PATH, False)):
        server.reply(replies.text("ok"))
        ask(path=f"{path}?trace=1{MULTIMODAL_PATH if not is_multimodal else ''}")
        request = server.requests[-1]
        assert isinstance(request, DashScopeRequest)
        assert request.is_multimodal is is_multimodal
