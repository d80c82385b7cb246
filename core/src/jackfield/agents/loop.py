"""The loop that asks the model and runs its tools: all the waiting, none of the deciding."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from jackfield.agents.decide import Finish, Pause, RunTools, decide, with_calls_closed
from jackfield.agents.limits import Spent
from jackfield.agents.run import Event, Run
from jackfield.errors import ModelServiceError
from jackfield.events import ApprovalNeeded, RunFinished, StopReason, ToolFinished, TurnFinished, TurnStarted
from jackfield.jsontext import is_json
from jackfield.messages import ASSISTANT, FUNCTION, FunctionCall, Message
from jackfield.models.base import BaseChatModel
from jackfield.models.fold import Fold
from jackfield.request import FunctionSchema
from jackfield.streams import Interrupted, closing
from jackfield.tools.base import ToolContext
from jackfield.tools.executor import PlannedCall, ToolExecutor

Approve = Callable[[FunctionCall, ToolContext], bool | Awaitable[bool]]
# Half of the arguments, mended, would be other arguments: half a path, half a query.
CUT_OFF_TEXT = (
    "The reply reached its length limit inside of this call, so nothing was done. Call again with less at once."
)
_CUT_OFF = ("length", "max_tokens", "content_filter")
REFUSED_TEXT = "The user did not allow this call. Do without it, or say what it is needed for."


@dataclass(kw_only=True)
class Loop:
    """Runs one agent's turns.

    Attributes:
        model: Whom to ask.
        functions: What the model may call.
        executor: What runs the calls.
        guarded_tools: Names of tools whose calls need a yes.
        approve: Gives it; None lets the run pause.
        name: The agent's, on every message of the model.
    """

    model: BaseChatModel
    functions: Sequence[FunctionSchema]
    executor: ToolExecutor
    guarded_tools: frozenset[str] = frozenset()
    approve: Approve | None = None
    name: str | None = None

    async def events(self, run: Run) -> AsyncIterator[Event]:
        """The events of the run from its first turn to `RunFinished`."""
        state = _State(list(run.messages))
        waits_for_yes = self.guarded_tools if self.approve is None else frozenset[str]()
        while True:
            action = decide(state.history, state.spent, run.limits, needs_approval=waits_for_yes)
            if isinstance(action, Pause):
                yield ApprovalNeeded(action.calls)
                yield state.finished(run, "approval_needed")
                return
            if isinstance(action, Finish):
                yield state.finished(run, action.reason)
                return
            step = self._call_tools(run, state, action.calls) if isinstance(action, RunTools) else self._ask(run, state)
            try:
                async with closing(step):
                    async for event in step:
                        yield event
            except Interrupted:
                state.history = with_calls_closed(state.history)
                yield state.finished(run, "cancelled" if run.cancel and run.cancel.cancelled else "time_limit")
                return

    async def _ask(self, run: Run, state: _State) -> AsyncIterator[Event]:
        answer = Fold(self.model.backend, name=self.name)
        yield TurnStarted(state.spent.turns + 1)
        try:
            # The language is the conversation's: documents that an agent adds must not change it.
            asked = self.model.astream(state.history, self.functions, config=run.config, lang=run.lang)
            async with closing(run.guarded(asked)) as events:
                async for event in events:
                    answer.feed(event)
                    yield event
            self.model.check_complete(answer)
        except Interrupted:
            state.history += [message for message in answer.messages() if not message.function_call]
            raise
        except ModelServiceError as error:
            error.partial_text = error.partial_text or answer.text
            raise
        # An empty reply stands in the history as what it is; asking again would burn turns.
        messages = answer.messages() or [Message(ASSISTANT, "", name=self.name)]
        state.history += messages
        state.cut_off = answer.finished is not None and answer.finished.reason in _CUT_OFF
        state.spent = state.spent.plus_turn(answer.usage)
        yield TurnFinished(state.spent.turns, tuple(messages), answer.usage)

    async def _call_tools(self, run: Run, state: _State, calls: Sequence[PlannedCall]) -> AsyncIterator[Event]:
        state.spent = state.spent.plus_calls(len(calls))
        results: dict[int, Message] = {}
        context = replace(run.context, messages=tuple(state.history))
        try:
            async with closing(run.guarded(self._run_calls(calls, context, cut_off=state.cut_off))) as events:
                async for event in events:
                    if isinstance(event, ToolFinished):
                        results[event.index] = event.message
                    yield event
        finally:
            state.history += [results[index] for index in sorted(results)]

    async def _run_calls(
        self, calls: Sequence[PlannedCall], context: ToolContext, *, cut_off: bool
    ) -> AsyncIterator[Event]:
        allowed = []
        for planned in calls:
            if cut_off and not is_json(planned.call.arguments):
                yield _not_run(planned, CUT_OFF_TEXT, "CutOff")
            elif await self._is_allowed(planned, context):
                allowed.append(planned)
            else:
                yield _not_run(planned, REFUSED_TEXT, "NotAllowed")
        async with closing(self.executor.run(allowed, context)) as events:
            async for event in events:
                yield event

    async def _is_allowed(self, planned: PlannedCall, context: ToolContext) -> bool:
        if self.approve is None or planned.call.name not in self.guarded_tools:
            return True
        answer = self.approve(planned.call, context)
        return await answer if inspect.isawaitable(answer) else answer


def _not_run(planned: PlannedCall, text: str, error: str) -> ToolFinished:
    message = Message(FUNCTION, text, name=planned.call.name, extra={"function_id": planned.call_id})
    return ToolFinished(planned.index, planned.call_id, message, 0.0, error)


class _State:
    """What changes while a run goes on."""

    def __init__(self, history: list[Message]) -> None:
        self.history = history
        self.spent = Spent()
        self.cut_off = False  # the last answer ended at its length limit: its last call may be a part of one

    def finished(self, run: Run, reason: StopReason) -> RunFinished:
        return RunFinished(reason, tuple(self.history[len(run.messages) :]), self.spent.usage)
