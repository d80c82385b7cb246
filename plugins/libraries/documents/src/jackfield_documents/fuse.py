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
        weights: The weight of each searcher, 1 by default; 0 disables it.
        k: Damping constant, at least 1; the larger, the more low ranks count.

    Returns:
        Every chunk once, best first, with its rank in each ranking in `ranks`. Chunks with an infinite score from any
        searcher come first. Ties are ordered by source and position in the document, so the order of the searchers
        never matters.

    Raises:
        ValueError: `k` is less than 1, or a weight is not a finite number of at least 0.

    Source: Cormack, Clarke & Büttcher, SIGIR 2009, who also suggest 60 for `k`.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    weight_of = {name: _weight_of(name, weights) for name in rankings}
    candidates: dict[str, _Candidate] = {}
    for name, ranking in rankings.items():
        if not weight_of[name]:
            continue
        for rank, hit in enumerate(ranking, start=1):
            # Ranks, because scores of different searchers cannot be compared.
            share = weight_of[name] / (k + rank)
            candidate = candidates.setdefault(hit.chunk.id, _Candidate(hit.chunk))
            candidate.add(name, rank, share, hit, rankings.keys())
    return [candidate.as_hit() for candidate in sorted(candidates.values(), key=_Candidate.sort_key)]


@dataclass(slots=True)
class _Candidate:
    """A chunk and its ranks."""

    chunk: Chunk
    shares: list[float] = field(default_factory=list)
    ranks: dict[str, int] = field(default_factory=dict)
    is_first: bool = False

    def add(self, searcher: str, rank: int, share: float, hit: Hit, asked: Set[str]) -> None:
        """Add a hit of one of the searchers in `asked`."""
        self.shares.append(share)
        self.is_first = self.is_first or hit.score == math.inf
        self.ranks[searcher] = rank
        # A hybrid searcher reports ranks of its own searchers; direct results take precedence over those.
        for other in hit.ranks.keys() - asked:
            self.ranks[other] = min(hit.ranks[other], self.ranks.get(other, hit.ranks[other]))

    def as_hit(self) -> Hit:
        """Return the fused hit."""
        return Hit(self.chunk, math.inf if self.is_first else self.score, self.ranks)

    @property
    def score(self) -> float:
        """The sum of the shares, exact so that the order of the searchers does not matter."""
        return math.fsum(self.shares)

    def sort_key(self) -> tuple[bool, float, str, int]:
        """Return the key that sorts the best chunk first."""
        return (not self.is_first, -self.score, self.chunk.source, self.chunk.index)


def score_as_json(score: float) -> float | str:
    """Return a score for JSON, which lacks infinity; an infinite score becomes "first"."""
    return score if math.isfinite(score) else "first"


def _weight_of(name: str, weights: Mapping[str, float] | None) -> float:
    weight = (weights or {}).get(name, 1.0)
    if not (math.isfinite(weight) and weight >= 0):
        raise ValueError(f"the weight of {name!r} must be a finite number of at least 0, got {weight}")
    return weight
