"""The estimate of tokens: near enough for budgets, and never nothing for something."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jackfield.tokenizers import Tokenizer
from jackfield_counting.estimating import estimate_tokens

# The counts below are those of the vocabulary of Qwen 1 to 3; short texts are allowed a little more than long ones.
ENGLISH = (
    "The licenses for most software and other practical works are designed to take away your freedom to share and "
    "change the works. By contrast, this license is intended to guarantee your freedom to share and change all "
    "versions of a program, to make sure it remains free software for all its users."
)
CODE = (
    "def fuse(rankings, k=60):\n    score = {}\n    for ranking in rankings:\n"
    "        for rank, name in enumerate(ranking, start=1):\n"
    "            score[name] = score.get(name, 0) + 1 / (k + rank)\n"
    "    return sorted(score, key=score.get, reverse=True)\n"
)
CHINESE = "机器学习是人工智能的一个分支，它研究计算机怎样模拟或实现人类的学习行为，以获取新的知识或技能。"


@pytest.mark.parametrize(
    ("text", "tokens", "below", "above"),
    [(ENGLISH, 56, 0.1, 0.2), (CODE, 68, 0.1, 0.2), (CHINESE, 25, 0.3, 0.35), ("a " * 99 + "a", 100, 0.05, 0.05)],
    ids=["English", "code", "Chinese", "letters"],
)
def test_the_estimate_is_near_the_count_of_a_real_vocabulary(
    text: str, tokens: int, below: float, above: float
) -> None:
    assert tokens * (1 - below) <= estimate_tokens(text) <= tokens * (1 + above)


@given(st.text(max_size=100))
def test_only_the_empty_text_has_no_tokens(text: str) -> None:
    assert (estimate_tokens(text) == 0) == (text == "")


@given(st.text(max_size=60), st.text(max_size=60))
def test_two_texts_together_have_about_as_many_as_apart(a: str, b: str) -> None:
    apart = estimate_tokens(a) + estimate_tokens(b)
    # At the seam two pieces may become one, and each text alone is rounded.
    assert abs(estimate_tokens(a + b) - apart) <= 6


@given(st.text(min_size=1, max_size=20))
def test_a_text_has_no_more_tokens_than_bytes(text: str) -> None:
    assert estimate_tokens(text) <= 2 * len(text.encode())


# --- tokenizers ---


class Letters(Tokenizer):
    """Each character is a token, and each pair of equal ones is one token: so a longer text may have fewer."""

    name = "letters"

    def encode(self, text: str) -> list[int]:
        tokens: list[int] = []
        for letter in text:
            if tokens and tokens[-1] == ord(letter):
                tokens[-1] = -ord(letter)
            else:
                tokens.append(ord(letter))
        return tokens

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(chr(abs(token)) * (2 if token < 0 else 1) for token in tokens)


@given(st.text(alphabet="ab", max_size=30), st.integers(-1, 12))
@example("ababab", 1)
@example("ababab", 2)
@example("ab" * 20, 5)
def test_a_cut_text_is_a_beginning_within_the_limit_and_a_text_that_fits_stays(text: str, most: int) -> None:
    letters = Letters()
    cut = letters.cut(text, most)
    assert text.startswith(cut)
    assert letters.count(cut) <= max(0, most)
    assert (cut == text) == (letters.count(text) <= max(0, most))
    if cut != text:
        assert letters.count(text[: len(cut) + 1]) > most, "another character would have fitted"
