"""What looking for stop words adds to a stream: CPU, printed, for each delta and beside the stream without it.

Run it as `python plugins/processors/stop-words/benchmarks/stream.py`.
"""

# ruff: noqa: T201 - what it prints is what it is for

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Callable, Sequence

from jackfield.config import GenerateConfig
from jackfield.events import ModelEvent, ModelFinished, TextDelta
from jackfield.messages import Message
from jackfield.request import ChatRequest
from jackfield_stop_words.processor import StopWords

DELTAS = 10_000
ROUNDS = 9
STOPS: dict[str, tuple[str, ...]] = {
    "one": ("Observation:",),
    "four": ("\nObservation:", "\nHuman:", "<|im_end|>", "\n\n\n"),
    "sixteen": tuple(f"\nSection {number}:" for number in range(16)),
}
TEXTS = {"words": "word ", "lines": "go\n", "nearly stop words": "Obse\n"}


async def answered(text: str, count: int) -> AsyncIterator[ModelEvent]:
    """An answer of so many equal pieces."""
    for _ in range(count):
        yield TextDelta(text)
    yield ModelFinished("stop")


async def drained(events: AsyncIterator[ModelEvent]) -> None:
    """Read to the end."""
    async for _ in events:
        pass


def cpu_us(make: Callable[[], AsyncIterator[ModelEvent]], count: int) -> float:
    """The median CPU of a delta, in microseconds."""
    taken = []
    for _ in range(ROUNDS):
        started = time.process_time_ns()
        asyncio.run(drained(make()))
        taken.append((time.process_time_ns() - started) / 1000 / count)
    return statistics.median(taken)


def request_with(stop: Sequence[str]) -> ChatRequest:
    """A request with these stop words."""
    return ChatRequest(model="m", messages=(Message("user", "hi"),), config=GenerateConfig(stop=tuple(stop)))


def main() -> None:
    """Print a line for each text and number of stop words."""
    for kind, text in TEXTS.items():
        for count in (DELTAS // 10, DELTAS):

            def inner(_: ChatRequest, text: str = text, count: int = count) -> AsyncIterator[ModelEvent]:
                return answered(text, count)

            bare = cpu_us(lambda: inner(request_with(())), count)
            for many, stop in STOPS.items():
                searched = cpu_us(lambda: StopWords().wrap(inner)(request_with(stop)), count)  # noqa: B023 - called at once
                print(
                    f"{count:6} × {kind:17} {many:8} stop words: {searched - bare:5.2f} µs a delta, "
                    f"{searched / bare:4.1f} × the stream alone"
                )


main()
