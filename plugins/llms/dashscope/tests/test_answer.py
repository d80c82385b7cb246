"""What the reader makes of an answer, however it is put and cut."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import ModelOverloadedError, ModelRequestError, ModelResponseError
from jackfield.events import (
    FunctionCallDelta,
    MediaDelta,
    ModelEvent,
    ModelFinished,
    PluginEvent,
    ReasoningDelta,
    TextDelta,
    UsageReported,
)
from jackfield.messages import ContentItem, ModelResponse, Usage
from jackfield.models import fold
from jackfield_dashscope.answer import SEARCH_EVENT, DashScopeReader, usage_of
from jackfield_http import Failures

Chunk = dict[str, Any]


def chunk(message: Chunk, reason: str | None = "null", **more: Any) -> Chunk:
    return {"output": {"choices": [{"message": message, "finish_reason": reason}]}, "request_id": "r", **more}


def event(value: Chunk) -> bytes:
    return b"id:1\nevent:result\n:HTTP_STATUS/200\ndata:" + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def read(*pieces: bytes) -> list[ModelEvent]:
    reader = DashScopeReader(Failures("b"), "m")
    events = [event for piece in pieces for event in reader.feed(piece)]
    return [*events, *reader.finish()]


def answer(*chunks: Chunk) -> ModelResponse:
    return fold(read(*map(event, chunks)))


def calls_of(*deltas: Chunk) -> list[tuple[str, str]]:
    chunks = [chunk({"content": "", "tool_calls": [delta]}) for delta in deltas]
    response = answer(*chunks, chunk({"content": ""}, "tool_calls"))
    return [(call.name, call.arguments) for call in response.get_function_calls()]


def test_a_chunk_of_text_reasoning_and_a_call_is_an_event_for_each() -> None:
    message = {
        "reasoning_content": "hm",
        "content": "so",
        "tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}],
    }
    assert read(event(chunk(message, "tool_calls"))) == [
        ReasoningDelta("hm"),
        TextDelta("so"),
        FunctionCallDelta(0, "c", "f", "{}"),
        ModelFinished("tool_calls", "m", "r", provider_reason="tool_calls"),
    ]


CHUNKS = [
    chunk({"content": "", "reasoning_content": "先想"}),
    chunk({"content": "naïve 🙂 \u2028"}),
    chunk({"content": [{"text": "parts"}]}),
    chunk({"content": "end"}, "stop", usage={"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}),
]


@given(st.sets(st.integers(1, 600), max_size=12))
def test_cutting_a_stream_elsewhere_changes_nothing(offsets: set[int]) -> None:
    stream = b"".join(map(event, CHUNKS))
    cuts = sorted(offset for offset in offsets if offset < len(stream))
    pieces = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert fold(read(*pieces)) == answer(*CHUNKS)


def test_without_the_last_line_end_the_answer_is_still_whole() -> None:
    stream = b"".join(map(event, CHUNKS)).rstrip(b"\n")
    assert fold(read(stream)) == answer(*CHUNKS)


def test_events_without_a_blank_line_between_them_are_told_apart() -> None:
    stream = b"".join(map(event, CHUNKS)).replace(b"\n\n", b"\n")
    assert fold(read(stream)) == answer(*CHUNKS)


def test_usage_in_every_chunk_is_reported_once_and_the_last_counts() -> None:
    counts = [{"input_tokens": 7, "output_tokens": number} for number in range(3)]
    chunks = [chunk({"content": "x"}, "null" if at < 2 else "stop", usage=usage) for at, usage in enumerate(counts)]
    reported = [event for event in read(*map(event, chunks)) if isinstance(event, UsageReported)]
    assert reported == [UsageReported(Usage(prompt_tokens=7, completion_tokens=2))]


def test_usage_that_follows_the_end_counts() -> None:
    late = {"output": {"choices": []}, "usage": {"input_tokens": 7, "output_tokens": 2}, "request_id": "r"}
    assert answer(chunk({"content": "x"}, "stop"), late).usage.total_tokens == 9
    early = chunk({"content": "x"}, usage={"input_tokens": 7, "output_tokens": 1})
    assert answer(early, chunk({"content": "y"}, "stop"), late).usage.total_tokens == 9


def test_the_id_is_that_of_the_answer_else_that_of_its_headers() -> None:
    for more, expected in (({}, "of the answer"), ({"request_id": None}, "of the headers")):
        reader = DashScopeReader(Failures("b", headers={"x-request-id": "of the headers"}), "m")
        ended = {**chunk({"content": "x"}, "stop", model="answering"), "request_id": "of the answer", **more}
        (finished,) = [one for one in [*reader.feed(event(ended)), *reader.finish()] if isinstance(one, ModelFinished)]
        assert (finished.response_id, finished.model) == (expected, "answering")


def test_what_a_search_found_is_reported_once() -> None:
    found = {"search_results": [{"url": "https://h/"}]}
    chunks = [chunk({"content": text}, reason) for text, reason in (("a", "null"), ("b", "null"), ("c", "stop"))]
    for one in chunks[1:]:
        one["output"]["search_info"] = found
    reported = [one for one in read(*map(event, chunks)) if isinstance(one, PluginEvent)]
    assert [(one.name, one.data) for one in reported] == [(SEARCH_EVENT, found)]


def test_every_part_of_a_content_is_an_event_in_its_place() -> None:
    parts = [
        {"text": "a"},
        {"image": "http://h/a.png"},
        {"audio": {"url": "http://h/a.wav"}},
        {"audio": "http://h/b.wav"},
    ]
    events = read(event(chunk({"content": [*parts, {"text": "b"}]}, "stop")))
    assert events[:-1] == [
        TextDelta("a"),
        MediaDelta(ContentItem(image="http://h/a.png")),
        MediaDelta(ContentItem(audio="http://h/a.wav")),
        MediaDelta(ContentItem(audio="http://h/b.wav")),
        TextDelta("b"),
    ]


@pytest.mark.parametrize(
    ("wire", "usage"),
    [
        ({}, Usage()),
        (
            {
                "input_tokens": 10,
                "output_tokens": 5,
                "total_tokens": 15,
                "prompt_tokens_details": {"cached_tokens": 4},
                "output_tokens_details": {"reasoning_tokens": 3},
            },
            Usage(prompt_tokens=10, completion_tokens=5, total_tokens=15, cached_tokens=4, reasoning_tokens=3),
        ),
        ({"input_tokens": 1, "output_tokens": None, "image_tokens": 9}, Usage(prompt_tokens=1)),
        (
            {
                "input_tokens_details": {"cached_tokens": 4, "cache_creation_input_tokens": 5},
                "completion_tokens_details": {"reasoning_tokens": 6},
            },
            Usage(cached_tokens=4, cache_write_tokens=5, reasoning_tokens=6),
        ),
    ],
)
def test_the_counts_are_read(wire: Chunk, usage: Usage) -> None:
    assert usage_of(wire) == usage


def test_the_older_form_is_read() -> None:
    first = {"output": {"text": "half ", "finish_reason": "null"}, "request_id": "r"}
    second = {"output": {"text": "an answer", "finish_reason": "stop"}, "request_id": "r"}
    response = answer(first, second)
    assert (response.get_content(), response.finish_reason) == ("half an answer", "stop")


def test_of_several_choices_the_first_is_read() -> None:
    other = {"output": {"choices": [{"index": 1, "message": {"content": "B"}, "finish_reason": "stop"}]}}
    assert answer(chunk({"content": "A"}), other, chunk({"content": "a"}, "stop")).get_content() == "Aa"


# --- calls ---


def test_pieces_of_calls_are_joined_by_their_index() -> None:
    deltas = [
        {"index": 0, "id": "x", "function": {"name": "f", "arguments": '{"a"'}},
        {"index": 1, "id": "y", "function": {"name": "g", "arguments": ""}},
        {"index": 0, "id": "", "function": {"arguments": ": 1}"}},
        {"index": 1, "id": "", "function": {"name": "", "arguments": "{}"}},
    ]
    assert calls_of(*deltas) == [("f", '{"a": 1}'), ("g", "{}")]


def test_without_an_index_a_name_begins_a_call_and_all_else_continues_it() -> None:
    deltas = [
        {"id": "x", "function": {"name": "f", "arguments": "{"}},
        {"id": "", "function": {"arguments": "}"}},
        {"id": "y", "function": {"name": "f", "arguments": "{}"}},
    ]
    assert calls_of(*deltas) == [("f", "{}"), ("f", "{}")]


def test_an_index_that_is_used_for_every_call_does_not_join_them() -> None:
    deltas = [
        {"index": 0, "id": "x", "function": {"name": "f", "arguments": "{}"}},
        {"index": 0, "id": "y", "function": {"name": "f", "arguments": "{}"}},
        {"index": 0, "id": "", "function": {"name": "g", "arguments": "{}"}},
    ]
    assert calls_of(*deltas) == [("f", "{}"), ("f", "{}"), ("g", "{}")]


def test_arguments_that_are_an_object_already_are_written_as_text() -> None:
    assert calls_of({"index": 0, "id": "x", "function": {"name": "f", "arguments": {"a": "二"}}}) == [
        ("f", '{"a": "二"}')
    ]


# --- what is wrong ---


@pytest.mark.parametrize(("status", "error_class"), [(400, ModelRequestError), (503, ModelOverloadedError)])
def test_an_error_in_the_middle_has_the_status_of_its_event(status: int, error_class: type[Exception]) -> None:
    problem = event({"code": "New", "message": "no"}).replace(b"HTTP_STATUS/200", b"HTTP_STATUS/%d" % status)
    with pytest.raises(error_class) as caught:
        read(event(CHUNKS[0]), problem)
    assert caught.value.status == status  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "data",
    [b"{", b"[]", b"1", b"{}", b'{"output": 1}', b'{"output": {"choices": [1]}}', b'{"output": {"choices": 1}}',
     b'{"output": {"choices": [{"message": {"content": 5}}]}}', b'"' + b"\xff" + b'"', b"[" * 20_000],
)  # fmt: skip
def test_what_is_no_answer_is_an_error(data: bytes) -> None:
    with pytest.raises(ModelResponseError):
        read(b"data:" + data + b"\n\n")


def test_a_stream_without_an_end_is_an_error() -> None:
    with pytest.raises(ModelResponseError, match="before the response was complete"):
        answer(chunk({"content": "half an "}))


def test_no_stream_at_all_is_an_error() -> None:
    with pytest.raises(ModelResponseError, match="no response"):
        read(b"")


def test_half_a_character_costs_no_answer() -> None:
    data = b'{"output":{"choices":[{"message":{"content":"a\\ud83d"},"finish_reason":"stop"}]}}'
    response = fold(read(b"data:" + data + b"\n\n"))
    assert response.get_content() == "a\ufffd"
