"""Run the tool calls of one turn: at once where they may, each with a time-out, results in call order.

Whatever a call does, it ends with exactly one result that the model can read: an unknown tool, broken arguments, a
refusal, any exception at all, a time-out and an oversized result are results, too. A call is done at most once: one
that was given up before it began is never begun. A call that was stopped after it began may have been done, and its
result says so.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from jackfield import sync
from jackfield.errors import ToolServiceError, ToolTimeoutError, closest
from jackfield.events import ApprovalDecided, RunEvent, ToolFinished, ToolProgress, ToolStarted
from jackfield.jsontext import dumps
from jackfield.messages import FUNCTION, FunctionCall, Message
from jackfield.streams import closing
from jackfield.tools._base import BaseTool, ToolContext
from jackfield.tools._content import Content, content_of, cut, writable
from jackfield.tools._failures import describe_failure, name_of, shown, text_of, traceback_of
from jackfield.tools._foreign import Escaped, apart, called, loaded, must_load, output_of, said
from jackfield.tools._rules import NO_RULES, Approve, CallRules
from jackfield.tools._safety import Safety
from jackfield.tools._turn import PlannedCall, ReadyCall, Turn

__all__ = ["Approve", "PlannedCall", "ToolExecutor", "not_run"]

_log = logging.getLogger(__name__)

DEFAULT_TIMEOUT_S = 300.0
DEFAULT_MAX_RESULT_CHARS = 60_000
DEFAULT_MAX_MEDIA_CHARS = 20_000_000
CANCELLED_TEXT = "The call was cancelled before it began. Nothing was done."
STOPPED_TEXT = (
    "The call was stopped while it was being made. It may have been done, completely or in part. Find out before you "
    "repeat it."
)
REFUSED_TEXT = "The user did not allow this call. Do without it, or say what it is needed for."
IN_DOUBT_TEXT = (
    "The program ended while this call was being made. Whether it was done is not known, and it was not repeated."
)
NOBODY_ASKED_TEXT = "This call needs approval, and there is nobody to ask, so nothing was done."
FORBIDDEN_TEXT = "Nothing was done: tool {name} has the effect {effect!r}, which is forbidden here. Do without it."
NOT_ALLOWED = "NotAllowed"
CANCELLED = "Cancelled"
"""The error of a call that never began, because its run was stopped."""
STOPPED = "Stopped"
"""The error of a call that was stopped with its run after it had begun. It may have been done."""
IN_DOUBT: Mapping[str, Any] = MappingProxyType({"in_doubt": True})
NOT_HELD = "NotHeld"
STILL_RUNNING: Mapping[str, Any] = MappingProxyType(
    {"still_running": True, "note": "a tool could not be stopped when its time was over, and still runs"}
)
CUT_OFF = "CutOff"
NO_ANSWERS: Mapping[str, bool] = MappingProxyType({})


@dataclass(eq=False)
class ToolExecutor:
    """Calls tools.

    Attributes:
        tools: The tools by name.
        timeout_s: The time-out for tools that set none themselves.
        max_result_chars: For all texts of a result together; longer ones are cut between lines, or between elements of
            JSON, with a note.
        max_media_chars: For all `data:` URIs and addresses of a result together; the rest becomes notes.
        approve: Asked before each call of a tool that needs approval; without it, such a call is not made.
        rules: Which calls need approval, and which are never made.
    """

    tools: Mapping[str, BaseTool]
    _: KW_ONLY
    timeout_s: float = DEFAULT_TIMEOUT_S
    max_result_chars: int = DEFAULT_MAX_RESULT_CHARS
    max_media_chars: int = DEFAULT_MAX_MEDIA_CHARS
    approve: Approve | None = None
    rules: CallRules = NO_RULES

    def with_tools(self, more: Mapping[str, BaseTool], *, without: Container[str] = ()) -> ToolExecutor:
        """The same with more tools, by name, and without some of its own."""
        own = {name: tool for name, tool in self.tools.items() if name not in without}
        return replace(self, tools={**own, **more})

    def within(self, outer: CallRules) -> ToolExecutor:
        """The same, under the rules of an agent that this one works for, too."""
        rules = self.rules.within(outer)
        return self if rules is self.rules else replace(self, rules=rules)

    # --- approval ---

    async def needing_approval(self, calls: Sequence[PlannedCall]) -> frozenset[str]:
        """The names of the called tools that need approval.

        It loads them, because a class may ask for more than its descriptor. A tool that cannot be loaded is left out:
        its call will fail, and say why.
        """
        return frozenset(
            name
            for name, safety in (await self._safeties(calls)).items()
            if not self._forbidden(safety) and self.rules.asks_about(self.tools[name], safety)
        )

    async def not_repeatable(self, calls: Sequence[PlannedCall]) -> frozenset[str]:
        """The ids of calls that must not be made twice unless a person agrees: see `BaseTool.resumable`."""
        safeties = (await self._safeties(calls)).items()
        again = {name for name, safety in safeties if safety.read_only or safety.idempotent or safety.resumable}
        once = self.tools.keys() - again
        return frozenset(planned.call_id for planned in calls if planned.call.name in once)

    async def _safeties(self, calls: Sequence[PlannedCall]) -> dict[str, Safety]:
        """What holds for the tools that are called, by their names, but for those that cannot be loaded."""
        found: dict[str, Safety] = {}
        for name in sorted({planned.call.name for planned in calls} & self.tools.keys()):
            try:
                tool = self.tools[name]
                found[name] = await self._safety(tool, said(tool.safety))
            except Exception:  # noqa: BLE001 - the call itself meets the same error, and reports it
                _log.debug("tool %s cannot be prepared", name, exc_info=True)
        return found

    async def _safety(self, tool: BaseTool, known: Safety) -> Safety:
        """What holds for the calls of a tool. It is loaded, because its class may say more than is known.

        It is not loaded if what is known is enough to forbid its calls.
        """
        if self._forbidden(known) or not must_load(tool):
            return known
        await apart(partial(loaded, tool), name=tool.name, timeout_s=self.timeout_s)
        return said(tool.safety)

    def _forbidden(self, safety: Safety) -> str:
        """The effect for which calls are not made, or ''."""
        return min(safety.effects & self.rules.forbid, default="")

    # --- running ---

    async def run(
        self,
        calls: Sequence[PlannedCall],
        context: ToolContext,
        *,
        approve: Approve | None = None,
        answers: Mapping[str, bool] = NO_ANSWERS,
        in_doubt: Container[str] = frozenset(),
        left: list[ToolFinished] | None = None,
    ) -> AsyncIterator[ApprovalDecided | ToolStarted | ToolProgress | ToolFinished | RunEvent]:
        """Run the calls; events come as things happen, exactly one `ToolFinished` for each call.

        Approvals are asked for first, one call after the other. Closing the generator cancels what still runs.

        Args:
            calls: Of one turn.
            context: Of the run.
            approve: Replaces the executor's own.
            answers: Decisions that were already made about these calls, by their ids.
            in_doubt: The ids of those that may have been made already: of these, only approved ones are made.
            left: Gets a result for each call that has none when the generator is closed: the true result of a call that
                has ended meanwhile, and otherwise one that says whether the call began.
        """
        approve = approve or self.approve
        refusal = partial(_refusal, context)
        turn = Turn(partial(self._result, context, approve), self._failed, stopped, refusal, self.timeout_s)
        if context.run is not None:
            context.run.emit = turn.events.put_nowait

        async def prepare(planned: PlannedCall) -> tuple[ReadyCall | ToolFinished, ApprovalDecided | None]:
            answer, is_doubtful = answers.get(planned.call_id), planned.call_id in in_doubt
            return await self._prepare(planned, context, approve, answer, in_doubt=is_doubtful)

        ended: set[int] = set()
        try:
            async with closing(_events_of(turn, calls, prepare)) as events:
                async for event in events:
                    if isinstance(event, ToolFinished):
                        ended.add(event.index)
                    if isinstance(event, ToolStarted):
                        turn.begin_soon(event.index)
                    yield event
        finally:
            await turn.aclose()
            if left is not None:
                left += turn.results_left([planned for planned in calls if planned.index not in ended])

    async def finish(
        self, planned: PlannedCall, context: ToolContext, *, approve: Approve | None = None
    ) -> ToolFinished:
        """Run one call to its result; no exception but cancelling leaves it. Progress goes to `context.report`."""
        async with closing(self.run([planned], context, approve=approve)) as events:
            while not isinstance(event := await anext(events), ToolFinished):
                if isinstance(event, ToolProgress):
                    context.report(event.text)
        return event

    async def _prepare(
        self,
        planned: PlannedCall,
        context: ToolContext,
        approve: Approve | None,
        answer: bool | None,
        *,
        in_doubt: bool,
    ) -> tuple[ReadyCall | ToolFinished, ApprovalDecided | None]:
        """Load the tool, and ask who must be asked; a result for what may not run, or does not exist."""
        if in_doubt and answer is not True:
            return not_run(planned, IN_DOUBT_TEXT, NOT_ALLOWED), None
        started = time.perf_counter()
        try:
            ready = await self._checked(planned)
        except Exception as error:  # noqa: BLE001 - whatever a plugin does while it is loaded is a result
            return self._failed(planned, error, time.perf_counter() - started), None
        if effect := self._forbidden(ready.safety):
            reason = FORBIDDEN_TEXT.format(name=planned.call.name, effect=effect)
            decision = ApprovalDecided(planned.call_id, planned.call, allowed=False, by="forbid", reason=reason)
        elif self.rules.asks_about(ready.tool, ready.safety):
            decision = await _decision(planned, ready.arguments, context, approve, answer)
        elif (rule := self.rules.name) == "marked":
            return ready, None
        else:
            decision = ApprovalDecided(planned.call_id, planned.call, allowed=True, by=rule)
        return ready if decision.allowed else not_run(planned, decision.reason, NOT_ALLOWED), decision

    async def _checked(self, planned: PlannedCall) -> ReadyCall:
        """A call with the arguments that are approved, and therefore used."""
        name = planned.call.name
        tool = self.tools.get(name)
        if tool is None:
            raise ToolServiceError(f"Tool {name} does not exist{closest(name, list(self.tools))}")
        known = said(tool.safety)
        # What does not fit needs no module.
        arguments = {} if self._forbidden(known) else said(tool.parse_arguments, planned.call.arguments)
        return ReadyCall(planned, tool, await self._safety(tool, known), arguments)

    async def _result(
        self, context: ToolContext, approve: Approve | None, ready: ReadyCall, turn: Turn, started: float
    ) -> ToolFinished:
        """Make a call that began at `started` of the performance counter; what the tool raises comes out of it."""
        planned = ready.planned

        async def ask(arguments: Mapping[str, object]) -> bool:
            decision = await _decision(planned, arguments, context, approve)
            turn.events.put_nowait(decision)
            return decision.allowed and await _refusal(context, planned) is None

        files = context.files if ready.safety.file_access else ()
        scoped = replace(
            context,
            call_id=planned.call_id,
            files=files,
            report=turn.reporter(planned),
            ask=ask,
            run=None if context.run is None else context.run.of_call(planned.call_id),
        )
        output = await output_of(ready.tool, ready.arguments, scoped, on_begin=partial(turn.begun.add, planned.index))
        content, metadata = await content_of(output)
        if isinstance(content, str) and len(content) <= self.max_result_chars:
            message = self._message(planned, content)
        else:  # to cut megabytes of JSON, or to count those of images, takes its time
            message = await sync.in_worker(self._message, planned, content)
        return ToolFinished(planned.index, planned.call_id, message, time.perf_counter() - started, "", metadata)

    def _failed(self, planned: PlannedCall, problem: BaseException, seconds: float) -> ToolFinished:
        """The result of a call that failed."""
        error = problem.error if isinstance(problem, Escaped) else problem
        text, metadata = _described(planned.call.name, error)
        if notes := getattr(error, "__notes__", None):
            metadata["notes"] = "\n".join(map(str, notes))
        name = name_of(error)
        message = failed(self._message(planned, text), name)
        return ToolFinished(planned.index, planned.call_id, message, seconds, name, metadata)

    def _message(self, planned: PlannedCall, content: Content) -> Message:
        fitting = cut(content, max_chars=self.max_result_chars, max_media_chars=self.max_media_chars)
        return Message(FUNCTION, fitting, name=planned.call.name, extra={"function_id": planned.call_id})


async def _events_of(
    turn: Turn,
    calls: Sequence[PlannedCall],
    prepare: Callable[[PlannedCall], Awaitable[tuple[ReadyCall | ToolFinished, ApprovalDecided | None]]],
) -> AsyncIterator[ApprovalDecided | ToolStarted | ToolProgress | ToolFinished | RunEvent]:
    """Prepare all calls, one after the other, then the events of those that may be made."""
    ready_calls = []
    for planned in calls:
        ready, decision = await prepare(planned)
        if decision:
            yield decision
        if isinstance(ready, ReadyCall):
            ready_calls.append(ready)
            continue
        if ready.error != NOT_ALLOWED:
            yield ToolStarted(planned.index, planned.call_id, planned.call)
        yield ready
    turn.start(ready_calls)
    while turn.is_open:
        yield await turn.events.get()


def _described(name: str, error: BaseException) -> tuple[str, dict[str, Any]]:
    """What the model reads of an error, and what people do."""
    if not isinstance(error, ToolServiceError):
        _log.warning("tool %s failed", name, exc_info=error)
        return describe_failure(name, error), {"traceback": traceback_of(error)}
    metadata: dict[str, Any] = dict(IN_DOUBT) if error.may_be_done else {}
    if isinstance(error, ToolTimeoutError) and error.still_running:
        metadata |= STILL_RUNNING
    return text_of(error) or name_of(error), metadata


def stopped(planned: PlannedCall, *, began: bool, still_running: bool = False) -> ToolFinished:
    """The result of a call that was stopped with its run: that nothing was done is only said if it never began."""
    if not began:
        return not_run(planned, CANCELLED_TEXT, CANCELLED)
    text = f"{STOPPED_TEXT} It could not be stopped, and may still be going on." if still_running else STOPPED_TEXT
    return replace(not_run(planned, text, STOPPED), metadata={**(STILL_RUNNING if still_running else {}), **IN_DOUBT})


async def _refusal(context: ToolContext, planned: PlannedCall) -> ToolFinished | None:
    """The result of a call that its run may not make any more; None if it may."""
    reason = "" if context.run is None else await context.run.before_call()
    return not_run(planned, reason, NOT_HELD) if reason else None


def not_run(planned: PlannedCall, text: str, error: str) -> ToolFinished:
    """A result without a call; `text` says why, to the model."""
    message = Message(FUNCTION, writable(text), name=planned.call.name, extra={"function_id": planned.call_id})
    return ToolFinished(planned.index, planned.call_id, failed(message, error), 0.0, error)


def failed(message: Message, error: str) -> Message:
    """The result of a call that failed, which says so to programs that read the history."""
    return message.replace(extra={**(message.extra or {}), "error": error})


async def _decision(
    planned: PlannedCall,
    arguments: Mapping[str, object],
    context: ToolContext,
    approve: Approve | None,
    answer: bool | None = None,
) -> ApprovalDecided:
    """What somebody says to a call. Who is asked sees the arguments as they will be used."""
    call = FunctionCall(planned.call.name, dumps(arguments))
    scoped = replace(context, call_id=planned.call_id)

    def decided(by: str, said: object, reason: str = REFUSED_TEXT) -> ApprovalDecided:
        return ApprovalDecided(planned.call_id, call, said is True, by, "" if said is True else reason)

    if answer is not None:
        return decided("resume", answer)
    if approve is None:
        return decided("nobody", None, NOBODY_ASKED_TEXT)
    try:
        said = await apart(partial(called, approve, call, scoped), name=f"approval of {call.name}", timeout_s=None)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is not a yes
        _log.warning("asking for approval of %s failed", call.name, exc_info=True)
        reason = shown(error.error if isinstance(error, Escaped) else error)
        return decided("approve", None, f"{REFUSED_TEXT} (Asking failed: {reason})")
    return decided("approve", said)
