"""The one bridge from async to sync, and the worker threads for plain functions.

What waits is written once, as `async`. Callers without an event loop cross over here: one background thread per process
runs an event loop, started at first use. A stream is pumped by one task (it opens, iterates and closes the generator)
into a bounded queue, which the caller's thread drains in batches, so that many events cost one hop.

It works under a running event loop, too (in a notebook, in a web handler), because the loop is another thread's. It
works after a fork: the child starts its own. Nothing that runs on the loop can end it; if it breaks anyway,
whoever waits gets an error, and the next call starts another one.
"""

from __future__ import annotations

import asyncio
import atexit
import collections
import concurrent.futures
import contextlib
import contextvars
import functools
import itertools
import logging
import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Hashable, Iterator
from types import TracebackType
from typing import Any, Generic, ParamSpec, Protocol, Self, TypeVar

from jackfield.errors import JackfieldError
from jackfield.streams import closing

T = TypeVar("T")
U = TypeVar("U")
P = ParamSpec("P")

MAX_WORKERS = 256
"""How many worker threads run at once, not counting those that only wait for the bridge."""
MAX_ABANDONED = 256
"""How many more there may be for functions that were given up and still run, so that these starve no others."""
IDLE_S = 10.0
"""How long an idle worker thread is kept, in seconds."""

_QUEUE_LIMIT = 1024  # events a slow consumer may lag behind before the producer waits
_CLOSING_S = 5.0  # how long who leaves waits for work that takes its time to end
_EXIT_S = 1.0  # the same at the end of the process, for everything together

_LEFT_RUNNING = "_jackfield_left_running"
_log = logging.getLogger(__name__)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on the background loop and return its result.

    Ctrl-C cancels it. Errors arrive as they were raised.

    Raises:
        JackfieldError: Called on the background loop itself, which would wait for itself; or that loop broke.
    """
    call = _Call(work, _background_for(work))
    try:
        call.start()  # inside: Ctrl-C may come before it returns
        _patiently(call.done.wait)
    except BaseException:
        call.stop()
        call.done.wait(timeout=_CLOSING_S)
        raise
    return call.result()


class Stream(Iterator[U]):
    """The items of an async generator, for synchronous code.

    Nothing runs before the first `next`. `close`, or the end of a `with`, cancels what still runs and waits until it is
    closed, 5 seconds at most. A stream that is merely dropped, as by a `for` that is left early, is cancelled just as
    well, but nobody waits for it: the last reference may go anywhere, even on the thread of the loop that must close
    it.
    """

    def __init__(self, events: AsyncIterator[T], through: Callable[[Iterator[list[T]]], Iterator[U]]) -> None:
        self._pump: _Pump[Any] = _Pump(events)
        self._items = through(self._pump.batches())

    def __next__(self) -> U:
        try:
            return next(self._items)
        except StopIteration:
            raise
        except BaseException:  # Ctrl-C, or an error in what the items go through
            self.close()
            raise

    def close(self) -> None:
        """Cancel what still runs, and wait for its end; it may be called from any thread, and again."""
        self._items = iter(())
        self._pump.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self._pump.stop()


def iterate(events: AsyncIterator[T]) -> Stream[T]:
    """The items of an async generator, one by one. Leaving early cancels and closes it."""
    return Stream(events, itertools.chain.from_iterable)


def batches(events: AsyncIterator[T]) -> Stream[list[T]]:
    """The items of an async generator, as many at once as have arrived; at least one."""
    return Stream(events, iter)


def stream(events: AsyncIterator[T], through: Callable[[Iterator[list[T]]], Iterator[U]]) -> Stream[U]:
    """What a plain generator makes of the items of an async one.

    Args:
        events: The items.
        through: Takes their batches, as `batches` gives them, and yields something for them.
    """
    return Stream(events, through)


class _Call(Generic[T]):
    """A coroutine on the loop, and a thread that waits for it."""

    def __init__(self, work: Coroutine[Any, Any, T], background: _Background) -> None:
        self.done = threading.Event()
        self._work = work
        self._background = background
        self._task: asyncio.Task[T] | None = None
        self._lost: JackfieldError | None = None

    def start(self) -> None:
        self._background.enter(self)
        self._background.call(self._begin, contextvars.copy_context())

    def _begin(self, context: contextvars.Context) -> None:
        self._task = self._background.loop.create_task(self._work, context=context)
        self._task.add_done_callback(self._end)

    def _end(self, _: object) -> None:
        self._background.leave(self)
        self.done.set()

    def stop(self) -> None:
        try:
            self._background.call(self._cancel)
        except JackfieldError:  # no loop, no task
            self._work.close()
            self.done.set()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
        else:
            self._work.close()
            self._end(None)

    def lose(self, error: JackfieldError) -> None:
        """The loop has broken."""
        if not self.done.is_set():
            self._lost = error
            self.done.set()

    def result(self) -> T:
        task, self._task = self._task, None
        try:
            if self._lost is not None:
                raise self._lost
            assert task is not None  # noqa: S101 - `done` is set by it
            return task.result()
        finally:
            del task  # the traceback of an error refers to this frame: break the circle


class _Pump(Generic[T]):
    """Moves items from a task on the loop to a consumer in another thread."""

    def __init__(self, events: AsyncIterator[T]) -> None:
        self._events = events
        self._background: _Background | None = None  # from the first item on
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

    def batches(self) -> Iterator[list[T]]:
        """What has arrived, until the end."""
        if self._stopped:
            return
        background = _background_for(self._events)
        background.enter(self)
        self._background = background
        background.call(self._begin, contextvars.copy_context())
        while batch := self._take():
            yield batch

    def stop(self) -> None:
        """Ask for the end. It takes no lock and waits for nothing, because finalisers call it, on any thread."""
        self._stopped = True
        if self._background is not None and not self._finished.is_set():
            with contextlib.suppress(JackfieldError):
                self._background.call(self._cancel)

    def close(self) -> None:
        """Ask for the end, and wait for it; on the loop itself, which has to bring it about, without the wait."""
        self.stop()
        if self._background is not None and not self._background.is_here():
            _patiently(functools.partial(self._finished.wait, _CLOSING_S))

    def lose(self, error: JackfieldError) -> None:
        """The loop has broken."""
        if not self._done:
            self._error = error
            self._end(None)

    # --- on the loop ---

    def _begin(self, context: contextvars.Context) -> None:
        assert self._background is not None  # noqa: S101 - who calls this has set it
        if self._stopped:
            self._end(None)
            return
        self._room = asyncio.Event()
        self._task = self._background.loop.create_task(self._move(), context=context)
        self._task.add_done_callback(self._end)  # for a task that is cancelled before its first step

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
        else:
            self._end(None)

    def _end(self, task: asyncio.Task[None] | None) -> None:
        if self._done:
            return
        if task is not None and self._error is None:
            self._error = asyncio.CancelledError() if task.cancelled() else task.exception()
        self._done = True
        self._signal()
        self._finished.set()
        if self._background is not None:
            self._background.leave(self)

    async def _move(self) -> None:
        assert self._task is not None  # noqa: S101 - this is its first step
        self._task.remove_done_callback(self._end)  # from here on, the end is said below, one turn of the loop earlier
        try:
            async with closing(self._events) as events:
                async for item in events:
                    if self._stopped:  # it took no notice of being cancelled
                        break
                    self._items.append(item)
                    self._signal()
                    if len(self._items) >= _QUEUE_LIMIT:
                        await self._wait_for_room()
        except BaseException as error:  # noqa: BLE001 - handed to the consumer, which raises it
            self._error = error
        self._end(None)

    async def _wait_for_room(self) -> None:
        assert self._room is not None  # noqa: S101 - set in _begin(), before this task
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

    # --- in the consumer's thread ---

    def _take(self) -> list[T]:
        """What has arrived; [] at the end."""
        while True:
            _patiently(self._ready.acquire)
            with self._lock:
                self._signalled = False
            # Read before draining: an item put after this is signalled again.
            done = self._done
            batch = [self._items.popleft() for _ in range(len(self._items))]
            if self._waiting and self._room is not None and self._background is not None:
                self._background.call(self._room.set)
            if done:
                self._signal()  # the next call comes through as well
            if self._stopped:
                return []
            if batch:
                return batch
            if done:
                if self._error is not None:
                    error, self._error = self._error, None
                    raise error
                return []


# --- worker threads ---------------------------------------------------------------------------------------------------


async def in_worker(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a plain function in a worker thread; context variables travel with it.

    At most 256 run at once, besides those that wait for the bridge themselves; others wait for their turn. Cancelling
    gives up waiting: a function that has not begun never runs. One that has cannot be stopped: it runs on to its end,
    and keeps its thread, but not the process. `abandoned` lists such functions, and `is_abandoned` says whether a
    cancellation left one; up to 256 take no thread from others.

    Raises:
        JackfieldError: There is no thread for it, and none will be free: the machine cannot start any more, or all
            are held by functions that were given up. It has not run, and never will.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def arrive(result: T | None, error: BaseException | None) -> None:
        with contextlib.suppress(RuntimeError):  # a run that was given up may have taken its loop with it
            loop.call_soon_threadsafe(_settle, future, result, error)

    task = asyncio.current_task()
    job = _Job(_with_context(function, *args, **kwargs), arrive, name="" if task is None else task.get_name())
    workers = _this_process().workers
    workers.submit(job)
    try:
        return await future
    except asyncio.CancelledError as error:
        if workers.give_up(job):
            setattr(error, _LEFT_RUNNING, True)
        raise


def is_abandoned(error: BaseException | None) -> bool:
    """Whether a cancellation gave up a function in a worker thread that still ran."""
    return getattr(error, _LEFT_RUNNING, False) is True


def abandoned() -> list[str]:
    """The functions that were given up and still run in worker threads: the names of the tasks that called them."""
    return _this_process().workers.abandoned()


async def shared_in_worker(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """As `in_worker`, but the same call is made only once at a time: others wait for it, in any event loop.

    For anything that is opened or loaded at first use, and kept by the function itself. The arguments are hashable.
    Cancelling one caller does not stop the others. All get the same error, and the next call tries again.
    """
    asked = (function, args, *sorted(kwargs.items()))
    process = _this_process()
    mine: concurrent.futures.Future[T] = concurrent.futures.Future()
    flight: concurrent.futures.Future[T] = process.flights.setdefault(asked, mine)
    if flight is mine:
        mine.set_running_or_notify_cancel()  # from now on, a waiting task that is cancelled cannot cancel it

        def arrive(result: T | None, error: BaseException | None) -> None:
            process.flights.pop(asked, None)
            _settle(mine, result, error)

        process.workers.submit(_Job(_with_context(function, *args, **kwargs), arrive))
    return await asyncio.wrap_future(flight)


def in_background(function: Callable[[], object]) -> concurrent.futures.Future[None]:
    """Run a plain function in a worker thread and forget it; what it raises is logged.

    Returns:
        Is done when it has run, with an error only if it never will, because there is no thread for it. Cancelling
        it, or the wait for it, has no effect.
    """
    over: concurrent.futures.Future[None] = concurrent.futures.Future()
    over.set_running_or_notify_cancel()

    def work() -> None:
        try:
            function()
        except BaseException:  # noqa: BLE001 - there is nobody to raise it to
            _log.warning("background work failed", exc_info=True)

    def arrive(result: None, refusal: BaseException | None) -> None:
        if refusal is not None:
            _log.warning("background work was not done: %s", refusal)
        _settle(over, result, refusal)

    _this_process().workers.submit(_Job(work, arrive))
    return over


def _with_context(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Callable[[], T]:
    return functools.partial(contextvars.copy_context().run, function, *args, **kwargs)


def _settle(
    future: asyncio.Future[T] | concurrent.futures.Future[T], result: T | None, error: BaseException | None
) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)  # type: ignore[arg-type]
    else:
        future.set_exception(error)


class _Job(Generic[T]):
    """Something for a worker thread, and who gets what it gives, or an error if there will never be a thread for it."""

    __slots__ = ("_arrive", "_function", "given_up", "name")

    def __init__(
        self, function: Callable[[], T], arrive: Callable[[T | None, BaseException | None], None], name: str = ""
    ) -> None:
        self._function = function
        self._arrive = arrive
        self.name = name
        self.given_up = False

    def work(self) -> None:
        """Run it, unless nobody waits for it any more."""
        if self.given_up:
            return
        try:
            result = self._function()
        except BaseException as error:  # noqa: BLE001 - handed to who waits, who raises it
            self._arrive(None, _as_raised_in_a_task(error))
        else:
            self._arrive(result, None)

    def refuse(self, error: JackfieldError) -> None:
        """There will never be a thread for it."""
        self._arrive(None, error)


def _as_raised_in_a_task(error: BaseException) -> BaseException:
    """Two errors would say something else in a task than the function meant."""
    if isinstance(error, StopIteration | asyncio.CancelledError):
        arriving = RuntimeError(f"a plain function raised {type(error).__name__}")
        arriving.__cause__ = error
        return arriving
    return error


class _Worker:
    """A thread of the pool."""

    __slots__ = ("is_lent", "job", "wake")

    def __init__(self, job: _Job[Any]) -> None:
        self.job: _Job[Any] | None = job
        self.is_lent = False  # it waits for the bridge, and so perhaps for a job that another worker must do
        self.wake = threading.Lock()
        self.wake.acquire()


class _Workers:
    """Daemon threads: reused when idle, added up to a bound, ended after some idle seconds.

    The standard library's pool is not taken for three reasons: it keeps the interpreter from ending until the slowest
    abandoned call has returned, its threads never end, and one whose workers wait for other workers can hang for ever.

    Here none does. A job waits only while a thread is at work that somebody waits for. Where there is no such thread
    and none can be started, all jobs that wait are refused, and never run later.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: deque[_Job[Any]] = deque()  # that nobody works at yet
        self._idle: list[_Worker] = []  # the last one is taken first, so that the others can end
        self._working: set[_Worker] = set()
        self._lent = 0

    def submit(self, job: _Job[Any]) -> None:
        """Have it done, or refused."""
        with self._lock:
            self._jobs.append(job)
            refused = self._hand_out()
        _refuse(refused)

    def give_up(self, job: _Job[Any]) -> bool:
        """Nobody waits for a job any more: if it has not begun, it never will. Whether it runs all the same."""
        with self._lock:
            job.given_up = True
            with contextlib.suppress(ValueError):  # it has begun
                self._jobs.remove(job)
            goes_on = any(worker.job is job for worker in self._working)
            refused = self._hand_out()
        _refuse(refused)
        return goes_on

    def abandoned(self) -> list[str]:
        """The names of the jobs that were given up and still run."""
        with self._lock:
            return self._abandoned()

    def _abandoned(self) -> list[str]:
        return [
            worker.job.name
            for worker in self._working
            if worker.job is not None and worker.job.given_up and not worker.is_lent
        ]

    def lend(self, worker: _Worker) -> None:
        """A worker waits for the bridge, and another one may work meanwhile."""
        with self._lock:
            worker.is_lent = True
            self._lent += 1
            refused = self._hand_out()
        _refuse(refused)

    def take_back(self, worker: _Worker) -> None:
        """A worker goes on."""
        with self._lock:
            worker.is_lent = False
            self._lent -= 1

    def _hand_out(self) -> tuple[list[_Job[Any]], JackfieldError] | None:
        """Give the waiting jobs to threads, as far as there are some; what must be refused is given back."""
        problem: JackfieldError | None = None
        while self._jobs and problem is None:
            if self._idle:
                worker = self._idle.pop()
                self._working.add(worker)
                worker.job = self._jobs.popleft()
                worker.wake.release()
            elif self._has_room():
                problem = self._start_one()
            else:
                problem = self._all_given_up()
        if problem is None or not self._jobs or self._somebody_will_be_free():
            return None
        refused = list(self._jobs)
        self._jobs.clear()
        return refused, problem

    def _has_room(self) -> bool:
        count = len(self._working) - self._lent
        return count < MAX_WORKERS or count - min(len(self._abandoned()), MAX_ABANDONED) < MAX_WORKERS

    def _start_one(self) -> JackfieldError | None:
        worker = _Worker(self._jobs[0])
        self._working.add(worker)
        try:
            threading.Thread(target=self._work, args=(worker,), name="jackfield-worker", daemon=True).start()
        except (RuntimeError, MemoryError) as error:
            self._working.discard(worker)
            problem = JackfieldError(
                f"no thread for a plain function: the machine cannot start any more ({error}), and none of the "
                f"{len(self._working)} worker threads will become free: raise the limit of threads (ulimit -u, or the "
                f"container's), or run less at once"
            )
            problem.__cause__ = error
            return problem
        self._jobs.popleft()
        return None

    def _all_given_up(self) -> JackfieldError:
        names = collections.Counter(self._abandoned())
        most = ", ".join(f"{name} ({count})" for name, count in names.most_common(5))
        return JackfieldError(
            f"no thread for a plain function: all {names.total()} worker threads are held by functions that were "
            f"given up (timed out or cancelled) but still run: {most}; set a time-out on what they wait for, or "
            f"restart the process"
        )

    def _somebody_will_be_free(self) -> bool:
        return any(
            not worker.is_lent and worker.job is not None and not worker.job.given_up for worker in self._working
        )

    def _work(self, worker: _Worker) -> None:
        _here.worker = worker
        _here.workers = self
        try:
            while worker.job is not None:
                worker.job.work()
                self._next(worker)
        finally:
            with self._lock:
                self._working.discard(worker)
                refused = self._hand_out()
            _refuse(refused)

    def _next(self, worker: _Worker) -> None:
        """Another job for a worker, when there is one within some seconds."""
        with self._lock:
            worker.job = None
            self._working.discard(worker)
            if self._jobs and self._has_room():
                worker.job = self._jobs.popleft()
                self._working.add(worker)
                return
            self._idle.append(worker)
        if worker.wake.acquire(timeout=IDLE_S):
            return
        with self._lock:
            if worker in self._idle:
                self._idle.remove(worker)
                return
        worker.wake.acquire()  # it was given a job at the last moment


def _refuse(refused: tuple[list[_Job[Any]], JackfieldError] | None) -> None:
    if refused is not None:
        jobs, problem = refused
        for job in jobs:
            job.refuse(problem)


_here = threading.local()  # `worker` and `workers`, in their threads


def _patiently(wait: Callable[[], object]) -> None:
    """Wait for the bridge. A worker thread that does is lent meanwhile: it may wait for another worker."""
    workers = getattr(_here, "workers", None)
    if workers is None or workers is not _this_process().workers:  # no worker, or one that was forked
        wait()
        return
    workers.lend(_here.worker)
    try:
        wait()
    finally:
        workers.take_back(_here.worker)


# --- one of each per process ------------------------------------------------------------------------------------------


class _Waiting(Protocol):
    """Somebody who waits for something on the loop."""

    def lose(self, error: JackfieldError) -> None:
        """The loop has broken, and nothing will come."""


class _Background:
    """An event loop in a thread of its own, which goes on whatever leaves a task."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.has_ended = False
        self._process = os.getpid()
        self._waiting: set[_Waiting] = set()  # changed without a lock, which finalisers could not take
        self._thread = threading.Thread(target=self._run, name="jackfield-loop", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            self.loop.close()
            raise JackfieldError(
                f"no thread for the event loop: the machine cannot start any more ({error}); raise the limit of "
                f"threads (ulimit -u, or the container's), or run less at once"
            ) from error
        atexit.register(self._at_exit)

    def is_here(self) -> bool:
        """Whether this is the thread of the loop."""
        return threading.get_ident() == self._thread.ident

    def enter(self, waiting: _Waiting) -> None:
        """Somebody waits from now on.

        Raises:
            JackfieldError: The loop has ended meanwhile.
        """
        self._waiting.add(waiting)
        if self.has_ended:  # read after it was added, as `_run` reads the set after it said so
            raise _lost()

    def leave(self, waiting: _Waiting) -> None:
        """Somebody has what it waited for."""
        self._waiting.discard(waiting)

    def call(self, function: Callable[..., object], *args: Any) -> None:
        """Have something called on the loop.

        Raises:
            JackfieldError: The loop has ended.
        """
        try:
            self.loop.call_soon_threadsafe(function, *args)
        except RuntimeError as error:
            raise _lost() from error

    def _run(self) -> None:
        try:
            while not self.loop.is_closed():
                # Whoever waits for the task or callback that raised one of these has it; the others' work goes on.
                with contextlib.suppress(KeyboardInterrupt, SystemExit):
                    self.loop.run_forever()
        except BaseException:  # noqa: BLE001 - whatever broke it, those who wait get an error below
            _log.exception("the background event loop broke; the next call starts another one")
        finally:
            self.has_ended = True
            with contextlib.suppress(Exception):  # it is broken, and may not close either
                self.loop.close()
            for waiting in self._waiting.copy():
                waiting.lose(_lost())
            atexit.unregister(self._at_exit)

    def _at_exit(self) -> None:
        """Give unfinished work the chance to close what it has open: a process, a file, a connection."""
        if self._process != os.getpid() or self.has_ended:
            return
        over = threading.Event()
        with contextlib.suppress(JackfieldError):
            self.call(self._cancel_all, over)
            over.wait(_EXIT_S)

    def _cancel_all(self, over: threading.Event) -> None:
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        asyncio.gather(*tasks, return_exceptions=True).add_done_callback(lambda _: over.set())


def _lost() -> JackfieldError:
    return JackfieldError("the background event loop ended before this was done (the log says why): ask again")


class _Process:
    """What is started once per process, at first use."""

    def __init__(self) -> None:
        self.workers = _Workers()
        self.flights: dict[Hashable, concurrent.futures.Future[Any]] = {}
        self._background: _Background | None = None
        self._lock = threading.RLock()

    def background(self) -> _Background:
        background = self._background
        if background is not None and not background.has_ended:
            return background
        with self._lock:
            if self._background is None or self._background.has_ended:
                self._background = _Background()
            return self._background


_processes: dict[int, _Process] = {}  # by process id: a forked child must not use its parent's threads


def _this_process() -> _Process:
    pid = os.getpid()
    # `setdefault` is atomic, where a lock could be held by a thread that the child of a fork does not have.
    return _processes.get(pid) or _processes.setdefault(pid, _Process())


def _background_for(work: Awaitable[Any] | AsyncIterator[Any]) -> _Background:
    background = _this_process().background()
    if not background.is_here():
        return background
    if isinstance(work, Coroutine):
        work.close()
    raise JackfieldError(
        "a blocking call was made inside Jackfield's own event loop, where it would wait for itself: "
        "in an `async def` tool or agent, use the async counterpart (arun, astream, acomplete)"
    )
