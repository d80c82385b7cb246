"""A request in flight reads ahead, but only so far."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from jackfield.events import ModelEvent, TextDelta
from jackfield.request import ChatRequest
from jackfield.streams import closing
from jackfield_cache.flight import Flight
from jackfield_cache.processor import Cache


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


def test_a_flight_goes_on_after_an_empty_batch_if_a_follower_waits_already() -> None:
    async def batches() -> AsyncIterator[Sequence[ModelEvent]]:
        yield [TextDelta("x")]
        await settle()
        yield []
        yield [TextDelta("y")]

    async def fly() -> None:
        async with closing(Flight(batches(), lambda over: None).follow()) as follower:
            assert [event async for event in follower] == [TextDelta("x"), TextDelta("y")]

    asyncio.run(asyncio.wait_for(fly(), 20))


def test_the_last_follower_to_leave_has_closed_the_stream_and_no_other_has() -> None:
    async def fly() -> None:
        closed = list[bool]()

        async def batches() -> AsyncIterator[Sequence[ModelEvent]]:
            try:
                yield [TextDelta("x")]
                await asyncio.Event().wait()
            finally:
                await settle()
                closed.append(True)

        flight = Flight(batches(), lambda over: None)
        followers = [flight.follow(), flight.follow()]
        for follower in followers:
            assert await anext(follower) == TextDelta("x")
        for follower, is_closed in zip(followers, ([], [True]), strict=True):
            async with closing(follower):
                pass
            assert closed == is_closed

    asyncio.run(fly())


def test_a_flight_that_closes_takes_no_followers_and_leaves_its_successor_alone(
    make_cache: Callable[..., Cache], question: Callable[..., ChatRequest]
) -> None:
    async def fly() -> None:
        asked: list[ChatRequest] = []
        first_may_close = asyncio.Event()

        async def model(request: ChatRequest) -> AsyncIterator[ModelEvent]:
            asked.append(request)
            is_first = len(asked) == 1
            try:
                yield TextDelta("x")
                await asyncio.Event().wait()
            finally:
                if is_first:
                    await first_may_close.wait()

        ask = make_cache().wrap(model)
        first, second, third = [ask(question()) for _ in range(3)]
        assert await anext(first) == TextDelta("x")
        leaving = asyncio.create_task(first.aclose())
        await settle()
        assert await anext(second) == TextDelta("x")
        assert len(asked) == 2
        first_may_close.set()
        await leaving
        await anext(third)  # the event that it shares the answer
        assert len(asked) == 2
        assert await anext(third) == TextDelta("x")
        await second.aclose()
        await third.aclose()

    asyncio.run(fly())
