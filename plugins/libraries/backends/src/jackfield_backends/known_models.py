"""Look up facts about providers' models, stored as data with a date and a source for each entry.

A provider's table is `models/PROVIDER.json` in this package: a list of entries such as

```text
{"names": ["acme-2*"], "as_of": "2026-11-28", "source": "https://acme.example/models", "context_tokens": 128000}
```

Users can add a `models.json` next to `config.toml`: an object that maps each provider to such a list. Its entries take
precedence over those of the package.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jackfield.config import LLMConfig
from jackfield.errors import ConfigError
from jackfield.request import ModelFacts
from jackfield.settings import config_path

USER_FILE = "models.json"
PROVIDERS = ("anthropic", "dashscope", "deepseek", "openai")
"""The providers with a table in this package."""

_FACTS = frozenset(fact.name for fact in fields(ModelFacts)) - {"prices"}  # prices have their own tables


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A table entry: one or more models with the same capabilities.

    Attributes:
        names: Lowercase name patterns, in which `*` matches any text. Empty for an unknown model.
        as_of: The date of the source.
        source: The provider's page that states the facts.
        facts: The facts, keyed by field of `ModelFacts`. Facts that the source does not state are absent.
        details: Additional facts that only the provider's backend understands.
    """

    names: tuple[str, ...] = ()
    as_of: date | None = None
    source: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)


UNKNOWN = KnownModel()


def find_model(provider: str, model: str) -> KnownModel:
    """Return the entry for a model, or `UNKNOWN` if there is none. The user's entries take precedence.

    Exact names take precedence over patterns, and patterns with more literal characters over those with fewer.

    Args:
        provider: The table's name, or '' for a server whose models are not known.
        model: The model's name on the server, in any case.

    Raises:
        ConfigError: The user's file is invalid.
    """
    name = model.lower()
    for entries in (_user_tables(config_path().with_name(USER_FILE)).get(provider, ()), shipped_models(provider)):
        best, length = UNKNOWN, -1
        for entry in entries:
            for pattern in entry.names:
                if fnmatchcase(name, pattern) and _closeness(pattern) > length:
                    best, length = entry, _closeness(pattern)
        if length >= 0:
            return best
    return UNKNOWN


def with_configured(known: Mapping[str, Any], config: LLMConfig) -> ModelFacts:
    """Return a model's facts, overridden by the configuration's settings of the same name.

    A setting's default applies only if the fact is unknown. None counts as unset.
    """
    values = dict(known)
    for name in _FACTS:
        if name in type(config).model_fields and (name in config.model_fields_set or name not in values):
            value = getattr(config, name)
            if value is not None:
                values[name] = value
    return ModelFacts(**values)


def shipped_models(provider: str) -> tuple[KnownModel, ...]:
    """Return the entries shipped with this package; empty for a provider without a table."""
    return _read_shipped(provider) if provider in PROVIDERS else ()


@cache
def _read_shipped(provider: str) -> tuple[KnownModel, ...]:
    text = (files("jackfield_backends") / "models" / f"{provider}.json").read_text(encoding="utf-8")
    return _read_entries(json.loads(text), f"{provider}.json")


def _user_tables(path: Path) -> Mapping[str, tuple[KnownModel, ...]]:
    try:
        changed = path.stat().st_mtime_ns
    except OSError:
        return {}
    return _read_user_file(path, changed)


@cache
def _read_user_file(path: Path, _changed: int) -> Mapping[str, tuple[KnownModel, ...]]:
    try:
        tables = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} is not valid JSON: {error}; fix or delete the file") from error
    if not isinstance(tables, dict):
        raise ConfigError(f'{path} must be an object that maps each provider to a list, as in {{"anthropic": [...]}}')
    return {provider: _read_entries(entries, str(path)) for provider, entries in tables.items()}


def _read_entries(entries: object, what: str) -> tuple[KnownModel, ...]:
    if not isinstance(entries, list):
        raise ConfigError(f"{what}: a provider's models must be a list")
    return tuple(_read_entry(entry, what) for entry in entries)


def _read_entry(entry: object, what: str) -> KnownModel:
    if not isinstance(entry, dict) or not _are_names(entry.get("names")):
        raise ConfigError(f'{what}: an entry requires "names", a list of names or patterns, as in ["acme-2*"]')
    values = dict(entry)
    names, as_of, source = values.pop("names"), values.pop("as_of", None), values.pop("source", "")
    try:
        day = None if as_of is None else date.fromisoformat(as_of)
    except (TypeError, ValueError):
        raise ConfigError(f'{what}: "as_of" of {names[0]!r} must be a date, as in "2026-11-28"') from None
    facts = {name: value for name, value in values.items() if name in _FACTS}
    for name, value in facts.items():
        _check_fact(name, value, f"{what}: {name!r} of {names[0]!r}")
    details = {name: value for name, value in values.items() if name not in _FACTS}
    return KnownModel(tuple(name.lower() for name in names), day, source, facts, details)


def _are_names(names: object) -> bool:
    return isinstance(names, list) and bool(names) and all(isinstance(name, str) for name in names)


def _check_fact(name: str, value: object, what: str) -> None:
    default = getattr(ModelFacts(), name)
    if default is None:
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ConfigError(f"{what} must be a number of tokens")
    elif type(value) is not type(default):
        kind = "true or false" if isinstance(default, bool) else "a text"
        raise ConfigError(f"{what} must be {kind}")


def _closeness(pattern: str) -> int:
    return len(pattern.replace("*", "")) if "*" in pattern else 10_000
