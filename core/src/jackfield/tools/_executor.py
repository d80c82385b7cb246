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
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Generic, TypeAlias, TypeVar

from jackfield import sync
from jackfield.errors import BrokenPluginError, ToolServiceError, ToolTimeoutError
from jackfield.events import ToolFinished, ToolProgress, ToolStarted
from jackfield.jsontext import dumps
from jackfield.messages import FUNCTION, FunctionCall, Message
from jackfield.settings import closest
from jackfield.tools._awaiting import is_async
from jackfield.tools._base import BaseTool, ToolContext
from jackfield.tools._content import Content, as_content, cut, cut_middle, has_local_media, with_media_inside, writable
from jackfield.tools._plugin_tool import PluginTool
from jackfield.tools._progress import gives_progress, result_of
from jackfield.tools._safety import Safety

__all__ = ["Approve", "PlannedCall", "ToolExecutor", "cut_middle", "describe_failure", "not_run", "output_of"]

T = TypeVar("T")
Approve = Callable[[FunctionCall, ToolContext], bool | Awaitable[bool]]
"""Asked before a call: whether it may be made. Only True is a yes. A plain function runs in a worker thread."""

_Events: TypeAlias = "asyncio.Queue[ToolStarted | ToolProgress | ToolFinished]"
_log = logging.getLogger(__name__)
_PATH = re.compile(r"(?:/[\w.+-]+){2,}/?|[A-Za-z]:\\[^\s'\"]+")

DEFAULT_TIMEOUT_S = 300.0
DEFAULT_MAX_RESULT_CHARS = 60_000
DEFAULT_MAX_MEDIA_CHARS = 20_000_000
END_PATIENCE_S = 5.0  # for a cancelled tool to clean up; after it, nobody waits for it any more
CANCELLED_TEXT = "The call was cancelled before it was done."
REFUSED_TEXT = "The user did not allow this call. Do without it, or say what it is needed for."
NOBODY_ASKED_TEXT = "This call needs approval, and there is nobody to ask, so nothing was done."
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
                    await self._loaded(tool)
                if _said(tool.safety).needs_approval:
                    found.add(name)
            except Exception:  # noqa: BLE001 - the call itself meets the same error, and reports it
                _log.debug("tool %s cannot be prepared", name, exc_info=True)
        return frozenset(found)

    async def _loaded(self, tool: PluginTool) -> BaseTool:
        return await _apart(_in_worker_once(tool.load), name=tool.name, timeout_s=self._timeout_s)

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
        turn = _Turn(self)
        for planned in calls:
            ready = await self._prepare(planned, context, approve or self._approve, answers.get(planned.call_id))
            if isinstance(ready, ToolFinished):
                if ready.error != NOT_ALLOWED:
                    yield ToolStarted(planned.index, planned.call_id, planned.call)
                yield ready
            else:
                turn.add(planned, ready, _scoped(context, planned, ready, turn.reporter(planned)))
        try:
            turn.start()
            while turn.is_open:
                yield await turn.events.get()
        finally:
            await turn.aclose()

    async def finish(
        self, planned: PlannedCall, context: ToolContext, *, approve: Approve | None = None
    ) -> ToolFinished:
        """Run one call to its result; no exception but cancelling leaves it."""
        ready = await self._prepare(planned, context, approve or self._approve)
        if isinstance(ready, ToolFinished):
            return ready
        turn = _Turn(self)
        turn.add(planned, ready, _scoped(context, planned, ready, context.report))
        try:
            turn.start()
            while not isinstance(event := await turn.events.get(), ToolFinished):
                pass
            return event
        finally:
            await turn.aclose()

    async def _prepare(
        self, planned: PlannedCall, context: ToolContext, approve: Approve | None, said: bool | None = None
    ) -> _Ready | ToolFinished:
        """Load the tool, and ask who must be asked; a result for what may not run, or does not exist."""
        name = planned.call.name
        tool = self._tools.get(name)
        if tool is None:
            missing = ToolServiceError(f"Tool {name} does not exist{closest(name, list(self._tools))}")
            return self.failed(planned, missing, 0.0)
        started = time.perf_counter()
        try:
            made = tool
            if isinstance(tool, PluginTool):
                if not tool.is_loaded:  # arguments that do not fit need no module
                    _said(tool.parse_arguments, planned.call.arguments)
                    await self._loaded(tool)
                made = tool.load()
            safety = _said(tool.safety)
            if not safety.needs_approval:
                return _Ready(tool, made, safety)
            arguments = _said(tool.parse_arguments, planned.call.arguments)
        except Exception as error:  # noqa: BLE001 - whatever a plugin does while it is loaded is a result
            return self.failed(planned, error, time.perf_counter() - started)
        scoped = replace(context, call_id=planned.call_id)
        refusal = await _refusal(planned, arguments, scoped, approve) if said is None else _unless(said, planned)
        return refusal or _Ready(tool, made, safety, arguments)

    async def result(
        self, planned: PlannedCall, context: ToolContext, ready: _Ready, *, started: float
    ) -> ToolFinished:
        """Make a call that began at `started` of the performance counter; what the tool raises comes out of it."""
        arguments = ready.arguments
        if arguments is None:
            arguments = ready.tool.parse_arguments(planned.call.arguments)
        content, metadata = as_content(await output_of(ready.made, arguments, context))
        if has_local_media(content):
            content = await sync.in_worker(with_media_inside, content)
        message = self._message(planned, content)
        return ToolFinished(planned.index, planned.call_id, message, time.perf_counter() - started, "", metadata)

    def timeout_of(self, safety: Safety) -> float:
        """How long a call may take, in seconds."""
        return safety.timeout_s or self._timeout_s

    def failed(self, planned: PlannedCall, problem: BaseException, seconds: float) -> ToolFinished:
        """The result of a call that failed."""
        name = planned.call.name
        error = problem.error if isinstance(problem, _Escaped) else problem
        if isinstance(error, ToolServiceError):
            text = _text_of(error) or _name_of(error)
        else:
            _log.warning("tool %s failed", name, exc_info=error)
            text = describe_failure(name, error)
        message = self._message(planned, text)
        return ToolFinished(planned.index, planned.call_id, message, seconds, _name_of(error))

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


def _scoped(context: ToolContext, planned: PlannedCall, ready: _Ready, report: Callable[[str], None]) -> ToolContext:
    files = context.files if ready.safety.file_access else ()
    return replace(context, call_id=planned.call_id, files=files, report=report)


class _Turn:
    """The calls of one turn that may be made, and what happens in them."""

    def __init__(self, executor: ToolExecutor) -> None:
        self.executor = executor
        self.events: _Events = asyncio.Queue()
        self.loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._waiting: list[_Running] = []  # to be started
        self._alone: list[_Running] = []  # may not run beside others of these; a deque is larger than most turns
        self._running: set[_Running] = set()

    def add(self, planned: PlannedCall, ready: _Ready, context: ToolContext) -> None:
        """One more call, to be made when the turn is started."""
        self._waiting.append(_Running(self, planned, ready, context))

    def reporter(self, planned: PlannedCall) -> Callable[[str], None]:
        """What a tool says how far it is with; from any thread."""

        def report(text: str) -> None:
            progress = ToolProgress(planned.index, planned.call_id, text)
            if threading.get_ident() == self._thread:
                self.events.put_nowait(progress)
            else:
                self.loop.call_soon_threadsafe(self.events.put_nowait, progress)

        return report

    def start(self) -> None:
        """Begin all calls that may run at once; the others follow one after the other."""
        alone_before = False
        for call in self._waiting:
            if call.is_alone and alone_before:
                self._alone.append(call)
            else:
                alone_before = alone_before or call.is_alone
                self._begin(call)
        self._waiting.clear()

    def _begin(self, call: _Running) -> None:
        self._running.add(call)
        call.begin()

    @property
    def is_open(self) -> bool:
        """Whether there are events to come."""
        return bool(self._running) or not self.events.empty()

    def ended(self, call: _Running, result: ToolFinished) -> None:
        """A call has its result."""
        self._running.discard(call)
        self.events.put_nowait(result)
        if call.is_alone and self._alone:
            self._begin(self._alone.pop(0))

    async def aclose(self) -> None:
        """Cancel what still runs, and wait until it has ended, but not for ever."""
        if not self._running:
            return
        self._alone.clear()
        tasks = {call.give_up(): call for call in self._running}
        self._running.clear()
        _, stubborn = await asyncio.wait(tasks, timeout=END_PATIENCE_S)
        for task in stubborn:
            tasks[task].log_that_it_goes_on()


class _Running:
    """A call in a task of its own, so that what it calls can end nothing but itself. It has one result."""

    __slots__ = ("_context", "_is_late", "_is_over", "_planned", "_ready", "_started", "_task", "_timer", "_turn")

    _task: asyncio.Task[None]
    _timer: asyncio.TimerHandle
    _started: float

    def __init__(self, turn: _Turn, planned: PlannedCall, ready: _Ready, context: ToolContext) -> None:
        self._turn = turn
        self._planned = planned
        self._ready = ready
        self._context = context
        self._is_late = False
        self._is_over = False

    @property
    def is_alone(self) -> bool:
        """Whether it may not run beside others."""
        return not self._ready.safety.concurrent

    def begin(self) -> None:
        """Make the call."""
        planned, turn = self._planned, self._turn
        turn.events.put_nowait(ToolStarted(planned.index, planned.call_id, planned.call))
        self._started = time.perf_counter()
        self._task = turn.loop.create_task(self._work())
        # However the task ends, even before it begins, the call has a result.
        self._task.add_done_callback(lambda _: self._end(asyncio.CancelledError()))
        self._timer = turn.loop.call_later(turn.executor.timeout_of(self._ready.safety), self._time_is_over)

    def give_up(self) -> asyncio.Task[None]:
        """Cancel the call, whose result nobody waits for any more."""
        self._is_over = True
        self._timer.cancel()
        self._task.cancel()
        return self._task

    def log_that_it_goes_on(self) -> None:
        """For a call that does not let itself be cancelled."""
        _log_that_it_goes_on(self._planned.call.name)

    async def _work(self) -> None:
        try:
            made = await self._turn.executor.result(self._planned, self._context, self._ready, started=self._started)
        except BaseException as error:
            if _is_ctrl_c(error):
                raise
            self._end(error)
        else:
            self._end(made)

    def _time_is_over(self) -> None:
        self._is_late = True
        self._task.cancel()
        self._timer = self._turn.loop.call_later(END_PATIENCE_S, self._patience_is_over)

    def _patience_is_over(self) -> None:
        self.log_that_it_goes_on()
        self._end(asyncio.CancelledError())

    def _end(self, made: ToolFinished | BaseException) -> None:
        if self._is_over:
            return
        self._is_over = True
        self._timer.cancel()
        executor = self._turn.executor
        if self._is_late:
            made = _too_late(self._planned.call.name, executor.timeout_of(self._ready.safety))
        if not isinstance(made, ToolFinished):
            made = executor.failed(self._planned, made, time.perf_counter() - self._started)
        self._turn.ended(self, made)


def _too_late(name: str, timeout_s: float) -> ToolTimeoutError:
    return ToolTimeoutError(f"Tool {name} did not finish in {timeout_s:g} s; ask it for less at once")


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
        raise _too_late(name, timeout_s or 0.0)
    return outcome.value()


def _tell(waiter: asyncio.Future[T], value: T) -> None:
    if not waiter.done():
        waiter.set_result(value)


async def _told(waiter: asyncio.Future[_Outcome[T] | None], work: Coroutine[Any, Any, T]) -> None:
    _tell(waiter, await _caught(work))


async def output_of(tool: BaseTool, arguments: str | Mapping[str, Any], context: ToolContext) -> Any:
    """What a tool gives back; a plain `call` runs in a worker thread, so that nothing else waits for it.

    Raises:
        ToolServiceError: It gave a generator that does not do what `result_of` says.
    """
    if isinstance(tool, PluginTool):
        # Its first call imports its module.
        tool = tool.load() if tool.is_loaded else await _in_worker_once(tool.load)
    if not isinstance(arguments, str) and tool.takes_text:
        arguments = dumps(arguments)
    target = getattr(tool, "function_called", tool.call)
    if is_async(target) or (target is not tool.call and is_async(tool.call)):
        output: Any = tool.call(arguments, context=context)
    else:
        output = await _in_worker_once(tool.call, arguments, context=context)
    if inspect.isawaitable(output):
        output = await output
    return await result_of(output, tool.name, context) if gives_progress(output) else output


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


def _said(function: Callable[..., T], *args: Any) -> T:
    """What a tool says about itself; what is no `Exception` comes as `_Escaped`, and ends no run."""
    try:
        return function(*args)
    except Exception:
        raise
    except BaseException as error:
        if _is_ctrl_c(error):
            raise
        raise _Escaped(error) from error


def _is_ctrl_c(error: BaseException) -> bool:
    """Whether somebody may have pressed it, which only the main thread hears of."""
    return isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread()


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
        if _is_ctrl_c(error):
            raise
        return _Outcome(error=error)


async def _end(task: asyncio.Task[Any], name: str) -> None:
    """Cancel a task, and wait until it has ended, but not for ever."""
    task.cancel()
    _, still_running = await asyncio.wait((task,), timeout=END_PATIENCE_S)
    if still_running:
        _log_that_it_goes_on(name)


def _log_that_it_goes_on(name: str) -> None:
    _log.warning("tool %s goes on after it was cancelled; nobody waits for it any more", name)


# --- what the model reads ---------------------------------------------------------------------------------------------


def describe_failure(name: str, error: BaseException) -> str:
    """What the model is told of an exception: its type and text, without traceback, paths or much length."""
    if isinstance(error, BrokenPluginError):
        return f"Tool {name} cannot be used: {_short(error)}"
    return f"An error occurred when calling tool {name}: {_shown(error)}"


def _shown(error: BaseException) -> str:
    return f"{_name_of(error)}: {_short(error)}".rstrip(": ")


def _short(error: BaseException) -> str:
    text = _PATH.sub("…", _text_of(error)).strip()
    return text if len(text) <= 500 else text[:500] + "…"


def _text_of(error: BaseException) -> str:
    """The text of an exception; '' if even asking for it fails."""
    try:
        return str(error.message if isinstance(error, ToolServiceError) and error.message else error)
    except BaseException:  # noqa: BLE001 - the exception is foreign, its methods are, too, and may end no run either
        return ""


def _name_of(error: BaseException) -> str:
    """The name of an exception's class, which may have a say in it itself."""
    return type.__dict__["__name__"].__get__(type(error))  # type: ignore[no-any-return]
