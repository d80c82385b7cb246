"""Foreign code, run so that it can end nothing but itself: no run, no event loop, and nobody's patience."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from jackfield import sync
from jackfield.errors import ToolTimeoutError
from jackfield.jsontext import dumps
from jackfield.tools._awaiting import is_async
from jackfield.tools._base import BaseTool, StandIn, ToolContext
from jackfield.tools._progress import gives_progress, result_of

T = TypeVar("T")

END_PATIENCE_S = 5.0  # for a cancelled tool to clean up; after it, nobody waits for it any more
_log = logging.getLogger(__name__)


class Escaped(Exception):  # noqa: N818 - it says what happened
    """Stands for an error that would end more than the call that raised it: Ctrl-C, an exit, a cancellation."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


class Outcome(NamedTuple, Generic[T]):
    """How foreign code has ended."""

    result: T | None = None
    error: BaseException | None = None

    def value(self) -> T:
        """The result; an error is raised, as `Escaped` if it is not an `Exception`."""
        if self.error is None:
            return self.result  # type: ignore[return-value]
        if isinstance(self.error, Exception):
            raise self.error
        raise Escaped(self.error)


async def output_of(tool: BaseTool, arguments: str | Mapping[str, object], context: ToolContext) -> Any:
    """What a tool gives back; a plain `call` runs in a worker thread, so that nothing else waits for it.

    Raises:
        ToolServiceError: It gave a generator that does not do what `result_of` says.
    """
    if isinstance(tool, StandIn):
        # The first call of an installed tool imports its module.
        tool = tool.load() if tool.is_loaded else await in_worker(tool.load)
    if not isinstance(arguments, str) and tool.takes_text:
        arguments = dumps(arguments)
    target = getattr(tool, "function_called", tool.call)
    if is_async(target) or (target is not tool.call and is_async(tool.call)):
        output: Any = tool.call(arguments, context=context)
    else:
        output = await in_worker(tool.call, arguments, context=context)
    if inspect.isawaitable(output):
        output = await output
    return await result_of(output, tool.name, context) if gives_progress(output) else output


async def in_worker(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Run a plain function in a worker thread; an error that is not an `Exception` becomes `Escaped`."""
    outcome: Outcome[T] = await sync.in_worker(_outcome_of, function, *args, **kwargs)
    return outcome.value()


def said(function: Callable[..., T], *args: Any) -> T:
    """What a tool says about itself; an error that is not an `Exception` becomes `Escaped`."""
    try:
        return function(*args)
    except Exception:
        raise
    except BaseException as error:
        if _is_ctrl_c(error):
            raise
        raise Escaped(error) from error


def _outcome_of(function: Callable[..., T], *args: Any, **kwargs: Any) -> Outcome[T]:
    try:
        return Outcome(function(*args, **kwargs))
    except BaseException as error:  # noqa: BLE001 - whoever asked for it gets it
        return Outcome(error=error)


def _is_ctrl_c(error: BaseException) -> bool:
    """Whether somebody may have pressed it, which only the main thread hears of."""
    return isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread()


async def apart(work: Callable[[], Awaitable[T]], *, name: str, timeout_s: float | None) -> T:
    """What foreign code gives, in its time; see `Apart`.

    Raises:
        ToolTimeoutError: It took too long. If it goes on all the same, nobody waits for it any more.
        Exception: Its own; an error that is not an `Exception` becomes `Escaped`.
    """
    waiter: asyncio.Future[Outcome[T]] = asyncio.get_running_loop().create_future()
    running = Apart(work, partial(_tell, waiter), name=name, timeout_s=timeout_s)
    try:
        outcome = await waiter
    except BaseException:
        await end([running])
        raise
    return outcome.value()


def _tell(waiter: asyncio.Future[T], value: T) -> None:
    if not waiter.done():
        waiter.set_result(value)


async def end(running: Iterable[Apart[Any]]) -> None:
    """Give up what runs, and wait until it has ended, but not for ever."""
    tasks = {one.give_up(): one for one in running}
    _, stubborn = await asyncio.wait(tasks, timeout=END_PATIENCE_S)
    for task in stubborn:
        tasks[task].log_that_it_goes_on()


class Apart(Generic[T]):
    """Foreign code in a task of its own, which begins at once.

    Args:
        work: The code.
        over: Gets the outcome, once, unless it was given up before. Of code that is cancelled because it took too long,
            that is a `ToolTimeoutError`, when it has ended, or after some seconds all the same.
        name: Of the tool.
        timeout_s: How long it may take; None for as long as it likes.
    """

    __slots__ = ("_is_late", "_is_over", "_loop", "_name", "_over", "_task", "_timeout_s", "_timer", "_work")

    def __init__(
        self,
        work: Callable[[], Awaitable[T]],
        over: Callable[[Outcome[T]], None],
        *,
        name: str,
        timeout_s: float | None,
    ) -> None:
        self._work = work
        self._over = over
        self._name = name
        self._timeout_s = timeout_s
        self._is_late = False
        self._is_over = False
        self._loop = asyncio.get_running_loop()
        # The worker thread of a plain function has the name of this task.
        self._task = self._loop.create_task(self._run(), name=name)
        # However the task ends, even before it begins, there is an outcome.
        self._task.add_done_callback(lambda _: self._end(Outcome(error=asyncio.CancelledError())))
        self._timer = None if timeout_s is None else self._loop.call_later(timeout_s, self._time_is_over)

    def give_up(self) -> asyncio.Task[None]:
        """Cancel it; nobody gets an outcome."""
        self._is_over = True
        self._stop_the_clock()
        self._task.cancel()
        return self._task

    def log_that_it_goes_on(self) -> None:
        """For what does not let itself be cancelled."""
        _log.warning("tool %s still runs although it was cancelled; its result will be ignored", self._name)

    async def _run(self) -> None:
        # Nothing leaves the task that would end the event loop.
        try:
            outcome = Outcome(await self._work())
        except BaseException as error:
            if _is_ctrl_c(error):
                raise
            outcome = Outcome(error=error)
        self._end(outcome)

    def _time_is_over(self) -> None:
        self._is_late = True
        self._task.cancel()
        self._timer = self._loop.call_later(END_PATIENCE_S, self._patience_is_over)

    def _patience_is_over(self) -> None:
        self.log_that_it_goes_on()
        self._end(Outcome(), goes_on=True)

    def _end(self, outcome: Outcome[T], *, goes_on: bool = False) -> None:
        if self._is_over:
            return
        self._is_over = True
        self._stop_the_clock()
        if self._is_late:
            outcome = Outcome(error=self._timed_out(goes_on=goes_on or sync.is_abandoned(outcome.error)))
        self._over(outcome)

    def _timed_out(self, *, goes_on: bool) -> ToolTimeoutError:
        text = f"Tool {self._name} did not finish in {self._timeout_s:g} s; ask it for less at once"
        if goes_on:
            _log.warning("tool %s could not be stopped when its time was over, and still runs", self._name)
            text += ". It could not be stopped, and may still do what it was asked for"
        return ToolTimeoutError(text, still_running=goes_on)

    def _stop_the_clock(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
