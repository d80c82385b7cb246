"""Parse and check searchers and their weights in settings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from jackfield.config import SettingsDict


def searchers_by_name(entries: Iterable[str | Mapping[str, Any]]) -> dict[str, SettingsDict]:
    """Return the settings of each searcher by name, in order.

    Args:
        entries: Names or addresses, or dicts of `name` and settings.

    Raises:
        ValueError: A name is missing or duplicate.
    """
    searchers: dict[str, SettingsDict] = {}
    for entry in entries:
        settings = {"name": entry} if isinstance(entry, str) else dict(entry)
        name = settings.pop("name", None)
        if not (isinstance(name, str) and name):
            raise ValueError("a searcher given as a dict needs 'name', besides its settings")
        if name in searchers:
            raise ValueError(f"{name!r} is named twice: leave one out")
        searchers[name] = SettingsDict(settings)
    return searchers


def check_weights(weights: Mapping[str, float], searchers: Iterable[str]) -> None:
    """Check that the weights are valid and belong to the searchers.

    Raises:
        ValueError: A weight is invalid or belongs to no searcher, or every weight is 0.
    """
    asked = list(searchers)
    for name, weight in weights.items():
        if name not in asked:
            raise ValueError(f"{name!r} is not among the searchers: {', '.join(asked)}")
        if not (math.isfinite(weight) and weight >= 0):
            raise ValueError(f"the weight of {name!r} must be a finite number of at least 0")
    if not any(weights.get(name, 1) for name in asked):
        raise ValueError("every searcher has the weight 0, so nothing is searched: raise one")
