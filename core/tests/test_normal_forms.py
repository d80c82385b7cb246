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
