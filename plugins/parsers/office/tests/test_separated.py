from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import DocParserError
from jackfield_documents import pipe_table
from jackfield_office.separated import CsvConfig, CsvParser


def table(text: str, **settings: str) -> str:
    (block,) = CsvParser(CsvConfig(**settings)).parse(text.encode(), source="x.csv").blocks
    assert block.kind == "table"
    return block.text


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n",
        "a;b\r\n1;2",
        "a\tb\n1\t2\n",
        "a|b\n1|2\n",
        '"a","b"\n"1","2"\n',
        "a,b,\n1,2,\n,,\n",
    ],
)
def test_what_stands_between_the_values_is_found_out(text: str) -> None:
    assert table(text) == "| a | b |\n|---|---|\n| 1 | 2 |"


def test_commas_in_numbers_do_not_hide_the_semicolons() -> None:
    assert table("sort;price\ntea;1,5\nmilk;2\n") == "| sort | price |\n|---|---|\n| tea | 1,5 |\n| milk | 2 |"


def test_a_setting_decides() -> None:
    assert table("a,b\n1,2\n", delimiter=";") == "| a,b |\n|---|\n| 1,2 |"


def test_lines_and_pipes_in_values_stay_in_their_cells() -> None:
    assert table('a,b\n"x\ny|z",2\n') == "| a | b |\n|---|---|\n| x<br>y\\|z | 2 |"


def test_a_quotation_mark_that_is_never_closed_hides_no_rows() -> None:
    rows = "".join(f"row {number},x\n" for number in range(20_000))
    assert table(f'a,b\n"inch,x\n{rows}').count("\n") == 20_002


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a,b;c\n", ","),  # of two that divide equally, the usual one
        ("a\tb;c\n", "\t"),
        ("a;b|c\n", ";"),
        ("a,b;c;d\n", ";"),
        ("a,b;c\n1;2\n", ";"),
        ("alone\n", ","),
        ("a;b\n" + 3 * " \n" + "c;d\n", ";"),
        ("a;b\n" + 49 * "1;2\n" + 500 * "x,y,z\n", ";"),
        ("a;b\n" + 22 * "1;2\n" + 27 * "x,y,z\n", ","),
        ("\n \n" * 20 + "a;b\n" + "x,y,z\n" * 30, ","),
        ('"a,b";"c,d"\n"e,f";g\n', ";"),
        ("one;two,three,four\nfive;six\nseven;eight\n", ";"),
    ],
)
def test_the_separator_divides_the_first_fifty_lines_most_evenly(text: str, delimiter: str) -> None:
    assert CsvParser().parse(text.encode(), source="x.csv").metadata["delimiter"] == delimiter


def test_the_separator_and_the_encoding_are_noted() -> None:
    document = CsvParser(CsvConfig(delimiter="-")).parse("é-b\n".encode("utf-16"), source="x.csv")
    assert document.blocks[0].text == "| é | b |\n|---|---|"
    assert (document.metadata["delimiter"], document.metadata["encoding"]) == ("-", "utf-16")


@pytest.mark.parametrize(("limit", "is_read"), [(3, True), (2, False)])
def test_a_file_may_have_as_many_columns_as_allowed(limit: int, is_read: bool) -> None:
    parser = CsvParser(CsvConfig(max_columns=limit))
    if is_read:
        assert parser.parse(b"a,b\n1,2,3\n", source="x.csv").blocks
    else:
        with pytest.raises(
            DocParserError, match=r"^x\.csv cannot be read: a row has 3 columns\. Split it, or increase max_c"
        ):
            parser.parse(b"a,b\n1,2,3\n", source="x.csv")


@pytest.mark.parametrize("text", ["\n", ",,\n,\n", '""\n', "   "])
def test_a_file_without_values_is_empty(text: str) -> None:
    with pytest.raises(DocParserError, match=r"^x\.csv is empty"):
        CsvParser().parse(text.encode(), source="x.csv")


def test_a_quote_that_hides_the_separators_leaves_them_to_be_counted() -> None:
    rows = "".join(f"{number};x,y;z\n" for number in range(20_000))
    document = CsvParser().parse(f'a;b;c\n"{rows}'.encode(), source="x.csv")
    assert document.metadata["delimiter"] == ";"
    assert document.blocks[0].text.splitlines()[2] == '| "0 | x,y | z |'


def test_too_many_columns_are_refused_by_name() -> None:
    with pytest.raises(DocParserError, match=r"^wide\.csv cannot be read: a row has 1000001 columns"):
        CsvParser().parse(b"," * 1_000_000 + b"x", source="wide.csv")


VALUES = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=8)


@given(st.lists(st.lists(VALUES, min_size=2, max_size=4), min_size=1, max_size=6))
def test_what_a_program_writes_is_what_is_read(rows: list[list[str]]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    expected = pipe_table(rows)
    if expected and text.getvalue().strip():
        assert table(text.getvalue(), delimiter=",") == expected
