"""Close async generators that are not fully consumed, and interrupt them at a time limit.

When `async for` exits early, it does not close the generator, although the generator may hold a connection, a kernel or
a thread. Each layer that forwards events therefore closes the layer below.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Generic, TypeVar

T = TypeVar("T")


class closing(Generic[T]):  # noqa: N801 - used like the standard library's `aclosing`
    """Close an event stream at the end of `async with`, like `contextlib.aclosing`, even if it has no `aclose`."""

    def __init__(self, events: AsyncIterator[T]) -> None:
        self._events = events

    async def __aenter__(self) -> AsyncIterator[T]:
        return self._events

    async def __aexit__(self, *_: object) -> None:
        close = getattr(self._events, "aclose", None)
        if close is not None:
            await close()


class CancelToken:
    """Token for cancelling a run from another task or thread. The run ends cleanly, with a valid history."""

    def __init__(self) -> None:
        self._cancelled = False
        self._lock = threading.Lock()
        self._waits: dict[InterruptibleWait, asyncio.AbstractEventLoop] = {}

    @property
    def cancelled(self) -> bool:
        """True once the run has been cancelled."""
        return self._cancelled

    def cancel(self) -> None:
        """Cancel the run. This method may be called from any thread. Repeated calls have no effect."""
        with self._lock:
            self._cancelled = True
            waits = list(self._waits.items())
        for wait, loop in waits:
            loop.call_soon_threadsafe(wait.interrupt)

    def enter(self, wait: InterruptibleWait) -> None:
        """Register a wait that cancellation should interrupt."""
        with self._lock:
            self._waits[wait] = asyncio.get_running_loop()
            if self._cancelled:
                wait.interrupt()

    def leave(self, wait: InterruptibleWait) -> None:
        """Unregister a finished wait."""
        with self._lock:
            self._waits.pop(wait, None)


class Interrupted(Exception):  # noqa: N818 - a signal between layers, not an error for users
    """The time limit has passed, or the run was cancelled."""


class InterruptibleWait:
    """Reusable context manager for a task's waits. `interrupt` ends the current wait.

    `asyncio.timeout` can be used only once, and a timer and a scope for each event would cost more than the event.
    """

    def __init__(self) -> None:
        self._task: asyncio.Task[object] | None = None
        self._earlier_cancels = 0
        self._is_over = self._has_cancelled = False

    def interrupt(self) -> None:
        """End the current wait and all later waits.

        Call this method in the task's event loop, between the task's steps.
        """
        self._is_over = True
        if self._task is not None and not self._has_cancelled:
            self._has_cancelled = True
            self._task.cancel()

    def __enter__(self) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a run's events can only be read inside an asyncio task")
        self._task, self._earlier_cancels = task, task.cancelling()
        if self._is_over:  # events that are ready without waiting still arrive
            asyncio.get_running_loop().call_soon(self.interrupt)

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        """Raise `Interrupted` instead of the cancellation that `interrupt` caused."""
        task, self._task = self._task, None
        if self._has_cancelled and task is not None:
            self._has_cancelled = False
            if task.uncancel() <= self._earlier_cancels and isinstance(error, asyncio.CancelledError):
                raise Interrupted from error


async def interruptible(
    events: AsyncIterator[T], *, ends_at: float | None, cancel: CancelToken | None = None
) -> AsyncIterator[T]:
    """Yield events until `ends_at` in the event loop's time, or until `cancel` is used.

    The time limit only applies to waits for events. During a `yield`, it would interrupt the consumer.

    Raises:
        Interrupted: The time limit has passed, or `cancel` was used.
    """
    wait = InterruptibleWait()
    timer = None if ends_at is None else asyncio.get_running_loop().call_at(ends_at, wait.interrupt)
    if cancel:
        cancel.enter(wait)
    try:
        async with closing(events):
            while not (cancel and cancel.cancelled):
                with wait:
                    try:
                        event = await anext(events)
                    except StopAsyncIteration:
                        return
                yield event
            raise Interrupted
    finally:
        if timer is not None:
            timer.cancel()
        if cancel:
            cancel.leave(wait)
