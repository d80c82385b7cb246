"""Look up model prices, stored as data with a start date and a source for each row.

A server's table is `prices/HOST.json` in this package: a list of rows with the fields of `jackfield.prices.PriceRow`.
Users can add rows in a `prices.json` next to `config.toml`. Those rows take precedence over the package's, and apply to
any server unless they list `servers`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from jackfield.config import LLMConfig
from jackfield.errors import ConfigError
from jackfield.settings import config_path

if TYPE_CHECKING:  # imported late: it defines pydantic models, which a server without known prices does not need
    from jackfield.prices import PriceRow

USER_FILE = "prices.json"
HOSTS = ("api.anthropic.com", "api.deepseek.com", "api.openai.com", "dashscope.aliyuncs.com")
"""The servers with a table in this package."""


class Addressed(Protocol):
    """A model that may have its own server URL, such as `jackfield_http.backend.HTTPBackend`."""

    @property
    def config(self) -> LLMConfig:
        """The configuration, including the model's name on the server."""

    @property
    def server_name(self) -> str:
        """The server's name, as used in requests."""

    def configured_url(self) -> str | None:
        """Return the configured URL, or None to use the usual one."""


def find_prices(model: Addressed, usual_url: str) -> tuple[PriceRow, ...]:
    """Return a model's price rows, one per period of constant price; empty if the price is unknown.

    Exact names take precedence over patterns, and longer patterns over shorter ones.

    Args:
        model: The model, whose server determines the prices.
        usual_url: The URL to assume if the model has none of its own.

    Raises:
        ConfigError: The user's file is invalid.
    """
    user_rows = _user_rows(config_path().with_name(USER_FILE))
    try:
        host, server = urlsplit(model.configured_url() or usual_url).hostname or "", model.server_name
    except ConfigError:  # the first request reports the address
        return ()
    name = model.config.model
    return _closest(user_rows, name, server) or _closest(shipped_prices(host, name), name, server)


def shipped_prices(host: str, model: str | None = None) -> tuple[PriceRow, ...]:
    """Return the rows shipped with this package, for one model or all; empty for a server without a table."""
    if host not in HOSTS:
        return ()
    rows = _read_shipped(host)
    if model is not None:  # validating all rows takes ten times as long
        rows = [row for row in rows if any(fnmatchcase(model, pattern) for pattern in row["models"])]
    return _parse_rows(rows, f"{host}.json")


def _closest(rows: Sequence[PriceRow], model: str, server: str) -> tuple[PriceRow, ...]:
    fits = [(closeness, row) for row in rows if (closeness := row.closeness(model, server)) is not None]
    best = max((closeness for closeness, _ in fits), default=0)
    return tuple(row for closeness, row in fits if closeness == best)


@cache
def _read_shipped(host: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = _parse_json(
        (files("jackfield_backends") / "prices" / f"{host}.json").read_text(encoding="utf-8")
    )
    return rows


def _user_rows(path: Path) -> tuple[PriceRow, ...]:
    try:
        changed = path.stat().st_mtime_ns
    except OSError:
        return ()
    return _read_user_file(path, changed)


@cache
def _read_user_file(path: Path, _changed: int) -> tuple[PriceRow, ...]:
    try:
        rows = _parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} is not valid JSON: {error}; fix or delete the file") from error
    return _parse_rows(rows, str(path))


def _parse_json(text: str) -> Any:
    return json.loads(text, parse_float=Decimal)  # decimals as written: 0.1 is a tenth


def _parse_rows(rows: Any, what: str) -> tuple[PriceRow, ...]:
    if rows == []:
        return ()
    from jackfield.prices import PriceRow

    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise ConfigError(f'{what} must be a list of prices, as in [{{"models": ["acme-2"], "currency": "USD", …}}]')
    return tuple(PriceRow.parse(row, what=f"{what}, row {number}") for number, row in enumerate(rows, start=1))
