"""Cells of grids, and grids that are a drawing: rules cross more than a word or two."""

from __future__ import annotations

import pytest

from jackfield_pdf.cells import Word, is_drawing, table_rows
from jackfield_pdf.grids import Grid, Rule, grids_of

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


def across(*rules: tuple[float, float, float]) -> list[Rule]:
    return [Rule(*rule) for rule in rules]


def square(xs: tuple[float, ...], ys: tuple[float, ...]) -> tuple[list[Rule], list[Rule]]:
    return across(*((y, xs[0], xs[-1]) for y in ys)), across(*((x, ys[0], ys[-1]) for x in xs))


def shapes(grids: list[Grid]) -> list[tuple[tuple[float, ...], tuple[float, ...]]]:
    return [(grid.xs, grid.ys) for grid in grids]


def test_rules_form_a_table_of_at_least_two_rows_and_columns_and_four_cells() -> None:
    xs, ys = (0.0, 10.0, 20.0), (0.0, 10.0, 20.0)
    assert shapes(grids_of(*square(xs, ys))) == [(xs, ys)]
    assert grids_of(*square((0, 10, 20, 30, 40, 50), (0, 10))) == []
    assert grids_of(*square((0, 10), (0, 10, 20, 30, 40, 50))) == []
    rows, columns = square(xs, ys)
    assert grids_of(rows, [columns[0], Rule(10.0, 0.0, 10.0), columns[2]]) == [], "three cells"
    tick = Rule(15.0, 0.0, 3.9)
    assert shapes(grids_of([*rows, tick], columns)) == [(xs, ys)], "a tick is no rule"


def test_a_table_that_is_open_at_its_sides_ends_where_its_rules_end() -> None:
    rows = across((0, 0, 30), (10, 0, 30), (20, 0, 30))
    assert shapes(grids_of(rows, across((10, 0, 20), (20, 0, 20)))) == [((0, 10, 20, 30), (0, 10, 20))]
    assert shapes(grids_of(across((10, 0, 20), (20, 0, 20)), rows)) == [((0, 10, 20), (0, 10, 20, 30))]


def test_tables_come_from_the_top_and_rules_that_are_linked_at_last_are_of_one() -> None:
    low, high = square((0, 10, 20), (0, 10, 20)), square((0, 10, 20), (100, 110, 120))
    assert [grid.ys[0] for grid in grids_of([*low[0], *high[0]], [*low[1], *high[1]])] == [100, 0]
    rows = across((0, 0, 20), (10, 0, 20), (20, 0, 5), (30, 0, 20))
    columns = across((0, 0, 10), (0, 20, 30), (10, 10, 30), (20, 10, 30))
    assert shapes(grids_of(rows, columns)) == [((0, 10, 20), (0, 10, 20, 30))]


def test_squares_without_a_rule_between_them_are_one_cell() -> None:
    columns = across((0, 0, 30), (10, 0, 30), (20, 0, 30))
    right = across((0, 0, 20), (10, 0, 10), (20, 0, 20), (30, 0, 20))
    left = across((0, 0, 20), (10, 10, 20), (20, 0, 20), (30, 0, 20))
    assert [grid.cells for grid in grids_of(right, columns)] == [((0, 1), (2, 1), (4, 5))]
    assert [grid.cells for grid in grids_of(left, columns)] == [((0, 1), (0, 3), (4, 5))]


def test_words_of_a_cell_are_separated_as_they_are_on_the_page() -> None:
    first = [Word("a", "\n", 1, 2, 5, 1), Word("b", "", 2, 3, 5, 1), Word("c", " ", 4, 5, 5, 1)]
    found = {0: [*first, Word("d", "\n", 1, 2, 3, 1)], 3: [Word("e", "\n", 11, 12, 15, 1)]}
    assert table_rows(SQUARE, found) == [["", "e"], ["ab c\nd", ""]]


@pytest.mark.parametrize(
    ("low", "high", "base", "rows"),
    [
        ((10,), (36, 24), 30, [["tall", "1", "2"], ["", "1", "2"], ["", "1", "2"]]),
        ((16, 4), (30,), 10, [["tall", "1", "2"], ["", "1", "2"], ["", "1", "2"]]),
        ((16, 4), (36, 24), 20, [["", "1", "2"], ["tall", "1", "2"], ["", "1", "2"], ["", "1", "2"]]),
    ],
)
def test_the_text_of_a_cell_in_several_rows_makes_no_row_of_its_own(
    low: tuple[float, ...], high: tuple[float, ...], base: float, rows: list[list[str]]
) -> None:
    grid = Grid((0.0, 20.0, 40.0, 60.0), (0.0, 20.0, 40.0), ((0, 1, 2), (0, 3, 4)))
    found = {0: [Word("tall", "", 2, 12, base, 3)]}
    for cell, bases in ((1, low), (2, low), (3, high), (4, high)):
        left = 22 if cell in (1, 3) else 42
        found[cell] = [Word("1" if left == 22 else "2", "\n", left, left + 5, line, 3) for line in bases]
    assert table_rows(grid, found) == rows


@pytest.mark.parametrize(
    ("box", "meets"),
    [
        ((5, 6, 5, 6), True),
        ((-1, 1, 5, 6), True),
        ((-2, 0, 5, 6), False),
        ((20, 21, 5, 6), False),
        ((5, 6, -2, 0), False),
        ((5, 6, 20, 21), False),
    ],
)
def test_a_box_meets_a_table_if_they_overlap(box: tuple[float, float, float, float], meets: bool) -> None:
    assert SQUARE.meets(*box) is meets


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
