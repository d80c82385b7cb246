from __future__ import annotations

import pytest

from jackfield.errors import DocParserError
from jackfield_text.plain import TextParser


def parse(text: str) -> list[tuple[str, int | None]]:
    return [(block.text, block.page) for block in TextParser().parse(text.encode(), source="a.txt").blocks]


def test_a_blank_line_ends_a_paragraph_and_lines_stay() -> None:
    assert parse("one\ntwo\n\n  \nthree\n\n\n") == [("one\ntwo", None), ("three", None)]


def test_indented_text_keeps_its_indent() -> None:
    assert parse("def f():\n    pass\n\n    indented") == [("def f():\n    pass", None), ("    indented", None)]


def test_a_form_feed_begins_a_page() -> None:
    assert parse("one\n\ftwo\n\nthree\f\ffour") == [("one", 1), ("two", 2), ("three", 2), ("four", 4)]


def test_the_title_is_the_first_line_if_it_can_be_one() -> None:
    parser = TextParser()
    assert parser.parse(b"\n\n  A Title\nmore", source="a.txt").title == "A Title"
    assert parser.parse(b"word " * 100, source="a.txt").title == ""


@pytest.mark.parametrize("data", [b" \n\t\n", b"\xef\xbb\xbf", b"\xff\xfe"])
def test_a_file_without_text_is_refused(data: bytes) -> None:
    with pytest.raises(DocParserError, match=r"a\.txt is empty"):
        TextParser().parse(data, source="a.txt")
