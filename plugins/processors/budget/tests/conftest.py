"""What the tests share: a clock, prices of a model that does not exist, requests, and events that come out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from jackfield.events import ModelEvent
from jackfield.messages import Message
from jackfield.processors import CallNext, Processor
from jackfield.request import ChatRequest
from jackfield_budget.processor import Budget
from jackfield_budget.shared import ledgers
from jackfield_testkit.streams import gathered

PRICES: Sequence[dict[str, Any]] = (
    {"models": ["m*"], "currency": "USD", "valid_from": "2026-01-01", "input": "1", "output": "10"},
)


class Clock:
    """Seconds since 1970, which pass when told to."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp()

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make_budget(request: pytest.FixtureRequest, clock: Clock) -> Callable[..., Budget]:
    """Makes budgets that share what a test spends, and nothing with other tests."""

    def make(**settings: Any) -> Budget:
        return Budget(**{"scope": request.node.nodeid, "prices": PRICES, "clock": clock, **settings})

    return make


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """A file for a budget, which is closed in the end."""
    path = tmp_path / "budget.sqlite"
    yield path
    ledgers().ledger(path).close()


@pytest.fixture(scope="session")
def question() -> Callable[..., ChatRequest]:
    """A request, with a text or with fields of its own."""

    def question(said: str = "hello", **fields: Any) -> ChatRequest:
        return ChatRequest(**{"model": "m", "server": "s", "messages": (Message("user", said),), **fields})

    return question


@pytest.fixture(scope="session")
def ask() -> Callable[..., list[ModelEvent]]:
    """The events that a processor gives for a request, in a new event loop."""

    def ask(processor: Processor, request: ChatRequest, call_next: CallNext) -> list[ModelEvent]:
        return asyncio.run(gathered(processor.wrap(call_next)(request)))

    return ask


@pytest.fixture(scope="session")
def gate() -> Callable[..., Any]:
    """A model that begins to answer, and goes on when it is let."""

    class Gate:
        def __init__(self, *events: ModelEvent) -> None:
            self.events = events
            self.asked = 0
            self.let = asyncio.Event()

        async def __call__(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
            self.asked += 1
            await self.let.wait()
            for event in self.events:
                yield event

    return Gate
