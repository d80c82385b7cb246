"""Charts, diagrams and comments are read."""

from __future__ import annotations

import io
from typing import Any

import docx
import openpyxl
import pytest
from openpyxl.comments import Comment
from pptx.chart.data import CategoryChartData, XyChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Emu

from jackfield_office.sheets import SpreadsheetParser
from jackfield_office.slides import PptxParser
from jackfield_office.word import DocxParser

SIZE = (Emu(0), Emu(0), Emu(900_000), Emu(900_000))
A = "http://schemas.openxmlformats.org/drawingml/2006/main"


def texts(parser: Any, data: bytes) -> list[str]:
    return [block.text for block in parser.parse(data, source="x").blocks]


def add_chart(presentation: Any, kind: Any, data: Any, title: str = "") -> None:
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    chart = slide.shapes.add_chart(kind, *SIZE, data).chart
    if title:
        chart.has_title = True
        chart.chart_title.text_frame.text = title


def test_a_chart_is_a_title_and_a_table_of_its_data(files: Any) -> None:
    data = CategoryChartData()
    data.categories = ["tea", "coffee"]
    data.add_series("2025", (1.5, 2))
    data.add_series("2026", (3, None))
    slides = files.slides(lambda one: add_chart(one, XL_CHART_TYPE.COLUMN_CLUSTERED, data, "Cups a day"))
    assert texts(PptxParser(), slides) == [
        "Slide 1",
        "Chart: Cups a day",
        "|  | 2025 | 2026 |\n|---|---|---|\n| tea | 1.5 | 3 |\n| coffee | 2 |  |",
    ]


def test_each_series_of_points_is_a_table(files: Any) -> None:
    data = XyChartData()
    for name, points in (("a", [(1, 2)]), ("b", [(3, 4), (5, 6)])):
        series = data.add_series(name)
        for x, y in points:
            series.add_data_point(x, y)
    slides = files.slides(lambda one: add_chart(one, XL_CHART_TYPE.XY_SCATTER, data))
    tables = [text for text in texts(PptxParser(), slides) if text.startswith("|")]
    assert tables == ["|  | a |\n|---|---|\n| 1 | 2 |", "|  | b |\n|---|---|\n| 3 | 4 |\n| 5 | 6 |"]


@pytest.mark.parametrize(
    ("kind", "text"), [("chartEx", "(Chart of a kind that is not read)"), ("diagramData", "- Boil")]
)
def test_other_drawings_are_read_or_named(files: Any, kind: str, text: str) -> None:
    def write(presentation: Any) -> None:
        presentation.slides.add_slide(presentation.slide_layouts[5]).shapes.title.text = "Tea"

    part = f'<d xmlns:a="{A}"><a:p><a:r><a:t>Boil</a:t></a:r></a:p><a:p/></d>'.encode()
    relation = f'<Relationship Id="rId99" Type="http://x/{kind}" Target="drawing9.xml"/></Relationships>'.encode()
    slides = files.changed(
        files.slides(write),
        {
            "ppt/slides/_rels/slide1.xml.rels": lambda old: old.replace(b"</Relationships>", relation),
            "ppt/slides/drawing9.xml": lambda _: part,
        },
    )
    assert texts(PptxParser(), slides) == ["Tea", text]


def test_comments_in_a_word_file_are_notes_with_their_authors(files: Any) -> None:
    def write(document: Any) -> None:
        paragraph = document.add_paragraph("Forty sockets")
        document.add_comment(paragraph.runs, text="Really?", author="Ann", initials="A")

    assert texts(DocxParser(), files.word(write)) == ["Forty sockets[^c0]", "[^c0]: Ann: Really?"]


def test_a_word_file_that_has_only_a_comment_has_text() -> None:
    document = docx.Document()
    run = document.add_paragraph().add_run("")
    document.add_comment(run, text="Empty!", author="", initials="")
    data = io.BytesIO()
    document.save(data)
    assert texts(DocxParser(), data.getvalue())[-1].endswith("Empty!")


def test_comments_on_cells_are_listed_below_their_sheet() -> None:
    book = openpyxl.Workbook()
    book.active.append(["price", 3])
    book.active["B1"].comment = Comment("Too\nmuch", "Ann")
    book.create_sheet("Empty")["C3"].comment = Comment("Fill in", "")
    book.create_sheet("Plain").append(["a"])
    data = io.BytesIO()
    book.save(data)
    document = SpreadsheetParser().parse(data.getvalue(), source="x.xlsx")
    assert [(block.page, block.text) for block in document.blocks if block.kind == "list"] == [
        (1, "- Comment on B1 (Ann): Too much"),
        (2, "- Comment on C3: Fill in"),
    ]
    assert [block.text for block in document.blocks if block.kind == "heading"] == ["Sheet", "Empty", "Plain"]
