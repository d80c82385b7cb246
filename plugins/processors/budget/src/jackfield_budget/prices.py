"""Price tables: rows for models, servers and days, and what a usage costs at these prices. All amounts are decimals."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Self

from pydantic import Field, model_validator

from jackfield.config import Config
from jackfield.errors import ConfigError
from jackfield.messages import Usage

MILLION = Decimal(1_000_000)


class Rates(Config):
    """Prices of a million tokens."""

    input: Decimal = Field(ge=0, description="The price of the prompt")
    cached_input: Decimal | None = Field(
        default=None, ge=0, description="The price of the cached part of the prompt; `input` if unset"
    )
    output: Decimal = Field(ge=0, description="The price of the answer")
    reasoning: Decimal | None = Field(
        default=None, ge=0, description="The price of the reasoning in the answer; `output` if unset"
    )

    def cost(self, usage: Usage) -> Decimal:
        """Return the cost of a usage; cached and reasoning tokens are parts of the prompt and of the answer."""
        cached = min(usage.cached_tokens, usage.prompt_tokens)
        reasoning = min(usage.reasoning_tokens, usage.completion_tokens)
        total = (
            (usage.prompt_tokens - cached) * self.input
            + cached * (self.input if self.cached_input is None else self.cached_input)
            + (usage.completion_tokens - reasoning) * self.output
            + reasoning * (self.output if self.reasoning is None else self.reasoning)
        )
        return total / MILLION

    @property
    def least_input(self) -> Decimal:
        """The least that a million tokens of a prompt can cost."""
        return self.input if self.cached_input is None else min(self.input, self.cached_input)


class Tier(Rates):
    """Prices of a call whose prompt has at most `up_to` tokens."""

    up_to: int = Field(ge=1, description="The longest prompt, in tokens")


class PriceRow(Config):
    """The prices of a model at some servers, from a day on."""

    models: tuple[str, ...] = Field(min_length=1, description="Names; `*` and `?` stand for any text")
    servers: tuple[str, ...] = Field(
        default=("*",), description="Backends, or backend@host, as a request names them; `*` and `?` as above"
    )
    currency: str = Field(pattern="^[A-Z]{3}$", description="ISO 4217: USD, CNY, EUR")
    valid_from: date = Field(description="The first day, UTC")
    valid_until: date | None = Field(default=None, description="The last day, UTC; open if unset")
    input: Decimal | None = Field(default=None, ge=0, description="As in `Rates`; without tiers")
    cached_input: Decimal | None = Field(default=None, ge=0, description="As in `Rates`; without tiers")
    output: Decimal | None = Field(default=None, ge=0, description="As in `Rates`; without tiers")
    reasoning: Decimal | None = Field(default=None, ge=0, description="As in `Rates`; without tiers")
    tiers: tuple[Tier, ...] = Field(default=(), description="By the length of the prompt, the shortest first")
    source: str = Field(default="", description="Where the price is published")

    @model_validator(mode="after")
    def _has_prices_once(self) -> Self:
        if self.tiers:
            limits = [tier.up_to for tier in self.tiers]
            if limits != sorted(set(limits)):
                raise ValueError("tiers must go from the shortest prompt to the longest, each with its own `up_to`")
            if not (self.input is self.output is self.cached_input is self.reasoning is None):
                raise ValueError("put the prices either in the row or in its tiers, not in both")
        elif self.input is None or self.output is None:
            raise ValueError("a row needs `input` and `output`, or `tiers`")
        return self

    def rates(self, prompt_tokens: int) -> Rates | None:
        """Return the prices of a call with a prompt of this length; None if it is longer than the last tier."""
        if not self.tiers:
            return Rates(
                input=self.input or Decimal(0),
                cached_input=self.cached_input,
                output=self.output or Decimal(0),
                reasoning=self.reasoning,
            )
        return next((tier for tier in self.tiers if prompt_tokens <= tier.up_to), None)

    def fit(self, model: str, server: str, day: date) -> int | None:
        """Return how specific the row is to this model, larger is closer; None if it does not match."""
        if day < self.valid_from or (self.valid_until is not None and day > self.valid_until):
            return None
        if not any(map(partial(fnmatchcase, server), self.servers)):
            return None
        fitting = filter(partial(fnmatchcase, model), self.models)
        return max(map(_closeness, fitting), default=None)


def _closeness(pattern: str) -> int:
    """Rank a match: a name is closer than any pattern, and a longer pattern closer than a shorter one."""
    wild = sum(letter in "*?[" for letter in pattern)
    return 10_000 if not wild else len(pattern) - wild


class _File(Config):
    """A table as it is written."""

    price: tuple[PriceRow, ...] = ()


class PriceTable:
    """Finds prices. Earlier tables win over later ones.

    Args:
        tables: Rows, the most important table first.
    """

    def __init__(self, *tables: Sequence[PriceRow]) -> None:
        self._tables = tables

    def find(self, model: str, server: str, day: date) -> PriceRow | None:
        """Return the row for a model on a day: of the most specific ones, the one with the latest first day."""
        for rows in self._tables:
            fits = [(fit, row.valid_from, row) for row in rows if (fit := row.fit(model, server, day)) is not None]
            if fits:
                return max(fits, key=lambda one: one[:2])[2]
        return None


@cache
def shipped_rows() -> tuple[PriceRow, ...]:
    """Return the rows that come with this package; each has its source."""
    return parse_rows((files("jackfield_budget") / "prices.toml").read_text(encoding="utf-8"), what="prices.toml")


def parse_rows(text: str, *, what: str) -> tuple[PriceRow, ...]:
    """Parse a TOML text: tables `[[price]]` with the keys of `PriceRow`.

    Raises:
        ConfigError: It is not valid TOML, or a row is not valid.
    """
    try:
        # Decimals as they are written: 0.1 is a tenth.
        written = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{what} is not valid TOML: {error}") from error
    return _File.parse(written, what=what).price


def rows_of(given: str | Path | Mapping[str, Any] | Iterable[Any] | None) -> tuple[PriceRow, ...]:
    """Rows from the value of a setting: the path of a TOML file, its content as a dict, or a list of rows.

    Raises:
        ConfigError: The file cannot be read, or a row is not valid.
    """
    if given is None:
        return ()
    if isinstance(given, str | Path):
        path = Path(given).expanduser()
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"the prices in {path} cannot be read: {error}") from error
        return parse_rows(text, what=str(path))
    table = given if isinstance(given, Mapping) else {"price": list(given)}
    return _File.parse(table, what="prices").price
