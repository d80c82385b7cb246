"""The order of processors: by phase, inside a phase by `after` and `before`, ties by name; a list of names wins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import get_args

from jackfield.errors import ConfigError
from jackfield.processors._base import Phase, Processor

# `output` is last in the list of phases because it sees the answer last: it is the outermost layer.
_OUTSIDE_IN: tuple[Phase, ...] = ("output", "input", "context", "format", "transport")


@dataclass(frozen=True, slots=True)
class Placed:
    """A processor in its place.

    Attributes:
        processor: The processor.
        reasons: Why it stands where it does, one for each rule that had a say.
    """

    processor: Processor
    reasons: tuple[str, ...]


def in_order(processors: Iterable[Processor], order: Sequence[str] = ()) -> list[Processor]:
    """Processors from the caller's side inwards.

    Args:
        processors: In any order.
        order: Names, outermost first, whose order is wanted whatever phases and wishes say; the others keep their
            places.

    Raises:
        ConfigError: Two have the same name, a phase is unknown, or `after` and `before` form a circle.
    """
    return [placed.processor for placed in placed_in_order(processors, order)]


def placed_in_order(processors: Iterable[Processor], order: Sequence[str] = ()) -> list[Placed]:
    """As `in_order`, with the reasons."""
    by_name: dict[str, Processor] = {}
    for processor in processors:
        if processor.name in by_name:
            raise ConfigError(f"two processors are named {processor.name!r} in one chain: leave one out")
        if processor.phase not in get_args(Phase):
            raise ConfigError(
                f"processor {processor.name!r}: there is no phase {processor.phase!r}; use {', '.join(get_args(Phase))}"
            )
        by_name[processor.name] = processor
    chain: list[Placed] = []
    for phase in _OUTSIDE_IN:
        chain += _placed_inside([one for one in by_name.values() if one.phase == phase], frozenset(order))
    return _as_listed(chain, order)


def _placed_inside(members: Sequence[Processor], listed: frozenset[str]) -> list[Placed]:
    """The members of one phase; what two listed ones wish of each other does not count."""
    by_name = {processor.name: processor for processor in members}
    edges = _edges(by_name, listed)
    sorter = TopologicalSorter({name: set(earlier) for name, earlier in edges.items()})
    try:
        sorter.prepare()
    except CycleError as error:
        circle = " → ".join(error.args[1])
        raise ConfigError(f"the order of processors is circular: {circle}; leave one out, or set `order`") from None
    placed: list[Placed] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        for index, name in enumerate(ready):
            tie = (f"beside {ready[index - 1]}: by name",) if index else ()
            reasons = (f"phase {by_name[name].phase}", *edges[name].values(), *tie)
            placed.append(Placed(by_name[name], reasons))
        sorter.done(*ready)
    return placed


def _edges(by_name: Mapping[str, Processor], listed: frozenset[str]) -> dict[str, dict[str, str]]:
    """For each member those that it stands inside of, and why."""
    edges: dict[str, dict[str, str]] = {name: {} for name in by_name}
    for name, processor in by_name.items():
        free = by_name.keys() - (listed if name in listed else ())
        for inner, outer, why in _wishes(processor):
            if (inner if outer == name else outer) in free:
                edges[inner][outer] = f"inside of {outer} ({name} says {why})"
    return edges


def _wishes(processor: Processor) -> Iterator[tuple[str, str, str]]:
    """What a processor says of its place: who stands inside of whom, and in which words."""
    for earlier in processor.after:
        yield processor.name, earlier, f"after={earlier!r}"
    for later in processor.before:
        yield later, processor.name, f"before={later!r}"


def _as_listed(chain: list[Placed], order: Sequence[str]) -> list[Placed]:
    """The places of those that are listed, filled again in the order of the list."""
    listed = {name: index for index, name in enumerate(order)}
    places = [index for index, placed in enumerate(chain) if placed.processor.name in listed]
    wanted = sorted((chain[index] for index in places), key=lambda placed: listed[placed.processor.name])
    arranged = list(chain)
    for index, placed in zip(places, wanted, strict=True):
        moved = placed is not chain[index]
        arranged[index] = Placed(placed.processor, ("listed in `order`",)) if moved else placed
    return arranged
