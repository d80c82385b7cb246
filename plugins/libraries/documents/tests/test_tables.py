from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from jackfield_documents import pipe_table
from jackfield_testkit.streams import work_of


def test_a_table_has_a_header_and_a_line_for_each_row() -> None:
    assert pipe_table([["name", "water"], ["black", "boiling"]]) == "| name | water |\n|---|---|\n| black | boiling |"


def test_pipes_are_escaped_and_lines_are_broken() -> None:
    assert pipe_table([["a|b"], ["first\r\n\nsecond "]]) == "| a\\|b |\n|---|\n| first<br>second |"


def test_rows_and_columns_without_text_are_left_out() -> None:
    assert (
        pipe_table([["", "a", "", "b"], ["", " ", "", "\n"], ["", "1", "", "2"]]) == "| a | b |\n|---|---|\n| 1 | 2 |"
    )


def test_a_header_that_is_too_short_is_made_longer() -> None:
    assert pipe_table([["a"], ["1", "2"]]) == "| a |  |\n|---|---|\n| 1 | 2 |"


@pytest.mark.parametrize("rows", [[], [[]], [["", " "], ["\n"]]])
def test_without_any_text_there_is_no_table(rows: list[list[str]]) -> None:
    assert pipe_table(rows) == ""


def test_one_wide_row_makes_no_other_row_longer() -> None:
    rows = [["x"] * 3000, *([["y"]] * 3000)]
    assert len(pipe_table(rows)) < 12 * 6000


def test_one_wide_row_makes_no_other_row_more_work() -> None:
    def work_of_a_row(count: int) -> float:
        rows = [[*(["x"] * count), ""], *([["y"]] * count)]
        return work_of(lambda: pipe_table(rows), [0]) / count

    assert work_of_a_row(800) <= 2 * work_of_a_row(100)


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="`<"), max_size=12)


@given(st.lists(st.lists(TEXTS, min_size=1, max_size=4), min_size=1, max_size=5))
def test_what_stands_in_a_cell_never_makes_another_cell(rows: list[list[str]]) -> None:
    table = pipe_table(rows)
    if not table:
        return
    tokens = MarkdownIt("commonmark").enable("table").parse(table)
    assert [token.type for token in tokens if token.level == 0] == ["table_open", "table_close"]
    filled = [[text for text in row if text.strip()] for row in rows]
    read = [token.content for token in tokens if token.type == "inline" and token.content]
    assert len(read) == sum(map(len, filled))
