"""Alternate between the model and its tools until the run ends. `_decide` chooses each step."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from jackfield._runstate import RunState
from jackfield.agents._decide import Action, AskModel, Finish, HandOff, Pause, RunTools, decide
from jackfield.agents._files import file_use_of
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
from jackfield.messages import Message
from jackfield.models._base import BaseChatModel
from jackfield.models._fold import Fold
from jackfield.processors import Preprocessor, Processor
from jackfield.request import ChatRequest, FunctionSchema
from jackfield.runs._calls import open_calls
from jackfield.runs._run import Event, Handoff, ParentRun, Run
from jackfield.streams import Interrupted, closing
from jackfield.tools._executor import CANCELLED, CUT_OFF, STOPPED, ToolExecutor, not_run, stopped
from jackfield.tools._plan import NO_ANSWERS, CallPlan, PlannedCall
from jackfield.tools._rules import Approve
from jackfield.tools._toolbox import Toolbox

T = TypeVar("T")

# Repairing half of the arguments would produce different ones, such as half a path or half a query.
CUT_OFF_TEXT = (
    "The response was truncated inside this call (length limit?): nothing was done. Call again with shorter arguments."
)
_OF_CALLS = (FunctionCallDelta, StreamReset)  # `A | B` would be evaluated for each event


@dataclass(slots=True, kw_only=True, eq=False)
class _LoopState(RunState):
    """A run's state, plus data that the loop needs between steps.

    Attributes:
        doubtful: The ids of calls that may have been made before.
        pauses: Approvals that nested agents are waiting for, keyed by the id of the call that runs the agent.
        is_ready: True once the run's tools have been created.
        reason: The reason why the run ends now, or None if it continues.
    """

    doubtful: frozenset[str] = frozenset()
    pauses: dict[str, ApprovalNeeded] = field(default_factory=dict)
    is_ready: bool = False
    reason: StopReason | None = None


class _Prepare(NamedTuple):
    """Create the run's tools, which is always the first step."""

    toolbox: Toolbox


@dataclass(kw_only=True, eq=False)
class Loop:
    """The turns of one agent: model requests and tool calls until the run ends.

    Attributes:
        model: The model.
        functions: Schemas of the tools that the model can call.
        toolbox: Additional tools, created when the run starts.
        executor: The executor that runs the calls.
        approve: A function that approves or denies calls that need approval. If None, the run pauses at these calls.
        name: The agent's name, added to each message from the model.
        around: Processors that wrap the model's own processors.
        reads_files: True if the agent kind reads attached files itself. The model then receives only the file names.
    """

    model: BaseChatModel
    functions: Sequence[FunctionSchema]
    executor: ToolExecutor
    toolbox: Toolbox | None = None
    approve: Approve | None = None
    name: str | None = None
    around: tuple[Processor, ...] = ()
    reads_files: bool = False

    async def events(self, run: Run) -> AsyncIterator[Event]:
        """Yield the run's events from its first turn to `RunFinished`, including events after a hand-off."""
        start = run.start
        state = _LoopState(
            history=[*run.messages, *start.made],
            start=len(run.messages),
            spent=start.spent,
            handoff_to=start.handoff_to,
        )
        handoff = _handoff_at_start(run)
        while handoff is None and state.reason is None:
            try:
                action = await self._next_action(run, state)
                if isinstance(action, Finish):
                    state.reason = action.reason
                elif isinstance(action, HandOff):
                    handoff = _handoff_to(run, action.to)
                else:
                    async with closing(self._step(run, state, action)) as events:
                        async for event in events:
                            yield event
            except Interrupted:
                for result in _stopped_calls(run, state):
                    state.apply(result)
                    yield result
                state.settle()
                state.reason = run.interruption
        if state.reason is not None:
            yield RunFinished(state.reason, state.made, state.spent.usage)
        elif handoff is not None:
            async with closing(_hand_over(run, state, handoff)) as events:
                async for event in events:
                    yield event

    def _step(
        self, run: Run, state: _LoopState, action: _Prepare | AskModel | CallPlan | Pause
    ) -> AsyncIterator[Event]:
        match action:
            case _Prepare(toolbox):
                return self._make_tools(run, toolbox)
            case AskModel():
                return self._ask(run, state)
            case CallPlan():
                return self._call_tools(run, state, action)
            case Pause(calls):
                return _paused(state, calls)

    async def _next_action(
        self, run: Run, state: _LoopState
    ) -> _Prepare | AskModel | CallPlan | Pause | HandOff | Finish:
        if not state.is_ready:
            state.is_ready = True
            self.executor = self.executor.within(run.rules)
            if self.toolbox is not None:
                return _Prepare(self.toolbox)
        action = self._decided(run, state)
        if isinstance(action, AskModel) and self.toolbox is not None and self.toolbox.has_changed():
            await self._update_tools(run, self.toolbox)
        return await self._plan(run, state, action.calls) if isinstance(action, RunTools) else action

    async def _plan(self, run: Run, state: _LoopState, calls: Sequence[PlannedCall]) -> CallPlan | Pause | Finish:
        """Plan the calls. Pause the run if a call awaits approval, and end the run if a parent's limit is reached."""
        is_fresh = state.spent.turns > run.start.spent.turns  # earlier decisions do not concern these calls
        work = self.executor.plan(
            calls,
            approve=run.approve or self.approve,
            answers=NO_ANSWERS if is_fresh else run.answers,
            in_doubt=frozenset() if is_fresh else run.start.in_doubt,
        )
        plan = await _waited_for(run, work)
        reached: StopReason | None = None
        if run.parent is not None:
            reached = run.parent.reached(0) if plan.waiting else run.parent.take(len(calls))
        if reached is not None:
            return Finish(reached)
        state.doubtful = plan.doubtful
        return Pause(plan.waiting) if plan.waiting else plan

    async def _make_tools(self, run: Run, toolbox: Toolbox) -> AsyncIterator[Event]:
        """Create the run's tools, and yield progress events."""
        preparation = run.prepare(toolbox.tools)
        async with closing(preparation.events()) as progress:
            async for event in progress:
                yield event
        made = preparation.result
        self.executor = self.executor.with_tools(made)
        self.functions = (*self.functions, *(tool.schema(run.lang) for tool in made.values()))
        self.around = (*self.around, *toolbox.processors(run.start.reported))
        if toolbox.has_changed():  # since the agent was created
            await self._update_tools(run, toolbox)

    async def _update_tools(self, run: Run, toolbox: Toolbox) -> None:
        """Replace the tools of toolsets that have changed. Keep the order of other tools to preserve prompt caches."""
        earlier, tools = await _waited_for(run, toolbox.ask_again())
        gone = earlier - tools.keys()
        self.executor = self.executor.with_tools(tools, without=gone)
        functions = {one["name"]: one for one in self.functions if one["name"] not in gone}
        functions |= {name: tool.schema(run.lang) for name, tool in tools.items()}
        self.functions = tuple(functions.values())

    def _decided(self, run: Run, state: _LoopState) -> Action:
        action = decide(
            state.history,
            state.spent,
            run.limits,
            resume=run.resume,
            turns_before=run.start.spent.turns,
            handoff_to=state.handoff_to,
        )
        if run.parent is not None and not isinstance(action, Finish):
            reached = run.parent.reached(len(action.calls) if isinstance(action, RunTools) else 0)
            return Finish(reached) if reached else action
        return action

    async def _ask(self, run: Run, state: _LoopState) -> AsyncIterator[Event]:
        answer = Fold(self.model.backend, name=self.name)
        named, started = _Named(), time.perf_counter()
        yield TurnStarted(state.spent.turns + 1)
        try:
            # Use the conversation's language, which documents added by an agent must not change.
            config = run.config_of_turn(state.history, state.spent)
            tools = self.executor.tools.values()
            asked = self.model.astream(
                state.history,
                self.functions,
                config=config,
                lang=run.lang,
                around=self.around + run.around + _shown_to(run),
                files=file_use_of(tools, reads_files=self.reads_files) if run.context.files else "read",
            )
            with answer.reading_from(self.model.address):
                async with closing(run.guarded(asked)) as events:
                    async for got in events:
                        event = named.with_id(got) if isinstance(got, _OF_CALLS) else got
                        answer.feed(event)
                        yield event
        except Interrupted:
            state.history += [message for message in answer.messages() if not message.function_call]
            # Some servers report prompt tokens before the answer. They are billed even if the turn never ends.
            state.spent = replace(state.spent, usage=state.spent.usage + answer.usage)
            raise
        # An empty reply stays in the history. Asking again would waste turns.
        messages = tuple(answer.messages())
        finished = TurnFinished(state.spent.turns + 1, messages, answer.usage, time.perf_counter() - started)
        state.apply(finished)
        yield finished
        for result in _cut_off(answer, messages):
            state.apply(result)
            yield result
        state.settle()

    async def _call_tools(self, run: Run, state: _LoopState, plan: CallPlan) -> AsyncIterator[Event]:
        state.spent = state.spent.plus_calls(len(plan.calls))
        parent = ParentRun(
            run,
            state.spent,
            answers=plan.answers,
            waiting=state.pauses,
            calls={one.planned.call_id: one.planned.call for one in plan.calls},
            handoff_to=state.handoff_to,
        )
        context = replace(run.context, messages=tuple(state.history), run=parent)
        left: list[ToolFinished] = []
        try:
            async with closing(run.guarded(self.executor.run(plan, context, left=left))) as events:
                async for event in events:
                    if isinstance(event, ToolFinished):
                        if event.call_id in state.pauses:
                            continue
                        state.apply(event)
                    yield event
        except Interrupted:
            for result in left:
                state.apply(result)
                yield result
            raise
        except BaseException:
            if run.record is not None:  # record the finished calls, although the reader has left
                await run.record.finished([one for one in left if one.error not in (STOPPED, CANCELLED)])
            raise
        finally:
            state.spent = parent.spent
            state.settle()
        if state.pauses:
            state.reason = "approval_needed"
            yield _joined(state.pauses.values())


def _handoff_at_start(run: Run) -> Handoff | None:
    """Return the hand-off with which an interrupted or paused run continues, or None if there is none."""
    if run.agent is None or not (run.agent.handoffs or run.start.handoff_to or run.later_parts):
        return None
    from jackfield.agents._handoffs import handoff_at_start

    return handoff_at_start(run.agent, run)


def _handoff_to(run: Run, name: str) -> Handoff | None:
    from jackfield.agents._handoffs import find_handoff

    return None if run.agent is None else find_handoff(run.agent, name)


def _hand_over(run: Run, state: RunState, handoff: Handoff) -> AsyncIterator[Event]:
    from jackfield.agents._handoffs import hand_over

    return hand_over(run, state, handoff)


async def _paused(state: _LoopState, calls: Sequence[PlannedCall]) -> AsyncIterator[Event]:
    state.reason = "approval_needed"
    ids = tuple(planned.call_id for planned in calls)
    in_doubt = tuple(call_id for call_id in ids if call_id in state.doubtful)
    yield ApprovalNeeded(tuple(planned.call for planned in calls), ids, in_doubt)


def _joined(waits: Iterable[ApprovalNeeded]) -> ApprovalNeeded:
    parts = zip(*((one.calls, one.call_ids, one.in_doubt, one.agents) for one in waits), strict=True)
    return ApprovalNeeded(*(tuple(chain.from_iterable(part)) for part in parts))


def _cut_off(answer: Fold, messages: Sequence[Message]) -> Iterator[ToolFinished]:
    """Yield error results for calls whose arguments were cut off."""
    is_cut_off = answer.finished is not None and answer.finished.is_cut_off
    for planned in open_calls(messages) if is_cut_off else ():
        if not is_json(planned.call.arguments):
            yield not_run(planned, CUT_OFF_TEXT, CUT_OFF)


def _stopped_calls(run: Run, state: _LoopState) -> list[ToolFinished]:
    """Return results for calls that are pending when a run stops.

    Calls that may have started have an unknown outcome.
    """
    before = run.start.in_doubt if state.spent.turns == run.start.spent.turns else frozenset()
    return [
        stopped(planned, began=planned.call_id in before or planned.call_id in state.pauses)
        for planned in open_calls(state.history)
    ]


async def _waited_for(run: Run, work: Coroutine[Any, Any, T]) -> T:
    """Await `work`, or raise `Interrupted` if the run is cancelled or reaches its time limit."""
    if run.ends_at is None and run.cancel is None:
        return await work

    async def once() -> AsyncIterator[T]:
        yield await work

    try:
        async with closing(run.guarded(once())) as found:
            return await anext(found)
    finally:
        work.close()  # after a cancellation, the coroutine may never have started


def _shown_to(run: Run) -> tuple[Processor, ...]:
    return (_ShowRequest(run),) if run.observers.see_requests else ()


class _ShowRequest(Preprocessor):
    """Preprocessor that shows each request to the run's observers before the model's processors change it."""

    name = "show_request"

    def __init__(self, run: Run) -> None:
        self._run = run

    def prepare(self, request: ChatRequest) -> ChatRequest:
        self._run.observers.show_request(self._run.id, request)
        return request


class _Named:
    """Ensures that every call in an answer has a unique id."""

    def __init__(self) -> None:
        self._ids: dict[int, str] = {}

    def with_id(self, event: FunctionCallDelta | StreamReset) -> FunctionCallDelta | StreamReset:
        """Return the event with its call's id.

        The first event of a call sets the id, and later events never change it.
        """
        if isinstance(event, StreamReset):
            self._ids.clear()
            return event
        own, given = self._ids.get(event.index, ""), event.id
        if not own:
            is_free = given and given not in self._ids.values()
            self._ids[event.index] = own = given if is_free else f"call_{uuid.uuid4().hex[:24]}"
        elif not given:
            return event
        return event if given == own else replace(event, id=own)
