"""Intervals: known values, and what holds for all."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jackfield_eval.statistics import bootstrap, mean, wilson


@pytest.mark.parametrize(
    ("passed", "of", "low", "high"),
    [(10, 10, 0.7225, 1.0), (0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (81, 263, 0.2553, 0.3662)],
)
def test_wilson_gives_the_published_values(passed: int, of: int, low: float, high: float) -> None:
    # The last is the example of Newcombe, Statistics in Medicine 17 (1998).
    assert wilson(passed / of, of) == pytest.approx((low, high), abs=6e-5)


@given(st.integers(0, 300), st.integers(1, 300))
@example(0, 125)  # these two round to a bound on the wrong side of the share
@example(4, 4)
def test_a_share_is_in_its_interval_which_is_within_0_and_1(passed: int, of: int) -> None:
    share = min(passed, of) / of
    low, high = wilson(share, of)
    assert 0 <= low <= share <= high <= 1


def test_more_trials_make_it_narrower() -> None:
    widths = [high - low for low, high in (wilson(0.8, of) for of in (5, 50, 500))]
    assert widths == sorted(widths, reverse=True)


def test_a_share_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 trial"):
        wilson(0, 0)


def test_the_same_seed_gives_the_same_interval_and_it_has_the_mean_in_it() -> None:
    values = [0.0, 0.25, 1.0, 1.0, 0.5, 0.75]
    found = bootstrap(values, seed=7)
    assert found == bootstrap(values, seed=7)
    assert found != bootstrap(values, seed=8)
    assert found is not None
    assert 0 < found[0] < mean(values) < found[1] < 1


def test_one_value_says_nothing_of_how_sure_it_is() -> None:
    assert bootstrap([0.5], seed=0) is None
    assert bootstrap([], seed=0) is None
    assert mean([]) == 0


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=9), st.integers(0, 9))
def test_both_ends_of_an_interval_leave_out_as_many_means(values: list[int], seed: int) -> None:
    interval, mirrored = (bootstrap([sign * value for value in values], seed=seed) for sign in (1.0, -1.0))
    assert interval is not None
    assert mirrored == (-interval[1], -interval[0])
