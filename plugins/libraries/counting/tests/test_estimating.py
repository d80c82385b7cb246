"""An estimate is a tokenizer without tokens, and comes near what a server counts."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

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
    estimate.learn(199, 300)  # what surrounds a small text weighs more than it
    estimate.learn(1000, 0)  # a server that does not count
    assert estimate.factor == before


@given(st.text(min_size=1), st.floats(0.01, 3))
@example(" ", 1.0)
def test_a_text_that_is_not_empty_has_at_least_one_token(text: str, factor: float) -> None:
    assert estimate_tokens(text) >= 1
    assert EstimatingTokenizer(factor).count(text) >= 1
    assert estimate_tokens("") == EstimatingTokenizer(factor).count("") == 0


def test_one_count_moves_the_estimate_a_tenth_of_the_way() -> None:
    estimate = EstimatingTokenizer()
    estimate.learn(200, 300)
    assert estimate.factor == pytest.approx(1.05)
    estimate = EstimatingTokenizer(factor=2.0)
    estimate.learn(1000, 3000)  # a factor of 6 is wanted, and 3 is the most
    assert estimate.factor == pytest.approx(2.1)


@pytest.mark.parametrize(("counted", "factor"), [(499, 1.0), (500, 0.95), (1000, 1.0), (3000, 1.2), (3001, 1.0)])
def test_a_count_is_believed_from_half_to_three_times_of_the_estimate(counted: int, factor: float) -> None:
    estimate = EstimatingTokenizer()
    estimate.learn(1000, counted)
    assert estimate.factor == pytest.approx(factor)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("数据" * 50, 68),
        ("word " * 20, 20),
        ("1234567890", 10),
        ("internationalisation", 4),
        ("." * 8, 4),
        ("=" * 80, 10),
    ],
)
def test_the_weights_of_the_estimate_are_those_that_were_fitted(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


# A text as pieces, and the weight of each in parts of 200 of a token.
CJK = r"\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef"
PIECE = re.compile(
    rf"(?P<ideograph>[{CJK}])"
    rf"|(?P<word>[^\W\d_{CJK}]+)"
    r"|(?P<digit>\d)"
    r"|(?P<space>[^\S\u3000]{2,}|[\n\t])"
    rf"|(?P<signs>[^\w\s{CJK}]+|_+)"
)
TEXTS = st.lists(
    st.tuples(
        st.sampled_from([*"ab1_ \n\t.,-é²\x81\x85。中あ한“”٣Ωж𝔘", "\u3000", "\u2003", "\ud800"]), st.integers(1, 12)
    )
).map(lambda runs: "".join(char * length for char, length in runs))


def estimate_by_pieces(text: str) -> int:
    weight = 0
    for piece in PIECE.finditer(text):
        size = len(piece[0])
        match piece.lastgroup:
            case "ideograph":
                weight += 136
            case "word":
                weight += 200 + 40 * max(0, size - 7)
            case "signs":
                weight += 200 * ((size + 1) // 2) if size <= 8 else 25 * size
            case _:
                weight += 200
    return max(1, (weight + 100) // 200) if text else 0


@given(st.one_of(st.text(), TEXTS))
@example("a_9 \n\t…。")
def test_an_estimate_is_the_sum_of_the_weights_of_its_pieces(text: str) -> None:
    assert estimate_tokens(text) == estimate_by_pieces(text)


@given(TEXTS.filter(bool), st.integers(4000, 4200))
def test_a_long_text_is_estimated_like_a_short_one(text: str, length: int) -> None:
    long = (text * (length // len(text) + 1))[:length] + text
    assert estimate_tokens(long) == estimate_by_pieces(long)
