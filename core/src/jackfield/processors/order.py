"""The order of processors: by phase, inside a phase by `after` and `before`, ties by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import get_args

from jackfield.errors import ConfigError
from jackfield.processors.base import Phase, Processor

# `output` is last in the list of phases because it sees the answer last: it is the outermost layer.
_OUTSIDE_IN: tuple[Phase, ...] = ("output", "input", "context", "format", "transport")


def in_order(processors: Iterable[Processor]) -> list[Processor]:
    """Processors from the caller's side inwards.

    Raises:
        ConfigError: Two have one name, a phase is unknown, or `after` and `before` go round in a circle.
    """
    by_name: dict[str, Processor] = {}
    for processor in processors:
        if processor.name in by_name:
            raise ConfigError(f"two processors are named {processor.name!r} in one chain: leave one out")
        if processor.phase not in get_args(Phase):
            raise ConfigError(
                f"processor {processor.name!r}: no phase {processor.phase!r}; use {', '.join(get_args(Phase))}"
            )
        by_name[processor.name] = processor
    chain: list[Processor] = []
    for phase in _OUTSIDE_IN:
        members = [processor for processor in by_name.values() if processor.phase == phase]
        chain += [by_name[name] for name in _sorted_inside(members)]
    return chain


def _sorted_inside(members: Sequence[Processor]) -> list[str]:
    names = {processor.name for processor in members}
    edges: dict[str, set[str]] = {name: set() for name in names}
    for processor in members:
        edges[processor.name] |= set(processor.after) & names
        for later in set(processor.before) & names:
            edges[later].add(processor.name)
    sorter = TopologicalSorter(edges)
    try:
        sorter.prepare()
    except CycleError as error:
        raise ConfigError(f"the order of processors is a circle: {' → '.join(error.args[1])}") from None
    order: list[str] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        order += ready
        sorter.done(*ready)
    return order
