"""Share one in-flight request among all callers that make the same request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from jackfield.events import ModelEvent
from jackfield.streams import closing

_MOST_AHEAD = 64  # sent one at a time, each event would cost two event loop iterations


class Flight:
    """Reads a stream once for any number of followers on one event loop.

    A separate task does the reading, so cancelling one follower does not disturb the others. The task reads at most 64
    events ahead of the followers, and the last follower to leave closes the stream.

    Args:
        batches: The stream in batches, as they arrive. After an empty batch, reading resumes only when a follower
            waits for more.
        when_over: Called once or twice, when no more followers may join.
    """

    def __init__(self, batches: AsyncIterator[Sequence[ModelEvent]], when_over: Callable[[Flight], None]) -> None:
        self._when_over = when_over
        self._seen: list[ModelEvent] = []
        self._error: BaseException | None = None
        self._over = False
        self._wanted = asyncio.Event()
        self._ahead = 0  # events read since a follower last waited
        self._waiting: list[asyncio.Future[None]] = []
        self._followers = 0
        self._task = asyncio.get_running_loop().create_task(self._read(batches))

    async def follow(self) -> AsyncIterator[ModelEvent]:
        """Yield every event from the start, as it arrives. Errors are raised unchanged."""
        self._followers += 1
        place = 0
        try:
            while True:
                if place < len(self._seen):
                    place += 1
                    yield self._seen[place - 1]
                elif self._over:
                    break
                else:
                    await self._more()
            if self._error is not None:
                raise self._error
        finally:
            self._followers -= 1
            if not self._followers and not self._over:
                await self._stop()

    async def _more(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        self._ahead = 0
        self._wanted.set()
        await waiter

    async def _stop(self) -> None:
        self._end()  # immediately, so that no follower joins while the stream closes
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _read(self, batches: AsyncIterator[Sequence[ModelEvent]]) -> None:
        try:
            async with closing(batches):
                async for batch in batches:
                    self._seen += batch
                    self._ahead += len(batch)
                    if batch:
                        self._wake()
                    if (not batch or self._ahead >= _MOST_AHEAD) and not self._waiting:
                        self._wanted.clear()
                        await self._wanted.wait()
        except BaseException as error:  # noqa: BLE001 - raised by the followers
            self._error = error
        self._end()
        self._wake()

    def _end(self) -> None:
        self._over = True
        self._when_over(self)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():  # the reader may be cancelled
                waiter.set_result(None)
