"""Close async generators that are left early, and stop them in time.

An `async for` does not close the generator that it leaves, and the generator may hold a connection, a kernel or a
thread. So every layer that passes events on closes the layer below.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Generic, TypeVar

T = TypeVar("T")


class closing(Generic[T]):  # noqa: N801 - used like the standard library's `aclosing`
    """Close events at the end of `async with`, like `contextlib.aclosing`, but also iterators without `aclose`."""

    def __init__(self, events: AsyncIterator[T]) -> None:
        self._events = events

    async def __aenter__(self) -> AsyncIterator[T]:
        return self._events

    async def __aexit__(self, *_: object) -> None:
        close = getattr(self._events, "aclose", None)
        if close is not None:
            await close()


class CancelToken:
    """Cancels a run from another task or thread. The run ends by itself, with a valid history."""

    def __init__(self) -> None:
        self._cancelled = False
        self._lock = threading.Lock()
        self._waits: dict[asyncio.Timeout, asyncio.AbstractEventLoop] = {}

    @property
    def cancelled(self) -> bool:
        """True once the run is cancelled."""
        return self._cancelled

    def cancel(self) -> None:
        """Cancel the run, from any thread; more than once is fine."""
        with self._lock:
            self._cancelled = True
            waits = list(self._waits.items())
        for scope, loop in waits:
            loop.call_soon_threadsafe(self._wake, scope)

    def _wake(self, scope: asyncio.Timeout) -> None:
        if scope in self._waits:  # it may have ended meanwhile
            scope.reschedule(0)

    def enter(self, scope: asyncio.Timeout) -> None:
        """Register a wait inside `scope`, which a cancellation ends."""
        with self._lock:
            self._waits[scope] = asyncio.get_running_loop()
            if self._cancelled:
                scope.reschedule(0)

    def leave(self, scope: asyncio.Timeout) -> None:
        """Forget a wait that is over."""
        with self._lock:
            self._waits.pop(scope, None)


class Interrupted(Exception):  # noqa: N818 - a signal between layers, not an error of users
    """The time limit has passed, or the run is cancelled."""


async def interruptible(
    events: AsyncIterator[T], *, ends_at: float | None, cancel: CancelToken | None = None
) -> AsyncIterator[T]:
    """Yield events until a point of the loop's time, or until a cancellation.

    The time limit applies to each wait alone; around a `yield`, it would interrupt the consumer.

    Raises:
        Interrupted: The time is over, or `cancel` was used.
    """
    async with closing(events):
        while not (cancel and cancel.cancelled):
            scope = asyncio.timeout_at(ends_at)
            try:
                event = await _next_inside(scope, events, cancel)
            except StopAsyncIteration:
                return
            except TimeoutError as error:
                if scope.expired():
                    raise Interrupted from error
                raise
            yield event
        raise Interrupted


async def _next_inside(scope: asyncio.Timeout, events: AsyncIterator[T], cancel: CancelToken | None) -> T:
    async with scope:
        if cancel:
            cancel.enter(scope)
        try:
            return await anext(events)
        finally:
            if cancel:
                cancel.leave(scope)
