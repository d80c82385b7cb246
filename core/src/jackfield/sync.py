"""The one bridge from async to sync, and the worker threads for plain functions.

What waits is written once, as `async`. Callers without an event loop cross over here: one background thread per process
runs an event loop, started at first use. A stream is pumped by one task (it opens, iterates and closes the generator)
into a bounded queue, which the caller's thread drains in batches, so that many events cost one hop.

It works under a running event loop, too (in a notebook, in a web handler), because the loop is another thread's. It
works after a fork: the child starts its own.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import queue
import threading
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from typing import Any, Generic, ParamSpec, TypeVar, cast

from jackfield.errors import JackfieldError

T = TypeVar("T")
P = ParamSpec("P")

_QUEUE_LIMIT = 1024  # events a slow consumer may lag behind before the producer waits


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on the background loop and return its result.

    Ctrl-C cancels it. Errors arrive as they were raised.

    Raises:
        JackfieldError: Called on the background loop itself, which would wait for itself.
    """
    loop = _loop_for_waiting(work)
    future: asyncio.Future[_Outcome[T]] | None = None
    done = threading.Event()
    context = contextvars.copy_context()

    def start() -> None:
        nonlocal future
        future = loop.create_task(_outcome(work), context=context)
        future.add_done_callback(lambda _: done.set())

    def stop() -> None:
        if future is None:
            done.set()
        else:
            future.cancel()

    try:
        loop.call_soon_threadsafe(start)  # inside: Ctrl-C may come before it returns
        done.wait()
    except BaseException:
        loop.call_soon_threadsafe(stop)
        done.wait(timeout=5)
        raise
    assert future is not None  # noqa: S101 - `done` is set by it
    return _result_of(future)


class _Outcome(Generic[T]):
    """A result, or one of the two errors that would end the loop if they left a task."""

    def __init__(self, result: T | None, error: BaseException | None) -> None:
        self.result = result
        self.error = error


async def _outcome(work: Coroutine[Any, Any, T]) -> _Outcome[T]:
    try:
        return _Outcome(await work, None)
    except (SystemExit, KeyboardInterrupt) as error:
        return _Outcome(None, error)


def _result_of(future: asyncio.Future[_Outcome[T]]) -> T:
    try:
        outcome = future.result()
        if outcome.error is not None:
            raise outcome.error
        return cast(T, outcome.result)
    finally:
        del future  # the traceback of an error refers to this frame: break the circle


def iterate(events: AsyncIterator[T]) -> Iterator[T]:
    """The items of an async generator, one by one. Leaving early cancels and closes it."""
    for batch in batches(events):
        yield from batch


def batches(events: AsyncIterator[T]) -> Iterator[list[T]]:
    """The items of an async generator, as many at once as have arrived; at least one."""
    loop = _loop_for_waiting(events)
    pump: _Pump[T] = _Pump(events, loop)
    try:
        loop.call_soon_threadsafe(pump.start, contextvars.copy_context())
        while batch := pump.take():
            yield batch
    finally:
        pump.stop()


class _Pump(Generic[T]):
    """Moves items from a task on the loop to a consumer in another thread."""

    def __init__(self, events: AsyncIterator[T], loop: asyncio.AbstractEventLoop) -> None:
        self._events = events
        self._loop = loop
        self._items: deque[T] = deque()
        self._ready = threading.Semaphore(0)
        self._signalled = False  # whether the consumer has been told of the items; guarded by _lock
        self._lock = threading.Lock()
        self._room: asyncio.Event | None = None
        self._waiting = False  # whether the producer waits for room
        self._task: asyncio.Task[None] | None = None
        self._stopped = False
        self._done = False
        self._finished = threading.Event()
        self._error: BaseException | None = None

    def start(self, context: contextvars.Context) -> None:
        self._room = asyncio.Event()
        self._task = self._loop.create_task(self._pump(), context=context)
        if self._stopped:
            self._task.cancel()

    async def _pump(self) -> None:
        try:
            async for item in self._events:
                self._items.append(item)
                self._signal()
                if len(self._items) >= _QUEUE_LIMIT:
                    await self._wait_for_room()
        except BaseException as error:  # noqa: BLE001 - handed to the consumer, which raises it
            self._error = error
        finally:
            try:
                if isinstance(self._events, AsyncGenerator):
                    await self._events.aclose()
            finally:
                self._done = True
                self._signal()
                self._finished.set()

    async def _wait_for_room(self) -> None:
        assert self._room is not None  # noqa: S101 - set in start(), before this task
        self._room.clear()
        # In this order: who drains before the check leaves room, and who drains after it sees the wait.
        self._waiting = True
        if len(self._items) >= _QUEUE_LIMIT:
            await self._room.wait()
        self._waiting = False

    def _signal(self) -> None:
        with self._lock:
            if self._signalled:
                return
            self._signalled = True
        self._ready.release()

    def take(self) -> list[T]:
        """What has arrived; [] at the end."""
        while True:
            self._ready.acquire()
            with self._lock:
                self._signalled = False
            # Read before draining: an item put after this is signalled again.
            done = self._done
            batch = [self._items.popleft() for _ in range(len(self._items))]
            if self._waiting and self._room is not None:
                self._loop.call_soon_threadsafe(self._room.set)
            if done:
                self._signal()  # the next call comes through as well
            if batch:
                return batch
            if done:
                if self._error is not None:
                    error, self._error = self._error, None
                    raise error
                return []

    def stop(self) -> None:
        self._stopped = True
        if self._finished.is_set():
            return
        self._loop.call_soon_threadsafe(self._end)
        self._finished.wait(timeout=5)

    def _end(self) -> None:
        if self._task is None:
            self._finished.set()
        else:
            self._task.cancel()


# --- worker threads ---------------------------------------------------------------------------------------------------


async def in_worker(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a plain function in a worker thread; context variables travel with it.

    The number of threads grows with the calls that run at once. Cancelling gives up waiting; a thread cannot be
    stopped, so the function itself runs on to its end, and its thread does not keep the process alive.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            result = context.run(function, *args, **kwargs)
        except BaseException as error:  # noqa: BLE001 - handed to the waiting task, which raises it
            _tell(loop, _set_exception, future, error)
        else:
            _tell(loop, _set_result, future, result)

    _workers().submit(work)
    return await future


def in_background(function: Callable[[], object]) -> None:
    """Run a plain function in a worker thread and forget it; what it raises is logged."""

    def work() -> None:
        try:
            function()
        except Exception:
            logging.getLogger(__name__).warning("work in the background failed", exc_info=True)

    _workers().submit(work)


def _tell(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *args: Any) -> None:
    if not loop.is_closed():  # a run that was given up may have taken its loop with it
        loop.call_soon_threadsafe(function, *args)


def _set_result(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)


def _set_exception(future: asyncio.Future[Any], error: BaseException) -> None:
    if future.done():
        return
    if isinstance(error, StopIteration):  # a future refuses it: it would end the generator that awaits
        error = RuntimeError("a plain function raised StopIteration")
    future.set_exception(error)


class _Workers:
    """Daemon threads that are reused when idle and added when none is.

    The standard library's pool is not taken for two reasons: it has a fixed size, and it keeps the interpreter from
    ending until the slowest abandoned call has returned.
    """

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0

    def submit(self, job: Callable[[], None]) -> None:
        with self._lock:
            if self._idle:
                self._idle -= 1
                new = False
            else:
                new = True
        self._jobs.put(job)
        if new:
            threading.Thread(target=self._work, name="jackfield-worker", daemon=True).start()

    def _work(self) -> None:
        while True:
            self._jobs.get()()
            with self._lock:
                self._idle += 1


# --- one of each per process ------------------------------------------------------------------------------------------


class _Process:
    """What is started once per process, at first use."""

    def __init__(self) -> None:
        self.workers = _Workers()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()

    def loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="jackfield-loop", daemon=True).start()
            return self._loop


_processes: dict[int, _Process] = {}  # by process id: a forked child must not use its parent's threads


def _this_process() -> _Process:
    pid = os.getpid()
    # `setdefault` is atomic, where a lock could be held by a thread that the child of a fork does not have.
    return _processes.get(pid) or _processes.setdefault(pid, _Process())


def _workers() -> _Workers:
    return _this_process().workers


def _loop_for_waiting(work: Awaitable[Any] | AsyncIterator[Any]) -> asyncio.AbstractEventLoop:
    loop = _this_process().loop()
    try:
        here = asyncio.get_running_loop()
    except RuntimeError:
        return loop
    if here is loop:
        if isinstance(work, Coroutine):
            work.close()
        raise JackfieldError(
            "a blocking call was made inside Jackfield's own event loop, where it would wait for itself: "
            "in an `async def` tool or agent use the async twin (arun, astream, acomplete)"
        )
    return loop
