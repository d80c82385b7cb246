"""An estimate is a tokenizer without tokens, and comes near what a server counts."""

from __future__ import annotations

import pytest

from jackfield.errors import ConfigError
from jackfield_counting.estimating import EstimatingTokenizer, estimate_tokens

ENGLISH = "The quick brown fox jumps over the lazy dog, and then it rests in the shade of an old oak tree. "


def test_an_estimate_says_that_it_is_one_and_has_no_ids() -> None:
    estimate = EstimatingTokenizer()
    assert not estimate.exact
    assert estimate.count(ENGLISH) == estimate_tokens(ENGLISH)
    for ask in (lambda: estimate.encode("a"), lambda: estimate.decode([1])):
        with pytest.raises(ConfigError, match="has no token ids"):
            ask()


def test_an_estimate_comes_near_what_a_server_counts_and_never_loses_its_head() -> None:
    estimate = EstimatingTokenizer()
    text = ENGLISH * 20
    for _ in range(60):
        estimate.learn(estimate.count(text), 2 * estimate_tokens(text))
    assert estimate.count(text) == pytest.approx(2 * estimate_tokens(text), rel=0.02)
    for _ in range(200):
        estimate.learn(estimate.count(text), 2 * estimate.count(text))
        assert 0.5 <= estimate.factor <= 3.0
    before = estimate.factor
    estimate.learn(1000, 10**9)  # what counts something else
    estimate.learn(1000, 1)
    estimate.learn(10, 1000)  # what surrounds a small text weighs more than it
    estimate.learn(1000, 0)  # a server that does not count
    assert estimate.factor == before
