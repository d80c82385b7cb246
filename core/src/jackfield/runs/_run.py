"""Agent runs and their parent runs, and the protocols of everything that takes part in them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

from typing_extensions import TypeVar

from jackfield._resources import RunResources
from jackfield._runstate import HANDED_TO, RunState, Spent
from jackfield.config import GenerateConfig, Lang, Limits
from jackfield.events import (
    AgentEvent,
    ApprovalNeeded,
    ModelEvent,
    RunEvent,
    StopReason,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from jackfield.messages import FunctionCall, Message, Messages, Usage
from jackfield.models._base import BaseChatModel
from jackfield.plugins._protocol import Plugins
from jackfield.processors import Processor
from jackfield.request import GenerateOptions
from jackfield.results import RunResult
from jackfield.runs._limits import budget_reached, is_shared
from jackfield.runs._observers import NO_OBSERVERS, Observers
from jackfield.runs._preparation import Preparation, ReportProgress
from jackfield.streams import CancelToken, interruptible
from jackfield.tools._base import BaseTool, CallingRun, ToolContext
from jackfield.tools._executor import ToolExecutor
from jackfield.tools._rules import NO_RULES, Approve, Ask, CallRules, Decision
from jackfield.tools._toolbox import Toolbox
from jackfield.tools._toolset import Toolset
from jackfield.work import Work, surrounded

T = TypeVar("T")
DepsIn_contra = TypeVar("DepsIn_contra", contravariant=True, default=Any)
Event = ModelEvent | AgentEvent | RunEvent
"""The events that an agent's `events` yields. A `RunEvent` comes from a subagent."""


class AgentLike(Protocol[DepsIn_contra]):
    """Interface of agents, for runs and other agents. `Agent` implements it."""

    @property
    def name(self) -> str | None: ...

    @property
    def description(self) -> str: ...

    @property
    def system_message(self) -> str: ...

    @property
    def llm(self) -> BaseChatModel | None: ...

    @property
    def function_map(self) -> Mapping[str, BaseTool]: ...

    @property
    def toolsets(self) -> Sequence[Toolset]: ...

    @property
    def handoffs(self) -> tuple[Handoff, ...]: ...

    @property
    def approve(self) -> Approve | None: ...

    @property
    def executor(self) -> ToolExecutor: ...

    @property
    def resumable(self) -> bool: ...

    @property
    def answers_by_tool(self) -> bool: ...

    @property
    def host(self) -> Plugins: ...

    def events(self, run: Run, /) -> AsyncIterator[Event]:
        """See `Agent.events`."""

    def make_run(
        self,
        history: tuple[Message, ...],
        lang: Lang,
        *,
        resources: RunResources | None = None,
        cancel: CancelToken | None = None,
        deps: DepsIn_contra | None = None,
        config: RunConfig = None,
    ) -> Run:
        """See `Agent.make_run`."""

    def astream(self, messages: Messages, **options: Any) -> AsyncIterator[RunEvent]:
        """See `Agent.astream`."""

    async def aresume(self, run_id: str, /) -> RunResult[Any]:
        """See `Agent.aresume`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnView:
    """The state of a run before a turn, for model options that depend on it.

    Attributes:
        turn: The number of the turn, starting at 1.
        messages: The conversation so far, as the model is about to receive it, oldest message first.
        tool_calls: The number of tool calls so far.
        usage: The usage so far.
    """

    turn: int
    messages: tuple[Message, ...]
    tool_calls: int
    usage: Usage


RunConfig: TypeAlias = GenerateOptions | Callable[[TurnView], GenerateOptions]
"""Model options for a run, or a function that returns the options for each turn."""

HistoryFilter: TypeAlias = Callable[[tuple[Message, ...]], Sequence[Message]]


@dataclass(frozen=True, slots=True)
class Handoff:
    """An agent that another agent can hand the conversation over to.

    Attributes:
        agent: The agent that takes over. It must have a name and a description.
        history: The part of the conversation that the agent receives: `all`, only the last `question`, or the result of
            a function. The history of the run's result is always complete.
        tool_name: The name of the tool for the hand-off. Defaults to `transfer_to_` plus the agent's name.
    """

    METADATA_KEY: ClassVar[str] = HANDED_TO
    """Metadata key for the agent's name in the result of a hand-off."""

    agent: AgentLike
    history: Literal["all", "question"] | HistoryFilter = "all"
    tool_name: str = ""


def new_run_id() -> str:
    """Return a new, unique run id."""
    return os.urandom(16).hex()


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The part of an interrupted run that belongs to an agent that took over the conversation.

    Attributes:
        agent: The agent's name.
        by_handoff: True if another agent's model handed over to this agent. False if it was the agent's turn.
        start: The agent's progress: its messages, its model's turns, and the calls in doubt.
        answers: Decisions about open calls, by call id. Only the last part has any.
    """

    agent: str
    by_handoff: bool
    start: RunState
    answers: Mapping[str, Decision] = field(default_factory=dict)


class Recorded(Protocol):
    """A recorded run to resume."""

    @property
    def messages(self) -> tuple[Message, ...]:
        """The run's initial messages."""

    def resume(self, run: Run, /) -> Run:
        """Return the run with its recorded id, state and decisions."""


class Recorder(Protocol):
    """Recorder for the runs of one agent, or for the run started at one position of another run."""

    async def load(self, run_id: str | None, messages: Sequence[Message], /) -> Recorded | None:
        """Return the recorded progress of a run, or None for a new run.

        Args:
            run_id: A run in the store. None for a new run, or a nested run of a recorded run.
            messages: The run's initial messages. An interrupted nested run must start with the same messages.
        """

    def record(
        self, events_of: Callable[[Run], AsyncIterator[Event]], run: Run, recorded: Recorded | None, /
    ) -> AsyncIterator[Event]:
        """Yield the events of a run, writing each step before its events are yielded.

        Args:
            events_of: A function that returns a run's events.
            run: The run. Its `record` is set here.
            recorded: The value that `load` returned for this run.
        """


class Record(Protocol):
    """The record of a run in progress. The run's events are recorded automatically."""

    async def added(self, messages: Sequence[Message]) -> None:
        """Record messages written neither by the model nor by a tool."""

    async def before_call(self) -> str:
        """Return the reason why no call may be made, or '' if this process still holds the run."""

    async def finished(self, results: Sequence[ToolFinished]) -> None:
        """Record the results of calls that ended while the run was being stopped."""

    def below(
        self, agent: str, place: str, call_id: str, answers: Mapping[str, Decision], *, resumable: bool
    ) -> Recorder:
        """Return the recorder for a subagent called at a position of the run.

        Args:
            agent: The subagent's name.
            place: The name of the position, unique within the run and independent of the question.
            call_id: The tool call that runs the subagent, or '' if the agent kind itself does.
            answers: Decisions about calls of this turn, by call id.
            resumable: True if the agent can resume an interrupted run.
        """


@dataclass(slots=True, eq=False)
class Tally:
    """The usage counted for all runs below a run, shared by all parts of the run."""

    spent: Spent = Spent()  # noqa: RUF009 - frozen, and sums never return it or its usage


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run: the request, its initial state, and its services. Use `dataclasses.replace` to create a changed copy.

    Attributes:
        id: The run's id.
        agent: The agent that runs.
        messages: The run's initial messages: the caller's, plus the agent's system message.
        asked: Only the caller's messages, from which another agent would start.
        lang: The language of text that the agent adds.
        limits: The run's limits.
        config: Model options from the agent and the caller, which override the model's own.
        caller_config: The caller's options, or a function that returns the options for each turn. They also apply to
            agents that take over the run.
        approve: A function that decides about calls that need approval, replacing the agent's own.
        ask: A function that answers questions raised during calls if there is no approval function. Calls that need
            approval still pause the run.
        rules: The rules of parent agents, which apply in addition to the agent's own.
        resume: True to run the calls without results at the end of `messages`.
        answers: Decisions about these calls, by call id.
        session: The conversation in the agent's store to which the run belongs.
        options: Options specific to the agent kind.
        parent: The run that waits for this one, or None if the caller started it.
        path: The agents that had the conversation earlier in this run.
        start: The run's initial state. For a new run, it is empty except for the usage so far.
        later_parts: The parts of other agents in an interrupted run, in order. `run_as` takes the next one.
        context: The context for the run's tools.
        toolbox: The tools made for this run, for `make_loop`, or None if the agent has no such tools.
        ends_in_data: True if the answer is structured data, not text for people.
        around: Processors that wrap the model for this run only.
        cancel: A token for stopping the run from outside.
        ends_at: The deadline in the event loop's time, or None for no limit.
        record: The record to which the run's steps are written, or None if the run is not recorded.
        tally: The usage of nested runs.
        passes_events: True if the agent's `events` forwards every event of nested runs unchanged.
        observers: The run's observers.
        trace: For a resumed run, its original trace as HTTP headers. Empty if the record has none.
    """

    id: str = field(default_factory=new_run_id)
    agent: AgentLike | None = None
    messages: tuple[Message, ...]
    asked: tuple[Message, ...] = ()
    lang: Lang
    limits: Limits
    config: GenerateConfig | None = None
    caller_config: RunConfig = None
    approve: Approve | None = None
    ask: Ask | None = None
    rules: CallRules = NO_RULES
    resume: bool = False
    answers: Mapping[str, Decision] = field(default_factory=dict)
    session: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    parent: ParentRun | None = None
    path: tuple[AgentLike, ...] = ()

    start: RunState = field(default_factory=RunState)
    later_parts: list[Part] = field(default_factory=list)

    context: ToolContext
    toolbox: Toolbox | None = None
    ends_in_data: bool = False
    around: tuple[Processor, ...] = ()
    cancel: CancelToken | None = None
    ends_at: float | None = None
    record: Record | None = None
    tally: Tally = field(default_factory=Tally)
    passes_events: bool = False
    observers: Observers = NO_OBSERVERS
    trace: Mapping[str, str] = field(default_factory=dict)

    @property
    def depth(self) -> int:
        """The number of ancestor runs that wait for this one."""
        return 0 if self.parent is None else self.parent.depth + 1

    @property
    def rules_below(self) -> CallRules:
        """The rules for calls made by nested agents."""
        return self.agent.executor.rules.within(self.rules) if self.agent else self.rules

    def config_of_turn(self, messages: Sequence[Message], spent: Spent) -> GenerateConfig | None:
        """Return the model options for the turn that follows these messages.

        Raises:
            ConfigError: The caller's function returned an unknown option or an invalid value.
        """
        if not callable(self.caller_config):
            return self.config
        view = TurnView(turn=spent.turns + 1, messages=tuple(messages), tool_calls=spent.tool_calls, usage=spent.usage)
        options = GenerateConfig.parse(self.caller_config(view), what=f"config of turn {view.turn}")
        return (self.config or GenerateConfig()).merged(options)

    @property
    def interruption(self) -> StopReason:
        """The stop reason of the run after `guarded` has raised `Interrupted`."""
        return "cancelled" if self.cancel and self.cancel.cancelled else "time_limit"

    def guarded(self, events: AsyncIterator[T]) -> AsyncIterator[T]:
        """Return the events up to the time limit or a cancellation, or `events` itself if neither can occur."""
        if self.ends_at is None and self.cancel is None:
            return events
        return interruptible(events, ends_at=self.ends_at, cancel=self.cancel)

    def prepare(self, work: Callable[[ReportProgress], Coroutine[Any, Any, T]]) -> Preparation[T]:
        """Wrap work that must be done before a turn. Iterate over its `events`, then read its `result`.

        All agent kinds should use this method for such work, so that people see its progress, and a cancellation or the
        time limit ends it immediately.
        """
        return Preparation(work, self.guarded)


@dataclass(slots=True, eq=False)
class _Account:
    """The usage to compare with limits, shared by all positions of one turn.

    Attributes:
        spent: The usage of the run and the runs below it. Counted live if the run has a limit that those runs share.
        reserved: Calls that were counted when they were decided, but have not begun.
        handoff_to: The agent that takes over after the turn's calls, or '' for none.
    """

    spent: Spent
    reserved: int = 0
    handoff_to: str = ""


class ParentRun(CallingRun):
    """A run that waits for its subagents, with their shared limits, their position in the run, and their events.

    Attributes:
        run: The waiting run.
        depth: The run's depth, which is 0 for the agent that the caller asked.
        place: The name of the position in the run at which the subagent is called. It must be the same when the run is
            resumed, so it never contains the question.
        call_id: The tool call that runs the subagent, or '' if the agent kind itself does.
        answers: Decisions about calls of this turn and below, by call id.
        waiting: The pending calls of subagents, by the id of the call that runs the subagent.
        calls: The tool calls of this turn as the model wrote them, by call id.
        direct: A function that receives the events of deeper runs directly, or None if each run in between must forward
            them.
    """

    __slots__ = ("_account", "_limited", "answers", "call_id", "calls", "depth", "direct", "place", "run", "waiting")

    def __init__(
        self,
        run: Run,
        spent: Spent,
        place: str = "",
        answers: Mapping[str, Decision] | None = None,
        waiting: dict[str, ApprovalNeeded] | None = None,
        *,
        calls: Mapping[str, FunctionCall] | None = None,
        handoff_to: str = "",
    ) -> None:
        super().__init__()
        self.run, self.place, self.call_id, self.depth = run, place, "", run.depth
        self.answers: Mapping[str, Decision] = {} if answers is None else answers
        self.waiting: dict[str, ApprovalNeeded] = {} if waiting is None else waiting
        self.calls: Mapping[str, FunctionCall] = {} if calls is None else calls
        self.direct: Callable[[RunEvent], None] | None = None
        self._account = _Account(spent, handoff_to=handoff_to)
        # The nearest parent whose limits cover the runs below it. Others need no live usage.
        parent = run.parent
        self._limited: ParentRun | None = parent if parent is None or is_shared(parent.run.limits) else parent._limited

    @property
    def spent(self) -> Spent:
        """The usage of the run and of finished runs below it, or of all runs below it if the run is limited."""
        return self._account.spent

    def at(self, place: str) -> ParentRun:
        """Return the same run at another position, by which subagents are recognised after an interruption."""
        other = ParentRun.__new__(ParentRun)
        for name in ParentRun.__slots__:
            setattr(other, name, getattr(self, name))
        other.emit, other.place = self.emit, place
        return other

    def of_call(self, call_id: str) -> ParentRun:
        """Return the same run at one of its tool calls."""
        other = self.at(f"{self.place}/{self.call_id}" if self.call_id else self.place)
        other.call_id = call_id
        return other

    def claim_handoff(self, name: str) -> str:
        """Choose the agent that takes over after this turn, unless another call has already chosen one.

        Returns:
            The agent that another call of the turn has chosen, or ''.
        """
        earlier, self._account.handoff_to = self._account.handoff_to, self._account.handoff_to or name
        return earlier

    def pass_up(self) -> Callable[[RunEvent], None]:
        """Return the function that receives the events of the subagent called here and of all deeper agents.

        If the runs in between forward all events unchanged, the function is the queue of the topmost one, so an event
        from any depth takes one step. A call begins only after its `ToolStarted` has been forwarded, so events stay in
        order.
        """
        outer = self.run.parent if self.run.passes_events else None
        self.direct = self.emit if outer is None or outer.direct is None else outer.direct
        return self.direct

    def surround_call(self, call_id: str, tool: str) -> AbstractContextManager[object]:
        """See `CallingRun`."""
        observers = self.run.observers
        if not observers.surround_work:
            return super().surround_call(call_id, tool)
        return surrounded(Work(kind="tool_call", run_id=self.run.id, call_id=call_id, name=tool), observers)

    def asker(self) -> Ask | None:
        """See `CallingRun`. Nested runs inherit the `ask` function of their parents."""
        if self.run.ask is not None or self.run.parent is None:
            return self.run.ask
        return self.run.parent.asker()

    async def before_call(self) -> str:
        """See `CallingRun`. A recorded run must still be held by this process."""
        record = self.run.record
        return "" if record is None else await record.before_call()

    def recorder(self, agent: str, *, resumable: bool) -> Recorder | None:
        """Return the recorder for a subagent called here, or None if the waiting run is not recorded."""
        record = self.run.record
        if record is None:
            return None
        return record.below(agent, self.place, self.call_id, self.answers, resumable=resumable)

    def reached(self, calls: int) -> StopReason | None:
        """Return the limit of this run or a parent that prevents a nested run from making this many tool calls.

        With 0 calls, check if the nested run may make another model request. Turns do not count, because each agent has
        its own limit.
        """
        parent: ParentRun | None = self
        while parent is not None:
            limits, spent = parent.run.limits, parent._account.spent
            if calls and limits.tool_calls is not None and spent.tool_calls + calls > limits.tool_calls:
                return "tool_call_limit"
            if not calls and (reached := budget_reached(spent, limits)):
                return reached
            parent = parent._limited
        return None

    def take(self, calls: int) -> StopReason | None:
        """Count tool calls that a nested run has decided to make, or return the limit that forbids them.

        Calls are counted before they begin, because concurrent runs could otherwise all use the same remainder.
        """
        if reached := self.reached(calls):
            return reached
        parent: ParentRun | None = self
        while parent is not None:
            parent._account.spent = parent._account.spent.plus_calls(calls)
            parent._account.reserved += calls
            parent = parent._limited
        return None

    def count(self, event: RunEvent) -> None:
        """Count an event of a direct child, here and in all parents whose limits need live usage."""
        is_call = isinstance(event.event, ToolStarted)
        if not (is_call or isinstance(event.event, TurnFinished)):
            return
        self.run.tally.spent = self.run.tally.spent.plus(event)
        parent: ParentRun | None = self
        while parent is not None:
            account = parent._account
            if is_call and account.reserved:
                account.reserved -= 1
            else:
                account.spent = account.spent.plus(event)
            parent = parent._limited

    def settle(self, ended: Run) -> None:
        """Add the usage of the runs below a finished run, unless it was counted live."""
        deeper = ended.tally.spent
        if not is_shared(self.run.limits):
            self._account.spent = self._account.spent.plus_below(deeper)
        self.run.tally.spent = self.run.tally.spent.plus_below(deeper)
