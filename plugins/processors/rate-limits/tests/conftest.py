"""What the tests share: a time that goes on when all wait for it, and requests."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from jackfield.messages import Message
from jackfield.request import ChatRequest
from jackfield_local_state.ledger import FileLedger
from jackfield_rate_limits import shared
from jackfield_rate_limits.shared import gates

T = TypeVar("T")


class Time:
    """A clock and a sleep: when nobody has anything to do, it is the time of the first who sleeps."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.in_file = 0
        self._numbers = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        future = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.now + seconds, next(self._numbers), future))
        await future

    def noticing(self, change: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        """A change of a file, which the time waits for."""

        async def noticed(*args: Any, **kwargs: Any) -> Any:
            self.in_file += 1
            try:
                return await change(*args, **kwargs)
            finally:
                self.in_file -= 1
                self._changed.set()

        return noticed

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end in this time."""
        return asyncio.run(self._run(work))

    async def _run(self, work: Coroutine[Any, Any, T]) -> T:
        self._changed = asyncio.Event()  # of this run's loop
        task = asyncio.create_task(work)
        while True:
            self._changed.clear()
            for _ in range(50):
                await asyncio.sleep(0)
            if task.done():
                return task.result()
            if self._changed.is_set():  # somebody goes on with what the file said
                continue
            if self.in_file:  # a thread is: that takes no time
                await self._changed.wait()
                continue
            self._sleepers = [one for one in self._sleepers if not one[2].done()]
            heapq.heapify(self._sleepers)
            assert self._sleepers, "everybody waits, and nobody for the time"
            self.now, _, future = heapq.heappop(self._sleepers)
            future.set_result(None)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    # Two minutes are 600 looks otherwise, each a transaction.
    monkeypatch.setattr(shared, "POLL_S", 10.0)
    for name in ("achange", "anote"):
        monkeypatch.setattr(FileLedger, name, time.noticing(getattr(FileLedger, name)))
    return time


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """A file for limits, which is closed in the end."""
    path = tmp_path / "limits.sqlite"
    yield path
    gates().close(path)


@pytest.fixture(scope="session")
def question() -> Callable[..., ChatRequest]:
    """A request, with a text or with fields of its own."""

    def question(said: str = "hello", **fields: Any) -> ChatRequest:
        return ChatRequest(**{"model": "m", "server": "s", "messages": (Message("user", said),), **fields})

    return question
