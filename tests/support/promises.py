"""Promises of a component before it is used: the facts in its descriptor, and the settings of its configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields
from typing import Any

import pytest

from jackfield.config import Config
from jackfield.errors import ConfigError

_OTHERS = ("name", "target", "summary", "config")  # other tests follow these


def promises_of(specs: Iterable[Any]) -> dict[str, dict[str, object]]:
    """Return the facts that each descriptor states, by its kind and name; without those that have the usual value."""
    return {f"{type(spec).__name__} {spec.name}": _facts_of(spec) for spec in specs}


def _facts_of(spec: Any) -> dict[str, object]:
    facts = {field.name: (getattr(spec, field.name), _usual(field)) for field in fields(spec)}
    return {name: value for name, (value, usual) in facts.items() if name not in _OTHERS and value != usual}


def _usual(field: Field[Any]) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()


def defaults_of(config: type[Config], names: Iterable[str], needed: Mapping[str, object]) -> dict[str, object]:
    """Return the values of settings of a configuration in which only the needed ones are set."""
    settings = config.model_validate(needed)
    return {name: getattr(settings, name) for name in names}


def check_limit(config: type[Config], setting: str, last: object, beyond: object, needed: Mapping[str, object]) -> None:
    """Check that a setting takes the last value, and refuses the one beyond it by the setting's name."""
    taken = getattr(config.model_validate({**needed, setting: last}), setting)
    assert taken == last or str(taken) == str(last)
    with pytest.raises((ConfigError, ValueError), match=setting):
        config.model_validate({**needed, setting: beyond})
