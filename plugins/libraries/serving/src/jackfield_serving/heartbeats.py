"""Mark the silences between events, so that a face can write something before proxies close the connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TypeVar

from jackfield.streams import closing

T = TypeVar("T")
_SILENCE_S = 15.0  # proxies close connections that are silent for a minute


async def with_heartbeats(events: AsyncIterator[T], *, every_s: float = _SILENCE_S) -> AsyncIterator[T | None]:
    """Yield events, and None after each silence of `every_s` seconds. Closing it closes the events."""
    async with closing(events):
        pending: asyncio.Task[T] | None = None
        try:
            while True:
                pending = pending or asyncio.ensure_future(_next(events))
                done, _ = await asyncio.wait([pending], timeout=every_s)
                if not done:
                    yield None
                    continue
                task, pending = pending, None
                try:
                    yield task.result()
                except StopAsyncIteration:
                    return
        finally:
            if pending is not None:
                pending.cancel()
                await asyncio.wait([pending])


async def _next(events: AsyncIterator[T]) -> T:
    return await anext(events)
