"""What a hit costs, and what the cache adds to an answer that is asked for: CPU, printed, in microseconds.

Run it as `python plugins/processors/cache/benchmarks/hit.py`.
"""

# ruff: noqa: T201 - what it prints is what it is for

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from jackfield.events import ModelEvent, ModelFinished, TextDelta, UsageReported
from jackfield.messages import Message, Usage
from jackfield.request import ChatRequest
from jackfield_cache.processor import Cache

ROUNDS = 300


def request_of(messages: int, about: int = 0) -> ChatRequest:
    """A conversation of so many messages of 400 characters."""
    said = "The quick brown fox jumps over the lazy dog. " * 9
    return ChatRequest(
        model="m", messages=tuple(Message("user", f"{said}{number} {about}") for number in range(messages))
    )


def model_of(deltas: int) -> Callable[[ChatRequest], AsyncIterator[ModelEvent]]:
    """A model that answers in so many pieces."""

    async def stream(_: ChatRequest) -> AsyncIterator[ModelEvent]:
        for _number in range(deltas):
            yield TextDelta("word ")
        yield UsageReported(Usage(prompt_tokens=10, completion_tokens=deltas))
        yield ModelFinished("stop")

    return stream


async def cpu_us(work: Callable[[], Awaitable[object]], rounds: int) -> float:
    """The median CPU of a call, all threads of the process included."""
    taken = []
    for _ in range(rounds):
        started = time.process_time_ns()
        await work()
        taken.append((time.process_time_ns() - started) / 1000)
    return statistics.median(taken)


async def read(events: AsyncIterator[ModelEvent]) -> None:
    """All of a stream."""
    async for _ in events:
        pass


async def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as folder:
        cache = Cache(path=Path(folder) / "answers.sqlite")
        for messages, deltas in ((1, 10), (1, 100), (20, 100), (500, 100), (1, 1000)):
            request, model = request_of(messages, deltas), model_of(deltas)
            await read(cache.wrap(model)(request))
            hit = await cpu_us(lambda: read(cache.wrap(model)(request)), ROUNDS)  # noqa: B023 - called at once
            print(f"hit, {messages:4} messages, {deltas:5} deltas: {hit:7.0f} µs")
        request, model = request_of(1), model_of(1000)
        plain = await cpu_us(lambda: read(model(request)), 30)
        fresh = ChatRequest(model="m", messages=request.messages, metadata={"jackfield-cache": "refresh"})
        asked = await cpu_us(lambda: read(cache.wrap(model)(fresh)), 30)
        print(f"asked and kept, 1000 deltas: {(asked - plain) / 1000:.2f} µs a delta more than without the cache")
        cache.close()


asyncio.run(main())
