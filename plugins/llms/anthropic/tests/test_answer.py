"""An answer is read the same however its server cuts it, and goes back as it came."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jackfield.errors import ModelOverloadedError
from jackfield.events import FunctionCallDelta, ModelEvent, ModelFinished, PluginEvent, TextDelta, UsageReported
from jackfield.messages import Usage
from jackfield.request import ChatRequest
from jackfield_anthropic.answer import MessagesReader
from jackfield_anthropic.backend import AnthropicServer
from jackfield_http import Failures
from jackfield_http.backend import Exchange

PAGE = {"type": "web_search_result_location", "url": "https://tides.example/"}
DOCUMENT = {"type": "search_result_location", "source": "https://docs.example/", "title": "t"}


def reader(request: ChatRequest | None = None) -> MessagesReader:
    asked = request or ChatRequest("asked", (), server="here")
    return MessagesReader(Exchange(asked, AnthropicServer("http://h"), Failures("anthropic"), 7.0))


def start(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, **part: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **part}}


def end(reason: str | None = "end_turn", **usage: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


def read(said: MessagesReader, *events: dict[str, Any]) -> list[ModelEvent]:
    stream = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    return [*said.feed(stream), *said.finish()]


def finished(events: list[ModelEvent]) -> ModelFinished:
    assert isinstance(events[-1], ModelFinished)
    return events[-1]


def content(events: list[ModelEvent]) -> Any:
    data = finished(events).data
    return None if data is None else data["content"]


def test_what_comes_later_wins_unless_it_is_missing() -> None:
    head = {"type": "message_start", "message": {"id": "m1", "model": "answering", "usage": {"input_tokens": 5}}}
    events = read(
        reader(), head, end("max_tokens", input_tokens=None, output_tokens=3), end(None, output_tokens=4), end()
    )
    assert finished(events) == ModelFinished("stop", "answering", "m1", provider_reason="end_turn")
    assert events[:-1] == [UsageReported(Usage(prompt_tokens=5, completion_tokens=4, total_tokens=9))]
    kept = read(reader(), head, end("max_tokens"), end(None))
    assert finished(kept).provider_reason == "max_tokens"
    unnamed = read(reader(), {"type": "message_start", "message": {"id": "m1", "model": None}}, end())
    assert finished(unnamed).model == "asked"


def test_a_signature_and_blocks_may_come_in_any_order_and_in_pieces() -> None:
    events = read(
        reader(),
        start(1, type="text", text=""),
        start(0, type="thinking", thinking="", signature="a"),
        delta(1, "text_delta", text="yes"),
        delta(0, "thinking_delta", thinking="hm"),
        delta(0, "signature_delta", signature="b"),
        delta(0, "signature_delta", signature="c"),
        end(),
    )
    assert content(events) == [
        {"type": "thinking", "thinking": "hm", "signature": "abc"},
        {"type": "text", "text": "yes"},
    ]


def test_reasoning_without_a_signature_and_empty_texts_do_not_go_back() -> None:
    hidden = {"type": "redacted_thinking", "data": "opaque"}
    thought = start(0, type="thinking", thinking="hm")
    events = read(reader(), thought, start(1, **hidden), start(2, type="text", text=""), end())
    assert content(events) == [hidden]


@pytest.mark.parametrize("citations", [[PAGE, DOCUMENT], [DOCUMENT, PAGE]])
@pytest.mark.parametrize("way", ["stream", "start", "whole"])
def test_citations_are_kept_and_reported_however_they_come(way: str, citations: list[dict[str, Any]]) -> None:
    said, cited = reader(), {"type": "text", "text": "a", "citations": citations}
    if way == "whole":
        body = {"id": "m", "model": "m", "stop_reason": "end_turn", "content": [cited]}
        events = [*said.whole(json.dumps(body).encode()), *said.finish()]
    elif way == "start":
        events = read(said, start(0, **cited), end())
    else:
        pieces = [delta(0, "citations_delta", citation=citation) for citation in citations]
        events = read(said, start(0, type="text", text="a"), *pieces, end())
    sources = [event.data["sources"] for event in events if isinstance(event, PluginEvent)]
    assert sources == [[{"location": citation.get("url") or citation["source"]}] for citation in citations]
    assert content(events) == [cited]


def test_text_and_calls_alone_need_nothing_beside_their_messages() -> None:
    events = read(reader(), start(0, type="text", text="a"), start(1, type="tool_use", id="c", name="f"), end())
    assert content(events) is None


@pytest.mark.parametrize("input_", [{}, {"input": None}, {"input": {}}])
def test_a_call_without_an_input_has_no_arguments(input_: dict[str, Any]) -> None:
    call = {"type": "tool_use", "id": "c", "name": "f", **input_}
    events = read(reader(), start(0, **call), {"type": "content_block_stop", "index": 0}, end("tool_use"))
    assert events[:2] == [FunctionCallDelta(0, "c", "f"), FunctionCallDelta(0, arguments="{}")]


def test_the_input_of_a_tool_that_the_provider_runs_is_no_call() -> None:
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    piece = delta(0, "input_json_delta", partial_json='{"query": "tides"}')
    stop = {"type": "content_block_stop", "index": 0}
    events = read(reader(), start(0, **search), piece, stop, start(1, type="text", text="a"), end())
    assert events[:-1] == [TextDelta("a")]
    assert content(events) == [{**search, "input": {"query": "tides"}}, {"type": "text", "text": "a"}]


def test_the_usage_before_a_pause_is_reported_though_the_rest_has_none() -> None:
    first = reader()
    request = ChatRequest("asked", (), server="here")
    assert read(first, start(0, type="text", text="a"), end("pause_turn", input_tokens=3, output_tokens=2)) == [
        TextDelta("a")
    ]
    rest = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    events = read(reader(first.rest_of(request)), start(0, type="text", text="b"), rest)
    assert events[:2] == [TextDelta("b"), UsageReported(Usage(prompt_tokens=3, completion_tokens=2, total_tokens=5))]


@pytest.mark.parametrize("wrapped", [True, False])
def test_an_error_in_place_of_an_answer_is_one_with_and_without_its_type(wrapped: bool) -> None:
    error = {"error": {"type": "overloaded_error", "message": "later"}, **({"type": "error"} if wrapped else {})}
    with pytest.raises(ModelOverloadedError, match="later"):
        reader().whole(json.dumps(error).encode())
