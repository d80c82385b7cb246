"""Foreign code, run so that it can end nothing but itself: no run, no event loop, and nobody's patience."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, ParamSpec, TypeAlias, TypeGuard, TypeVar

from jackfield import sync
from jackfield.errors import ToolTimeoutError
from jackfield.jsontext import dumps
from jackfield.tools._awaiting import is_async
from jackfield.tools._base import BaseTool, StandIn, ToolContext

T = TypeVar("T")
P = ParamSpec("P")
_Outcome: TypeAlias = tuple[T | None, BaseException | None]

END_PATIENCE_S = 5.0  # for a cancelled tool to clean up; after it, nobody waits for it any more
_log = logging.getLogger(__name__)


class Escaped(Exception):  # noqa: N818 - it says what happened
    """Stands for an error that would end more than the call that raised it: Ctrl-C, an exit, a cancellation."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


async def output_of(
    tool: BaseTool,
    arguments: str | Mapping[str, object],
    context: ToolContext,
    *,
    on_begin: Callable[[], object] | None = None,
) -> Any:
    """What a tool gives back; a plain `call` runs in a worker thread, so that nothing else waits for it.

    Args:
        tool: The tool.
        arguments: For its call.
        context: For its call.
        on_begin: Is called right before the tool is, perhaps in the worker thread.

    Raises:
        ToolServiceError: It gave a generator that yields something else, or has no result.
    """
    if isinstance(tool, StandIn):
        tool = await loaded(tool)
    if not isinstance(arguments, str) and tool.takes_text:
        arguments = dumps(arguments)
    if is_async(getattr(tool, "function_called", tool.call)) or is_async(tool.call):
        if on_begin is not None:
            on_begin()
        output: Any = tool.call(arguments, context=context)
    else:
        try:
            output = await in_worker(_begun, on_begin, tool.call, arguments, context=context)
        except asyncio.CancelledError as error:
            result = sync.result_of_cancelled(error)
            if not result or on_begin is None:  # other callers are cancelled
                raise
            output = result[0]  # it has returned, and only the loop does not know yet
    if inspect.isawaitable(output):
        output = await output
    if inspect.isgenerator(output) or inspect.isasyncgen(output):
        from jackfield.tools._progress import result_of  # few tools are generators

        return await result_of(output, tool.name, context)
    return output


def _begun(on_begin: Callable[[], object] | None, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    if on_begin is not None:
        on_begin()
    return call(*args, **kwargs)


def must_load(tool: BaseTool) -> TypeGuard[StandIn]:
    """Whether a tool stands for another one that is not loaded."""
    return isinstance(tool, StandIn) and not said(lambda: tool.is_loaded)


async def loaded(tool: StandIn) -> BaseTool:
    """The tool that is called in place of one that stands for it. The first call of a plugin's imports its module."""
    return await in_worker(tool.load) if must_load(tool) else said(tool.load)


async def called(function: Callable[P, T | Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """What a function gives, which may be async; a plain one runs in a worker thread."""
    output = function(*args, **kwargs) if is_async(function) else await in_worker(function, *args, **kwargs)
    return await output if isinstance(output, Awaitable) else output


async def in_worker(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a plain function in a worker thread; an error that is not an `Exception` becomes `Escaped`."""
    return await sync.in_worker(partial(said, function, *args, **kwargs))


def said(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What foreign code gives at once; an error that is not an `Exception` becomes `Escaped`."""
    try:
        return function(*args, **kwargs)
    except Exception:
        raise
    except BaseException as error:
        if _is_ctrl_c(error):
            raise
        raise Escaped(error) from error


def _is_ctrl_c(error: BaseException) -> bool:
    """Whether somebody may have pressed it, which only the main thread hears of."""
    return isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread()


async def apart(
    work: Callable[[], Awaitable[T]],
    *,
    name: str,
    timeout_s: float | None,
    on_late: Callable[[T], object] | None = None,
) -> T:
    """What foreign code gives, run in a task of its own, in its time.

    If it is cancelled, or takes too long, it has some seconds to end. If it goes on all the same, nobody waits for it
    any more.

    Args:
        work: The code.
        name: Of the tool.
        timeout_s: How long it may take; None for as long as it likes.
        on_late: Gets what it gives all the same after this wait for it was cancelled, within these seconds.

    Raises:
        ToolTimeoutError: It took too long.
        Exception: Its own; an error that is not an `Exception` becomes `Escaped`.
    """
    # The worker thread of a plain function has the name of this task.
    task = asyncio.create_task(_outcome_of(work), name=name)
    try:
        in_time = await _ends(task, timeout_s)
    except asyncio.CancelledError as cancelled:
        await _given_up(task)
        result, error = _end_of(task) if task.done() else (None, None)
        if not task.done() or sync.is_abandoned(error):
            sync.mark_abandoned(cancelled)
        elif error is None and on_late is not None:
            on_late(result)  # type: ignore[arg-type]
        raise
    if not in_time:
        await _given_up(task)
        raise _timed_out(name, timeout_s, goes_on=not task.done() or sync.is_abandoned(_end_of(task)[1]))
    result, error = _end_of(task)
    if error is not None:
        raise error if isinstance(error, Exception) else Escaped(error)
    return result  # type: ignore[return-value]


async def _outcome_of(work: Callable[[], Awaitable[T]]) -> _Outcome[T]:
    """What code gives, or the error that it ends with: nothing leaves the task that would end the event loop."""
    try:
        return await work(), None
    except BaseException as error:
        if _is_ctrl_c(error):
            raise
        return None, error


async def _ends(task: asyncio.Task[Any], timeout_s: float | None) -> bool:
    """Wait for a task. Every call does: `asyncio.wait`, for any number of tasks, takes 8 µs more."""
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()

    def wake(_: object = None) -> None:
        if not waiter.done():
            waiter.set_result(None)

    task.add_done_callback(wake)
    timer = None if timeout_s is None else loop.call_later(timeout_s, wake)
    try:
        await waiter
    finally:
        if timer is not None:
            timer.cancel()
    return task.done()


def _end_of(task: asyncio.Task[_Outcome[T]]) -> _Outcome[T]:
    if task.cancelled() or task.exception():  # before it began; by Ctrl-C
        return None, asyncio.CancelledError()
    return task.result()


async def _given_up(task: asyncio.Task[Any]) -> None:
    """Cancel a task, and wait until it has ended, but not for ever."""
    task.cancel()
    if not await _ends(task, END_PATIENCE_S):
        _log.warning("tool %s still runs although it was cancelled; its result will be ignored", task.get_name())


def _timed_out(name: str, timeout_s: float | None, *, goes_on: bool) -> ToolTimeoutError:
    text = f"Tool {name} did not finish in {timeout_s:g} s; ask it for less at once"
    if goes_on:
        _log.warning("tool %s could not be stopped when its time was over, and still runs", name)
        text += ". It could not be stopped, and may still do what it was asked for"
    else:
        text += ". It was stopped, and may have done a part of it"
    return ToolTimeoutError(text, still_running=goes_on, may_be_done=True)
