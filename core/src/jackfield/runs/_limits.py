"""What a run has used, and when it must end."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import Decimal

from jackfield.config import Limits
from jackfield.errors import ConfigError
from jackfield.events import AgentEvent, ModelEvent, RunEvent, StopReason, ToolFinished, ToolStarted, TurnFinished
from jackfield.messages import Usage


@dataclass(frozen=True, slots=True)
class Spent:
    """What a run has used so far."""

    turns: int = 0
    tool_calls: int = 0
    usage: Usage = field(default_factory=Usage)

    def plus_turn(self, usage: Usage) -> Spent:
        """After one more answer of a model."""
        return replace(self, turns=self.turns + 1, usage=self.usage + usage)

    def plus_calls(self, count: int) -> Spent:
        """After some more tool calls."""
        return replace(self, tool_calls=self.tool_calls + count)

    def plus_below(self, other: Spent) -> Spent:
        """After runs below have used this; their turns are their own."""
        if not other.tool_calls and not other.usage.total_tokens and other.usage.cost is None:
            return self
        return replace(self, tool_calls=self.tool_calls + other.tool_calls, usage=self.usage + other.usage)

    def plus(self, event: ModelEvent | AgentEvent | RunEvent) -> Spent:
        """After an event of the run, or of one below it, whose turns are its own."""
        match event:
            case TurnFinished():
                return self.plus_turn(event.usage)
            case ToolFinished():
                return self.plus_calls(1)
            case RunEvent(event=TurnFinished(usage=usage)):
                return replace(self, usage=self.usage + usage)
            case RunEvent(event=ToolStarted()):
                return self.plus_calls(1)
        return self


def is_shared(limits: Limits) -> bool:
    """True if the limits hold for the runs below a run, too; turns and time do not need their figures."""
    return limits.tool_calls is not None or limits.tokens is not None or limits.cost is not None


def limit_reached(spent: Spent, limits: Limits) -> StopReason | None:
    """The limit that forbids another request to a model, or None.

    Raises:
        ConfigError: There is a cost limit, but the price of what was used is not known, or is in another currency.
    """
    if limits.turns is not None and spent.turns >= limits.turns:
        return "turn_limit"
    return budget_reached(spent, limits)


def budget_reached(spent: Spent, limits: Limits) -> StopReason | None:
    """The limit of tokens or of money that forbids another request, to any model of a tree of agents; or None.

    Raises:
        ConfigError: As for `limit_reached`.
    """
    if limits.tokens is not None and spent.usage.total_tokens >= limits.tokens:
        return "token_limit"
    if limits.cost is None or not spent.turns:
        return None
    return "cost_limit" if _cost(spent.usage, limits) >= limits.cost else None


def _cost(usage: Usage, limits: Limits) -> Decimal:
    if usage.cost is None or usage.currency != limits.currency:
        raise ConfigError(
            f"a cost limit of {limits.cost} {limits.currency} is set, but the price of this model in "
            f"{limits.currency} is not known: limit tokens instead"
        )
    return usage.cost
