"""Track the spending of a scope and its running calls, and decide if another call may start.

Everything here is pure.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation

from jackfield_budget.config import Per

_MOST_PERIODS = 400


@dataclass(frozen=True, slots=True)
class Reservation:
    """Money set aside for a call.

    Attributes:
        id: The call's id among the running calls.
        amount: The call's expected cost.
    """

    id: str
    amount: Decimal


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason a call may not start: the amount already spent and the amount reserved for running calls."""

    spent: Decimal
    reserved: Decimal


@dataclass(slots=True)
class Account:
    """The spending of one scope. Not thread-safe: callers must take turns.

    Attributes:
        spent: The amount spent in each period.
        running: The expected cost of each running call and the time its lease expires, in seconds since 1970.
    """

    spent: dict[str, Decimal] = field(default_factory=dict)
    running: dict[str, tuple[Decimal, float]] = field(default_factory=dict)

    def begin(
        self, wanted: Reservation, *, least: Decimal, limit: Decimal | None, period: str, now: float, lease_s: float
    ) -> Reservation | Refusal:
        """Reserve money for a call if the period has enough left.

        Args:
            wanted: The call and its expected cost.
            least: The minimum cost of the call.
            limit: The spending limit for the period, or None for no limit.
            period: The period's name, from `period_of`.
            now: The current time, in seconds since 1970.
            lease_s: How long the reservation is held. A call that has not settled by then is charged its expected cost.
        """
        self._charge_the_silent(period, now)
        spent = self.spent.get(period, Decimal(0))
        reserved = sum((amount for amount, _ in self.running.values()), Decimal(0))
        if limit is not None and (spent + reserved >= limit or spent + reserved + least > limit):
            return Refusal(spent, reserved)
        self.running[wanted.id] = (wanted.amount, now + lease_s)
        return wanted

    def settle(self, reservation: Reservation, cost: Decimal, *, period: str) -> None:
        """Replace a call's reservation with its actual cost."""
        if self.running.pop(reservation.id, None) is None:
            cost -= reservation.amount  # the lease expired, so the call was charged already
        self._add(period, cost)

    def _charge_the_silent(self, period: str, now: float) -> None:
        """Charge calls whose lease has expired, because most of them were probably answered."""
        for one in [one for one, (_, until) in self.running.items() if until <= now]:
            amount, _ = self.running.pop(one)
            self._add(period, amount)

    def _add(self, period: str, cost: Decimal) -> None:
        self.spent[period] = self.spent.get(period, Decimal(0)) + cost
        while len(self.spent) > _MOST_PERIODS:
            del self.spent[min(self.spent)]

    # --- in a file ---

    def to_json(self) -> str:
        """Serialize the account for `from_json`. Amounts are written as strings to stay exact."""
        spent = {period: str(amount) for period, amount in self.spent.items()}
        running = {one: [str(amount), until] for one, (amount, until) in self.running.items()}
        return json.dumps({"spent": spent, "running": running})

    @classmethod
    def from_json(cls, text: str) -> Account:
        """Load an account that `to_json` wrote.

        Raises:
            ValueError: The text is not a serialized account.
        """
        try:
            kept = json.loads(text)
            return cls(
                spent={period: Decimal(amount) for period, amount in kept["spent"].items()},
                running={one: (Decimal(amount), float(until)) for one, (amount, until) in kept["running"].items()},
            )
        except (TypeError, LookupError, AttributeError, InvalidOperation) as error:
            raise ValueError(f"invalid account data ({type(error).__name__})") from error


def period_of(per: Per, now: float) -> str:
    """Return the name of the period that contains a Unix time, such as `2026-11-21`, `2026-11` or `total`."""
    match per:
        case "day":
            return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d")
        case "month":
            return datetime.fromtimestamp(now, UTC).strftime("%Y-%m")
    return per
