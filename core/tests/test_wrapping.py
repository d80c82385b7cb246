"""Lines for a terminal are broken between words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.cli import split_line, width_of, wrap_line
from jackfield.cli._tables import layout_table
from jackfield.cli._wrapping import find_breaks

WORDS = st.text(st.sampled_from("abcdefghij-_/.,:"), min_size=1, max_size=18)
CHINESE = st.text(st.sampled_from("中文字符测试不会断开"), min_size=1, max_size=30)
LINES = st.lists(WORDS | CHINESE, min_size=1, max_size=20).map(" ".join)


@given(LINES, st.integers(20, 90), st.sampled_from(["", "  "]))
def test_no_line_is_too_wide_and_no_word_is_cut(line: str, columns: int, indent: str) -> None:
    lines = wrap_line(line, columns, indent=indent)
    assert max(map(width_of, lines)) <= columns
    assert "".join(lines).replace(" ", "") == line.replace(" ", "")
    words = {word for one in lines for word in one.split()}
    assert [word for word in line.split() if word.isascii() and word not in words] == []


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        ("使用pip安装jackfield吧", ["使用pip安装", "jackfield吧"]),
        ("这是中文，对吧", ["这是中文，对", "吧"]),
        ("一二三四五六。", ["一二三四五", "六。"]),  # no line begins with a full stop
        ("一二三四五（六）", ["一二三四五", "（六）"]),
        ("한국어 문장입니다", ["한국어", "문장입니다"]),
        ("abcdefghijklmnop", ["abcdefghijkl", "mnop"]),  # wider than a line
        ("e\u0301e\u0301 e\u0301", ["e\u0301e\u0301 e\u0301"]),
    ],
)
def test_chinese_is_broken_anywhere_and_other_words_nowhere(line: str, lines: list[str]) -> None:
    assert wrap_line(line, 12) == lines


@given(st.text(st.sampled_from("ab ,(")))
def test_a_text_is_split_in_the_same_places_with_and_without_chinese_after_it(text: str) -> None:
    pieces = list(split_line(text))
    assert "".join(pieces) == text
    assert list(split_line(f"{text}b 中")) == [*split_line(f"{text}b "), "中"]


ROWS = st.lists(st.tuples(WORDS, WORDS, LINES), min_size=1, max_size=5)


@given(ROWS, st.sampled_from([40, 80, 200]))
def test_no_table_is_too_wide_and_no_word_in_it_is_cut(rows: list[tuple[str, str, str]], columns: int) -> None:
    lines = layout_table(rows, columns)
    assert max(map(width_of, lines)) <= columns
    words = {word for line in lines for word in line.split()}
    asked = {word for row in rows for cell in row for word in cell.split()}
    assert [word for word in asked if word.isascii() and word not in words] == []


def test_the_columns_of_a_table_are_aligned_also_in_chinese() -> None:
    rows = [("a", "x"), ("中文", "y")]
    assert layout_table(rows, 0) == ["a     x", "中文  y"]


@pytest.mark.parametrize(
    ("line", "columns", "indent", "lines"),
    [
        ("", 5, "", [""]),
        ("one two", 7, "  ", ["one two"]),
        ("one two", 6, "  ", ["one", "  two"]),
        ("one two", 3, "  ", ["one", "two"]),  # the indentation is more than half
        ("one two", 4, "  ", ["one", "  tw", "  o"]),
        ("abcdef", 4, "", ["abcd", "ef"]),
        ("a    b", 3, "", ["a", "b"]),
        ("中文字", 4, "", ["中文", "字"]),
        ("中文。", 4, "", ["中", "文。"]),
        ("（中文", 4, "", ["（中", "文"]),
    ],
)
def test_lines_are_broken_where_they_may_be(line: str, columns: int, indent: str, lines: list[str]) -> None:
    assert wrap_line(line, columns, indent=indent) == lines


def test_the_width_of_a_text_is_that_on_a_terminal() -> None:
    assert [width_of(text) for text in ("", "abc", "中", "e\u0301", "\u200b", "ａ", "한")] == [0, 3, 2, 1, 0, 2, 2]
    assert find_breaks("ab cd ef", 5) == [6]
    assert list(split_line("  ab cd")) == ["  ab ", "cd"]
    assert list(split_line("你\u3000好 a\tß")) == ["你", "\u3000", "好 ", "a\tß"], (
        "only spaces belong to what is before"
    )
