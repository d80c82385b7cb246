"""The limits of a run, and when they are reached."""

from __future__ import annotations

from decimal import Decimal

from jackfield._runstate import Spent
from jackfield.config import Limits
from jackfield.errors import ConfigError
from jackfield.events import StopReason
from jackfield.messages import Usage


def is_shared(limits: Limits) -> bool:
    """Return True if the limits also hold for nested runs, which need live figures; turns and time need none."""
    return limits.tool_calls is not None or limits.tokens is not None or limits.cost is not None


def limit_reached(spent: Spent, limits: Limits) -> StopReason | None:
    """Return the limit that forbids another request to a model; None if all allow it.

    Raises:
        ConfigError: There is a cost limit, but the price of the usage is unknown or in another currency.
    """
    if limits.turns is not None and spent.turns >= limits.turns:
        return "turn_limit"
    return budget_reached(spent, limits)


def budget_reached(spent: Spent, limits: Limits) -> StopReason | None:
    """Return the limit of tokens or cost that forbids another request to any model of a tree of agents, or None.

    Raises:
        ConfigError: As for `limit_reached`.
    """
    if limits.tokens is not None and spent.usage.total_tokens >= limits.tokens:
        return "token_limit"
    # A run that only asks others has no turns of its own, but has spent something.
    if limits.cost is None or (not spent.turns and spent.usage == Usage()):
        return None
    return "cost_limit" if _cost(spent.usage, limits) >= limits.cost else None


def _cost(usage: Usage, limits: Limits) -> Decimal:
    if usage.cost is None or usage.currency != limits.currency:
        raise ConfigError(
            f"a cost limit of {limits.cost} {limits.currency} is set, but the price of this model in "
            f"{limits.currency} is not known: limit tokens instead"
        )
    return usage.cost
