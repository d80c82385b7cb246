"""The bridge between async and sync code, and worker threads for plain functions.

Code that waits is written once, as `async` code. Callers without an event loop use this bridge, which runs one event
loop per process in a background thread that is started on first use. For a stream, one task opens, iterates and closes
the generator and puts the items into a bounded queue. The caller's thread drains the queue in batches, so many events
cost a single thread switch.

The bridge also works while another event loop is running (in a notebook or a web handler), because its own loop is in a
separate thread. After a fork, the child process starts its own loop. Tasks cannot stop the loop. If the loop breaks
anyway, waiting callers get an error, and the next call starts a new loop.
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
import sys
import threading
import traceback
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NoReturn, ParamSpec, Self, TypeVar

from jackfield.errors import JackfieldError
from jackfield.streams import closing

T = TypeVar("T")
U = TypeVar("U")
P = ParamSpec("P")

MAX_WORKERS = 256
"""The maximum number of busy threads, not counting those that only wait for the bridge."""
MAX_ABANDONED = 256
"""The maximum number of extra threads to make up for those held by abandoned functions."""
IDLE_S = 10.0
"""The time after which an idle worker thread ends, in seconds."""

_QUEUE_LIMIT = 1024  # events that a slow consumer may lag behind before the producer waits
_CLOSING_S = 5.0  # time that a leaving caller waits for slow work to end
_EXIT_S = 1.0  # the same for all work together, at process exit

_LEFT_RUNNING = "_jackfield_left_running"
_RESULT = "_jackfield_result"
_log = logging.getLogger(__name__)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the background loop and return its result.

    Ctrl-C cancels the coroutine. Its errors are raised unchanged.

    Raises:
        JackfieldError: The caller is itself running on the background loop, which would deadlock, or the loop broke.
    """
    call = _Call(work, _background_for(work))
    try:
        call.start()  # inside `try`, because Ctrl-C may arrive before it returns
        _wait_lending(call.done.wait)
    except BaseException:
        call.stop()
        call.done.wait(timeout=_CLOSING_S)
        raise
    return call.result()


class Stream(Iterator[U]):
    """Iterator over an async generator's items, for synchronous code.

    The generator starts on the first call to `next`. `close` and the end of a `with` block cancel the generator and
    wait up to 5 seconds for it to close. If a stream is garbage-collected before its end, for example because a `for`
    loop exits early, the generator is cancelled without waiting, because the last reference may disappear on the thread
    that has to close the generator.
    """

    def __init__(self, events: AsyncIterator[T], through: Callable[[Iterator[list[T]]], Iterator[U]]) -> None:
        self._pump: _Pump[Any] = _Pump(events)
        self._items = through(self._pump.batches())

    def __next__(self) -> U:
        try:
            return next(self._items)
        except StopIteration:
            raise
        except BaseException:  # Ctrl-C, or an error in `through`
            self.close()
            raise

    def close(self) -> None:
        """Cancel the generator and wait for it to close. This method may be called repeatedly and from any thread."""
        self._items = iter(())
        self._pump.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self._pump.stop()


def iterate(events: AsyncIterator[T]) -> Stream[T]:
    """Iterate over the items of an async generator. Stopping early cancels and closes the generator."""
    return Stream(events, itertools.chain.from_iterable)


def batches(events: AsyncIterator[T]) -> Stream[list[T]]:
    """Iterate over the items of an async generator in batches of one or more, as they arrive."""
    return Stream(events, iter)


def stream(events: AsyncIterator[T], through: Callable[[Iterator[list[T]]], Iterator[U]]) -> Stream[U]:
    """Feed the items of an async generator through a plain generator.

    Args:
        events: The items.
        through: A plain generator function that takes batches of items, as yielded by `batches`.
    """
    return Stream(events, through)


class _Call(Generic[T]):
    """A coroutine on the loop and the thread that waits for it. `on_end` is called when the coroutine ends."""

    def __init__(
        self, work: Coroutine[Any, Any, T], background: _Background, on_end: Callable[[], None] = lambda: None
    ) -> None:
        self.done = threading.Event()
        self.background = background
        self._work = work
        self._on_end = on_end
        self._task: asyncio.Task[T] | None = None
        self._outcome: Callable[[], T] | None = None

    def start(self) -> None:
        self.background.waiting.add(self)
        if self.background.has_ended:  # read after adding the call; `_run` sets it before it reads the set
            _raise_lost()
        self.background.call(self._begin)

    def _begin(self) -> None:
        self._task = self.background.loop.create_task(self._work)
        self._task.add_done_callback(lambda task: self.end(task.result))

    def end(self, outcome: Callable[[], T]) -> None:
        """Record that the coroutine or its loop has ended. `outcome` returns the result or raises the error."""
        if not self.done.is_set():
            self.background.waiting.discard(self)
            self._outcome = outcome
            self.done.set()
            self._on_end()

    def stop(self) -> None:
        """Request cancellation without waiting, because finalisers may call this method on any thread."""
        if not self.done.is_set():
            try:
                self.background.call(self._cancel)
            except JackfieldError:  # without a loop, there is no task to cancel
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
            del outcome  # break the reference cycle with an error's traceback


class _Pump(Generic[T]):
    """Queue that moves items from a task on the loop to a consumer in another thread."""

    def __init__(self, events: AsyncIterator[T]) -> None:
        self._events = events
        self._items: deque[T] = deque()
        self._ready = threading.Event()  # set for new items and at the end
        self._room = asyncio.Event()  # clear while the producer may be waiting
        self._room.set()
        self._call: _Call[None] | None = None  # set when the first item is requested
        self._stopped = False

    def batches(self) -> Iterator[list[T]]:
        """Yield batches of items as they arrive, until the end."""
        if self._stopped:
            return
        background = _background_for(self._events)
        self._call = _Call(self._move(), background, self._signal)
        self._call.start()
        while batch := self._next_batch(self._call):
            yield batch

    def stop(self) -> None:
        """Request cancellation."""
        self._stopped = True
        if self._call is not None:
            self._call.stop()

    def close(self) -> None:
        """Request cancellation and wait until it is done.

        On the loop's own thread, do not wait, because the loop does the work.
        """
        self.stop()
        if self._call is not None and not self._call.background.is_here():
            _wait_lending(functools.partial(self._call.done.wait, _CLOSING_S))

    async def _move(self) -> None:
        """Fill the queue, running on the loop."""
        async with closing(self._events) as events:
            async for item in events:
                if self._stopped:  # the producer ignored the cancellation
                    break
                self._items.append(item)
                self._signal()
                if len(self._items) >= _QUEUE_LIMIT:
                    self._room.clear()
                    # This order matters: a drain before the check leaves room, and a drain after it sees the wait.
                    if len(self._items) >= _QUEUE_LIMIT:
                        await self._room.wait()

    def _signal(self) -> None:
        if not self._ready.is_set():
            self._ready.set()

    def _next_batch(self, call: _Call[None]) -> list[T]:
        """Wait for items in the consumer's thread and return them, or [] at the end."""
        while True:
            _wait_lending(self._ready.wait)
            # This order matters: an item that arrives after `clear` is either seen below or signalled again.
            self._ready.clear()
            done = call.done.is_set()
            batch = [self._items.popleft() for _ in range(len(self._items))]
            if not self._room.is_set():
                call.background.call(self._room.set)
            if self._stopped:
                return []
            if done:
                self._signal()  # the next call must not block
            if batch:
                return batch
            if done:
                call.result()
                return []


# --- worker threads ---------------------------------------------------------------------------------------------------


async def in_worker(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a plain function in a worker thread, with a copy of the caller's context variables.

    Up to 256 functions run concurrently, not counting functions that are themselves waiting for the bridge. Further
    functions are queued. Cancelling the wait for a queued function means that the function never runs. A running
    function cannot be stopped: it keeps its thread until it returns, but does not keep the process alive. `abandoned`
    lists such functions, and `is_abandoned` tells whether a cancellation left a function running. Up to 256 abandoned
    functions are replaced by additional threads.

    Raises:
        JackfieldError: No thread is free or will become free, because the machine cannot start more threads or
            abandoned functions hold all threads. The function does not run.
    """
    _check_no_package_is_shadowed()
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def arrive(result: T | None, error: BaseException | None) -> None:
        with contextlib.suppress(RuntimeError):  # an abandoned run may have closed its loop
            loop.call_soon_threadsafe(_settle, future, result, error)

    task = asyncio.current_task()
    job = _Job(_with_context(function, *args, **kwargs), arrive, name="" if task is None else task.get_name())
    workers = _this_process().workers
    workers.submit(job)
    try:
        return await future
    except asyncio.CancelledError as error:
        if workers.abandon(job):
            mark_abandoned(error)
        setattr(error, _RESULT, job.result)
        raise


def is_abandoned(error: BaseException | None) -> bool:
    """Return True if a cancellation left a function running in a worker thread."""
    return getattr(error, _LEFT_RUNNING, False) is True


def result_of_cancelled(error: BaseException) -> tuple[Any, ...]:
    """Return a 1-tuple with the result if the function returned before its wait was cancelled, otherwise ()."""
    result: tuple[Any, ...] = getattr(error, _RESULT, ())
    return result


def mark_abandoned(error: BaseException) -> None:
    """Mark a cancellation for `is_abandoned`."""
    setattr(error, _LEFT_RUNNING, True)


def abandoned() -> list[str]:
    """Return the names of the tasks whose abandoned functions are still running."""
    return _this_process().workers.abandoned()


async def shared_in_worker(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function as `in_worker` does, but only once for all concurrent callers with the same arguments.

    Use this for functions that open or load a resource on first use and then reuse it. Callers may be in different
    event loops. The arguments must be hashable. Cancelling one caller does not affect the others. If the function
    fails, all callers get the same error, and the next call tries again.
    """
    _check_no_package_is_shadowed()
    key = (function, args, *sorted(kwargs.items()))
    process = _this_process()
    mine: concurrent.futures.Future[T] = concurrent.futures.Future()
    flight: concurrent.futures.Future[T] = process.flights.setdefault(key, mine)
    if flight is mine:
        mine.set_running_or_notify_cancel()  # a cancelled caller must not cancel the future for others
        mine.add_done_callback(lambda _: process.flights.pop(key, None))  # before any caller gets the result
        process.workers.submit(_Job(_with_context(function, *args, **kwargs), functools.partial(_settle, mine)))
    return await asyncio.wrap_future(flight)


def in_background(function: Callable[[], object]) -> concurrent.futures.Future[None]:
    """Run a plain function in a worker thread without waiting for it. Its errors are logged.

    Returns:
        A future that completes after the function and only fails if no thread is available. Cancelling the future, or
        the wait for it, has no effect.
    """
    done: concurrent.futures.Future[None] = concurrent.futures.Future()
    done.set_running_or_notify_cancel()

    def work() -> None:
        try:
            function()
        except BaseException:  # noqa: BLE001 - no caller waits for the error
            _log.warning("background work failed", exc_info=True)

    def arrive(result: None, refusal: BaseException | None) -> None:
        if refusal is not None:
            _log.warning("background work was not completed: %s", refusal)
        _settle(done, result, refusal)

    _this_process().workers.submit(_Job(work, arrive))
    return done


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
    """A function to run in a worker thread.

    `arrive` receives the result or error, or an error if no thread is available.

    Attributes:
        is_abandoned: True if the caller has stopped waiting.
        is_lent: True if the job is waiting for the bridge, and therefore possibly for another job.
        result: A 1-tuple with the function's result once the function has returned.
    """

    function: Callable[[], T]
    arrive: Callable[[T | None, BaseException | None], None]
    name: str = ""
    is_abandoned: bool = False
    is_lent: bool = False
    result: tuple[T, ...] = ()

    def work(self) -> None:
        try:
            result = self.function()
            self.result = (result,)
        except BaseException as error:  # noqa: BLE001 - the waiting caller raises it
            self.arrive(None, _as_raised_in_a_task(error))
        else:
            self.arrive(result, None)


def _as_raised_in_a_task(error: BaseException) -> BaseException:
    """Wrap the two kinds of errors that have a special meaning when a task raises them."""
    if isinstance(error, StopIteration | asyncio.CancelledError):
        arriving = RuntimeError(f"a plain function raised {type(error).__name__}")
        arriving.__cause__ = error
        return arriving
    return error


class _Workers:
    """Pool of daemon threads. Threads are added up to a limit, reused when idle, and stopped after some idle seconds.

    The standard library's pool has three faults: the interpreter cannot exit before the slowest abandoned call returns,
    the pool's threads never stop, and a pool whose workers wait for other workers can deadlock.

    This pool cannot deadlock. Jobs only wait while some thread runs a job that has not been abandoned. If there is no
    such thread and none can be started, all waiting jobs are refused and never run.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._waiting: deque[_Job[Any]] = deque()
        self._running: set[_Job[Any]] = set()
        self._idle = 0  # threads without a job, including those just started or woken

    def submit(self, job: _Job[Any]) -> None:
        """Run, queue or refuse a job."""
        with self._handing_out():
            self._waiting.append(job)

    def abandon(self, job: _Job[Any]) -> bool:
        """Stop waiting for a job. A job that has not started will never start. Return True if the job is running."""
        with self._handing_out():
            job.is_abandoned = True
            with contextlib.suppress(ValueError):  # the job has already started
                self._waiting.remove(job)
            return job in self._running

    def lend(self, job: _Job[Any]) -> bool:
        """Free a job's slot for another thread while the job waits for the bridge. Return False after a fork."""
        if job not in self._running:
            return False
        with self._handing_out():
            job.is_lent = True
        return True

    def take_back(self, job: _Job[Any]) -> None:
        """Undo `lend` when the job's thread resumes work."""
        with self._changed:
            job.is_lent = False

    def abandoned(self) -> list[str]:
        """List the names of abandoned jobs that are still running."""
        with self._changed:
            return [job.name for job in self._running if job.is_abandoned]

    def _at_work(self) -> list[_Job[Any]]:
        return [job for job in self._running if not job.is_lent]

    def _free(self) -> int:
        """Return the number of additional jobs that may run now."""
        at_work = self._at_work()
        return MAX_WORKERS - len(at_work) + min(sum(job.is_abandoned for job in at_work), MAX_ABANDONED)

    @contextlib.contextmanager
    def _handing_out(self) -> Iterator[None]:
        """Make a change under the lock, then ensure that every waiting job has or will get a thread, or is refused."""
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
        """Wake and start threads. Return an error if no thread will ever take the next job."""
        self._changed.notify(len(self._waiting))
        free = self._free()
        problem = self._start(min(len(self._waiting), free) - self._idle)
        if (self._idle and free > 0) or not all(job.is_abandoned for job in self._at_work()):
            return None
        return problem or self._all_abandoned()

    def _start(self, count: int) -> JackfieldError | None:
        """Start threads. Return an error if the machine cannot start any more threads."""
        for _ in range(count):
            try:
                threading.Thread(target=self._work, name="jackfield-worker", daemon=True).start()
            except (RuntimeError, MemoryError) as error:
                problem = JackfieldError(
                    f"no thread for a plain function: the system cannot start another thread ({error}), and none of "
                    f"the {len(self._running)} worker threads will become free: increase the thread limit (ulimit -u, "
                    "or the container's limit), or run fewer calls at once"
                )
                problem.__cause__ = error
                return problem
            self._idle += 1
        return None

    def _all_abandoned(self) -> JackfieldError:
        names = collections.Counter(job.name for job in self._at_work())
        most = ", ".join(f"{name} ({count})" for name, count in names.most_common(5))
        return JackfieldError(
            f"no thread for a plain function: all {names.total()} worker threads are occupied by functions that were "
            f"abandoned (timed out or cancelled) but are still running: {most}; set timeouts inside these functions, "
            "or restart the process"
        )

    def _work(self) -> None:
        while job := self._next():
            _here.job = job
            job.work()
            with self._handing_out():
                self._running.discard(job)
                self._idle += 1
            job = _here.job = None  # an idle thread must keep no objects alive

    def _next(self) -> _Job[Any] | None:
        """Return a job for an idle thread. After some idle seconds, return None to stop the thread."""
        with self._changed:
            has_job = self._changed.wait_for(lambda: self._waiting and self._free() > 0, IDLE_S)
            self._idle -= 1
            if not has_job:
                return None
            job = self._waiting.popleft()
            self._running.add(job)
            return job


_here = threading.local()  # has `job` in the threads of the pool


def _wait_lending(wait: Callable[[], object]) -> None:
    """Wait for the bridge.

    While waiting, a worker thread lends out its slot, because it may be waiting for another worker.
    """
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
    """An event loop in its own thread. Errors in tasks do not stop the loop."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.has_ended = False
        self._process = os.getpid()
        self.waiting: set[_Call[Any]] = set()  # changed without a lock, because finalisers cannot take one
        self._thread = threading.Thread(target=self._run, name="jackfield-loop", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            self.loop.close()
            raise JackfieldError(
                f"no thread for the event loop: the system cannot start another thread ({error}); increase the thread "
                "limit (ulimit -u, or the container's limit), or run fewer calls at once"
            ) from error
        atexit.register(self._at_exit)

    def is_here(self) -> bool:
        """Return True if the current thread is the loop's thread."""
        return threading.get_ident() == self._thread.ident

    def call(self, function: Callable[..., object], *args: Any) -> None:
        """Call a function on the loop.

        Raises:
            JackfieldError: The loop has stopped.
        """
        try:
            self.loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            _raise_lost()

    def _run(self) -> None:
        try:
            while not self.loop.is_closed():
                # The caller of that task gets the error as well; other tasks continue.
                with contextlib.suppress(KeyboardInterrupt, SystemExit):
                    self.loop.run_forever()
        except BaseException:  # noqa: BLE001 - waiting callers get an error below
            _log.exception("the background event loop failed; the next call starts a new loop")
        finally:
            self.has_ended = True
            with contextlib.suppress(Exception):  # a broken loop may not close
                self.loop.close()
            for call in self.waiting.copy():
                call.end(_raise_lost)
            atexit.unregister(self._at_exit)

    def _at_exit(self) -> None:
        """Give unfinished work time to close its processes, files and connections."""
        if self._process != os.getpid() or self.has_ended:
            return
        done = threading.Event()
        with contextlib.suppress(JackfieldError):
            self.call(self._cancel_all, done)
            done.wait(_EXIT_S)

    def _cancel_all(self, done: threading.Event) -> None:
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        asyncio.gather(*tasks, return_exceptions=True).add_done_callback(lambda _: done.set())


def _raise_lost() -> NoReturn:
    raise JackfieldError("the background event loop stopped before this call (see the log): try again")


class _Process:
    """A process's event loop and worker threads, started on first use."""

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


_processes: dict[int, _Process] = {}  # by process id, because a forked child must not use its parent's threads


def _this_process() -> _Process:
    pid = os.getpid()
    # `setdefault` is atomic. A lock could be held by a thread that does not exist in a forked child.
    return _processes.get(pid) or _processes.setdefault(pid, _Process())


def _background_for(work: Awaitable[Any] | AsyncIterator[Any]) -> _Background:
    background = _this_process().background()
    try:
        _check_no_package_is_shadowed(background)
        _check_is_elsewhere(background)
    except JackfieldError:
        if isinstance(work, Coroutine):
            work.close()
        raise
    return background


def _check_is_elsewhere(background: _Background) -> None:
    if background.is_here():
        raise JackfieldError(
            "a blocking call inside Jackfield's own event loop would deadlock: in an `async def` tool or agent, use "
            "the async counterpart (arun, astream, acomplete)"
        )


def _check_no_package_is_shadowed(background: _Background | None = None) -> None:
    """Raise an error if a thread of ours is importing a file of the user's that has the name of a package.

    For example, when the HTTP client imports its dependency `h2`, Python runs a file `h2.py` next to the script, or the
    script itself a second time. A request of that file would wait for the import that it is part of, and so for ever.
    """
    is_ours = getattr(_here, "job", None) is not None or (background is not None and background.is_here())
    file = _find_shadowing_file() if is_ours else None
    if file:
        name = file.parent.name if file.name == "__init__.py" else file.stem
        raise JackfieldError(
            f"Python imported {file} instead of the package {name!r} that it was looking for, and this file waits for "
            f"a result while it is imported: rename the file"
        )


def _find_shadowing_file() -> Path | None:
    """Return the user's file that this thread is importing in place of a package."""
    frames = [frame for frame, _ in traceback.walk_stack(None) if frame.f_code.co_name == "<module>"]
    specs = [spec for frame in frames if (spec := frame.f_globals.get("__spec__"))]
    files = [Path(spec.origin).absolute() for spec in specs if spec.origin and getattr(spec, "_initializing", False)]
    if not files:
        return None
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    script = Path(main).absolute() if main else None
    folder = script.parent if script else Path.cwd()
    are_own = [folder in (file.parent, file.parent.parent) for file in files]
    for file, is_own, is_importer_own in zip(files, are_own, [*are_own[1:], True], strict=True):
        if file == script or (is_own and not is_importer_own):
            return file
    return None
