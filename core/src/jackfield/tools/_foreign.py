"""Run foreign code with a time limit, isolating the run and the event loop from its errors."""

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

END_PATIENCE_S = 5.0  # time for a cancelled tool to clean up before it is abandoned
_log = logging.getLogger(__name__)


class EscapedError(Exception):
    """Wrapper for an error that would stop more than the call that raised it: Ctrl-C, an exit or a cancellation."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


async def run_tool(
    tool: BaseTool,
    arguments: str | Mapping[str, object],
    context: ToolContext,
    *,
    on_begin: Callable[[], object] | None = None,
) -> Any:
    """Call a tool and return its output. A plain `call` runs in a worker thread to keep the event loop free.

    Args:
        tool: The tool.
        arguments: The validated arguments.
        context: The context of the call.
        on_begin: A function to call right before the tool, possibly in the worker thread.

    Raises:
        ToolServiceError: The tool returned a generator that yields unsupported values or ends without a result.
    """
    if isinstance(tool, StandIn):
        tool = await load_tool(tool)
    if not isinstance(arguments, str) and tool.takes_text:
        arguments = dumps(arguments)
    call = tool.call

    def begin_and_call() -> Any:
        if on_begin is not None:
            on_begin()
        return call(arguments, context=context)

    if is_async(getattr(tool, "function_called", call)) or is_async(call):
        output: Any = begin_and_call()
    else:
        try:
            output = await run_in_worker(begin_and_call)
        except asyncio.CancelledError as error:
            result = sync.result_of_cancelled(error)
            if not result or on_begin is None:  # callers without `on_begin` are cancelled instead
                raise
            output = result[0]  # the call has returned, but the event loop has not noticed yet
    if inspect.isawaitable(output):
        output = await output
    if inspect.isgenerator(output) or inspect.isasyncgen(output):
        from jackfield.tools._progress import run_generator  # generators are rare

        return await run_generator(output, tool.name, context)
    return output


def is_unloaded(tool: BaseTool) -> TypeGuard[StandIn]:
    """Return True if the tool is a proxy whose underlying tool is not loaded."""
    return isinstance(tool, StandIn) and not contain(lambda: tool.is_loaded)


async def load_tool(tool: StandIn) -> BaseTool:
    """Load a proxy's underlying tool. The first load imports the plugin's module in a worker thread."""
    return await run_in_worker(tool.load) if is_unloaded(tool) else contain(tool.load)


async def call_function(function: Callable[P, T | Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """Await an async function, or run a plain function in a worker thread."""
    output = function(*args, **kwargs) if is_async(function) else await run_in_worker(function, *args, **kwargs)
    return await output if isinstance(output, Awaitable) else output


async def run_in_worker(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a plain function in a worker thread. Errors that are not an `Exception` are raised as `EscapedError`."""
    return await sync.in_worker(partial(contain, function, *args, **kwargs))


def contain(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a plain function. Errors that are not an `Exception` become `EscapedError`, except for the user's Ctrl-C."""
    try:
        return function(*args, **kwargs)
    except Exception:
        raise
    except BaseException as error:
        if _is_ctrl_c(error):
            raise
        raise EscapedError(error) from error


def _is_ctrl_c(error: BaseException) -> bool:
    """Return True if the error may be the user's Ctrl-C. Only the main thread receives Ctrl-C."""
    return isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread()


async def run_isolated(
    work: Callable[[], Awaitable[T]],
    *,
    name: str,
    timeout_s: float | None,
    on_late: Callable[[T], object] | None = None,
) -> T:
    """Run foreign code in its own task, and return its value.

    If the code is cancelled or times out, it has `END_PATIENCE_S` seconds to finish before it is abandoned.

    Args:
        work: The code, as an async function.
        name: The tool's name.
        timeout_s: Timeout in seconds, or None for no limit.
        on_late: A function that receives the value if the code finishes normally despite a cancellation.

    Raises:
        ToolTimeoutError: The code timed out.
        Exception: The code raised an error. Errors that are not an `Exception` are raised as `EscapedError`.
    """
    # The worker thread of a plain function takes its name from this task.
    task = asyncio.create_task(_run_to_outcome(work), name=name)
    try:
        in_time = await _wait_for(task, timeout_s)
    except asyncio.CancelledError as cancelled:
        await _cancel(task)
        result, error = _outcome_of(task) if task.done() else (None, None)
        if not task.done() or sync.is_abandoned(error):
            sync.mark_abandoned(cancelled)
        elif error is None and on_late is not None:
            on_late(result)  # type: ignore[arg-type]
        raise
    if not in_time:
        await _cancel(task)
        raise _timeout_error(name, timeout_s, is_running=not task.done() or sync.is_abandoned(_outcome_of(task)[1]))
    result, error = _outcome_of(task)
    if error is not None:
        raise error if isinstance(error, Exception) else EscapedError(error)
    return result  # type: ignore[return-value]


async def _run_to_outcome(work: Callable[[], Awaitable[T]]) -> _Outcome[T]:
    """Return the code's value or its error. An error that escaped from the task could stop the event loop."""
    try:
        return await work(), None
    except BaseException as error:
        if _is_ctrl_c(error):
            raise
        return None, error


async def _wait_for(task: asyncio.Task[Any], timeout_s: float | None) -> bool:
    """Wait for one task, and return True if it finished in time. `asyncio.wait` would add 8 µs to each call."""
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


def _outcome_of(task: asyncio.Task[_Outcome[T]]) -> _Outcome[T]:
    if task.cancelled() or task.exception():  # cancelled before it began, or by Ctrl-C
        return None, asyncio.CancelledError()
    return task.result()


async def _cancel(task: asyncio.Task[Any]) -> None:
    """Cancel a task, and wait up to `END_PATIENCE_S` seconds for it to finish."""
    task.cancel()
    if not await _wait_for(task, END_PATIENCE_S):
        _log.warning("tool %s is still running after being cancelled; its result will be ignored", task.get_name())


def _timeout_error(name: str, timeout_s: float | None, *, is_running: bool) -> ToolTimeoutError:
    text = f"Tool {name} did not finish within {timeout_s:g} s; request less at once"
    if is_running:
        _log.warning("tool %s could not be stopped after its timeout and is still running", name)
        text += ". It could not be stopped and may still complete"
    else:
        text += ". It was stopped and may have partly completed"
    return ToolTimeoutError(text, still_running=is_running, may_be_done=True)
