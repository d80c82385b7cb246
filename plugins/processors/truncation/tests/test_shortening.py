"""Texts that are too long are cut to one size, and say how much is missing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from jackfield.config import Lang
from jackfield_truncation.shortening import common_size, keep_both_ends


@pytest.mark.parametrize(
    ("sizes", "total", "size"),
    [
        ([], 10, 0),
        ([3], 3, 3),
        ([3], 2, 2),
        ([1, 5, 9], 15, 9),
        ([1, 5, 9], 14, 8),
        ([9, 1, 5], 11, 5),
        ([9, 1, 5], 10, 4),
        ([5, 5], 9, 4),
        ([5, 5], 1, 0),
        ([5, 5], 0, 0),
        ([5, 5], -1, -1),
        ([5, 5], -9, -1),
    ],
)
def test_longer_texts_are_cut_to_one_size_that_uses_all_the_room(sizes: Sequence[int], total: int, size: int) -> None:
    assert common_size(sizes, total) == size


@pytest.mark.parametrize(
    ("lang", "note"), [("en", "\n[{} characters left out here]\n"), ("zh", "\n[此处省略 {} 个字符]\n")]
)
def test_a_text_without_its_middle_says_how_much_is_missing(lang: Lang, note: str) -> None:
    text = "".join(chr(ord("a") + number % 26) for number in range(1000))
    for most in (100, 101, 500, 999):
        cut = keep_both_ends(text, most, len, lang)
        missing = next(count for count in range(1001) if note.format(count) in cut)
        head, _, tail = cut.partition(note.format(missing))
        assert len(head) + len(tail) == 1000 - missing
        assert (text.startswith(head), text.endswith(tail)) == (True, True)
        assert len(head) - len(tail) in (0, 1)
        assert 0.9 * most <= len(cut) <= most
    assert keep_both_ends(text, 1000, len, lang) is text


def test_where_there_is_no_room_for_a_note_the_beginning_is_kept() -> None:
    assert keep_both_ends("0123456789" * 9, 10, len, "en") in ("0123456789", "012345678")
    assert keep_both_ends("0123456789", 0, len, "en") == ""
    assert keep_both_ends("0123456789", 1, len, "en") == "0"
    assert keep_both_ends("", 0, len, "en") == ""
