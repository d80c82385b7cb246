"""Why the processors around a model stand in the order in which they do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from jackfield import GenerateConfig
from jackfield.models import BaseChatModel
from jackfield.processors import Processor, in_order


@dataclass(frozen=True, slots=True)
class Placed:
    """A processor in its place.

    Attributes:
        processor: The processor.
        reasons: Why it stands where it does, one for each rule that had a say.
    """

    processor: Processor
    reasons: tuple[str, ...]


def pipeline(model: BaseChatModel, config: GenerateConfig | None = None) -> list[Placed]:
    """The processors of a model from the caller inwards, with the reasons of their order."""
    return placed_in_order(model.processors(config), model.host.settings.order)


def placed_in_order(processors: Iterable[Processor], order: Sequence[str] = ()) -> list[Placed]:
    """As `jackfield.processors.in_order`, with the reasons.

    Raises:
        ConfigError: As there.
    """
    chain = in_order(processors, order)
    outer = _outer(chain, frozenset(order))
    depths = {one.name: _depth(one.name, outer) for one in chain}
    places = zip([None, *chain], chain, strict=False)
    reasons = {one.name: tuple(_reasons(one, before, outer, depths)) for before, one in places}
    reasons |= dict.fromkeys(reasons.keys() & set(order), ("listed in `order`",))
    return [Placed(one, reasons[one.name]) for one in chain]


def _reasons(
    one: Processor, before: Processor | None, outer: Mapping[str, Mapping[str, str]], depths: Mapping[str, int]
) -> Iterator[str]:
    yield f"phase {one.phase}"
    yield from outer[one.name].values()
    if before and (before.phase, depths[before.name]) == (one.phase, depths[one.name]):
        yield f"beside {before.name}: by name"


def _outer(chain: Sequence[Processor], listed: frozenset[str]) -> dict[str, dict[str, str]]:
    """For each processor those that it stands inside of because one of the two says so, and why."""
    phases = {one.name: one.phase for one in chain}
    outer: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for speaker in chain:
        for inner, name, why in _wishes(speaker):
            if phases.get(inner) == phases.get(name) and not {inner, name} <= listed:
                outer[inner][name] = f"inside of {name} ({speaker.name} says {why})"
    return outer


def _wishes(processor: Processor) -> Iterator[tuple[str, str, str]]:
    """What a processor says of its place: who stands inside of whom, and in which words."""
    for earlier in processor.after:
        yield processor.name, earlier, f"after={earlier!r}"
    for later in processor.before:
        yield later, processor.name, f"before={later!r}"


def _depth(name: str, outer: Mapping[str, Mapping[str, str]]) -> int:
    return 1 + max((_depth(one, outer) for one in outer[name]), default=0)
