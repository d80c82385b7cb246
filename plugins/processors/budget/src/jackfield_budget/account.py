"""Count the cost of a scope and of its running calls, and decide if another call may begin. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation

from jackfield_budget.config import Per

_MOST_PERIODS = 400


@dataclass(frozen=True, slots=True)
class Reservation:
    """A call that may begin.

    Attributes:
        id: The call's id among the running calls.
        amount: The call's expected cost.
    """

    id: str
    amount: Decimal


@dataclass(frozen=True, slots=True)
class Refusal:
    """A call that may not begin: the money spent, and the expected cost of running calls."""

    spent: Decimal
    reserved: Decimal


@dataclass(slots=True)
class Account:
    """The money of a scope. One caller at a time.

    Attributes:
        spent: The amount spent, by period.
        running: The expected costs of calls, and the time until which each may be silent, in seconds since 1970.
    """

    spent: dict[str, Decimal] = field(default_factory=dict)
    running: dict[str, tuple[Decimal, float]] = field(default_factory=dict)

    def begin(
        self, wanted: Reservation, *, least: Decimal, limit: Decimal | None, period: str, now: float, lease_s: float
    ) -> Reservation | Refusal:
        """Let a call begin if the period has enough money left.

        Args:
            wanted: The call and its expected cost.
            least: The least that it can cost.
            limit: The largest amount that may be spent in the period.
            period: The name from `period_of`.
            now: Seconds since 1970.
            lease_s: The time for which it may be silent.
        """
        self._charge_the_silent(period, now)
        spent = self.spent.get(period, Decimal(0))
        reserved = sum((amount for amount, _ in self.running.values()), Decimal(0))
        if limit is not None and (spent + reserved >= limit or spent + reserved + least > limit):
            return Refusal(spent, reserved)
        self.running[wanted.id] = (wanted.amount, now + lease_s)
        return wanted

    def settle(self, reservation: Reservation, cost: Decimal, *, period: str) -> None:
        """Record that a call has ended, and its cost."""
        if self.running.pop(reservation.id, None) is None:
            cost -= reservation.amount  # the call was silent for too long, and has been charged
        self._add(period, cost)

    def _charge_the_silent(self, period: str, now: float) -> None:
        """Calls that have been silent for too long were most likely answered and will be charged."""
        for one in [one for one, (_, until) in self.running.items() if until <= now]:
            amount, _ = self.running.pop(one)
            self._add(period, amount)

    def _add(self, period: str, cost: Decimal) -> None:
        self.spent[period] = self.spent.get(period, Decimal(0)) + cost
        while len(self.spent) > _MOST_PERIODS:
            del self.spent[min(self.spent)]

    # --- in a file ---

    def to_json(self) -> str:
        """Return the account as text, for `from_json`; amounts are texts, so that they stay exact."""
        spent = {period: str(amount) for period, amount in self.spent.items()}
        running = {one: [str(amount), until] for one, (amount, until) in self.running.items()}
        return json.dumps({"spent": spent, "running": running})

    @classmethod
    def from_json(cls, text: str) -> Account:
        """Return the account that `to_json` wrote.

        Raises:
            ValueError: The text is something else.
        """
        try:
            kept = json.loads(text)
            return cls(
                spent={period: Decimal(amount) for period, amount in kept["spent"].items()},
                running={one: (Decimal(amount), float(until)) for one, (amount, until) in kept["running"].items()},
            )
        except (TypeError, LookupError, AttributeError, InvalidOperation) as error:
            raise ValueError(f"this is not an account ({type(error).__name__})") from error


def period_of(per: Per, now: float) -> str:
    """Return the name of the period of a time in seconds since 1970: `2026-11-21`, `2026-11`, `total` …"""
    match per:
        case "day":
            return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d")
        case "month":
            return datetime.fromtimestamp(now, UTC).strftime("%Y-%m")
    return per
