"""What the tests share: a clock that stands still, a cache in a new file, and what comes out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jackfield.events import ModelEvent
from jackfield.messages import Message
from jackfield.processors import CallNext, Processor
from jackfield.request import ChatRequest
from jackfield_cache.processor import Cache
from jackfield_testkit.streams import gathered

MakeCache = Callable[..., Cache]


class Clock:
    """The time, which goes on when told to."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make_cache(tmp_path: Path, clock: Clock) -> Iterator[MakeCache]:
    """Makes caches on one file, unless told another; they are closed in the end."""
    made: list[Cache] = []

    def make(**settings: Any) -> Cache:
        made.append(Cache(**{"path": tmp_path / "answers.sqlite", "clock": clock, **settings}))
        return made[-1]

    yield make
    for cache in made:
        cache.close()


@pytest.fixture(scope="session")
def question() -> Callable[..., ChatRequest]:
    """A request, with a text or with fields of its own."""

    def question(said: str = "hello", **fields: Any) -> ChatRequest:
        return ChatRequest(**{"model": "m", "messages": (Message("user", said),), **fields})

    return question


@pytest.fixture(scope="session")
def ask() -> Callable[..., list[ModelEvent]]:
    """The events that a processor gives for a request, in a new event loop."""
    import asyncio

    def ask(processor: Processor, request: ChatRequest, call_next: CallNext) -> list[ModelEvent]:
        return asyncio.run(gathered(processor.wrap(call_next)(request)))

    return ask
