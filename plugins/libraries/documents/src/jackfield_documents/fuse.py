"""Merge the rankings of several searchers into one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from jackfield.retrieval import Chunk, Hit


def fuse(
    rankings: Mapping[str, Sequence[Hit]],
    *,
    weights: Mapping[str, float] | None = None,
    k: int = 60,
) -> list[Hit]:
    """Merge rankings by weighted reciprocal rank fusion.

    Args:
        rankings: The hits of each searcher by its name, best first, no chunk twice in one ranking.
        weights: How much each searcher counts, 1 if not named; 0 leaves it out.
        k: How much low ranks count, at least 1; the larger, the more.

    Returns:
        Every chunk once, best first; `ranks` has its place with each searcher. A chunk that a searcher scores as
        infinite stands before all others. Equal scores are ordered by source and place in the document, so the
        order of the searchers never matters.

    Raises:
        ValueError: `k` is less than 1, or a weight is not a finite number of at least 0.

    Source: Cormack, Clarke & Büttcher, SIGIR 2009, who also suggest 60 for `k`.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    weight_of = {name: _weight_of(name, weights) for name in rankings}
    found: dict[str, _Found] = {}
    for name in filter(weight_of.__getitem__, rankings):
        for rank, hit in enumerate(rankings[name], start=1):
            # Ranks, because one searcher's scores mean nothing beside another's.
            share = weight_of[name] / (k + rank)
            found.setdefault(hit.chunk.id, _Found(hit.chunk)).add(name, rank, share, hit, rankings.keys())
    return [one.as_hit() for one in sorted(found.values(), key=_Found.place)]


@dataclass(slots=True)
class _Found:
    """A chunk, and what searchers say of it."""

    chunk: Chunk
    shares: list[float] = field(default_factory=list)
    ranks: dict[str, int] = field(default_factory=dict)
    is_first: bool = False

    def add(self, searcher: str, rank: int, share: float, hit: Hit, asked: Set[str]) -> None:
        """Take in what one of the searchers that are asked says of it."""
        self.shares.append(share)
        self.is_first = self.is_first or hit.score == math.inf
        self.ranks[searcher] = rank
        # What a searcher says of others that it has asked counts only where they are not asked here.
        for other in hit.ranks.keys() - asked:
            self.ranks[other] = min(hit.ranks[other], self.ranks.get(other, hit.ranks[other]))

    def as_hit(self) -> Hit:
        """It as a hit of all of them."""
        return Hit(self.chunk, math.inf if self.is_first else self.score, self.ranks)

    @property
    def score(self) -> float:
        """The same in whatever order the searchers come, for which a plain sum is too coarse."""
        return math.fsum(self.shares)

    def place(self) -> tuple[bool, float, str, int]:
        """What chunks are ordered by, best first."""
        return (not self.is_first, -self.score, self.chunk.source, self.chunk.index)


def score_as_json(score: float) -> float | str:
    """A score as JSON can have it: there is no number for infinity, which stands before all others."""
    return score if math.isfinite(score) else "first"


def _weight_of(name: str, weights: Mapping[str, float] | None) -> float:
    weight = (weights or {}).get(name, 1.0)
    if not (math.isfinite(weight) and weight >= 0):
        raise ValueError(f"the weight of {name!r} must be a finite number of at least 0, got {weight}")
    return weight
