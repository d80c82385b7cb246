"""Async generators, handled so that nothing stays open: closed when left early, and stopped in time.

An `async for` does not close the generator it leaves. A connection, a kernel or a thread may be behind it, so every
layer that passes events on closes the layer below.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Generic, TypeVar

T = TypeVar("T")


class closing(Generic[T]):  # noqa: N801 - used like the standard library's `aclosing`
    """`async with closing(events)`: like `contextlib.aclosing`, for iterators that need not have `aclose`, too."""

    def __init__(self, events: AsyncIterator[T]) -> None:
        self._events = events

    async def __aenter__(self) -> AsyncIterator[T]:
        return self._events

    async def __aexit__(self, *_: object) -> None:
        close = getattr(self._events, "aclose", None)
        if close is not None:
            await close()


class CancelToken:
    """Stops a run from another task or thread; the run then ends by itself, with a valid history."""

    def __init__(self) -> None:
        self._cancelled = False
        self._lock = threading.Lock()
        self._waits: dict[asyncio.Timeout, asyncio.AbstractEventLoop] = {}

    @property
    def cancelled(self) -> bool:
        """Whether the run was asked to stop."""
        return self._cancelled

    def cancel(self) -> None:
        """Ask the run to stop; from any thread, and as often as you like."""
        with self._lock:
            self._cancelled = True
            waits = list(self._waits.items())
        for scope, loop in waits:
            loop.call_soon_threadsafe(self._wake, scope)

    def _wake(self, scope: asyncio.Timeout) -> None:
        if scope in self._waits:  # it may have ended meanwhile
            scope.reschedule(0)

    def enter(self, scope: asyncio.Timeout) -> None:
        """A wait begins, inside `scope`."""
        with self._lock:
            self._waits[scope] = asyncio.get_running_loop()
            if self._cancelled:
                scope.reschedule(0)

    def leave(self, scope: asyncio.Timeout) -> None:
        """The wait is over."""
        with self._lock:
            self._waits.pop(scope, None)


class Interrupted(Exception):  # noqa: N818 - it says what happened, and is caught where it is known what ends
    """The time is over, or somebody cancelled."""


async def interruptible(
    events: AsyncIterator[T], *, ends_at: float | None, cancel: CancelToken | None = None
) -> AsyncIterator[T]:
    """The events, until a point of the loop's time or until cancelled; then `Interrupted` is raised.

    The scope is around each wait alone: around a `yield` it would hit whoever consumes the events.
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
