"""What the tests share: a scan of a text, cut however one likes, and a processor around a scripted answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any

import pytest

from jackfield import sync
from jackfield.events import ModelEvent
from jackfield.messages import Message
from jackfield.processors import Processor
from jackfield.request import ChatRequest
from jackfield_redaction.config import RedactionConfig
from jackfield_redaction.scanner import Finder, Scanner

Mark = Callable[..., str]
Ask = Callable[..., tuple[ChatRequest, list[ModelEvent]]]


@pytest.fixture(scope="session")
def mark() -> Mark:
    """Scans pieces of a text and writes each value as `‹kind:value›`."""

    def mark(*pieces: str, **settings: Any) -> str:
        scanner = Scanner(Finder(RedactionConfig.parse(settings)), lambda kind, value: f"‹{kind}:{value}›")
        return "".join(map(scanner.feed, pieces)) + scanner.finish()

    return mark


@pytest.fixture(scope="session")
def ask() -> Ask:
    """Sends messages through a processor to an inner model; gives what that was asked, and the events that came out."""

    def ask(
        processor: Processor, messages: Sequence[Message], events: Iterable[ModelEvent] = (), **request: Any
    ) -> tuple[ChatRequest, list[ModelEvent]]:
        asked: list[ChatRequest] = []

        async def inner(request: ChatRequest) -> AsyncIterator[ModelEvent]:
            for event in events:
                yield event

        def call_next(request: ChatRequest) -> AsyncIterator[ModelEvent]:
            asked.append(request)
            return inner(request)

        async def gathered() -> list[ModelEvent]:
            whole = ChatRequest(model="m", messages=tuple(messages), **request)
            return [event async for event in processor.around(whole, call_next)]

        came = sync.run(gathered())
        return asked[0], came

    return ask
