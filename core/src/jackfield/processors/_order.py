"""Sort processors by phase, then by `after` and `before`, then by name. A list of names overrides this order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import get_args

from jackfield.errors import ConfigError
from jackfield.processors._base import Phase, Processor

# `output` is last in the list of phases, because it is the outermost layer and sees the answer last.
_OUTSIDE_IN: tuple[Phase, ...] = ("output", "input", "context", "format", "transport")


def in_order(processors: Iterable[Processor], order: Sequence[str] = ()) -> list[Processor]:
    """Sort processors, outermost first.

    Args:
        processors: The processors, in any order.
        order: Names, outermost first. The list overrides phases, `after` and `before`. Processors that are not listed
            keep their positions.

    Raises:
        ConfigError: Two processors have the same name, a phase is unknown, or `after` and `before` form a cycle.
    """
    by_name = _by_name(processors)
    listed = [name for name in dict.fromkeys(order) if name in by_name]
    outer = _outer(by_name, frozenset(listed))
    chain = [name for phase in _OUTSIDE_IN for name in _sorted(phase, by_name, outer)]
    wanted = iter(listed)
    return [by_name[next(wanted) if name in listed else name] for name in chain]


def _by_name(processors: Iterable[Processor]) -> dict[str, Processor]:
    found: dict[str, Processor] = {}
    for one in processors:
        if one.name in found:
            raise ConfigError(f"two processors in the chain are named {one.name!r}: remove one of them")
        if one.phase not in _OUTSIDE_IN:
            phases = ", ".join(get_args(Phase))
            raise ConfigError(f"processor {one.name!r}: unknown phase {one.phase!r}; use {phases}")
        found[one.name] = one
    return found


def _outer(by_name: Mapping[str, Processor], listed: frozenset[str]) -> dict[str, set[str]]:
    """Map each processor to the processors that must be outside it.

    Constraints between two listed processors are ignored.
    """
    outer: dict[str, set[str]] = {name: set() for name in by_name}
    for name, one in by_name.items():
        wishes = [*((name, earlier) for earlier in one.after), *((later, name) for later in one.before)]
        for inside, outside in wishes:
            if {inside, outside} <= by_name.keys() and not {inside, outside} <= listed:
                outer[inside].add(outside)
    return outer


def _sorted(phase: Phase, by_name: Mapping[str, Processor], outer: Mapping[str, set[str]]) -> list[str]:
    members = {name for name, one in by_name.items() if one.phase == phase}
    sorter = TopologicalSorter({name: outer[name] & members for name in members})
    try:
        sorter.prepare()
    except CycleError as error:
        circle = " → ".join(error.args[1])
        raise ConfigError(f"the processor order is circular: {circle}; remove one processor, or set `order`") from None
    found: list[str] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        found += ready
        sorter.done(*ready)
    return found
