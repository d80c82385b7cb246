"""How sure a share or a mean is."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

Interval = tuple[float, float]

_Z = 1.959964  # of the normal distribution, for 95 %
_RESAMPLES = 2000


def wilson(share: float, of: int) -> Interval:
    """The 95 % interval of a share.

    Args:
        share: From 0 to 1.
        of: How many independent trials it comes from, at least 1.

    Source: Wilson, JASA 22 (1927); it holds for few trials, and for shares of 0 and 1, where the usual one does not.
    """
    if of < 1:
        raise ValueError(f"a share comes from at least 1 trial, not {of}")
    square = _Z * _Z / of
    middle = (share + square / 2) / (1 + square)
    half = _Z * math.sqrt(share * (1 - share) / of + square / (4 * of)) / (1 + square)
    # Rounding may leave a hair's breadth between the interval and a share of 0 or 1.
    return min(share, max(0.0, middle - half)), max(share, min(1.0, middle + half))


def bootstrap(values: Sequence[float], *, seed: int) -> Interval | None:
    """The 95 % interval of the mean of values, by percentiles of resamples; None for less than two values.

    The same values and the same seed give the same interval.
    """
    if len(values) < 2:
        return None
    draw = random.Random(seed).choices  # noqa: S311 - resampling, and not a secret
    means = sorted(math.fsum(draw(values, k=len(values))) / len(values) for _ in range(_RESAMPLES))
    tail = _RESAMPLES // 40
    return means[tail], means[-tail - 1]


def mean(values: Sequence[float]) -> float:
    """The mean; 0 of nothing."""
    return math.fsum(values) / len(values) if values else 0.0
