"""A request in flight reads ahead, but only so far."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from jackfield.events import ModelEvent, TextDelta
from jackfield.streams import closing
from jackfield_cache.flight import Flight


class Source:
    """Batches of a stream; it counts those that were asked for."""

    def __init__(self, batches: Sequence[Sequence[ModelEvent]]) -> None:
        self.read = 0
        self._batches = batches

    async def __aiter__(self) -> AsyncIterator[Sequence[ModelEvent]]:
        for batch in self._batches:
            self.read += 1
            yield batch


async def settle() -> None:
    for _ in range(500):
        await asyncio.sleep(0)


def test_a_flight_reads_at_most_64_events_ahead_of_its_followers() -> None:
    async def fly() -> None:
        source = Source([[TextDelta("x")]] * 200)
        async with closing(Flight(aiter(source), lambda over: None).follow()) as follower:
            await anext(follower)
            await settle()
            assert source.read == 64
            for _ in range(63):
                await anext(follower)
            await settle()
            assert source.read == 64
            await anext(follower)
            await settle()
            assert source.read == 128

    asyncio.run(fly())


def test_after_an_empty_batch_a_flight_goes_on_only_when_a_follower_waits() -> None:
    async def fly() -> None:
        source = Source([[TextDelta("x")], [], [TextDelta("y")]])
        async with closing(Flight(aiter(source), lambda over: None).follow()) as follower:
            assert await anext(follower) == TextDelta("x")
            await settle()
            assert source.read == 2
            assert await anext(follower) == TextDelta("y")

    asyncio.run(fly())
