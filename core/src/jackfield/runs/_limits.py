"""Check whether a run has reached its limits."""

from __future__ import annotations

from decimal import Decimal

from jackfield._runstate import Spent
from jackfield.config import Limits
from jackfield.errors import ConfigError
from jackfield.events import StopReason
from jackfield.messages import Usage


def is_shared(limits: Limits) -> bool:
    """Return True if any limit other than turns and time is set. The usage of nested runs must then be counted live."""
    return limits.tool_calls is not None or limits.tokens is not None or limits.cost is not None


def limit_reached(spent: Spent, limits: Limits) -> StopReason | None:
    """Return the limit that prevents another model request, or None.

    Raises:
        ConfigError: A cost limit is set, but the price of the usage is unknown or in another currency.
    """
    if limits.turns is not None and spent.turns >= limits.turns:
        return "turn_limit"
    return budget_reached(spent, limits)


def budget_reached(spent: Spent, limits: Limits) -> StopReason | None:
    """Return the token or cost limit that prevents another request in a tree of agents, or None.

    Raises:
        ConfigError: As for `limit_reached`.
    """
    if limits.tokens is not None and spent.usage.total_tokens >= limits.tokens:
        return "token_limit"
    # A run that only asks subagents has no turns of its own, but has usage.
    if limits.cost is None or (not spent.turns and spent.usage == Usage()):
        return None
    return "cost_limit" if _cost(spent.usage, limits) >= limits.cost else None


def _cost(usage: Usage, limits: Limits) -> Decimal:
    if usage.cost is None or usage.currency != limits.currency:
        raise ConfigError(
            f"a cost limit of {limits.cost} {limits.currency} is set, but the price of this model in "
            f"{limits.currency} is unknown: limit tokens instead"
        )
    return usage.cost
