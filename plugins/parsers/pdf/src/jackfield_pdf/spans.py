"""Group sorted positions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

_Item = TypeVar("_Item")
Span = tuple[float, float]


def grouped(items: Iterable[_Item], belongs: Callable[[Sequence[_Item], _Item], bool]) -> list[list[_Item]]:
    """Group consecutive items. An item joins the current group if `belongs` returns True, or else starts a new one."""
    groups: list[list[_Item]] = []
    for item in items:
        if groups and belongs(groups[-1], item):
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups


def merged(spans: Iterable[Span], *, gap: float = 0.0) -> list[Span]:
    """Return spans in ascending order, merging those that overlap or are at most `gap` apart."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1] + gap:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found
