"""Normal forms are those of Unicode, and no text makes them slow."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.normal_forms import NormalForm, normalize

FORMS: tuple[NormalForm, ...] = ("NFC", "NFD", "NFKC", "NFKD")


@given(st.text(max_size=40), st.sampled_from(FORMS))
def test_a_text_without_endless_marks_is_normalised_as_python_does(text: str, form: NormalForm) -> None:
    assert normalize(form, text) == unicodedata.normalize(form, text)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("marks", ["\u0301\u0316", "\u0344\u0316", "\u0316\u0f73", "\u302a\u0301", "\U0001d165\u0301"])
def test_endless_marks_take_linear_time(form: NormalForm, marks: str) -> None:
    text = normalize(form, "a" + marks * 150_000)  # sorting them takes a minute
    assert len(text) >= 200_000


def test_thirty_marks_stay_in_a_row() -> None:
    row = "a" + "\u0301\u0316" * 15
    assert normalize("NFD", row) == unicodedata.normalize("NFD", row)
    assert normalize("NFD", row + "\u0301").count("\u034f") == 1


@pytest.mark.parametrize("mark", ["\u0301", "\u0f71", "\U0001d165", "\U0001e8d0"])
def test_marks_in_their_order_are_left_alone_however_many_they_are(mark: str) -> None:
    text = "x" + mark * 100
    for form in FORMS:
        if unicodedata.is_normalized(form, text):
            assert normalize(form, text) == text


@pytest.mark.parametrize("pair", ["\u0301\u0316", "\U0001d185\U0001e8d0", "\u0f73\u0f71"])
def test_a_row_is_broken_after_thirty_marks_and_not_before(pair: str) -> None:
    for count in (30, 31, 60, 61):
        text = "x" + (pair * count)[:count] + "y"
        assert not unicodedata.is_normalized("NFD", text)
        assert normalize("NFD", text).count("\u034f") == (count - 1) // 30
