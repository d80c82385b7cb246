"""The loop that asks the model and runs its tools: all the waiting, none of the deciding."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from jackfield.agents._decide import Action, Finish, Pause, RunTools, decide, open_calls, with_calls_closed
from jackfield.agents._limits import Spent
from jackfield.agents._run import Event, Run, RunAbove, Waiting
from jackfield.errors import ModelServiceError
from jackfield.events import (
    ApprovalNeeded,
    FunctionCallDelta,
    RunFinished,
    StopReason,
    StreamReset,
    ToolFinished,
    TurnFinished,
    TurnStarted,
)
from jackfield.jsontext import is_json
from jackfield.messages import FUNCTION, Message
from jackfield.models._base import BaseChatModel
from jackfield.models._fold import Fold
from jackfield.processors import Processor
from jackfield.request import FunctionSchema
from jackfield.streams import Interrupted, closing
from jackfield.tools._executor import CUT_OFF, Approve, PlannedCall, ToolExecutor, not_run
from jackfield.tools._toolbox import Toolbox

T = TypeVar("T")

# Half of the arguments, mended, would be other arguments: half a path, half a query.
CUT_OFF_TEXT = (
    "The reply was cut off inside of this call (at its length limit?): nothing was done. Call again with less at once."
)
_OF_CALLS = (FunctionCallDelta, StreamReset)  # a union would be made for each event


@dataclass(kw_only=True)
class Loop:
    """Runs one agent's turns.

    Attributes:
        model: Whom to ask.
        functions: What the model may call.
        toolbox: The tools of the run that it may call, too; they are made at its start.
        executor: What runs the calls.
        approve: Asked before calls of tools that need approval; None lets the run pause at them.
        name: The agent's, on every message of the model.
        around: What acts around the model, outside of its own processors.
    """

    model: BaseChatModel
    functions: Sequence[FunctionSchema]
    executor: ToolExecutor
    toolbox: Toolbox | None = None
    approve: Approve | None = None
    name: str | None = None
    around: tuple[Processor, ...] = ()

    async def events(self, run: Run) -> AsyncIterator[Event]:
        """The events of the run from its first turn to `RunFinished`."""
        state = _State([*run.messages, *run.done], run.spent)
        while True:
            try:
                action = await self._next_action(run, state)
                if isinstance(action, Pause):
                    waiting = action.calls
                    ids = tuple(p.call_id for p in waiting)
                    in_doubt = tuple(call_id for call_id in ids if call_id in state.in_doubt)
                    yield ApprovalNeeded(tuple(p.call for p in waiting), ids, in_doubt)
                    yield state.finished(run, "approval_needed")
                    return
                if isinstance(action, Finish):
                    yield state.finished(run, action.reason)
                    return
                calls = action.calls if isinstance(action, RunTools) else None
                step = self._ask(run, state) if calls is None else self._call_tools(run, state, calls)
                async with closing(step):
                    async for event in step:
                        yield event
                if state.waiting.call_ids:
                    yield state.waiting.needed
                    yield state.finished(run, "approval_needed")
                    return
            except Interrupted:
                state.history = with_calls_closed(state.history)
                yield state.finished(run, run.interruption)
                return

    async def _next_action(self, run: Run, state: _State) -> Action:
        if not state.is_ready:
            await self._prepare(run, state)
        action = self._decided(run, state)
        if isinstance(action, RunTools) and (run.approve or self.approve) is None:
            if self.executor.must_load(action.calls):  # a class may ask for more than its descriptor
                names = await _waited_for(run, self.executor.needing_approval(action.calls))
            else:
                names = await self.executor.needing_approval(action.calls)
            action = self._decided(run, state, names) if names else action
        if isinstance(action, RunTools) and run.above is not None and (reached := run.above.take(len(action.calls))):
            return Finish(reached)
        return action

    async def _prepare(self, run: Run, state: _State) -> None:
        """Make the tools of the run, and find out which calls, perhaps of these, must not be made a second time."""
        state.is_ready = True
        self.executor = self.executor.within(run.rules)
        if self.toolbox is not None:
            made = await _waited_for(run, self.toolbox.tools())
            self.executor = self.executor.with_tools(made)
            self.functions = (*self.functions, *(tool.schema(run.lang) for tool in made.values()))
            self.around = (*self.around, *self.toolbox.processors(run.reported))
        if run.in_doubt:
            under_way = [planned for planned in open_calls(state.history) if planned.call_id in run.in_doubt]
            state.in_doubt = await _waited_for(run, self.executor.not_repeatable(under_way))

    def _decided(self, run: Run, state: _State, names: frozenset[str] = frozenset()) -> Action:
        action = decide(
            state.history,
            state.spent,
            run.limits,
            needs_approval=names,
            resume=run.resume,
            answered=run.answers,
            in_doubt=state.in_doubt,
            turns_before=run.spent.turns,
        )
        if run.above is not None and not isinstance(action, Finish):
            reached = run.above.reached(len(action.calls) if isinstance(action, RunTools) else 0)
            return Finish(reached) if reached else action
        return action

    async def _ask(self, run: Run, state: _State) -> AsyncIterator[Event]:
        answer = Fold(self.model.backend, name=self.name)
        named = _Named()
        yield TurnStarted(state.spent.turns + 1)
        try:
            # The language is the conversation's: documents that an agent adds must not change it.
            asked = self.model.astream(
                state.history, self.functions, config=run.config, lang=run.lang, around=self.around
            )
            async with closing(run.guarded(asked)) as events:
                async for got in events:
                    event = named.with_id(got) if isinstance(got, _OF_CALLS) else got
                    answer.feed(event)
                    yield event
            answer.check_complete(self.model.address)
        except Interrupted:
            state.history += [message for message in answer.messages() if not message.function_call]
            raise
        except ModelServiceError as error:
            error.partial_text = error.partial_text or answer.text
            raise
        # An empty reply stands in the history as what it is; asking again would burn turns.
        messages = answer.messages()
        state.history += messages
        state.spent = state.spent.plus_turn(answer.usage)
        yield TurnFinished(state.spent.turns, tuple(messages), answer.usage)
        if answer.finished is not None and answer.finished.is_cut_off:
            for planned in open_calls(messages):
                if not is_json(planned.call.arguments):
                    result = not_run(planned, CUT_OFF_TEXT, CUT_OFF)
                    state.history.append(result.message)
                    yield result

    async def _call_tools(self, run: Run, state: _State, calls: Sequence[PlannedCall]) -> AsyncIterator[Event]:
        state.spent = state.spent.plus_calls(len(calls))
        results: dict[int, Message] = {}
        answers = {} if state.spent.turns > run.spent.turns else run.answers
        above = RunAbove(run, state.spent, f"{self.name}/{_place(state.history)}", answers, state.waiting)
        context = replace(run.context, messages=tuple(state.history), run=above)
        try:
            in_doubt, state.in_doubt = state.in_doubt, frozenset()
            approve = run.approve or self.approve
            work = self.executor.run(calls, context, approve=approve, answers=answers, in_doubt=in_doubt)
            async with closing(run.guarded(work)) as events:
                async for event in events:
                    if isinstance(event, ToolFinished):
                        if event.call_id in above.waiting.call_ids:
                            continue
                        results[event.index] = event.message
                    yield event
        finally:
            state.spent = above.spent
            state.history += [results[index] for index in sorted(results)]


def _place(history: Sequence[Message]) -> int:
    """Where in a run a turn is, however many of its calls have results already."""
    return sum(message.role != FUNCTION for message in history)


async def _waited_for(run: Run, work: Awaitable[T]) -> T:
    """What work gives, until the time limit of the run or a cancel."""

    async def once() -> AsyncIterator[T]:
        yield await work

    async with closing(run.guarded(once())) as found:
        return await anext(found)


class _Named:
    """Gives a call of an answer an id of its own where it has none, or that of another call."""

    def __init__(self) -> None:
        self._ids: dict[int, str] = {}

    def with_id(self, event: FunctionCallDelta | StreamReset) -> FunctionCallDelta | StreamReset:
        """The event; the first one of a call with its id, and no other with another."""
        if isinstance(event, StreamReset):
            self._ids.clear()
            return event
        own = self._ids.get(event.index)
        if own is None:
            is_free = event.id and event.id not in self._ids.values()
            own = self._ids[event.index] = event.id if is_free else f"call_{uuid.uuid4().hex[:24]}"
        elif not event.id:
            return event
        return event if event.id == own else replace(event, id=own)


class _State:
    """What changes while a run goes on."""

    def __init__(self, history: list[Message], spent: Spent) -> None:
        self.history = history
        self.spent = spent
        self.in_doubt: frozenset[str] = frozenset()
        self.waiting = Waiting()
        self.is_ready = False

    def finished(self, run: Run, reason: StopReason) -> RunFinished:
        return RunFinished(reason, tuple(self.history[len(run.messages) :]), self.spent.usage)
