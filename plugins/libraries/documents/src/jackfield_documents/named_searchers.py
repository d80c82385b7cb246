"""Parse and validate searchers and their weights in settings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from jackfield.config import SettingsDict

# Measured on questions in two languages with two embedding models: the fusion is then never clearly below the better
# of its parts.
_USUAL_WEIGHTS: Mapping[str, float] = {"vector_search": 1.75}


def searchers_by_name(entries: Iterable[str | Mapping[str, Any]]) -> dict[str, SettingsDict]:
    """Return each searcher's settings by name, in order.

    Args:
        entries: Names or addresses, or dicts with a `name` and settings.

    Raises:
        ValueError: A name is missing or duplicated.
    """
    searchers: dict[str, SettingsDict] = {}
    for entry in entries:
        settings = {"name": entry} if isinstance(entry, str) else dict(entry)
        name = settings.pop("name", None)
        if not (isinstance(name, str) and name):
            raise ValueError("a searcher given as a dict requires 'name' besides its settings")
        if name in searchers:
            raise ValueError(f"{name!r} is listed twice: remove one")
        searchers[name] = SettingsDict(settings)
    return searchers


def check_weights(weights: Mapping[str, float], searchers: Iterable[str]) -> None:
    """Check that the weights are valid and match the searchers.

    Raises:
        ValueError: A weight is invalid or matches no searcher, or every weight is 0.
    """
    asked = list(searchers)
    for name, weight in weights.items():
        if name not in asked:
            raise ValueError(f"unknown searcher {name!r}; available: {', '.join(asked)}")
        if not (math.isfinite(weight) and weight >= 0):
            raise ValueError(f"the weight of {name!r} must be finite and at least 0")
    if not any(weights.get(name, 1) for name in asked):
        raise ValueError("every searcher has weight 0, so nothing is searched: increase at least one weight")


def weights_of(weights: Mapping[str, float], searchers: Iterable[str]) -> dict[str, float]:
    """Return each searcher's weight: as configured, else the usual one."""
    return {name: weights.get(name, _USUAL_WEIGHTS.get(name.rpartition("/")[2], 1.0)) for name in searchers}
