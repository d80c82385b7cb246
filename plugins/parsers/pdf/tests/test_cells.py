"""Cells of grids, and grids that are a drawing: rules cross more than a word or two."""

from __future__ import annotations

import pytest

from jackfield_pdf.cells import Word, is_drawing
from jackfield_pdf.grids import Grid

SQUARE = Grid((0.0, 10.0, 20.0), (0.0, 10.0, 20.0), ((0, 1), (2, 3)))
CROOKED = Grid((0.0, 10.0, 20.0), (0.0, 10.0, 20.0), ((0, 1), (0, 0)))


def words(count: int) -> dict[int, list[Word]]:
    return {0: [Word("a", " ", 1.0, 2.0, 5.0, 1.0)] * count}


@pytest.mark.parametrize(
    ("count", "cut", "is_one"),
    [(4, 0, False), (4, 1, False), (4, 2, True), (20, 2, True), (21, 2, False), (30, 3, True), (0, 0, False)],
)
def test_rules_that_cut_at_least_a_tenth_of_the_words_are_a_drawing(count: int, cut: int, is_one: bool) -> None:
    assert is_drawing(SQUARE, words(count), cut) == is_one


def test_rules_that_form_no_rectangles_are_a_drawing() -> None:
    assert is_drawing(CROOKED, words(4), 0)


@pytest.mark.parametrize(
    ("box", "cell"),
    [
        ((1, 9, 1, 9), 0),
        ((11, 19, 1, 9), 1),
        ((11, 19, 11, 19), 3),
        ((9, 11, 1, 9), None),
        ((1, 9, 9, 11), None),
        ((-1, 9, 1, 9), None),
        ((1, 9, -1, 9), None),
        ((11, 21, 1, 9), None),
        ((21, 29, 1, 9), None),
        ((1, 9, 21, 29), None),
    ],
)
def test_a_box_is_in_a_cell_if_it_crosses_no_rule(box: tuple[float, float, float, float], cell: int | None) -> None:
    assert SQUARE.cell_around(*box) == cell
