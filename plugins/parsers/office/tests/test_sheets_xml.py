"""Values, limits, charts and comments of spreadsheets."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import openpyxl
import pytest
import xlwt
from openpyxl.comments import Comment

from jackfield.errors import DocParserError
from jackfield_office import sheets
from jackfield_office.sheets import (
    SpreadsheetConfig,
    SpreadsheetParser,
    _check_extent,
    _errors_of_calamine,
    _number_of_column,
    _old_text,
    _text,
)

DAY = datetime.datetime(2026, 1, 2)  # noqa: DTZ001 - as in a spreadsheet
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (999_999_999_999_999.0, "999999999999999"),
        (1e15, "1000000000000000.0"),
        (-999_999_999_999_999.0, "-999999999999999"),
        (-1e15, "-1000000000000000.0"),
        (0.5, "0.5"),
        (0.0, "0"),
        (7, "7"),
        (True, "TRUE"),
        (False, "FALSE"),
        ("", ""),
        (DAY, "2026-01-02"),
        (DAY.date(), "2026-01-02"),
        (DAY.replace(second=1), "2026-01-02 00:00:01"),
        (DAY.replace(microsecond=1), "2026-01-02 00:00:00.000001"),
        (datetime.time(3, 4), "03:04:00"),
        (datetime.timedelta(hours=30), "1 day, 6:00:00"),
    ],
)
def test_a_value_is_written_as_a_person_would(value: object, text: str) -> None:
    assert _text(value) == text


def test_values_of_a_file_of_before_2007_are_written_alike(files: Any) -> None:
    book = xlwt.Workbook()
    sheet = book.add_sheet("Old")
    date, time = xlwt.easyxf(num_format_str="YYYY-MM-DD"), xlwt.easyxf(num_format_str="YYYY-MM-DD HH:MM")
    for column, (value, style) in enumerate(
        [(DAY, date), (DAY.replace(hour=3), time), (True, None), (2.0, None), (1e9, date), ("end", None)]
    ):
        sheet.write(0, column, value, *([style] if style else []))
    sheet.write(2, 1, "b")
    sheet.row(3).set_cell_error(0, "#DIV/0!")
    sheet.write(3, 1, False)
    (_, table) = SpreadsheetParser().parse(files.saved(book), source="x.xls").blocks
    head, _, *rest = table.text.splitlines()
    assert head == "| 2026-01-02 | 2026-01-02 03:00:00 | TRUE | 2 | 1000000000 | end |"
    assert [row.replace(" ", "") for row in rest] == ["||b|", "||FALSE|"]


def test_each_sheet_of_an_old_file_has_its_number_and_its_limit(files: Any) -> None:
    data = files.old_book(One=[["a"], ["b"]], Two=[["c"]])
    document = SpreadsheetParser(SpreadsheetConfig(max_rows=2)).parse(data, source="x.xls")
    assert [(block.page, block.text) for block in document.blocks if block.kind == "heading"] == [
        (1, "One"),
        (2, "Two"),
    ]
    assert (document.metadata, document.title) == ({"sheets": ["One", "Two"]}, "")
    with pytest.raises(DocParserError, match="its sheet 'One' has 2 rows"):
        SpreadsheetParser(SpreadsheetConfig(max_rows=1)).parse(data, source="x.xls")


@pytest.mark.parametrize("name", ["x.xlsx", "x.xls"])
def test_an_encrypted_file_says_so_whatever_its_name(name: str) -> None:
    with pytest.raises(DocParserError, match=rf"^{name} is encrypted"):
        SpreadsheetParser().parse(OLE + "EncryptedPackage".encode("utf-16-le") + bytes(500), source=name)


def test_a_sheet_may_have_as_many_rows_as_allowed(files: Any) -> None:
    data = files.book(Sheet=[["a"], ["b"]])
    assert SpreadsheetParser(SpreadsheetConfig(max_rows=2)).parse(data, source="x.xlsx").blocks


def cell(place: str) -> str:
    return f'<c r="{place}" t="str"><v>a</v></c>'


def row(number: int, *places: str) -> str:
    return f'<row spans="1:1" r="{number}">{"".join(map(cell, places))}</row>'


@pytest.mark.parametrize(
    ("rows", "refusal"),
    [
        # 4,000,000 cells may be empty, and 20 more for each that is not; columns up to Z count as 26.
        (row(153_846, "A153846"), None),
        (row(153_847, "A153847"), "a sheet has 1 cell in 153847 rows and 26 columns"),
        (row(153_847, "A153847", "B153847"), None),
        (row(148_148, "AA148148"), None),
        (row(148_149, "AA148149"), "a sheet has 1 cell in 148149 rows and 27 columns"),
        (row(244, "XFD244"), None),
        (row(245, "XFD245"), "a sheet has 1 cell in 245 rows and 16384 columns"),
        (row(1, "XFD1") + row(245, "A245"), "a sheet has 2 cells in 245 rows and 16384 columns"),
        (row(1, "A1") + "<row/>" * 244 + "<row><c><v>1</v></c></row>", None),
    ],
)
def test_cells_that_are_far_apart_are_refused_from_a_limit_on(files: Any, rows: str, refusal: str | None) -> None:
    def write(old: bytes) -> bytes:
        return old[: old.index(b"<sheetData>") + 11] + rows.encode() + old[old.index(b"</sheetData>") :]

    data = files.changed(files.book(Sheet=[["x"]]), {"xl/worksheets/sheet1.xml": write})
    if refusal is None:
        assert SpreadsheetParser().parse(data, source="x.xlsx").blocks
    else:
        with pytest.raises(DocParserError, match=rf"^x\.xlsx cannot be read: {refusal}\. Delete"):
            SpreadsheetParser().parse(data, source="x.xlsx")


def test_rows_without_numbers_are_counted(files: Any) -> None:
    def write(old: bytes) -> bytes:
        rows = b'<row><c r="XFD1"><v>1</v></c></row>' + b"<row/>" * 245
        return old[: old.index(b"<sheetData>") + 11] + rows + old[old.index(b"</sheetData>") :]

    data = files.changed(files.book(Sheet=[["x"]]), {"xl/worksheets/sheet1.xml": write})
    with pytest.raises(DocParserError, match="a sheet has 1 cell in 246 rows and 16384 columns"):
        SpreadsheetParser().parse(data, source="x.xlsx")


@pytest.mark.parametrize(("letters", "number"), [(b"AA", 27), (b"AZ", 52), (b"BA", 53), (b"ZZ", 702), (b"AAA", 703)])
def test_columns_are_numbered_after_z(letters: bytes, number: int) -> None:
    assert _number_of_column(letters) == number


def test_the_first_sheet_may_be_unreadable_and_parts_of_others_damaged(files: Any) -> None:
    book = openpyxl.Workbook()
    book.active.title = "Bad"
    book.active.append([14])
    for name in ("  ", "Good"):
        book.create_sheet(name).append(["a"])
        book[name]["B1"].comment = Comment("Too much", "Ann")
    book.properties.title = "Prices"
    changes = {
        "xl/worksheets/sheet1.xml": lambda old: old.replace(b"<v>14</v>", b"<v> 14</v>"),
        "xl/comments/comment1.xml": lambda _: b"<a><b>",
    }
    document = SpreadsheetParser().parse(files.changed(files.saved(book), changes), source="x.xlsx")
    assert [(block.page, block.kind, block.text) for block in document.blocks] == [
        (2, "heading", "Sheet 2"),
        (2, "table", "| a |\n|---|"),
        (3, "heading", "Good"),
        (3, "table", "| a |\n|---|"),
        (3, "list", "- Comment on B1 (Ann): Too much"),
    ]
    assert document.metadata["unread"] == ["the sheet 'Bad'", "the comments of sheet 2"]
    assert (document.metadata["sheets"], document.title) == (["Bad", "  ", "Good"], "Prices")


THREAD = (
    '<t:ThreadedComments xmlns:t="urn:t"><t:threadedComment ref="B1" personId="{1}"><t:text>Too\n much</t:text>'
    '</t:threadedComment><t:threadedComment ref="B1" personId="{9}"><t:text>Fair</t:text></t:threadedComment>'
    "</t:ThreadedComments>"
)
COMMENTS = (
    '<s:comments xmlns:s="urn:s"><s:authors><s:author> Bo </s:author><s:author>Cy</s:author></s:authors><s:commentList>'
    '<s:comment ref="B1" authorId="0"><s:text><s:t>[Threaded comment]</s:t></s:text></s:comment>'
    '<s:comment ref="C1" authorId="1"><s:text><s:r><s:t>ri</s:t></s:r><s:r><s:t>ch</s:t></s:r></s:text></s:comment>'
    '<s:comment ref="C1" authorId="0"><s:text><s:t>again</s:t></s:text></s:comment>'
    '<s:comment ref="D1" authorId="2"><s:text><s:t>unsigned</s:t></s:text></s:comment>'
    "</s:commentList></s:comments>"
)
PERSONS = '<t:personList xmlns:t="urn:t"><t:person id="{1}" displayName="Ann"/></t:personList>'


def refer(*references: tuple[str, str]) -> Callable[[bytes], bytes]:
    entries = "".join(
        f'<Relationship Id="n{number}" Type="http://x/{kind}" Target="{target}"/>'
        for number, (target, kind) in enumerate(references)
    )
    empty = '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"></Relationships>'
    return lambda old: (old or empty.encode()).replace(b"</Relationships>", f"{entries}</Relationships>".encode())


def test_a_thread_replaces_the_older_comments_of_its_cell_only(files: Any) -> None:
    book = openpyxl.Workbook()
    book.active.append(["price", 3])
    parts = {
        # The older comments are named first, and the thread comes first all the same.
        "xl/worksheets/_rels/sheet1.xml.rels": refer(("/xl/c.xml", "comments"), ("/xl/t.xml", "threadedComment")),
        "xl/_rels/workbook.xml.rels": refer(("/xl/p.xml", "person")),
        "xl/c.xml": lambda _: COMMENTS.encode(),
        "xl/t.xml": lambda _: THREAD.encode(),
        "xl/p.xml": lambda _: PERSONS.encode(),
    }
    data = files.changed(files.saved(book), parts)
    assert SpreadsheetParser().parse(data, source="x.xlsx").blocks[-1].text.splitlines() == [
        "- Comment on B1 (Ann): Too much",
        "- Comment on B1: Fair",
        "- Comment on C1 (Cy): rich",
        "- Comment on C1 (Bo): again",
        "- Comment on D1: unsigned",
    ]
    data = files.changed(data, {"xl/p.xml": lambda _: b"<"})
    document = SpreadsheetParser().parse(data, source="x.xlsx")
    assert document.blocks[-1].text.startswith("- Comment on B1: Too much")
    assert document.metadata["unread"] == ["the authors of its comments"]


def test_text_boxes_come_before_charts_and_comments_last(files: Any) -> None:
    from openpyxl.chart import BarChart, Reference

    book = openpyxl.Workbook()
    book.active.append(["price", 3])
    book.active["B1"].comment = Comment("Too much", "Ann")
    chart = BarChart()
    chart.add_data(Reference(book.active, min_col=2, min_row=1, max_row=1))
    chart.add_data(Reference(book.active, min_col=2, min_row=1, max_row=1))
    chart.add_data(Reference(book.active, min_col=1, min_row=1, max_row=1))
    book.active.add_chart(chart)
    a = "http://schemas.openxmlformats.org/drawingml/2006/main"
    box = '<x:sp xmlns:x="urn:x"><a:p xmlns:a="{}">{}</a:p><a:p xmlns:a="{}"><a:r><a:t>two</a:t></a:r></a:p></x:sp>'
    runs = "<a:r><a:t>o</a:t></a:r><a:r><a:t>ne </a:t></a:r>"

    def add(drawing: bytes) -> bytes:
        head, _, tail = drawing.rpartition(b"</")
        return head + box.format(a, runs, a).encode() + b"</" + tail

    data = files.changed(files.saved(book), {"xl/drawings/drawing1.xml": add})
    assert [(block.kind, block.text) for block in SpreadsheetParser().parse(data, source="x.xlsx").blocks[2:]] == [
        ("paragraph", "one\ntwo"),
        ("paragraph", "Chart (of 'Sheet'!$B$1, 'Sheet'!$A$1)"),
        ("list", "- Comment on B1 (Ann): Too much"),
    ]


def test_charts_that_cannot_be_read_are_named_with_their_sheet(files: Any) -> None:
    from openpyxl.chart import BarChart, Reference

    book = openpyxl.Workbook()
    book.active.append(["price", 3])
    for _ in range(2):
        chart = BarChart()
        chart.add_data(Reference(book.active, min_col=2, min_row=1, max_row=1))
        book.active.add_chart(chart, "E5")
    sheet = book.create_sheet("Two")
    sheet.append(["x"])
    chart = BarChart()
    chart.add_data(Reference(book.active, min_col=2, min_row=1, max_row=1))
    sheet.add_chart(chart)
    damage = {
        name: lambda _: b"<" for name in ("xl/charts/chart1.xml", "xl/charts/chart2.xml", "xl/drawings/drawing2.xml")
    }
    document = SpreadsheetParser().parse(files.changed(files.saved(book), damage), source="x.xlsx")
    assert document.metadata["unread"] == ["a chart on page 1", "the drawings of sheet 2"]


@pytest.mark.parametrize(("rows", "is_read"), [(2, True), (3, False)])
def test_a_sheet_may_have_some_empty_cells_and_twenty_more_for_each_with_text(
    rows: int, is_read: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sheets, "_EMPTY_ALWAYS", 2 * 26 - 20)
    sheet = b'<row r="%d"><c r="A1">' % rows
    if is_read:
        _check_extent(sheet, "a.xlsx")
    else:
        with pytest.raises(DocParserError, match="a sheet has 1 cell in 3 rows and 26 columns"):
            _check_extent(sheet, "a.xlsx")


@pytest.mark.parametrize(("mode", "shown"), [(0, "1900-01-31"), (1, "1904-02-01")])
def test_a_date_of_an_old_file_counts_from_the_day_that_the_file_states(mode: int, shown: str) -> None:
    cell = SimpleNamespace(ctype=3, value=31.0)
    assert _old_text(cell, mode) == shown


def test_only_a_panic_of_the_library_is_damage_and_the_wish_to_stop_is_not() -> None:
    class PanicException(BaseException):
        pass

    for error, expected in ((PanicException("index"), DocParserError), (KeyboardInterrupt(), KeyboardInterrupt)):
        with pytest.raises(expected), _errors_of_calamine("a.xlsx"):
            raise error
