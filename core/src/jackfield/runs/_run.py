"""Agent runs and their parent runs, and the protocols for the objects that take part in them."""

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
    """Protocol for agents, as seen by runs and other agents. `Agent` implements it."""

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
    """The state of a run before a turn, on which model options can depend.

    Attributes:
        turn: The number of the turn, starting at 1.
        messages: The conversation so far, as the model will receive it, oldest message first.
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
    """An agent to which another agent can hand over the conversation.

    Attributes:
        agent: The agent that takes over, which must have a name and a description.
        history: The part of the conversation that the agent receives: `all`, only the last `question`, or the return
            value of a function. The history in the run's result is always complete.
        tool_name: The name of the hand-off tool. Defaults to `transfer_to_` plus the agent's name.
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
        by_handoff: True if another agent's model handed over to this agent, False if it was this agent's turn anyway.
        start: The agent's progress: its messages, its model's turns and the calls in doubt.
        answers: Decisions about pending calls, keyed by call id. Only the last part has decisions.
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
    """Records the runs of one agent, or the run started at one position in another run."""

    async def load(self, run_id: str | None, messages: Sequence[Message], /) -> Recorded | None:
        """Return the recorded progress of a run, or None for a new run.

        Args:
            run_id: The id of a run in the store, or None for a new run or a nested run of a recorded run.
            messages: The run's initial messages. An interrupted nested run must start with the same messages.
        """

    def record(
        self, events_of: Callable[[Run], AsyncIterator[Event]], run: Run, recorded: Recorded | None, /
    ) -> AsyncIterator[Event]:
        """Yield the events of a run. Each step is written before its events are yielded.

        Args:
            events_of: A function that returns a run's events.
            run: The run. This method sets its `record`.
            recorded: The value that `load` returned for this run.
        """


class Record(Protocol):
    """The record of a run in progress. The run's events are recorded automatically."""

    async def added(self, messages: Sequence[Message]) -> None:
        """Record messages that neither the model nor a tool wrote."""

    async def before_call(self) -> str:
        """Return the reason why calls must not be made, or '' if this process still holds the run's lock."""

    async def finished(self, results: Sequence[ToolFinished]) -> None:
        """Record the results of calls that finished while the run was being stopped."""

    def below(
        self, agent: str, place: str, call_id: str, answers: Mapping[str, Decision], *, resumable: bool
    ) -> Recorder:
        """Return the recorder for a subagent called at a position in the run.

        Args:
            agent: The subagent's name.
            place: The name of the position, which must be unique within the run and must not depend on the question.
            call_id: The id of the tool call that runs the subagent, or '' if the agent kind runs it directly.
            answers: Decisions about calls in this turn, keyed by call id.
            resumable: True if the agent can resume an interrupted run.
        """


@dataclass(slots=True, eq=False)
class Tally:
    """The total usage of all nested runs below a run, shared by all parts of the run."""

    spent: Spent = Spent()  # noqa: RUF009 - frozen, and sums never return it or its usage


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """A run: its request, its initial state and its services. Use `dataclasses.replace` to create a modified copy.

    Attributes:
        id: The run's id.
        agent: The agent that runs.
        messages: The run's initial messages: the caller's messages, plus the agent's system message.
        asked: Only the caller's messages. Another agent would start from these messages.
        lang: The language for text that the agent adds.
        limits: The run's limits.
        config: Model options from the agent and the caller, which override the model's own.
        caller_config: The caller's options, or a function that returns the options for each turn. The caller's options
            also apply to agents that take over the run.
        approve: A function that approves or denies calls that need approval, replacing the agent's own function.
        ask: A function that answers questions raised during calls if there is no approval function. Calls that need
            approval still pause the run.
        rules: The rules of parent agents, which apply in addition to the agent's own rules.
        resume: True to run the pending calls at the end of `messages`.
        answers: Decisions about the pending calls, keyed by call id.
        session: The run's conversation in the agent's store.
        options: Options specific to the agent kind.
        parent: The parent run, which waits for this one, or None if the caller started the run.
        path: The agents that held the conversation earlier in this run.
        start: The run's initial state. A new run's initial state is empty except for the usage so far.
        later_parts: The parts of other agents in an interrupted run, in order. `run_as` takes the next one.
        context: The context for the run's tools.
        toolbox: The tools created for this run, to pass to `make_loop`, or None if the agent has no such tools.
        ends_in_data: True if the answer is structured data rather than text for people.
        around: Processors that wrap the model for this run only.
        cancel: A token with which the caller can stop the run.
        ends_at: The deadline in the event loop's time, or None for no limit.
        record: The record to which the run's steps are written, or None if the run is not recorded.
        tally: The usage of nested runs.
        passes_events: True if the agent's `events` forwards every event of nested runs unchanged.
        observers: The run's observers.
        trace: The original trace of a resumed run as HTTP headers, or an empty mapping if the record has no trace.
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
        """The number of ancestor runs that are waiting for this one."""
        return 0 if self.parent is None else self.parent.depth + 1

    @property
    def rules_below(self) -> CallRules:
        """The rules that apply to calls made by nested agents."""
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
        """The run's stop reason after `guarded` has raised `Interrupted`."""
        return "cancelled" if self.cancel and self.cancel.cancelled else "time_limit"

    def guarded(self, events: AsyncIterator[T]) -> AsyncIterator[T]:
        """Return an iterator that ends at the time limit or a cancellation, or `events` itself if neither can occur."""
        if self.ends_at is None and self.cancel is None:
            return events
        return interruptible(events, ends_at=self.ends_at, cancel=self.cancel)

    def prepare(self, work: Callable[[ReportProgress], Coroutine[Any, Any, T]]) -> Preparation[T]:
        """Wrap work that must be done before a turn. Iterate over the wrapper's `events`, then read its `result`.

        All agent kinds should use this method for work before a turn. `prepare` shows the progress to people and stops
        the work immediately on cancellation or at the time limit.
        """
        return Preparation(work, self.guarded)


@dataclass(slots=True, eq=False)
class _Account:
    """The usage to compare with limits, shared by all positions of one turn.

    Attributes:
        spent: The usage of the run and its nested runs, counted live if the run has a limit that applies to nested
            runs.
        reserved: The number of calls that were counted when they were planned but have not started yet.
        handoff_to: The agent that takes over after the turn's calls, or '' if none does.
    """

    spent: Spent
    reserved: int = 0
    handoff_to: str = ""


class ParentRun(CallingRun):
    """A run that is waiting for its subagents, with their shared limits, their position in the run and their events.

    Attributes:
        run: The waiting run.
        depth: The run's depth, starting at 0 for the top-level agent.
        place: The name of the position at which the run calls the subagent. The name must be the same when the run is
            resumed, so it never contains the question.
        call_id: The id of the tool call that runs the subagent, or '' if the agent kind runs it directly.
        answers: Decisions about calls in this turn and in nested runs, keyed by call id.
        waiting: The pending calls of subagents, keyed by the id of the call that runs the subagent.
        calls: The tool calls of this turn as the model wrote them, keyed by call id.
        direct: A function that receives the events of more deeply nested runs directly, or None if each run in between
            must forward them.
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
        """The usage of the run and its finished nested runs or, if the run has shared limits, all its nested runs."""
        return self._account.spent

    def at(self, place: str) -> ParentRun:
        """Return the same run at another position.

        After an interruption, subagents are identified by their position.
        """
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
        """Choose the agent that takes over after this turn, unless another call has already chosen an agent.

        Returns:
            The agent that another call in the turn has already chosen, or ''.
        """
        earlier, self._account.handoff_to = self._account.handoff_to, self._account.handoff_to or name
        return earlier

    def pass_up(self) -> Callable[[RunEvent], None]:
        """Return the function that receives the events of the subagent called here and of all agents below it.

        If the runs in between forward all events unchanged, the function puts events into the topmost run's queue, so
        an event from any depth takes one step. Events stay in order, because a call starts only after its `ToolStarted`
        has been forwarded.
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
        """See `CallingRun`. If the run is recorded, this process must still hold its lock."""
        record = self.run.record
        return "" if record is None else await record.before_call()

    def recorder(self, agent: str, *, resumable: bool) -> Recorder | None:
        """Return the recorder for a subagent called here, or None if the waiting run is not recorded."""
        record = self.run.record
        if record is None:
            return None
        return record.below(agent, self.place, self.call_id, self.answers, resumable=resumable)

    def reached(self, calls: int) -> StopReason | None:
        """Return the limit, set on this run or a parent, that prevents a nested run from making this many tool calls.

        If `calls` is 0, check whether the nested run may make another model request. Turns do not count, because each
        agent has its own limit on turns.
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
        """Count tool calls that a nested run has decided to make, or return the limit that prevents them.

        Calls are counted before they start, because otherwise concurrent runs could all use the same remaining calls.
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
        """Count a direct child's event in this run and in all parents whose limits need live usage."""
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
        """Add the usage of a finished run's nested runs, unless that usage was counted live."""
        deeper = ended.tally.spent
        if not is_shared(self.run.limits):
            self._account.spent = self._account.spent.plus_below(deeper)
        self.run.tally.spent = self.run.tally.spent.plus_below(deeper)
