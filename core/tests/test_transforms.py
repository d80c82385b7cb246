"""Transforms of a stream: each reset begins one again, and a call format reads calls by one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.config import GenerateConfig
from jackfield.events import ModelEvent, ModelFinished, StreamReset, TextDelta
from jackfield.messages import ContentItem, Message
from jackfield.models import fold
from jackfield.processors import (
    CallFormat,
    CallFormatProcessor,
    Postprocessor,
    Preprocessor,
    StreamTransform,
    transformed,
)
from jackfield.request import ChatRequest


async def stream_of(*events: ModelEvent, closed: list[bool] | None = None) -> AsyncIterator[ModelEvent]:
    try:
        for event in events:
            yield event
    finally:
        if closed is not None:
            closed.append(True)


class Shouting(Postprocessor):
    """Holds all text back until the end, and shouts it."""

    name = "shouting"

    class _Transform:
        def __init__(self) -> None:
            self.held = ""

        def feed(self, event: ModelEvent) -> Iterable[ModelEvent]:
            if isinstance(event, TextDelta):
                self.held += event.text
                return []
            return [TextDelta(self.held.upper()), event] if isinstance(event, ModelFinished) else [event]

    def start(self, request: ChatRequest) -> StreamTransform:
        return self._Transform()


def test_a_reset_starts_a_new_transform(gather: Callable[[AsyncIterator[Any]], list[Any]]) -> None:
    events = stream_of(TextDelta("lost"), StreamReset("again"), TextDelta("kept"), ModelFinished("stop"))
    request = ChatRequest("m", ())
    got = gather(transformed(events, lambda: Shouting().start(request)))
    assert got == [StreamReset("again"), TextDelta("KEPT"), ModelFinished("stop")]


def test_a_preprocessor_hands_the_stream_on_untouched() -> None:
    class Renaming(Preprocessor):
        name = "renaming"

        def prepare(self, request: ChatRequest) -> ChatRequest:
            return ChatRequest("other", request.messages)

    asked: list[ChatRequest] = []
    events = stream_of(TextDelta("a"))

    def call_next(request: ChatRequest) -> AsyncIterator[ModelEvent]:
        asked.append(request)
        return events

    assert Renaming().wrap(call_next)(ChatRequest("m", ())) is events
    assert [request.model for request in asked] == ["other"]


@given(st.lists(st.text(max_size=4), max_size=6))
def test_cutting_the_stream_elsewhere_changes_nothing_behind_a_transform(pieces: list[str]) -> None:
    def folded(texts: list[str]) -> str:
        transform = Shouting().start(ChatRequest("m", ()))
        events = [*map(TextDelta, texts), ModelFinished("stop")]
        return fold(out for event in events for out in transform.feed(event)).get_content()

    assert folded(pieces) == folded(["".join(pieces)])


class Numbering:
    def __init__(self) -> None:
        self.count = 0

    def feed(self, event: ModelEvent) -> Iterator[ModelEvent]:
        self.count += 1
        yield TextDelta(f"{self.count}{event.text}") if isinstance(event, TextDelta) else event


def test_a_transform_begins_again_after_a_reset_and_closes_its_stream() -> None:
    closed: list[bool] = []

    async def read(most: int) -> list[ModelEvent]:
        events = [TextDelta("a"), TextDelta("b"), StreamReset("x"), TextDelta("c"), ModelFinished("stop")]
        found: list[ModelEvent] = []
        stream = transformed(stream_of(*events, closed=closed), Numbering)
        async for event in stream:
            found.append(event)
            if len(found) == most:
                await stream.aclose()  # type: ignore[attr-defined]
                break
        return found

    whole = [TextDelta("1a"), TextDelta("2b"), StreamReset("x"), TextDelta("1c"), ModelFinished("stop")]
    assert asyncio.run(read(99)) == whole
    assert asyncio.run(read(1)) == whole[:1]
    assert closed == [True, True]


@pytest.mark.parametrize(
    ("functions", "choice", "is_read"),
    [((), "auto", False), (({"name": "f"},), "auto", True), (({"name": "f"},), "none", False)],
)
def test_calls_are_looked_for_in_answers_to_requests_that_allow_them(
    functions: Any, choice: str, is_read: bool
) -> None:
    rendered: list[ChatRequest] = []

    class Format(CallFormat):
        name = "own"

        def render(self, request: ChatRequest) -> ChatRequest:
            rendered.append(request)
            return request

        def reader(self, request: ChatRequest) -> Numbering:
            return Numbering()

    result = Message("function", [ContentItem(image="https://h/i.png")], name="f")
    request = ChatRequest("m", (Message("user", "q"), result), functions, GenerateConfig(function_choice=choice))

    async def ask() -> list[ModelEvent]:
        call_next: Any = lambda _: stream_of(TextDelta("a"), ModelFinished("stop"))  # noqa: E731
        return [event async for event in CallFormatProcessor(Format()).around(request, call_next)]

    assert asyncio.run(ask())[0] == TextDelta("1a" if is_read else "a")
    assert rendered[0].messages[1].get_text_content() == "(image omitted: not supported by this model)"
