"""Load price tables and look up the price of a model."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from jackfield.config import Config
from jackfield.errors import ConfigError
from jackfield.prices import PriceRow


class _File(Config):
    """The structure of a price table file."""

    price: tuple[PriceRow, ...] = ()


class PriceTable:
    """Index of price rows by model."""

    def __init__(self, rows: Sequence[PriceRow]) -> None:
        self._rows = rows

    def find(self, model: str, server: str, day: date) -> PriceRow | None:
        """Return the most specific row that matches a model on a day; among equals, the one that took effect last."""
        fits = [
            (closeness, row.valid_from, row)
            for row in self._rows
            if row.is_valid_on(day) and (closeness := row.closeness(model, server)) is not None
        ]
        return max(fits, key=lambda fit: fit[:2])[2] if fits else None


def parse_rows(text: str, *, what: str) -> tuple[PriceRow, ...]:
    """Parse TOML with one `[[price]]` table per row; the keys are those of `PriceRow`.

    Raises:
        ConfigError: The TOML or one of the rows is invalid.
    """
    try:
        # Parsed as decimals, so that 0.1 is exactly a tenth.
        written = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{what} is not valid TOML: {error}") from error
    return _File.parse(written, what=what).price


def rows_of(given: str | Path | Mapping[str, Any] | Iterable[Any] | None) -> tuple[PriceRow, ...]:
    """Return the price rows from a setting: the path of a TOML file, its content as a dict, or a list of rows.

    Raises:
        ConfigError: The file cannot be read, or a row is invalid.
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
