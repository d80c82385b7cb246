from __future__ import annotations

from typing import Any

import pytest

from jackfield.retrieval import Document
from jackfield_opendocument.sheets import OdsParser


def parse(data: bytes) -> Document:
    return OdsParser().parse(data, source="x.ods")


def sheet(*rows: str, name: str = "S", more: str = "") -> str:
    lines = "".join(
        row if row.startswith("<table:table-row") else f"<table:table-row>{row}</table:table-row>" for row in rows
    )
    return f'<table:table table:name="{name}">{more}{lines}</table:table>'


def cell(text: str = "", values: str = "", more: str = "") -> str:
    shown = f"<text:p>{text}</text:p>" if text else ""
    return f"<table:table-cell {values}>{more}{shown}</table:table-cell>"


def table(data: bytes) -> str:
    (block,) = [block for block in parse(data).blocks if block.kind == "table"]
    return block.text


@pytest.mark.parametrize(
    ("values", "shown", "expected"),
    [
        ('office:value-type="string"', "tea", "tea"),
        ('office:value-type="float" office:value="1234.5"', "1.234,50", "1234.5"),
        ('office:value-type="float" office:value="3"', "3,00", "3"),
        ('office:value-type="float" office:value="x"', "3,00", "3,00"),
        ('office:value-type="float" office:value="1e999"', "", "inf"),
        ('office:value-type="percentage" office:value="0.5"', "50 %", "50 %"),
        ('office:value-type="currency" office:value="2"', "2,00 €", "2,00 €"),
        ('office:value-type="date" office:date-value="2026-11-28"', "28.11.26", "2026-11-28"),
        ('office:value-type="date" office:date-value="2026-11-28T10:00:00"', "x", "2026-11-28 10:00:00"),
        ('office:value-type="boolean" office:boolean-value="true"', "WAHR", "TRUE"),
        ('office:value-type="float" office:value="0" calcext:value-type="error"', "#DIV/0!", "#DIV/0!"),
    ],
)
def test_a_value_is_read_as_a_person_would_write_it(file: Any, values: str, shown: str, expected: str) -> None:
    assert table(file("ods", sheet(cell("x"), cell(shown, values)))).splitlines()[-1] == f"| {expected} |"


def test_each_sheet_has_its_name_and_its_number(file: Any) -> None:
    cached = sheet(cell("c"), name="cache", more="<table:table-source/>")
    document = parse(file("ods", sheet(cell("a"), name="One") + sheet() + cached + sheet(cell("b"), name="Three")))
    assert [(block.kind, block.text, block.page) for block in document.blocks] == [
        ("heading", "One", 1),
        ("table", "| a |\n|---|", 1),
        ("heading", "Three", 3),
        ("table", "| b |\n|---|", 3),
    ]
    assert document.metadata["sheets"] == ["One", "S", "Three"]


def test_repeated_cells_and_rows_are_repeated_where_they_have_text(file: Any) -> None:
    row = '<table:table-row table:number-rows-repeated="{}">{}</table:table-row>'
    data = file(
        "ods",
        sheet(
            cell("a") + cell("", 'table:number-columns-repeated="2"') + cell("b", 'table:number-columns-repeated="2"'),
            row.format(1_048_000, cell("", 'table:number-columns-repeated="16000"')),
            row.format(2, cell("c") + cell("d", 'table:number-columns-repeated="3"')),
        ),
    )
    assert table(data).splitlines() == ["| a |  |  | b | b |", "|---|---|---|---|---|", *["| c | d | d | d |"] * 2]


def test_a_small_file_is_no_table_of_gigabytes(file: Any) -> None:
    row = '<table:table-row table:number-rows-repeated="1000000">{}</table:table-row>'
    wide = cell("x" * 1000, 'table:number-columns-repeated="16000"')
    assert len(table(file("ods", sheet(*[row.format(wide)] * 20)))) < 4_000_000


def test_comments_have_the_address_of_their_cell(file: Any) -> None:
    comment = "<office:annotation><dc:creator>Ann</dc:creator><text:p>why {}?</text:p></office:annotation>"
    rows = (
        '<table:table-row table:number-rows-repeated="9"><table:table-cell/></table:table-row>',
        cell("a") + cell("", 'table:number-columns-repeated="26"') + cell("b", more=comment.format("b")),
    )
    document = parse(file("ods", sheet(*rows)))
    assert document.blocks[-1].text == "- Comment on AB10 (Ann): why b?"
    assert "why" not in document.blocks[1].text


def test_a_drawing_in_a_cell_is_not_read_with_those_of_the_sheet(file: Any) -> None:
    drawing = "<draw:custom-shape><text:p>{}</text:p></draw:custom-shape>"
    shapes = f"<table:shapes><draw:g><text:p>b{drawing.format('c')}</text:p></draw:g></table:shapes>"
    document = parse(file("ods", sheet(cell(f"a{drawing.format('gone')}"), more=shapes)))
    assert [block.text for block in document.blocks] == ["S", "| a |\n|---|", "b", "c"]


def test_a_chart_follows_its_sheet(file: Any, content: Any) -> None:
    shapes = '<table:shapes><draw:frame><draw:object xlink:href="./C"/></draw:frame></table:shapes>'
    chart = content("ods", "<chart:chart><chart:title><text:p>Sales</text:p></chart:title></chart:chart>")
    document = parse(file("ods", sheet(cell("a"), more=shapes), **{"C/content.xml": chart}))
    assert [(block.text, block.page) for block in document.blocks[2:]] == [("Chart: Sales", 1)]
