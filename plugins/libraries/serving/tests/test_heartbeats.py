"""Silences between events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from jackfield_serving import with_heartbeats


def test_a_silence_is_marked_and_no_event_is_lost() -> None:
    async def main() -> None:
        gate = asyncio.Event()

        async def events() -> AsyncIterator[int]:
            yield 1
            await gate.wait()
            yield 2

        seen: list[int | None] = []
        async for event in with_heartbeats(events(), every_s=0.01):
            seen.append(event)
            if event is None:
                gate.set()
        assert [one for one in seen if one] == [1, 2]
        assert None in seen

    asyncio.run(main())


def test_leaving_in_a_silence_closes_the_events() -> None:
    async def main() -> None:
        closed = asyncio.Event()

        async def events() -> AsyncIterator[int]:
            try:
                await asyncio.Event().wait()
                yield 1
            finally:
                closed.set()

        beats = with_heartbeats(events(), every_s=0.01)
        assert await anext(beats) is None
        await beats.aclose()  # type: ignore[attr-defined]
        assert closed.is_set()

    asyncio.run(main())


def test_an_error_of_the_events_passes() -> None:
    async def main() -> None:
        async def events() -> AsyncIterator[int]:
            yield 1
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            async for _ in with_heartbeats(events()):
                pass

    asyncio.run(main())
