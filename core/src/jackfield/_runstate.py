"""A run's state as a fold over its events, used by the loop, growing lists, results and resumption."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from jackfield.events import (
    AgentEvent,
    ApprovalNeeded,
    HandedOff,
    ModelEvent,
    PluginEvent,
    ResponseReplaced,
    RunEvent,
    RunFailed,
    RunFinished,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from jackfield.messages import Message, Usage

HANDED_TO = "jackfield/handed_to"
"""Metadata key for the agent's name in the result of a hand-off."""


@dataclass(frozen=True, slots=True)
class Spent:
    """A run's usage so far."""

    turns: int = 0
    tool_calls: int = 0
    usage: Usage = field(default_factory=Usage)

    def plus_turn(self, usage: Usage) -> Spent:
        """Return the usage after one more model answer."""
        return Spent(self.turns + 1, self.tool_calls, self.usage + usage)

    def plus_calls(self, count: int) -> Spent:
        """Return the usage after `count` more tool calls."""
        return Spent(self.turns, self.tool_calls + count, self.usage)

    def plus_below(self, other: Spent) -> Spent:
        """Return the usage plus the usage of nested runs. The turns of nested runs do not count."""
        if not other.tool_calls and not other.usage.total_tokens and other.usage.cost is None:
            return self
        return Spent(self.turns, self.tool_calls + other.tool_calls, self.usage + other.usage)

    def plus(self, event: ModelEvent | AgentEvent | RunEvent) -> Spent:
        """Return the usage after an event of the run or a nested run. The turns of nested runs do not count."""
        match event:
            case TurnFinished():
                return self.plus_turn(event.usage)
            case ToolFinished():
                return self.plus_calls(1)
            case RunEvent(event=TurnFinished(usage=usage)):
                return Spent(self.turns, self.tool_calls, self.usage + usage)
            case RunEvent(event=ToolStarted()):
                return self.plus_calls(1)
        return self


@dataclass(slots=True, kw_only=True, eq=False)
class RunState:
    """The state of a run.

    Pass every event of the run to `apply`. Deltas do not change the state, because they belong to an incomplete answer.

    Attributes:
        history: The run's initial messages and all complete messages that it has produced, oldest first.
        start: The number of initial messages in `history`.
        spent: The model's turns and their usage. Tool calls are counted by the code that plans them.
        agents: The names of the agents that have held the conversation, in order. The last agent holds it now.
        handoff_to: The agent that takes over before the next turn, or '' if none does.
        in_doubt: The ids of calls that were running when the run was interrupted and may have taken effect.
        reported: Events from plugins, recorded before this run was interrupted or during the session's last run.
        waiting: The event that lists the calls at which the run has paused, or None if it has not paused.
        end: The event that ended the run, or None while the run is in progress.
    """

    history: list[Message] = field(default_factory=list)
    start: int = 0
    spent: Spent = field(default_factory=Spent)
    agents: list[str] = field(default_factory=list)
    handoff_to: str = ""
    in_doubt: frozenset[str] = frozenset()
    reported: tuple[PluginEvent, ...] = ()
    waiting: ApprovalNeeded | None = None
    end: RunFinished | RunFailed | None = None
    _results: dict[int, Message] = field(default_factory=dict)
    _next_result: int = 0

    @property
    def made(self) -> tuple[Message, ...]:
        """The complete messages that the run has produced."""
        return tuple(self.history[self.start :])

    def after(self, spent: Spent) -> RunState:
        """Return the same state with `spent` as the run's total usage."""
        return replace(self, spent=spent)

    def apply(self, event: ModelEvent | AgentEvent) -> bool:
        """Add one event of the run, and return True if `history` changed."""
        change = _CHANGES.get(type(event))
        return change is not None and change(self, event)

    def settle(self) -> bool:
        """Append buffered results that are still waiting for an earlier call's result.

        Return True if there were any.
        """
        self._next_result = 0
        if not self._results:
            return False
        self.history += [self._results[index] for index in sorted(self._results)]
        self._results.clear()
        return True

    def replace_made(self, messages: Sequence[Message]) -> None:
        """Replace the messages that the run has produced."""
        self._results.clear()
        self.history[self.start :] = messages

    def _finish_turn(self, event: TurnFinished) -> bool:
        self.settle()
        self.history += event.messages
        self.spent = self.spent.plus_turn(event.usage)
        return True

    def _finish_tool(self, event: ToolFinished) -> bool:
        """Append results in the order of their calls. Results arrive in the order in which the tools finish."""
        if event.metadata:
            self.handoff_to = event.metadata.get(HANDED_TO, self.handoff_to)
        self._results[event.index] = event.message
        before = len(self.history)
        while self._results and (lowest := min(self._results)) <= self._next_result:
            self.history.append(self._results.pop(lowest))
            self._next_result = lowest + 1
        return len(self.history) > before

    def _hand_off(self, event: HandedOff) -> bool:
        self.agents.append(event.to)
        self.handoff_to = ""
        return self.settle()

    def _pause(self, event: ApprovalNeeded) -> bool:
        self.waiting = event
        return self.settle()

    def _replace_response(self, event: ResponseReplaced) -> bool:
        self.replace_made(event.messages)
        return True

    def _finish(self, event: RunFinished) -> bool:
        self.end = event
        self.replace_made(event.messages)
        return True

    def _fail(self, event: RunFailed) -> bool:
        self.end = event
        return self.settle()


# Dispatch by class instead of `match`, so that deltas, which most events are, cost one lookup.
_CHANGES: Mapping[type, Callable[[RunState, Any], bool]] = {
    TurnStarted: lambda state, _: state.settle(),
    TurnFinished: RunState._finish_turn,
    ToolFinished: RunState._finish_tool,
    HandedOff: RunState._hand_off,
    ApprovalNeeded: RunState._pause,
    ResponseReplaced: RunState._replace_response,
    RunFinished: RunState._finish,
    RunFailed: RunState._fail,
}
