"""Plan and run a turn's tool calls. Each call has a timeout, and calls run concurrently if their tools allow it.

Every call yields exactly one result that the model can read, even after an unknown tool name, malformed arguments, a
denial, an exception, a timeout or an oversized result. Each call is made at most once, and a call that is abandoned
before it starts is never made. If a call is stopped after it starts, its result says that it may have taken effect.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Container, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from jackfield import sync
from jackfield.errors import ConfigError, ToolServiceError, ToolTimeoutError
from jackfield.events import ApprovalDecided, RunEvent, ToolFinished, ToolProgress, ToolStarted
from jackfield.jsontext import dumps
from jackfield.messages import FUNCTION, FunctionCall, Message
from jackfield.streams import closing
from jackfield.suggestions import suggest
from jackfield.tools._base import BaseTool, ToolContext
from jackfield.tools._content import Content, content_of, cut, writable
from jackfield.tools._failures import describe_failure, error_name, error_text, error_traceback, summarize
from jackfield.tools._foreign import (
    EscapedError,
    call_function,
    contain,
    is_unloaded,
    load_tool,
    run_isolated,
    run_tool,
)
from jackfield.tools._plan import (
    NO_ANSWERS,
    CallPlan,
    CheckedCall,
    DeniedCall,
    FailedCall,
    PlannedCall,
    ReadyCall,
)
from jackfield.tools._rules import NO_RULES, Approve, Ask, CallRules, Decision, Denial
from jackfield.tools._safety import Safety
from jackfield.tools._turn import Turn

_log = logging.getLogger(__name__)

DEFAULT_TIMEOUT_S = 300.0
DEFAULT_MAX_RESULT_CHARS = 60_000
DEFAULT_MAX_MEDIA_CHARS = 20_000_000
CANCELLED_TEXT = "The call was cancelled before it started. Nothing was done."
STOPPED_TEXT = (
    "The call was stopped while running. It may have been done, fully or in part. Check before you repeat it."
)
DENIED_TEXT = "The user did not allow this call. Continue without it, or explain why it is needed."
DENIED_WITH_REASON = "The user did not allow this call and said: {reason}"
IN_DOUBT_TEXT = (
    "The program ended while this call was running. The call may or may not have completed, and was not repeated."
)
NO_APPROVER_TEXT = "This call needs approval, but no approver is available, so nothing was done."
FORBIDDEN_TEXT = (
    "Nothing was done: tool {name} has the effect {effect!r}, which is forbidden here. Continue without it."
)
NOT_ALLOWED = "NotAllowed"
CANCELLED = "Cancelled"
"""Error name for a call that never began because its run was stopped."""
STOPPED = "Stopped"
"""Error name for a call that had begun when its run was stopped, and may have taken effect."""
IN_DOUBT: Mapping[str, Any] = MappingProxyType({"in_doubt": True})
NOT_HELD = "NotHeld"
STILL_RUNNING: Mapping[str, Any] = MappingProxyType(
    {"still_running": True, "note": "a tool could not be stopped after its timeout and is still running"}
)
CUT_OFF = "CutOff"


@dataclass(eq=False)
class ToolExecutor:
    """Plans and runs tool calls.

    Attributes:
        tools: The tools by name.
        timeout_s: Default timeout for tools that do not set their own, in seconds.
        max_result_chars: The maximum total length of a result's text. Longer text is truncated between lines or JSON
            elements, with a note.
        max_media_chars: The maximum total length of a result's `data:` URIs and URLs. Media beyond this limit are
            replaced with notes.
        approve: A function that approves or denies each call that needs approval. If None, such calls are not made.
        rules: The rules that determine which calls need approval and which are never made.
    """

    tools: Mapping[str, BaseTool]
    _: KW_ONLY
    timeout_s: float = DEFAULT_TIMEOUT_S
    max_result_chars: int = DEFAULT_MAX_RESULT_CHARS
    max_media_chars: int = DEFAULT_MAX_MEDIA_CHARS
    approve: Approve | None = None
    rules: CallRules = NO_RULES

    def with_tools(self, more: Mapping[str, BaseTool], *, without: Container[str] = ()) -> ToolExecutor:
        """Return a copy that includes the tools in `more` and omits the tools in `without`."""
        kept = {name: tool for name, tool in self.tools.items() if name not in without}
        return replace(self, tools={**kept, **more})

    def within(self, outer: CallRules) -> ToolExecutor:
        """Return a copy that also enforces the rules of a parent agent."""
        rules = self.rules.within(outer)
        return self if rules is self.rules else replace(self, rules=rules)

    # --- deciding ---

    async def plan(
        self,
        calls: Sequence[PlannedCall],
        *,
        approve: Approve | None = None,
        answers: Mapping[str, Decision] = NO_ANSWERS,
        in_doubt: frozenset[str] = frozenset(),
    ) -> CallPlan:
        """Plan the calls of one turn without making them.

        Each call's arguments and safety are checked once. Planning loads the tools, because a tool's class may be
        stricter than its descriptor.

        Args:
            calls: The calls.
            approve: A function that replaces the executor's own approval function.
            answers: Earlier decisions about these calls, keyed by call id.
            in_doubt: The ids of calls that may have been made before. A call in doubt is only repeated if a person
                approves it, or if its tool is `read_only`, `idempotent` or `resumable`.
        """
        approve = approve or self.approve
        checked: list[CheckedCall] = []
        pending: list[PlannedCall] = []
        doubtful: list[PlannedCall] = []
        for planned in calls:
            answer = answers.get(planned.call_id)
            call = await self._check(planned)
            is_repeatable = call.safety is not None and call.safety.is_repeatable
            if planned.call_id in in_doubt and not is_repeatable and planned.call.name in self.tools:
                if answer is None:
                    doubtful.append(planned)
                if answer is not True:
                    call = DeniedCall(planned, call.safety, IN_DOUBT_TEXT)
            elif call.needs_approval and answer is None and approve is None:
                pending.append(planned)
            checked.append(call)
        ids = frozenset(planned.call_id for planned in doubtful)
        return CallPlan(tuple(checked), tuple(doubtful or pending), ids, approve, answers, in_doubt)

    async def _check(self, planned: PlannedCall) -> CheckedCall:
        """Check a call's arguments and determine its safety.

        Determining the safety loads the tool, unless the arguments are not valid.
        """
        started = time.perf_counter()
        name = planned.call.name
        tool = self.tools.get(name)
        if tool is None:
            missing = ToolServiceError(f"Tool {name} does not exist{suggest(name, list(self.tools))}")
            return FailedCall(planned, missing, time.perf_counter() - started)
        safety: Safety | None = None
        try:
            safety = contain(tool.safety)
            if self._forbidden_effect(safety):
                return self._deny_effect(planned, safety)
            arguments = contain(tool.parse_arguments, planned.call.arguments)
        except Exception as error:  # noqa: BLE001 - any failure of a plugin becomes a result
            needs_approval = safety is not None and self.rules.need_approval(tool, safety)
            return FailedCall(planned, error, time.perf_counter() - started, safety, needs_approval)
        try:
            if is_unloaded(tool):
                await run_isolated(partial(load_tool, tool), name=tool.name, timeout_s=self.timeout_s)
                safety = contain(tool.safety)
        except Exception as error:  # noqa: BLE001 - as above
            return FailedCall(planned, error, time.perf_counter() - started)
        if self._forbidden_effect(safety):
            return self._deny_effect(planned, safety)
        needs_approval = self.rules.need_approval(tool, safety)
        decision = None
        if not needs_approval and (rule := self.rules.name) != "marked":
            decision = ApprovalDecided(planned.call_id, planned.call, allowed=True, by=rule)
        return ReadyCall(planned, tool, safety, arguments, needs_approval, decision)

    def _forbidden_effect(self, safety: Safety) -> str:
        """Return the first forbidden effect of a call, or '' if there is none."""
        return min(safety.effects & self.rules.forbid, default="")

    def _deny_effect(self, planned: PlannedCall, safety: Safety) -> DeniedCall:
        reason = FORBIDDEN_TEXT.format(name=planned.call.name, effect=self._forbidden_effect(safety))
        decision = ApprovalDecided(planned.call_id, planned.call, allowed=False, by="forbid", reason=reason)
        return DeniedCall(planned, safety, reason, decision)

    # --- running ---

    async def run(
        self, plan: CallPlan, context: ToolContext, *, left: list[ToolFinished] | None = None
    ) -> AsyncIterator[ApprovalDecided | ToolStarted | ToolProgress | ToolFinished | RunEvent]:
        """Run the calls of a plan and yield events as they happen, including exactly one `ToolFinished` per call.

        Approvals come first, one call at a time. A call that needs approval is denied if no one can be asked.
        Closing the generator cancels calls that are still running.

        Args:
            plan: The plan for the calls of one turn.
            context: The run's context.
            left: A list that receives the missing results when the generator is closed. For a call that has ended by
                then, the list receives the actual result. Otherwise, the result says whether the call had started.
        """
        turn = self._open_turn(plan, context)
        ended: set[int] = set()
        ready: list[ReadyCall] = []
        try:
            for call in plan.calls:
                planned = call.planned
                if isinstance(call, FailedCall):
                    yield ToolStarted(planned.index, planned.call_id, planned.call)
                    ended.add(planned.index)
                    yield self._failed(planned, call.error, call.seconds)
                    continue
                decision = await _decide_planned(call, plan, context)
                if decision is not None:
                    yield decision
                if isinstance(call, DeniedCall):
                    reason = call.reason
                elif decision is None or decision.allowed:
                    ready.append(call)
                    continue
                else:
                    reason = decision.reason
                ended.add(planned.index)
                yield not_run(planned, reason, NOT_ALLOWED)
            turn.start(ready)
            while turn.is_open:
                event = await turn.events.get()
                if isinstance(event, ToolFinished):
                    ended.add(event.index)
                elif isinstance(event, ToolStarted):
                    turn.begin_soon(event.index)
                yield event
        finally:
            await turn.aclose()
            if left is not None:
                missing = [call.planned for call in plan.calls if call.planned.index not in ended]
                left += _results_left(missing, turn, plan.in_doubt)

    async def finish(
        self, planned: PlannedCall, context: ToolContext, *, approve: Approve | None = None
    ) -> ToolFinished:
        """Run one call and return its result. Progress goes to `context.report`. Only cancellation raises."""
        plan = await self.plan([planned], approve=approve)
        async with closing(self.run(plan, context)) as events:
            while not isinstance(event := await anext(events), ToolFinished):
                if isinstance(event, ToolProgress):
                    context.report(event.text)
        return event

    def _open_turn(self, plan: CallPlan, context: ToolContext) -> Turn:
        """Create a turn whose queue also receives the events of nested runs."""
        asker = context.run.asker() if plan.approve is None and context.run is not None else None
        fills_forms = asker is not None
        scoped = context if context.fills_forms is fills_forms else replace(context, fills_forms=fills_forms)
        make, refusal = partial(self._make, scoped, plan.approve or asker), partial(_refusal, context)
        turn = Turn(make, self._failed, refusal, self.timeout_s)
        if context.run is not None:
            context.run.emit = turn.events.put_nowait
        return turn

    async def _make(
        self, context: ToolContext, asker: Ask | None, ready: ReadyCall, turn: Turn, started: float
    ) -> ToolFinished:
        """Make a call that started at `started` (`time.perf_counter`). The tool's errors propagate."""
        planned = ready.planned

        async def ask(arguments: Mapping[str, object]) -> bool | Mapping[str, object]:
            decision, values = await _put_question(planned, arguments, context, asker)
            turn.events.put_nowait(decision)
            is_allowed = decision.allowed and await _refusal(context, planned) is None
            return values if is_allowed and values is not None else is_allowed

        files = context.files if ready.safety.file_access else ()
        scoped = replace(
            context,
            call_id=planned.call_id,
            files=files,
            report=turn.reporter(planned),
            ask=ask,
            run=None if context.run is None else context.run.of_call(planned.call_id),
        )
        begin = partial(turn.begun.add, planned.index)
        with nullcontext() if context.run is None else context.run.surround_call(planned.call_id, planned.call.name):
            output = await run_tool(ready.tool, ready.arguments, scoped, on_begin=begin)
            content, metadata = await content_of(output)
        if isinstance(content, str) and len(content) <= self.max_result_chars:
            message = self._message(planned, content)
        else:  # cutting megabytes of JSON or measuring images takes time
            message = await sync.in_worker(self._message, planned, content)
        return ToolFinished(planned.index, planned.call_id, message, time.perf_counter() - started, "", metadata)

    def _failed(self, planned: PlannedCall, problem: BaseException, seconds: float) -> ToolFinished:
        """Return the result of a call that failed."""
        error = problem.error if isinstance(problem, EscapedError) else problem
        text, metadata = _describe(planned.call.name, error)
        if notes := getattr(error, "__notes__", None):
            metadata["notes"] = "\n".join(str(note) for note in notes)
        name = error_name(error)
        message = failed(self._message(planned, text), name)
        return ToolFinished(planned.index, planned.call_id, message, seconds, name, metadata)

    def _message(self, planned: PlannedCall, content: Content) -> Message:
        content = cut(content, max_chars=self.max_result_chars, max_media_chars=self.max_media_chars)
        return Message(FUNCTION, content, name=planned.call.name, extra={"function_id": planned.call_id})


async def _decide_planned(call: ReadyCall | DeniedCall, plan: CallPlan, context: ToolContext) -> ApprovalDecided | None:
    """Approve or deny a planned call, asking if necessary. Return None if the call needs no decision."""
    if isinstance(call, DeniedCall) or not call.needs_approval:
        return call.decision
    return await _decide(call.planned, call.arguments, context, plan.approve, plan.answers.get(call.planned.call_id))


def _results_left(calls: Sequence[PlannedCall], turn: Turn, in_doubt: frozenset[str]) -> list[ToolFinished]:
    """Return the results that were missing when the turn was closed: late results, and results for stopped calls.

    A call in doubt may have been made before, even if it has not started again.
    """
    ended = turn.results()
    return [
        ended.get(planned.index)
        or stopped(
            planned,
            began=planned.index in turn.begun or planned.call_id in in_doubt,
            still_running=planned.index in turn.still_running,
        )
        for planned in calls
    ]


def _describe(name: str, error: BaseException) -> tuple[str, dict[str, Any]]:
    """Return the error text for the model and the metadata for people."""
    if not isinstance(error, ToolServiceError):
        _log.warning("tool %s failed", name, exc_info=error)
        return describe_failure(name, error), {"traceback": error_traceback(error)}
    metadata: dict[str, Any] = dict(IN_DOUBT) if error.may_be_done else {}
    if isinstance(error, ToolTimeoutError) and error.still_running:
        metadata |= STILL_RUNNING
    return error_text(error) or error_name(error), metadata


def stopped(planned: PlannedCall, *, began: bool, still_running: bool = False) -> ToolFinished:
    """Return the result of a call that was stopped with its run. If the call had started, it may have taken effect."""
    if not began:
        return not_run(planned, CANCELLED_TEXT, CANCELLED)
    text = f"{STOPPED_TEXT} It could not be stopped and may still be running." if still_running else STOPPED_TEXT
    return replace(not_run(planned, text, STOPPED), metadata={**(STILL_RUNNING if still_running else {}), **IN_DOUBT})


async def _refusal(context: ToolContext, planned: PlannedCall) -> ToolFinished | None:
    """Return the result of a call that the run must not make any more, or None if the run may make it."""
    reason = "" if context.run is None else await context.run.before_call()
    return not_run(planned, reason, NOT_HELD) if reason else None


def not_run(planned: PlannedCall, text: str, error: str) -> ToolFinished:
    """Return the result of a call that was not made. `text` tells the model why."""
    message = Message(FUNCTION, writable(text), name=planned.call.name, extra={"function_id": planned.call_id})
    return ToolFinished(planned.index, planned.call_id, failed(message, error), 0.0, error)


def failed(message: Message, error: str) -> Message:
    """Mark a result as a failure, for programs that read the history."""
    return message.replace(extra={**(message.extra or {}), "error": error})


async def _decide(
    planned: PlannedCall,
    arguments: Mapping[str, object],
    context: ToolContext,
    approve: Approve | None,
    answer: Decision | None = None,
) -> ApprovalDecided:
    """Ask for approval of a call unless there is already an answer. The user sees the exact arguments.

    Raises:
        ConfigError: The function returned something other than a decision.
    """
    if answer is not None:
        return _as_event(planned, arguments, "resume", answer)
    decision, _ = await _put_question(planned, arguments, context, approve)
    return decision


async def _put_question(
    planned: PlannedCall, arguments: Mapping[str, object], context: ToolContext, asker: Ask | None
) -> tuple[ApprovalDecided, Mapping[str, object] | None]:
    """Ask about a call or on behalf of a running call.

    Return the decision, and the form's values if a form was filled in.

    Raises:
        ConfigError: The function returned something other than a decision, or values for a question without a form.
    """
    if asker is None:
        return _as_event(planned, arguments, "nobody", False, NO_APPROVER_TEXT), None
    call = FunctionCall(planned.call.name, dumps(arguments))
    scoped = replace(context, call_id=planned.call_id)
    try:
        response = await run_isolated(
            partial(call_function, asker, call, scoped), name=f"approval of {call.name}", timeout_s=None
        )
    except Exception as error:  # noqa: BLE001 - any failure counts as a denial
        _log.warning("the approval request for %s failed", call.name, exc_info=True)
        reason = summarize(error.error if isinstance(error, EscapedError) else error)
        return _as_event(
            planned, arguments, "approve", False, f"{DENIED_TEXT} (The approval request failed: {reason})"
        ), None
    if isinstance(response, Mapping) and context.fills_forms and "form" in arguments:
        return _as_event(planned, arguments, "approve", True), response
    if not isinstance(response, bool | Denial):
        raise ConfigError(
            f"approve returned {response!r:.60} for a call to {call.name!r}: it must return True to allow the call, "
            "or False or Denial(reason) to deny it"
        )
    return _as_event(planned, arguments, "approve", response), None


def _as_event(
    planned: PlannedCall, arguments: Mapping[str, object], by: str, decision: Decision, reason: str = DENIED_TEXT
) -> ApprovalDecided:
    """Convert a decision to an event. Only True allows the call."""
    call = FunctionCall(planned.call.name, dumps(arguments))
    if decision is True:
        return ApprovalDecided(planned.call_id, call, allowed=True, by=by)
    if isinstance(decision, Denial) and decision.reason.strip():
        reason = DENIED_WITH_REASON.format(reason=decision.reason)
    return ApprovalDecided(planned.call_id, call, allowed=False, by=by, reason=reason)
