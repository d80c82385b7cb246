"""Merge rankings from several searchers into one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from statistics import fmean, pstdev
from typing import Literal

from jackfield.retrieval import Chunk, Hit

Fusion = Literal["scores", "ranks"]

_DEPTH = 100  # best hits of a searcher whose scores are compared; the tail says nothing about the best ones
_FEW = 5
_IF_EQUAL = 2.0  # as far above the rest as a good hit of many


def fuse(
    rankings: Mapping[str, Sequence[Hit]],
    *,
    weights: Mapping[str, float] | None = None,
    k: int = 60,
    by: Fusion = "scores",
) -> list[Hit]:
    """Merge rankings by standardised scores or reciprocal ranks.

    By `scores`, a hit counts by its distance from the last of its searcher's best hits, in standard deviations. So a
    hit that a searcher clearly prefers counts for much, and one of many similar hits for little. Ranks break ties. By
    `ranks`, only the order of each searcher's hits counts.

    Args:
        rankings: Each searcher's hits, best first, without duplicate chunks.
        weights: Each searcher's weight. Defaults to 1; 0 disables a searcher.
        k: The damping constant, at least 1. With a larger `k`, low ranks count more.
        by: The method.

    Returns:
        Every chunk once, best first, with its rank in each ranking in `ranks`. Chunks with an infinite score from any
        searcher come first. Ties are broken by source and position in the document, so the order of the searchers never
        matters.

    Raises:
        ValueError: `k` is less than 1, or a weight is negative or not finite.

    Source: for scores, Montague & Aslam, CIKM 2001 (zero mean and unit variance); for ranks, Cormack, Clarke &
    Büttcher, SIGIR 2009, who also suggest 60 for `k`.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    weight_of = {name: _weight_of(name, weights) for name in rankings}
    candidates: dict[str, _Candidate] = {}
    for name, ranking in rankings.items():
        if not weight_of[name]:
            continue
        standardised = _standardise(ranking) if by == "scores" else [0.0] * len(ranking)
        for rank, (hit, score) in enumerate(zip(ranking, standardised, strict=True), start=1):
            share = weight_of[name] * score + weight_of[name] / (k + rank)
            candidate = candidates.setdefault(hit.chunk.id, _Candidate(hit.chunk))
            candidate.add(name, rank, share, hit, rankings.keys())
    return [candidate.as_hit() for candidate in sorted(candidates.values(), key=_Candidate.sort_key)]


def _standardise(ranking: Sequence[Hit]) -> list[float]:
    """Return each score's distance from the last of the best hits, in standard deviations.

    Raw scores from different searchers are not comparable. A few hits say little about the spread, so their values are
    shrunk towards 0. If all scores are equal, each hit gets 2. Infinite scores are left out, because they come first
    anyway.
    """
    best = [hit.score for hit in ranking[:_DEPTH] if math.isfinite(hit.score)]
    if not best:
        return [0.0] * len(ranking)
    lowest, mean = min(best), fmean(best)
    spread = pstdev(best, mean) * (1 + _FEW / len(best))
    if spread <= 1e-9 * max(abs(lowest), abs(mean)):
        return [_IF_EQUAL if rank < _DEPTH else 0.0 for rank in range(len(ranking))]
    return [max(0.0, hit.score - lowest) / spread if math.isfinite(hit.score) else 0.0 for hit in ranking]


@dataclass(slots=True)
class _Candidate:
    """A chunk and its ranks."""

    chunk: Chunk
    shares: list[float] = field(default_factory=list)
    ranks: dict[str, int] = field(default_factory=dict)
    is_first: bool = False

    def add(self, searcher: str, rank: int, share: float, hit: Hit, asked: Set[str]) -> None:
        """Add a hit from `searcher`, one of the searchers in `asked`."""
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
        """The sum of the shares, computed exactly so that the order of the searchers does not matter."""
        return math.fsum(self.shares)

    def sort_key(self) -> tuple[bool, float, str, int]:
        """Return the key that sorts the best chunk first."""
        return (not self.is_first, -self.score, self.chunk.source, self.chunk.index)


def score_as_json(score: float) -> float | str:
    """Return a score as a JSON value. Infinity, which JSON lacks, becomes "first"."""
    return score if math.isfinite(score) else "first"


def _weight_of(name: str, weights: Mapping[str, float] | None) -> float:
    weight = (weights or {}).get(name, 1.0)
    if not (math.isfinite(weight) and weight >= 0):
        raise ValueError(f"the weight of {name!r} must be finite and at least 0, got {weight}")
    return weight
