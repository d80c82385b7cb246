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
from dataclasses import dataclass
from typing import Any, Generic, NoReturn, ParamSpec, Self, TypeVar

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
_RESULT = "_jackfield_result"
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

    def __exit__(self, *_: object) -> None:
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
    """A coroutine on the loop, and a thread that waits for it; `over` is called when it has ended."""

    def __init__(
        self, work: Coroutine[Any, Any, T], background: _Background, over: Callable[[], None] = lambda: None
    ) -> None:
        self.done = threading.Event()
        self.background = background
        self._work = work
        self._over = over
        self._task: asyncio.Task[T] | None = None
        self._outcome: Callable[[], T] | None = None

    def start(self) -> None:
        self.background.waiting.add(self)
        if self.background.has_ended:  # read after it was added, as `_run` reads the set after it said so
            _raise_lost()
        self.background.call(self._begin)

    def _begin(self) -> None:
        self._task = self.background.loop.create_task(self._work)
        self._task.add_done_callback(lambda task: self.end(task.result))

    def end(self, outcome: Callable[[], T]) -> None:
        """It ended, or what it ran on: the outcome gives the result, or raises the error."""
        if not self.done.is_set():
            self.background.waiting.discard(self)
            self._outcome = outcome
            self.done.set()
            self._over()

    def stop(self) -> None:
        """Ask for the end. It waits for nothing, because finalisers call it, on any thread."""
        if not self.done.is_set():
            try:
                self.background.call(self._cancel)
            except JackfieldError:  # no loop, no task
                self._work.close()
                self.done.set()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
        else:
            self._work.close()
            self.end(_raise_lost)

    def result(self) -> T:
        outcome, self._outcome = self._outcome, None
        try:
            return (outcome or _raise_lost)()
        finally:
            del outcome  # the traceback of an error refers to this frame: break the circle


class _Pump(Generic[T]):
    """Moves items from a task on the loop to a consumer in another thread."""

    def __init__(self, events: AsyncIterator[T]) -> None:
        self._events = events
        self._items: deque[T] = deque()
        self._ready = threading.Event()  # there are items that the consumer has not seen, or the end
        self._room = asyncio.Event()  # clear while the producer may be waiting
        self._room.set()
        self._call: _Call[None] | None = None  # from the first item on
        self._stopped = False

    def batches(self) -> Iterator[list[T]]:
        """What has arrived, until the end."""
        if self._stopped:
            return
        background = _background_for(self._events)
        self._call = _Call(self._move(), background, self._signal)
        self._call.start()
        while batch := self._take(self._call):
            yield batch

    def stop(self) -> None:
        """Ask for the end."""
        self._stopped = True
        if self._call is not None:
            self._call.stop()

    def close(self) -> None:
        """Ask for the end, and wait for it; on the loop itself, which has to bring it about, without the wait."""
        self.stop()
        if self._call is not None and not self._call.background.is_here():
            _patiently(functools.partial(self._call.done.wait, _CLOSING_S))

    async def _move(self) -> None:
        """What runs on the loop."""
        async with closing(self._events) as events:
            async for item in events:
                if self._stopped:  # it took no notice of being cancelled
                    break
                self._items.append(item)
                self._signal()
                if len(self._items) >= _QUEUE_LIMIT:
                    self._room.clear()
                    # In this order: who drains before the check leaves room, and who drains after it sees the wait.
                    if len(self._items) >= _QUEUE_LIMIT:
                        await self._room.wait()

    def _signal(self) -> None:
        if not self._ready.is_set():
            self._ready.set()

    def _take(self, call: _Call[None]) -> list[T]:
        """What has arrived, in the consumer's thread; [] at the end."""
        while True:
            _patiently(self._ready.wait)
            # In this order: what comes after it is cleared is either seen below, or signalled again.
            self._ready.clear()
            done = call.done.is_set()
            batch = [self._items.popleft() for _ in range(len(self._items))]
            if not self._room.is_set():
                call.background.call(self._room.set)
            if self._stopped:
                return []
            if done:
                self._signal()  # the next call comes through as well
            if batch:
                return batch
            if done:
                call.result()
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
            mark_abandoned(error)
        setattr(error, _RESULT, job.result)
        raise


def is_abandoned(error: BaseException | None) -> bool:
    """Whether a cancellation gave up a function in a worker thread that still ran."""
    return getattr(error, _LEFT_RUNNING, False) is True


def result_of_cancelled(error: BaseException) -> tuple[Any, ...]:
    """The result of a function that had already returned when the wait for it was cancelled, in a tuple; or ()."""
    result: tuple[Any, ...] = getattr(error, _RESULT, ())
    return result


def mark_abandoned(error: BaseException) -> None:
    """Have `is_abandoned` say of a cancellation that it left something running."""
    setattr(error, _LEFT_RUNNING, True)


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
        mine.add_done_callback(lambda _: process.flights.pop(asked, None))  # before any of those that wait hears of it
        process.workers.submit(_Job(_with_context(function, *args, **kwargs), functools.partial(_settle, mine)))
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


@dataclass(slots=True, eq=False)
class _Job(Generic[T]):
    """Something for a worker thread. `arrive` gets what it gives, or an error: its own, or that no thread will be free.

    Attributes:
        given_up: Nobody waits for it any more.
        is_lent: It waits for the bridge, and so perhaps for another job.
        result: What the function gave, in a tuple, once it has returned.
    """

    function: Callable[[], T]
    arrive: Callable[[T | None, BaseException | None], None]
    name: str = ""
    given_up: bool = False
    is_lent: bool = False
    result: tuple[T, ...] = ()

    def work(self) -> None:
        try:
            result = self.function()
            self.result = (result,)
        except BaseException as error:  # noqa: BLE001 - handed to who waits, who raises it
            self.arrive(None, _as_raised_in_a_task(error))
        else:
            self.arrive(result, None)


def _as_raised_in_a_task(error: BaseException) -> BaseException:
    """Two errors would say something else in a task than the function meant."""
    if isinstance(error, StopIteration | asyncio.CancelledError):
        arriving = RuntimeError(f"a plain function raised {type(error).__name__}")
        arriving.__cause__ = error
        return arriving
    return error


class _Workers:
    """Daemon threads: reused when idle, added up to a bound, ended after some idle seconds.

    The standard library's pool is not taken for three reasons: it keeps the interpreter from ending until the slowest
    abandoned call has returned, its threads never end, and one whose workers wait for other workers can hang for ever.

    Here none does. A job waits only while a thread is at work that somebody waits for. Where there is no such thread
    and none can be started, all jobs that wait are refused, and never run later.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._waiting: deque[_Job[Any]] = deque()
        self._running: set[_Job[Any]] = set()
        self._idle = 0  # threads without a job, those that have just been started or woken included

    def submit(self, job: _Job[Any]) -> None:
        """Have it done, or refused."""
        with self._handing_out():
            self._waiting.append(job)

    def give_up(self, job: _Job[Any]) -> bool:
        """Nobody waits for a job any more: if it has not begun, it never will. Whether it runs all the same."""
        with self._handing_out():
            job.given_up = True
            with contextlib.suppress(ValueError):  # it has begun
                self._waiting.remove(job)
            return job in self._running

    def lend(self, job: _Job[Any]) -> bool:
        """The thread of a job waits for the bridge, and another one may work meanwhile. False after a fork."""
        if job not in self._running:
            return False
        with self._handing_out():
            job.is_lent = True
        return True

    def take_back(self, job: _Job[Any]) -> None:
        """The thread of a job that was lent goes on."""
        with self._changed:
            job.is_lent = False

    def abandoned(self) -> list[str]:
        """The names of the jobs that were given up and still run."""
        with self._changed:
            return [job.name for job in self._at_work() if job.given_up]

    def _at_work(self) -> list[_Job[Any]]:
        return [job for job in self._running if not job.is_lent]

    def _free(self) -> int:
        """How many more jobs may run."""
        at_work = self._at_work()
        return MAX_WORKERS - len(at_work) + min(sum(job.given_up for job in at_work), MAX_ABANDONED)

    @contextlib.contextmanager
    def _handing_out(self) -> Iterator[None]:
        """See after a change that every job that waits has a thread, will have one, or is refused."""
        refused: list[_Job[Any]] = []
        with self._changed:
            yield
            problem = self._hand_out() if self._waiting else None
            if problem is not None:
                refused = list(self._waiting)
                self._waiting.clear()
        for job in refused:
            job.arrive(None, problem)

    def _hand_out(self) -> JackfieldError | None:
        """Wake and start threads; an error if none takes the next job, nor will when somebody has what he waits for."""
        self._changed.notify(len(self._waiting))
        free = self._free()
        problem = self._start(min(len(self._waiting), free) - self._idle)
        if (self._idle and free > 0) or not all(job.given_up for job in self._at_work()):
            return None
        return problem or self._all_given_up()

    def _start(self, count: int) -> JackfieldError | None:
        """Start threads; an error if the machine cannot."""
        for _ in range(count):
            try:
                threading.Thread(target=self._work, name="jackfield-worker", daemon=True).start()
            except (RuntimeError, MemoryError) as error:
                problem = JackfieldError(
                    f"no thread for a plain function: the machine cannot start any more ({error}), and none of the "
                    f"{len(self._running)} worker threads will become free: raise the limit of threads (ulimit -u, or "
                    f"the container's), or run less at once"
                )
                problem.__cause__ = error
                return problem
            self._idle += 1
        return None

    def _all_given_up(self) -> JackfieldError:
        names = collections.Counter(job.name for job in self._at_work())
        most = ", ".join(f"{name} ({count})" for name, count in names.most_common(5))
        return JackfieldError(
            f"no thread for a plain function: all {names.total()} worker threads are held by functions that were "
            f"given up (timed out or cancelled) but still run: {most}; set a time-out on what they wait for, or "
            f"restart the process"
        )

    def _work(self) -> None:
        while job := self._next():
            _here.job = job
            job.work()
            with self._handing_out():
                self._running.discard(job)
                self._idle += 1
            job = _here.job = None  # what it was about must not stay alive while this thread waits for the next

    def _next(self) -> _Job[Any] | None:
        """A job for an idle thread; None if there is none for some seconds, and the thread ends."""
        with self._changed:
            found = self._changed.wait_for(lambda: self._waiting and self._free() > 0, IDLE_S)
            self._idle -= 1
            if not found:
                return None
            job = self._waiting.popleft()
            self._running.add(job)
            return job


_here = threading.local()  # `job`, in the threads of the pool


def _patiently(wait: Callable[[], object]) -> None:
    """Wait for the bridge. A worker thread that does is lent meanwhile: it may wait for another worker."""
    job: _Job[Any] | None = getattr(_here, "job", None)
    workers = _this_process().workers
    if job is None or not workers.lend(job):
        wait()
        return
    try:
        wait()
    finally:
        workers.take_back(job)


# --- one of each per process ------------------------------------------------------------------------------------------


class _Background:
    """An event loop in a thread of its own, which goes on whatever leaves a task."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.has_ended = False
        self._process = os.getpid()
        self.waiting: set[_Call[Any]] = set()  # changed without a lock, which finalisers could not take
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

    def call(self, function: Callable[..., object], *args: Any) -> None:
        """Have something called on the loop.

        Raises:
            JackfieldError: The loop has ended.
        """
        try:
            self.loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            _raise_lost()

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
            for call in self.waiting.copy():
                call.end(_raise_lost)
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


def _raise_lost() -> NoReturn:
    raise JackfieldError("the background event loop ended before this was done (the log says why): ask again")


class _Process:
    """What is started once per process, at first use."""

    def __init__(self) -> None:
        self.workers = _Workers()
        self.flights: dict[Hashable, concurrent.futures.Future[Any]] = {}
        self._background: _Background | None = None
        self._lock = threading.RLock()

    def background(self) -> _Background:
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
