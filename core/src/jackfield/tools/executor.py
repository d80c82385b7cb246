"""Run the tool calls of one turn: at once where they may, each with a time-out, results in call order.

Whatever a call does, it ends with exactly one result that the model can read: an unknown tool, broken arguments, a
refusal, any exception at all, a time-out and an oversized result are results, too. A call is done at most once: one
that was given up before it began is never begun.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Generic, TypeAlias, TypeVar

from jackfield import sync
from jackfield.errors import BrokenPluginError, ToolServiceError, ToolTimeoutError
from jackfield.events import ToolFinished, ToolProgress, ToolStarted
from jackfield.jsontext import dumps
from jackfield.messages import FUNCTION, FunctionCall, Message
from jackfield.settings import closest
from jackfield.tools.base import BaseTool, ToolContext
from jackfield.tools.content import Content, as_content, cut, cut_middle, has_local_media, with_media_inside, writable
from jackfield.tools.plugin_tool import PluginTool
from jackfield.tools.safety import Safety

__all__ = ["Approve", "PlannedCall", "ToolExecutor", "call_tool", "cut_middle", "describe_failure", "not_run"]

T = TypeVar("T")
Approve = Callable[[FunctionCall, ToolContext], bool | Awaitable[bool]]
"""Asked before a call: whether it may be made. Only True is a yes. A plain function runs in a worker thread."""

_Events: TypeAlias = "asyncio.Queue[ToolStarted | ToolProgress | ToolFinished | None]"
_log = logging.getLogger(__name__)
_PATH = re.compile(r"(?:/[\w.+-]+){2,}/?|[A-Za-z]:\\[^\s'\"]+")

DEFAULT_TIMEOUT_S = 300.0
DEFAULT_MAX_RESULT_CHARS = 60_000
DEFAULT_MAX_MEDIA_CHARS = 20_000_000
END_PATIENCE_S = 5.0  # for a cancelled tool to clean up; after it, nobody waits for it any more
CANCELLED_TEXT = "The call was cancelled before it was done."
REFUSED_TEXT = "The user did not allow this call. Do without it, or say what it is needed for."
NOBODY_ASKED_TEXT = "This call needs approval, and there is nobody to ask, so nothing was done."
NO_RESULT_TEXT = "The call ended without a result."
NOT_ALLOWED = "NotAllowed"
NO_ANSWERS: Mapping[str, bool] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call with its id and its place among the calls of the turn."""

    index: int
    call_id: str
    call: FunctionCall


class ToolExecutor:
    """Calls tools.

    Args:
        tools: By name.
        timeout_s: For tools that set none themselves.
        max_result_chars: Of all texts of a result together; more is cut in the middle, and says so.
        max_media_chars: Of all `data:` URIs and addresses of a result together; what does not fit becomes a note.
        approve: Asked before each call of a tool that needs approval; without it, such a call is not made.
    """

    def __init__(
        self,
        tools: Mapping[str, BaseTool],
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        max_result_chars: int = DEFAULT_MAX_RESULT_CHARS,
        max_media_chars: int = DEFAULT_MAX_MEDIA_CHARS,
        approve: Approve | None = None,
    ) -> None:
        self._tools = tools
        self._timeout_s = timeout_s
        self._max_result_chars = max_result_chars
        self._max_media_chars = max_media_chars
        self._approve = approve

    # --- approval ---

    def must_load(self, calls: Sequence[PlannedCall]) -> bool:
        """Whether a called tool has not been loaded, which takes its time."""
        tools = (self._tools.get(planned.call.name) for planned in calls)
        return any(isinstance(tool, PluginTool) and not tool.is_loaded for tool in tools)

    async def needing_approval(self, calls: Sequence[PlannedCall]) -> frozenset[str]:
        """The names of the called tools that need approval.

        It loads them, because a class may ask for more than its descriptor. A tool that cannot be loaded is left out:
        its call will fail, and say why.
        """
        names = {planned.call.name for planned in calls if planned.call.name in self._tools}
        found = set()
        for name in sorted(names):
            tool = self._tools[name]
            try:
                if isinstance(tool, PluginTool) and not tool.is_loaded:
                    await self._within(None, name, _in_worker_once(tool.load))
                if tool.safety().needs_approval:
                    found.add(name)
            except Exception:  # noqa: BLE001 - the call itself meets the same error, and reports it
                _log.debug("tool %s cannot be prepared", name, exc_info=True)
        return frozenset(found)

    # --- running ---

    async def run(
        self,
        calls: Sequence[PlannedCall],
        context: ToolContext,
        *,
        approve: Approve | None = None,
        answers: Mapping[str, bool] = NO_ANSWERS,
    ) -> AsyncIterator[ToolStarted | ToolProgress | ToolFinished]:
        """Run the calls; events come as things happen, exactly one `ToolFinished` for each call.

        Who must approve is asked first, one call after the other. Closing the generator cancels what still runs.

        Args:
            calls: Of one turn.
            context: Of the run.
            approve: In place of the executor's own.
            answers: What somebody has said to these calls already, by their ids.
        """
        events: _Events = asyncio.Queue()
        open_calls = {planned.index: planned for planned in calls}
        allowed = []
        for planned in calls:
            ready = await self._prepare(planned, context, approve or self._approve, answers.get(planned.call_id))
            if isinstance(ready, ToolFinished):
                del open_calls[planned.index]
                if ready.error != NOT_ALLOWED:
                    yield ToolStarted(planned.index, planned.call_id, planned.call)
                yield ready
            else:
                allowed.append((planned, ready))
        work = asyncio.create_task(self._run_all(allowed, context, events))
        try:
            while (event := await events.get()) is not None:
                if isinstance(event, ToolFinished):
                    open_calls.pop(event.index, None)
                yield event
            for planned in open_calls.values():
                yield not_run(planned, NO_RESULT_TEXT, "NoResult")
        finally:
            if not work.done():
                work.cancel()
                await asyncio.wait((work,))

    async def _run_all(
        self, calls: Sequence[tuple[PlannedCall, _Ready | None]], context: ToolContext, events: _Events
    ) -> None:
        alone = asyncio.Lock()  # tools that may not run beside others take turns
        report_to = _reporter(events)

        async def one(planned: PlannedCall, ready: _Ready | None) -> None:
            scoped = replace(context, call_id=planned.call_id, report=report_to(planned))
            async with nullcontext() if ready is None or ready.safety.concurrent else alone:
                events.put_nowait(ToolStarted(planned.index, planned.call_id, planned.call))
                events.put_nowait(await self._finish(planned, scoped, ready))

        try:
            if len(calls) == 1:  # most turns have one call, which needs no group
                await one(*calls[0])
                return
            async with asyncio.TaskGroup() as group:
                for planned, ready in calls:
                    group.create_task(one(planned, ready))
        finally:
            events.put_nowait(None)  # however the calls end, whoever waits for their events is not left waiting

    async def finish(
        self, planned: PlannedCall, context: ToolContext, *, approve: Approve | None = None
    ) -> ToolFinished:
        """Run one call to its result; no exception but cancelling leaves it."""
        ready = await self._prepare(planned, context, approve or self._approve)
        return ready if isinstance(ready, ToolFinished) else await self._finish(planned, context, ready)

    async def _prepare(
        self, planned: PlannedCall, context: ToolContext, approve: Approve | None, said: bool | None = None
    ) -> _Ready | ToolFinished | None:
        """Load the tool, and ask who must be asked; a result for what may not run, None if there is no such tool."""
        tool = self._tools.get(planned.call.name)
        if tool is None:
            return None
        started = time.perf_counter()
        try:
            made = tool
            if isinstance(tool, PluginTool):
                if not tool.is_loaded:  # arguments that do not fit need no module
                    tool.parse_arguments(planned.call.arguments)
                    await self._within(None, tool.name, _in_worker_once(tool.load))
                made = tool.load()
            safety = tool.safety()
            if not safety.needs_approval:
                return _Ready(tool, made, safety)
            arguments = tool.parse_arguments(planned.call.arguments)
        except Exception as error:  # noqa: BLE001 - whatever a plugin does while it is loaded is a result
            return self._failed(planned, error, time.perf_counter() - started)
        scoped = replace(context, call_id=planned.call_id)
        refusal = await _refusal(planned, arguments, scoped, approve) if said is None else _unless(said, planned)
        return refusal or _Ready(tool, made, safety, arguments)

    async def _finish(self, planned: PlannedCall, context: ToolContext, ready: _Ready | None) -> ToolFinished:
        if ready is None:
            name = planned.call.name
            return self._failed(
                planned, ToolServiceError(f"Tool {name} does not exist{closest(name, list(self._tools))}"), 0.0
            )
        started = time.perf_counter()
        try:
            content, metadata = await self._call(planned.call, context, ready)
            message = self._message(planned, content)
        except Exception as error:  # noqa: BLE001 - any failure of a tool is a result the model reads
            return self._failed(planned, error, time.perf_counter() - started)
        return ToolFinished(planned.index, planned.call_id, message, time.perf_counter() - started, "", metadata)

    async def _call(self, call: FunctionCall, context: ToolContext, ready: _Ready) -> tuple[Content, dict[str, Any]]:
        arguments = ready.arguments
        if arguments is None:
            arguments = ready.tool.parse_arguments(call.arguments)
        if context.files and not ready.safety.file_access:
            context = replace(context, files=())
        return await self._within(ready.safety.timeout_s, call.name, _content_from(ready.made, arguments, context))

    async def _within(self, timeout_s: float | None, name: str, work: Coroutine[Any, Any, T]) -> T:
        return await _apart(work, name=name, timeout_s=timeout_s or self._timeout_s)

    def _failed(self, planned: PlannedCall, problem: Exception, seconds: float) -> ToolFinished:
        name = planned.call.name
        error = problem.error if isinstance(problem, _Escaped) else problem
        if isinstance(error, ToolServiceError):
            text = _text_of(error) or type(error).__name__
        else:
            _log.warning("tool %s failed", name, exc_info=error)
            text = describe_failure(name, error)
        message = self._message(planned, text)
        return ToolFinished(planned.index, planned.call_id, message, seconds, type(error).__name__)

    def _message(self, planned: PlannedCall, content: Content) -> Message:
        fitting = cut(content, max_chars=self._max_result_chars, max_media_chars=self._max_media_chars)
        return Message(FUNCTION, fitting, name=planned.call.name, extra={"function_id": planned.call_id})


@dataclass(frozen=True, slots=True)
class _Ready:
    """A call that may be made.

    Attributes:
        tool: As the agent has it.
        made: What is called: of a plugin, the tool itself.
        safety: What holds for it.
        arguments: What was approved, and therefore is what is done; None if nobody was asked.
    """

    tool: BaseTool
    made: BaseTool
    safety: Safety
    arguments: dict[str, Any] | None = None


def not_run(planned: PlannedCall, text: str, error: str) -> ToolFinished:
    """The result of a call that was not made; `text` says why, to the model."""
    message = Message(FUNCTION, writable(text), name=planned.call.name, extra={"function_id": planned.call_id})
    return ToolFinished(planned.index, planned.call_id, message, 0.0, error)


def _reporter(events: _Events) -> Callable[[PlannedCall], Callable[[str], None]]:
    loop = asyncio.get_running_loop()
    here = threading.get_ident()

    def reporter(planned: PlannedCall) -> Callable[[str], None]:
        def report(text: str) -> None:
            progress = ToolProgress(planned.index, planned.call_id, text)
            if threading.get_ident() == here:
                events.put_nowait(progress)
            else:
                loop.call_soon_threadsafe(events.put_nowait, progress)

        return report

    return reporter


# --- approval ---------------------------------------------------------------------------------------------------------


async def _refusal(
    planned: PlannedCall, arguments: Mapping[str, Any], context: ToolContext, approve: Approve | None
) -> ToolFinished | None:
    """The result of a call that nobody allowed. Who is asked sees the arguments as they will be used."""
    if approve is None:
        return not_run(planned, NOBODY_ASKED_TEXT, NOT_ALLOWED)
    call = FunctionCall(planned.call.name, dumps(arguments))
    try:
        answer = await _apart(_answer(approve, call, context), name=f"approval of {call.name}", timeout_s=None)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is not a yes
        _log.warning("asking for approval of %s failed", call.name, exc_info=True)
        reason = _shown(error.error if isinstance(error, _Escaped) else error)
        return not_run(planned, f"{REFUSED_TEXT} (Asking failed: {reason})", NOT_ALLOWED)
    return _unless(answer, planned)


def _unless(answer: object, planned: PlannedCall) -> ToolFinished | None:
    return None if answer is True else not_run(planned, REFUSED_TEXT, NOT_ALLOWED)


async def _answer(approve: Approve, call: FunctionCall, context: ToolContext) -> Any:
    if _is_async(approve):
        answer: Any = approve(call, context)
    else:
        answer = await _in_worker_once(approve, call, context)
    return await answer if inspect.isawaitable(answer) else answer


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


# --- foreign code -----------------------------------------------------------------------------------------------------


async def _apart(work: Coroutine[Any, Any, T], *, name: str, timeout_s: float | None) -> T:
    """What foreign code gives, in its time. It runs in a task of its own, so that it can end nothing but itself.

    Raises:
        ToolTimeoutError: It took too long. If it goes on all the same, nobody waits for it any more.
        Exception: Its own; what is no `Exception` comes as `_Escaped`.
    """
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[_Outcome[T] | None] = loop.create_future()
    task = loop.create_task(_told(waiter, work))
    # However the task ends, even before it begins, whoever waits is told.
    task.add_done_callback(lambda _: _tell(waiter, _Outcome(error=asyncio.CancelledError())))
    timer = None if timeout_s is None else loop.call_later(timeout_s, _tell, waiter, None)
    try:
        outcome = await waiter
    except BaseException:
        await _end(task, name)
        raise
    finally:
        if timer is not None:
            timer.cancel()
    if outcome is None:
        await _end(task, name)
        raise ToolTimeoutError(f"Tool {name} did not finish in {timeout_s:g} s; ask it for less at once")
    return outcome.value()


def _tell(waiter: asyncio.Future[T], value: T) -> None:
    if not waiter.done():
        waiter.set_result(value)


async def _told(waiter: asyncio.Future[_Outcome[T] | None], work: Coroutine[Any, Any, T]) -> None:
    _tell(waiter, await _caught(work))


async def _content_from(
    tool: BaseTool, arguments: Mapping[str, Any], context: ToolContext
) -> tuple[Content, dict[str, Any]]:
    content, metadata = as_content(await call_tool(tool, arguments, context))
    if has_local_media(content):
        content = await sync.in_worker(with_media_inside, content)
    return content, metadata


async def call_tool(tool: BaseTool, arguments: Mapping[str, Any], context: ToolContext) -> Any:
    """What a tool gives back; a plain `call` runs in a worker thread, so that nothing else waits for it.

    Raises:
        ToolServiceError: It gave a generator, which is no result.
    """
    if isinstance(tool, PluginTool):
        tool = await _in_worker_once(tool.load)  # its first call imports its module
    target = getattr(tool, "function_called", tool.call)
    if inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(tool.call):
        output: Any = tool.call(arguments, context=context)
    else:
        output = await _in_worker_once(tool.call, arguments, context=context)
    if inspect.isawaitable(output):
        output = await output
    if inspect.isgenerator(output) or inspect.isasyncgen(output):
        raise ToolServiceError(f"Tool {tool.name} cannot be used: it gives a generator, and must give one result")
    return output


async def _in_worker_once(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Run a plain function in a worker thread, unless its caller gives up before it begins: then it never begins."""
    given_up = False

    def begin() -> _Outcome[T] | None:
        if given_up:
            return None
        try:
            return _Outcome(result=function(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001 - it is the caller's, not the thread's
            return _Outcome(error=error)

    try:
        outcome = await sync.in_worker(begin)
    except BaseException:
        given_up = True
        raise
    assert outcome is not None  # noqa: S101 - nobody has given up
    return outcome.value()


class _Escaped(Exception):  # noqa: N818 - it says what happened
    """Stands for an error that would end more than the call that raised it: Ctrl-C, an exit, a cancellation."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


@dataclass(frozen=True, slots=True)
class _Outcome(Generic[T]):
    """How foreign code has ended."""

    result: T | None = None
    error: BaseException | None = None

    def value(self) -> T:
        """The result; an error is raised, and what is no `Exception` as `_Escaped`."""
        if self.error is None:
            return self.result  # type: ignore[return-value]
        if isinstance(self.error, Exception):
            raise self.error
        raise _Escaped(self.error)


async def _caught(work: Coroutine[Any, Any, T]) -> _Outcome[T]:
    """Nothing leaves a task that would end the event loop."""
    try:
        return _Outcome(result=await work)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
            raise  # somebody's Ctrl-C
        return _Outcome(error=error)


async def _end(task: asyncio.Task[Any], name: str) -> None:
    """Cancel a task, and wait until it has ended, but not for ever."""
    task.cancel()
    _, still_running = await asyncio.wait((task,), timeout=END_PATIENCE_S)
    if still_running:
        _log.warning("tool %s goes on after it was cancelled; nobody waits for it any more", name)


# --- what the model reads ---------------------------------------------------------------------------------------------


def describe_failure(name: str, error: BaseException) -> str:
    """What the model is told of an exception: its type and text, without traceback, paths or much length."""
    if isinstance(error, BrokenPluginError):
        return f"Tool {name} cannot be used: {_short(error)}"
    return f"An error occurred when calling tool {name}: {_shown(error)}"


def _shown(error: BaseException) -> str:
    return f"{type(error).__name__}: {_short(error)}".rstrip(": ")


def _short(error: BaseException) -> str:
    text = _PATH.sub("…", _text_of(error)).strip()
    return text if len(text) <= 500 else text[:500] + "…"


def _text_of(error: BaseException) -> str:
    """The text of an exception; '' if even asking for it fails."""
    try:
        return str(error.message if isinstance(error, ToolServiceError) and error.message else error)
    except Exception:  # noqa: BLE001 - the exception is foreign, its methods are, too
        return ""
