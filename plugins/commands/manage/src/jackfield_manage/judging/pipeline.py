"""Explain the order of the processors around a model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from jackfield import GenerateConfig
from jackfield.models import BaseChatModel
from jackfield.processors import Processor, in_order


@dataclass(frozen=True, slots=True)
class OrderedProcessor:
    """A processor of a pipeline, with the rules that determine its position."""

    processor: Processor
    reasons: tuple[str, ...]


def explain_pipeline(model: BaseChatModel, config: GenerateConfig | None = None) -> list[OrderedProcessor]:
    """Return a model's processors from the caller inwards, with the reasons for their order."""
    return explain_order(model.processors(config), model.host.settings.order)


def explain_order(processors: Iterable[Processor], order: Sequence[str] = ()) -> list[OrderedProcessor]:
    """Order processors like `jackfield.processors.in_order`, and give the reasons.

    Raises:
        ConfigError: Two rules contradict each other.
    """
    chain = in_order(processors, order)
    constraints = _constraints(chain, frozenset(order))
    depths = {processor.name: _depth(processor.name, constraints) for processor in chain}
    explained: list[OrderedProcessor] = []
    previous: Processor | None = None
    for processor in chain:
        if processor.name in order:
            reasons = ["listed in `order`"]
        else:
            reasons = [f"phase {processor.phase}", *constraints[processor.name].values()]
            if previous and (previous.phase, depths[previous.name]) == (processor.phase, depths[processor.name]):
                reasons.append(f"tied with {previous.name}, ordered by name")
        explained.append(OrderedProcessor(processor, tuple(reasons)))
        previous = processor
    return explained


def _constraints(chain: Sequence[Processor], listed: frozenset[str]) -> defaultdict[str, dict[str, str]]:
    """Return, for each processor, those that `after` or `before` place outside it, with the reasons."""
    phases = {processor.name: processor.phase for processor in chain}
    constraints: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for processor in chain:
        for inner, outer, rule in _declared_pairs(processor):
            if phases.get(inner) == phases.get(outer) and not {inner, outer} <= listed:
                constraints[inner][outer] = f"inside {outer} ({processor.name} declares {rule})"
    return constraints


def _declared_pairs(processor: Processor) -> Iterator[tuple[str, str, str]]:
    """Yield the inner and outer names for each `after` and `before`, and the declaration itself."""
    for name in processor.after:
        yield processor.name, name, f"after={name!r}"
    for name in processor.before:
        yield name, processor.name, f"before={name!r}"


def _depth(name: str, constraints: Mapping[str, Mapping[str, str]]) -> int:
    return 1 + max((_depth(outer, constraints) for outer in constraints.get(name, ())), default=0)
