"""Exact texts are replaced, with the line ends of the file, and up to a size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import ToolArgumentError
from jackfield_files.edits import Edit, apply_edits


def fail(*edits: Edit, text: str = "a\nab\nabc\nabcd\n", most_chars: int = 1000) -> str:
    with pytest.raises(ToolArgumentError) as caught:
        apply_edits(text, edits, most_chars=most_chars)
    return str(caught.value)


@pytest.mark.parametrize("number", [1, 2])
def test_of_several_edits_the_one_that_fails_is_named(number: int) -> None:
    fits = [Edit("abcd", "abcd")] * (number - 1)
    rest = [Edit("bcd", "bcd")] * (2 - number)
    assert fail(*fits, Edit("x", "y"), *rest).startswith(f"edit {number}: old_text does not occur")
    assert fail(*fits, Edit("a", "b"), *rest).startswith(f"edit {number}: old_text occurs more than once")
    assert fail(*fits, Edit("abcd", "x" * 99), *rest, most_chars=50).startswith(
        f"edit {number}: the file would be longer"
    )


def test_up_to_three_similar_lines_are_shown() -> None:
    text = "tides one\ntides two\nelse\ntides three\n"
    assert sorted(fail(Edit("tides four", "x"), text=text).split("\n")[1:]) == [
        "1\ttides one", "2\ttides two", "4\ttides three"
    ]  # fmt: skip


def edit(text: str, old: str, new: str, *, everywhere: bool = False, most_chars: int = 1000) -> str:
    return apply_edits(text, [Edit(old, new, everywhere)], most_chars=most_chars)[0]


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("a\r\nb\r\n", "a\nb", "c\nd", "c\r\nd\r\n"),
        ("a\r\nb\r\n", "a\r\nb", "c\r\nd", "c\r\nd\r\n"),
        ("a\r\nb\nc\n", "b\nc", "d\ne", "a\r\nd\ne\n"),
        ("a\r\nb\nc\n", "a\r\nb", "d", "d\nc\n"),
        ("a\nb\n", "a\nb", "c\r\nd", "c\r\nd\n"),
    ],
)
def test_line_breaks_mean_crlf_only_where_all_lines_of_the_file_end_so(
    text: str, old: str, new: str, expected: str
) -> None:
    assert edit(text, old, new) == expected


def test_in_a_file_of_mixed_line_ends_no_text_with_other_ones_is_found() -> None:
    with pytest.raises(ToolArgumentError, match="does not occur"):
        edit("a\r\nb\nc\n", "a\nb", "d")


@given(st.text("ab", min_size=1, max_size=20), st.text("cd", max_size=5))
def test_a_file_has_up_to_so_many_characters(text: str, new: str) -> None:
    result = text.replace("a", new)
    if "a" not in text:
        return
    assert edit(text, "a", new, everywhere=True, most_chars=len(result)) == result
    if len(result):
        with pytest.raises(ToolArgumentError, match=f"would be longer than {len(result) - 1:,} characters"):
            edit(text, "a", new, everywhere=True, most_chars=len(result) - 1)
