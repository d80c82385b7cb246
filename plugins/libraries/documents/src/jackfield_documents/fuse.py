"""Merge the rankings of several searchers into one."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from jackfield_search_parts.searching import Chunk, Hit


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
    chunks: dict[str, Chunk] = {}
    shares: defaultdict[str, list[float]] = defaultdict(list)
    ranks: defaultdict[str, dict[str, int]] = defaultdict(dict)
    pinned: set[str] = set()
    for name, hits in rankings.items():
        weight = _weight_of(name, weights)
        if not weight:
            continue
        for rank, hit in enumerate(hits, start=1):
            chunks[hit.chunk.id] = hit.chunk
            # Ranks, because one searcher's scores mean nothing beside another's.
            shares[hit.chunk.id].append(weight / (k + rank))
            of_chunk = ranks[hit.chunk.id]
            of_chunk[name] = rank
            # What a searcher says of others that it has asked counts only where they are not asked here.
            for other in hit.ranks.keys() - rankings.keys():
                of_chunk[other] = min(hit.ranks[other], of_chunk.get(other, hit.ranks[other]))
            if hit.score == math.inf:
                pinned.add(hit.chunk.id)
    # fsum: the sum is the same in whatever order the searchers come.
    score = {id_: math.fsum(parts) for id_, parts in shares.items()}
    best_first = sorted(chunks, key=lambda id_: (id_ not in pinned, -score[id_], chunks[id_].source, chunks[id_].index))
    return [Hit(chunks[id_], math.inf if id_ in pinned else score[id_], ranks[id_]) for id_ in best_first]


def score_as_json(score: float) -> float | str:
    """A score as JSON can have it: there is no number for infinity, which stands before all others."""
    return score if math.isfinite(score) else "first"


def _weight_of(name: str, weights: Mapping[str, float] | None) -> float:
    weight = (weights or {}).get(name, 1.0)
    if not (math.isfinite(weight) and weight >= 0):
        raise ValueError(f"the weight of {name!r} must be a finite number of at least 0, got {weight}")
    return weight
