"""Searchers as settings name them, and how much each of them counts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from jackfield.config import SettingsDict


def searchers_by_name(entries: Iterable[str | Mapping[str, Any]]) -> dict[str, SettingsDict]:
    """The settings of each searcher by its name, in order.

    Args:
        entries: Names or addresses, or dicts of `name` and settings.

    Raises:
        ValueError: A name is missing, or comes twice.
    """
    found: dict[str, SettingsDict] = {}
    for entry in entries:
        settings = {"name": entry} if isinstance(entry, str) else dict(entry)
        name = settings.pop("name", None)
        if not (isinstance(name, str) and name):
            raise ValueError("a searcher given as a dict needs 'name', besides its settings")
        if name in found:
            raise ValueError(f"{name!r} is named twice: leave one out")
        found[name] = SettingsDict(settings)
    return found


def check_weights(weights: Mapping[str, float], searchers: Iterable[str]) -> None:
    """See that each weight is one that can be used, of a searcher that is asked.

    Raises:
        ValueError: It is not; or there is no searcher that counts.
    """
    asked = list(searchers)
    for name, weight in weights.items():
        if name not in asked:
            raise ValueError(f"{name!r} is not asked; the searchers are {', '.join(asked)}")
        if not (math.isfinite(weight) and weight >= 0):
            raise ValueError(f"the weight of {name!r} must be a finite number of at least 0")
    if not any(weights.get(name, 1) for name in asked):
        raise ValueError("every searcher has the weight 0, so nothing is searched: raise one")
