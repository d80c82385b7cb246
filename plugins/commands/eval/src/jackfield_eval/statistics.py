"""Compute confidence intervals of shares and means."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

Interval = tuple[float, float]

_Z = 1.959964  # the normal quantile for 95 %
_RESAMPLES = 2000


def wilson(share: float, of: int) -> Interval:
    """Return the 95 % confidence interval of a share.

    Args:
        share: The share, from 0 to 1.
        of: The number of independent trials, at least 1.

    Source: Wilson, JASA 22 (1927). Unlike the normal approximation, it is valid for few trials and for 0 and 1.
    """
    if of < 1:
        raise ValueError(f"a proportion needs at least 1 trial, got {of}")
    square = _Z * _Z / of
    middle = (share + square / 2) / (1 + square)
    half = _Z * math.sqrt(share * (1 - share) / of + square / (4 * of)) / (1 + square)
    # Rounding may leave a tiny gap between the interval and a share of 0 or 1.
    return min(share, max(0.0, middle - half)), max(share, min(1.0, middle + half))


def bootstrap(values: Sequence[float], *, seed: int) -> Interval | None:
    """Return the 95 % confidence interval of a mean from bootstrap percentiles, or None for fewer than two values.

    The same values and seed always give the same interval.
    """
    if len(values) < 2:
        return None
    draw = random.Random(seed).choices  # noqa: S311 - resampling, not a secret
    means = sorted(math.fsum(draw(values, k=len(values))) / len(values) for _ in range(_RESAMPLES))
    tail = _RESAMPLES // 40
    return means[tail], means[-tail - 1]


def mean(values: Sequence[float]) -> float:
    """Return the mean, or 0 if there are no values."""
    return math.fsum(values) / len(values) if values else 0.0
