"""Model prices, stored as rows with dates and sources, and the cost of answers. All amounts are decimals."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Self

from pydantic import Field, model_validator

from jackfield.config import Config
from jackfield.events import ModelEvent, UsageReported
from jackfield.messages import Usage
from jackfield.streams import closing

MILLION = Decimal(1_000_000)


class Rates(Config):
    """Prices per million tokens."""

    input: Decimal = Field(ge=0, description="Price of the prompt")
    cached_input: Decimal | None = Field(
        default=None, ge=0, description="Price of prompt tokens read from a cache; defaults to `input`"
    )
    cache_write: Decimal | None = Field(
        default=None, ge=0, description="Price of prompt tokens written to a cache; defaults to `input`"
    )
    long_cache_write: Decimal | None = Field(
        default=None,
        ge=0,
        description="Price of cache writes with the longer of the two lifetimes; defaults to `cache_write`",
    )
    output: Decimal = Field(ge=0, description="Price of the response")
    reasoning: Decimal | None = Field(default=None, ge=0, description="Price of reasoning tokens; defaults to `output`")

    def cost(self, usage: Usage) -> Decimal:
        """Return the cost of `usage`. Cache tokens are part of the prompt, and reasoning is part of the answer."""
        cached = min(usage.cached_tokens, usage.prompt_tokens)
        written = min(usage.cache_write_tokens, usage.prompt_tokens - cached)
        long = min(usage.long_cache_write_tokens, written)
        reasoning = min(usage.reasoning_tokens, usage.completion_tokens)
        write_rate = self.input if self.cache_write is None else self.cache_write
        total = (
            (usage.prompt_tokens - cached - written) * self.input
            + cached * (self.input if self.cached_input is None else self.cached_input)
            + (written - long) * write_rate
            + long * (write_rate if self.long_cache_write is None else self.long_cache_write)
            + (usage.completion_tokens - reasoning) * self.output
            + reasoning * (self.output if self.reasoning is None else self.reasoning)
        )
        return total / MILLION

    @property
    def least_input(self) -> Decimal:
        """The lowest possible price per million prompt tokens."""
        rates = (self.input, self.cached_input, self.cache_write, self.long_cache_write)
        return min(rate for rate in rates if rate is not None)


class Tier(Rates):
    """Prices for calls whose prompt has at most `up_to` tokens."""

    up_to: int | None = Field(
        default=None, ge=1, description="Longest prompt in this tier, in tokens; no limit if unset"
    )


class PriceRow(Config):
    """A model's prices at certain servers, starting on a given day."""

    models: tuple[str, ...] = Field(min_length=1, description="Model names; `*` and `?` are wildcards")
    servers: tuple[str, ...] = Field(
        default=("*",), description="Backends, or backend@host, as in requests; `*` and `?` are wildcards"
    )
    currency: str = Field(pattern="^[A-Z]{3}$", description="ISO 4217: USD, CNY, EUR")
    valid_from: date = Field(description="First day on which the price applies, UTC")
    valid_until: date | None = Field(
        default=None, description="Last day on which the price applies, UTC; no end if unset"
    )
    input: Decimal | None = Field(default=None, ge=0, description="As in `Rates`; only without tiers")
    cached_input: Decimal | None = Field(default=None, ge=0, description="As in `Rates`; only without tiers")
    cache_write: Decimal | None = Field(default=None, ge=0, description="As in `Rates`; only without tiers")
    long_cache_write: Decimal | None = Field(default=None, ge=0, description="As in `Rates`; only without tiers")
    output: Decimal | None = Field(default=None, ge=0, description="As in `Rates`; only without tiers")
    reasoning: Decimal | None = Field(default=None, ge=0, description="As in `Rates`; only without tiers")
    tiers: tuple[Tier, ...] = Field(default=(), description="Prices by prompt length, shortest first")
    source: str = Field(default="", description="URL of the page that publishes the price")

    @model_validator(mode="after")
    def _has_prices_once(self) -> Self:
        if self.tiers:
            limits = [float("inf") if tier.up_to is None else tier.up_to for tier in self.tiers]
            if limits != sorted(set(limits)):
                raise ValueError(
                    "tiers must be ordered by prompt length, shortest first, each with a different `up_to`"
                )
            if any(getattr(self, name) is not None for name in Rates.model_fields):
                raise ValueError("specify prices either in the row or in its tiers, not in both")
        elif self.input is None or self.output is None:
            raise ValueError("a row needs `input` and `output`, or `tiers`")
        return self

    def rates(self, prompt_tokens: int) -> Rates | None:
        """Return the prices for a prompt of this length, or None if it exceeds the last tier."""
        if not self.tiers:
            return Rates(**{name: value for name in Rates.model_fields if (value := getattr(self, name)) is not None})
        for tier in self.tiers:
            if tier.up_to is None or prompt_tokens <= tier.up_to:
                return tier
        return None

    def cost(self, usage: Usage) -> Decimal | None:
        """Return the cost of one call, or None if its prompt exceeds the last tier."""
        rates = self.rates(usage.prompt_tokens)
        return None if rates is None else rates.cost(usage)

    def is_valid_on(self, day: date) -> bool:
        """Return True if the row applies to calls on this day."""
        return self.valid_from <= day and (self.valid_until is None or day <= self.valid_until)

    def closeness(self, model: str, server: str) -> int | None:
        """Return how specifically the row matches a model (higher is more specific), or None if it does not match."""
        if not any(fnmatchcase(server, pattern) for pattern in self.servers):
            return None
        fits = [_closeness(pattern) for pattern in self.models if fnmatchcase(model, pattern)]
        return max(fits, default=None)


def find_price(rows: Iterable[PriceRow], day: date) -> PriceRow | None:
    """Return the row that is valid on a day, or None. If several rows are valid, the most recent row wins."""
    return max((row for row in rows if row.is_valid_on(day)), key=lambda row: row.valid_from, default=None)


def today() -> date:
    """Return the current date in UTC, which determines prices."""
    return datetime.now(UTC).date()


def add_cost(usage: Usage, rows: Iterable[PriceRow], day: date) -> Usage:
    """Add the cost to a call's usage. If the price is unknown or the server reported the cost, change nothing."""
    if usage.cost is not None:
        return usage
    row = find_price(rows, day)
    cost = None if row is None else row.cost(usage)
    if row is None or cost is None:
        return usage
    return usage.model_copy(update={"cost": cost, "currency": row.currency})


async def add_costs(
    events: AsyncIterator[ModelEvent], rows: Iterable[PriceRow], *, day: Callable[[], date] = today
) -> AsyncIterator[ModelEvent]:
    """Yield the events of an answer, adding costs to the reported usage."""
    async with closing(events):
        async for event in events:
            if isinstance(event, UsageReported):
                yield UsageReported(add_cost(event.usage, rows, day()))
            else:
                yield event


def _closeness(pattern: str) -> int:
    """Rank a match. Exact names rank above all patterns, and longer patterns rank above shorter ones."""
    wild = sum(letter in "*?[" for letter in pattern)
    return 10_000 if not wild else len(pattern) - wild
