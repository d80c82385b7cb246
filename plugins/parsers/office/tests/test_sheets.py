from __future__ import annotations

import datetime
from typing import Any

import pytest

from jackfield.errors import DocParserError
from jackfield.retrieval import unread_parts
from jackfield_office.sheets import SpreadsheetConfig, SpreadsheetParser


def test_each_sheet_is_a_page_with_its_name_and_a_table(files: Any) -> None:
    data = files.book(
        Sorts=[["sort", "min"], ["a|b", 2]], Empty=[], Prices=[[None, None], [None, "price"], [None, 3.5]]
    )
    document = SpreadsheetParser().parse(data, source="x.xlsx")
    assert [(block.page, block.kind, block.text) for block in document.blocks] == [
        (1, "heading", "Sorts"),
        (1, "table", "| sort | min |\n|---|---|\n| a\\|b | 2 |"),
        (3, "heading", "Prices"),
        (3, "table", "| price |\n|---|\n| 3.5 |"),
    ]
    assert document.metadata["sheets"] == ["Sorts", "Empty", "Prices"]


def test_values_are_written_as_people_write_them(files: Any) -> None:
    times = [datetime.date(2026, 1, 2), datetime.datetime(2026, 1, 2, 3, 4)]  # noqa: DTZ001 - as in a spreadsheet
    values = [3.0, 0.1, -2, 10**14, True, *times, "x\ny", None, "z"]
    document = SpreadsheetParser().parse(files.book(Sheet=[values]), source="x.xlsx")
    assert document.blocks[1].text.splitlines()[0] == (
        "| 3 | 0.1 | -2 | 100000000000000 | TRUE | 2026-01-02 | 2026-01-02 03:04:00 | x<br>y | z |"
    )


def test_a_file_of_before_2007_is_read(files: Any) -> None:
    data = files.old_book(Old=[["a", "b"], ["é中", 2.5]])
    document = SpreadsheetParser().parse(data, source="x.xls")
    assert [block.text for block in document.blocks] == ["Old", "| a | b |\n|---|---|\n| é中 | 2.5 |"]


def test_a_new_file_with_an_old_name_is_read(files: Any) -> None:
    assert SpreadsheetParser().parse(files.book(Sheet=[["a"]]), source="x.xls").blocks[1].text == "| a |\n|---|"


def test_two_cells_at_the_ends_of_a_sheet_do_not_make_a_table_of_all_between(files: Any) -> None:
    def far(old: bytes) -> bytes:
        return old.replace(b'r="A2"', b'r="XFD1048576"').replace(b'<row r="2"', b'<row r="1048576"')

    data = files.changed(files.book(Sheet=[["a"], ["b"]]), {"xl/worksheets/sheet1.xml": far})
    with pytest.raises(
        DocParserError, match=r"x\.xlsx cannot be read: a sheet has 2 cells in 1048576 rows and 16384 col"
    ):
        SpreadsheetParser().parse(data, source="x.xlsx")


def test_a_sheet_that_is_filled_is_read_however_wide_it_is(files: Any) -> None:
    data = files.book(Sheet=[[1] * 800] * 30)
    assert SpreadsheetParser().parse(data, source="x.xlsx").blocks[1].text.count("\n") == 30


def test_a_sheet_with_more_rows_than_allowed_is_refused(files: Any) -> None:
    parser = SpreadsheetParser(SpreadsheetConfig(max_rows=2))
    with pytest.raises(DocParserError, match=r"x\.xlsx cannot be read: its sheet 'Sheet' has 3 rows"):
        parser.parse(files.book(Sheet=[["a"], ["b"], ["c"]]), source="x.xlsx")


def with_a_cell_that_is_no_number(old: bytes) -> bytes:
    return old.replace(b"<v>14</v>", b"<v> 14</v>")


def test_a_sheet_that_cannot_be_read_is_named_and_the_others_are_used(files: Any) -> None:
    data = files.changed(
        files.book(Good=[["a"]], Bad=[[14]], Last=[["b"]]),
        {"xl/worksheets/sheet2.xml": with_a_cell_that_is_no_number},
    )
    document = SpreadsheetParser().parse(data, source="x.xlsx")
    assert [block.page for block in document.blocks if block.kind == "table"] == [1, 3]
    assert unread_parts(document) == ["x.xlsx: the sheet 'Bad' could not be read"]


def test_a_file_without_a_sheet_that_can_be_read_is_damaged(files: Any) -> None:
    data = files.changed(files.book(Bad=[[14]]), {"xl/worksheets/sheet1.xml": with_a_cell_that_is_no_number})
    with pytest.raises(DocParserError, match=r"x\.xlsx is corrupted: none of its sheets can be read"):
        SpreadsheetParser().parse(data, source="x.xlsx")


def test_an_old_file_whose_directory_goes_in_a_circle_is_refused(files: Any) -> None:
    data = bytearray(files.old_book(Sheet=[["a"]]))
    entry = data.index("Workbook".encode("utf-16-le"))
    data[entry + 68 : entry + 72] = (1).to_bytes(4, "little")  # what stands before it is itself
    with pytest.raises(DocParserError, match=r"x\.xls is corrupted"):
        SpreadsheetParser().parse(bytes(data), source="x.xls")
