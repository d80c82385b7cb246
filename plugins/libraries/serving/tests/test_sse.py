"""Server-sent events, from the first to the end or to the client that leaves."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any

import pytest

from jackfield_serving import EventStream

BEGIN, COMMENT, END = b"<begin>", b":\n\n", b"<end>"


class _Client:
    """A client of a stream, with the pieces that it got. It reads none while `reads` is not set."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.leaves, self.reads, self.got = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.reads.set()

    async def receive(self) -> MutableMapping[str, Any]:
        await self.leaves.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        await self.reads.wait()
        if message["type"] == "http.response.start":
            assert message["headers"] == [
                (b"content-type", b"text/event-stream; charset=utf-8"),
                (b"cache-control", b"no-store"),
                (b"x-accel-buffering", b"no"),  # nginx would keep events back
            ]
            self.pieces.append(BEGIN)
        else:
            self.pieces.append(message["body"] if message["more_body"] else END)
        self.got.set()

    async def read(self, stream: EventStream) -> list[bytes]:
        await stream({}, self.receive, self.send)
        return self.pieces

    async def wait_for(self, piece: bytes, count: int = 1) -> None:
        while self.pieces.count(piece) < count:
            self.got.clear()
            await self.got.wait()


class _Selector(selectors.SelectSelector):
    """Lets no time pass: where a loop would wait, `slept` grows, by as many seconds."""

    slept = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.slept += timeout or 0.0
        return super().select(0)


class _Loop(asyncio.SelectorEventLoop):
    """A loop whose clock shows how long it has waited, however long this machine takes."""

    def __init__(self) -> None:
        self._clock = _Selector()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.slept


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def inside() -> None:
        async with asyncio.timeout(10_000):
            await main()
        assert asyncio.all_tasks() == {asyncio.current_task()}, "a task was left behind"

    with asyncio.Runner(loop_factory=_Loop) as runner:
        runner.run(inside())


async def nothing() -> AsyncIterator[bytes]:
    await asyncio.Event().wait()
    yield b"never"


def test_a_client_gets_all_events_and_the_end() -> None:
    async def events() -> AsyncIterator[bytes]:
        yield b"a"
        yield b"b"

    async def main() -> None:
        assert await _Client().read(EventStream(events())) == [BEGIN, b"a", b"b", END]

    run(main)


def test_each_silence_of_fifteen_seconds_ends_with_a_comment() -> None:
    async def main() -> None:
        loop, client, times = asyncio.get_running_loop(), _Client(), []
        pause = asyncio.Event()

        async def events() -> AsyncIterator[bytes]:
            yield b"a"
            await pause.wait()
            yield b"b"

        began = loop.time()
        reading = asyncio.ensure_future(client.read(EventStream(events())))
        for count in (1, 2, 3):
            await client.wait_for(COMMENT, count)
            times.append(loop.time() - began)
        pause.set()
        pieces = await reading
        await asyncio.sleep(40)
        assert pieces == [BEGIN, b"a", COMMENT, COMMENT, COMMENT, b"b", END], "nothing follows the end"
        assert all(time >= 15 * number for number, time in enumerate(times, start=1))

    run(main)


def test_a_silence_begins_with_the_latest_event() -> None:
    async def events() -> AsyncIterator[bytes]:
        yield b"a"
        await asyncio.sleep(10)
        yield b"b"
        await asyncio.Event().wait()

    async def main() -> None:
        loop, client = asyncio.get_running_loop(), _Client()
        began = loop.time()
        reading = asyncio.ensure_future(client.read(EventStream(events())))
        await client.wait_for(COMMENT, 1)
        assert loop.time() - began == pytest.approx(25, abs=1)
        reading.cancel()
        await asyncio.wait([reading])

    run(main)


def test_events_in_time_keep_comments_away() -> None:
    async def events() -> AsyncIterator[bytes]:
        for _ in range(10):
            yield b"a"
            await asyncio.sleep(4)

    async def main() -> None:
        assert COMMENT not in await _Client().read(EventStream(events()))

    run(main)


def test_a_client_that_does_not_read_gets_one_comment_and_then_the_events() -> None:
    async def main() -> None:
        client, reading = _Client(), asyncio.Event()

        async def events() -> AsyncIterator[bytes]:
            client.reads.clear()
            await reading.wait()
            yield b"a"

        task = asyncio.ensure_future(client.read(EventStream(events())))
        await asyncio.sleep(100)
        reading.set()
        await asyncio.sleep(100)
        client.reads.set()
        pieces = await task
        assert pieces[0] == BEGIN
        assert sorted(pieces[1:-1]) in ([COMMENT, b"a"], [b"a"])
        assert pieces[-1] == END

    run(main)


@pytest.mark.parametrize("reads", [True, False])
def test_a_client_that_leaves_closes_the_events_and_is_reported(reads: bool) -> None:
    async def main() -> None:
        client, ends = _Client(), []

        async def events() -> AsyncIterator[bytes]:
            try:
                yield b"a"
                if not reads:
                    client.reads.clear()
                    yield b"b"
                async for event in nothing():
                    yield event
            finally:
                ends.append("closed")

        async def leave() -> None:
            ends.append("left")

        task = asyncio.ensure_future(client.read(EventStream(events(), leave)))
        await client.wait_for(b"a")
        client.leaves.set()
        assert await task == [BEGIN, b"a"]
        assert ends == ["closed", "left"]

    run(main)


def test_a_stream_that_ends_is_not_reported_as_left() -> None:
    async def events() -> AsyncIterator[bytes]:
        yield b"a"

    async def leave() -> None:
        pytest.fail("the client stayed")

    async def main() -> None:
        assert await _Client().read(EventStream(events(), leave)) == [BEGIN, b"a", END]

    run(main)


def test_an_error_of_the_events_passes_and_the_response_has_no_end() -> None:
    left = []

    async def events() -> AsyncIterator[bytes]:
        yield b"a"
        raise ZeroDivisionError

    async def leave() -> None:
        left.append(True)

    async def main() -> None:
        client = _Client()
        with pytest.raises(ZeroDivisionError):
            await client.read(EventStream(events(), leave))
        assert client.pieces == [BEGIN, b"a"]
        assert left == [True]

    run(main)


def test_a_cancelled_request_reports_and_stays_cancelled() -> None:
    left = []

    async def leave() -> None:
        await asyncio.sleep(0)
        left.append(True)

    async def main() -> None:
        client = _Client()
        task = asyncio.ensure_future(client.read(EventStream(nothing(), leave)))
        await client.wait_for(BEGIN)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert left == [True]

    run(main)


def test_a_request_that_is_cancelled_again_reports_all_the_same() -> None:
    left = []

    async def main() -> None:
        is_asked, goes_on = asyncio.Event(), asyncio.Event()

        async def leave() -> None:
            is_asked.set()
            await goes_on.wait()
            left.append(True)

        client = _Client()
        task = asyncio.ensure_future(client.read(EventStream(nothing(), leave)))
        await client.wait_for(BEGIN)
        task.cancel()
        await is_asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        goes_on.set()
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})
        assert left == [True]

    run(main)
