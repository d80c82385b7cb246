"""Charts, diagrams and comments are read."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from typing import Any

import docx
import openpyxl
import pytest
from lxml import etree
from openpyxl.chart import BarChart, Reference
from openpyxl.comments import Comment
from pptx.chart.data import CategoryChartData, XyChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Emu

from jackfield_office.comments import _at
from jackfield_office.drawings import _table, _texts
from jackfield_office.package import Relation, links_in
from jackfield_office.sheets import SpreadsheetParser
from jackfield_office.slides import PptxParser
from jackfield_office.word import DocxParser

SIZE = (Emu(0), Emu(0), Emu(900_000), Emu(900_000))
A = "http://schemas.openxmlformats.org/drawingml/2006/main"
C = "http://schemas.openxmlformats.org/drawingml/2006/chart"


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


def with_drawing(files: Any, kind: str, *, mode: str = "") -> bytes:
    """A presentation of one slide that refers to a drawing of a kind."""

    def write(presentation: Any) -> None:
        presentation.slides.add_slide(presentation.slide_layouts[5]).shapes.title.text = "Tea"

    part = f'<d xmlns:a="{A}"><a:p><a:r><a:t>Boil</a:t></a:r></a:p><a:p/></d>'.encode()
    target = "ppt/slides/drawing9.xml" if mode else "drawing9.xml"
    relation = f'<Relationship Id="rId99" Type="http://x/{kind}" Target="{target}"{mode}/></Relationships>'.encode()
    return bytes(
        files.changed(
            files.slides(write),
            {
                "ppt/slides/_rels/slide1.xml.rels": lambda old: old.replace(b"</Relationships>", relation),
                "ppt/slides/drawing9.xml": lambda _: part,
            },
        )
    )


@pytest.mark.parametrize(
    ("kind", "text"),
    [("chartEx", "Chart: Boil (unsupported kind of data)"), ("diagramData", "- Boil")],
)
def test_other_drawings_are_read_or_named(files: Any, kind: str, text: str) -> None:
    assert texts(PptxParser(), with_drawing(files, kind)) == ["Tea", text]


def test_a_drawing_outside_of_the_file_is_left_out_even_if_a_part_has_its_name(files: Any) -> None:
    slides = with_drawing(files, "diagramData", mode=' TargetMode="External"')
    assert texts(PptxParser(), slides) == ["Tea"]


def test_the_titles_of_its_axes_are_beside_that_of_a_chart(files: Any) -> None:
    def write(presentation: Any) -> None:
        data = CategoryChartData()
        data.categories = ["tea"]
        data.add_series("2025", (1,))
        slide = presentation.slides.add_slide(presentation.slide_layouts[6])
        chart = slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *SIZE, data).chart
        chart.category_axis.axis_title.text_frame.text = "Drink"
        chart.value_axis.axis_title.text_frame.text = "Cups"

    assert texts(PptxParser(), files.slides(write))[1] == "Chart (Drink, Cups)"


def test_charts_and_text_boxes_of_a_sheet_are_read_and_their_data_only_referred_to(files: Any) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    for row in (["sort", "cups"], ["green", 3], ["black", 4]):
        sheet.append(row)
    for title, target in (("Cups a day", sheet), ("Alone", book.create_chartsheet("Sales"))):
        chart = BarChart()
        chart.title, chart.x_axis.title = title, "Sort"
        chart.add_data(Reference(sheet, min_col=2, min_row=2, max_row=3))
        target.add_chart(chart)
    box = f'<xdr:sp><a:p xmlns:a="{A}"><a:r><a:t>Read me</a:t></a:r></a:p></xdr:sp></'.encode()

    def add_box(drawing: bytes) -> bytes:
        head, _, tail = drawing.rpartition(b"</")
        return head + box.replace(b"<xdr:sp>", b'<xdr:sp xmlns:xdr="urn:x">') + tail

    data = files.changed(files.saved(book), {"xl/drawings/drawing1.xml": add_box})
    document = SpreadsheetParser().parse(data, source="x.xlsx")
    assert [(block.page, block.text) for block in document.blocks if block.kind != "table"] == [
        (1, "Sheet"),
        (1, "Read me"),
        (1, "Chart: Cups a day (Sort) (of 'Sheet'!$B$2:$B$3)"),
        (2, "Sales"),
        (2, "Chart: Alone (Sort) (of 'Sheet'!$B$2:$B$3)"),
    ]
    assert "unread" not in document.metadata


def with_comments(files: Any, kind: str, comments: str, authors_kind: str, authors: str) -> bytes:
    """A presentation of one slide, with parts for its comments and their authors."""

    def write(presentation: Any) -> None:
        presentation.slides.add_slide(presentation.slide_layouts[5]).shapes.title.text = "Tea"

    def refer(target: str, kind: str) -> Callable[[bytes], bytes]:
        relation = f'<Relationship Id="rId99" Type="http://x/{kind}" Target="{target}"/></Relationships>'.encode()
        return lambda old: old.replace(b"</Relationships>", relation)

    return bytes(
        files.changed(
            files.slides(write),
            {
                "ppt/slides/_rels/slide1.xml.rels": refer("/ppt/comments/comment1.xml", kind),
                "ppt/comments/comment1.xml": lambda _: comments.encode(),
                "ppt/_rels/presentation.xml.rels": refer("/ppt/authors.xml", authors_kind),
                "ppt/authors.xml": lambda _: authors.encode(),
            },
        )
    )


def test_comments_on_a_slide_are_listed_below_it(files: Any) -> None:
    comments = (
        '<p:cmLst xmlns:p="urn:p"><p:cm authorId="0" idx="1"><p:text>Too\nhot?</p:text></p:cm>'
        '<p:cm authorId="7"><p:text>No</p:text></p:cm><p:cm authorId="0"><p:text/></p:cm></p:cmLst>'
    )
    authors = '<p:cmAuthorLst xmlns:p="urn:p"><p:cmAuthor id="0" name="Ann"/></p:cmAuthorLst>'
    data = with_comments(files, "comments", comments, "commentAuthors", authors)
    assert texts(PptxParser(), data) == ["Tea", "- Comment by Ann: Too hot?\n- Comment by someone: No"]


def test_answers_to_a_comment_on_a_slide_follow_it(files: Any) -> None:
    def body(text: str) -> str:
        return f'<c:txBody><a:p xmlns:a="{A}"><a:r><a:t>{text}</a:t></a:r></a:p></c:txBody>'

    comments = (
        f'<c:cmLst xmlns:c="urn:c"><c:cm authorId="{{1}}"><c:replyLst><c:reply authorId="{{2}}">{body("No")}</c:reply>'
        f"</c:replyLst>{body('Too hot?')}</c:cm></c:cmLst>"
    )
    authors = '<c:authorLst xmlns:c="urn:c"><c:author id="{1}" name="Ann"/><c:author id="{2}" name="Bo"/></c:authorLst>'
    data = with_comments(files, "comments", comments, "authors", authors)
    assert texts(PptxParser(), data) == ["Tea", "- Comment by Ann: Too hot?\n- Comment by Bo: No"]


def test_answers_in_a_thread_on_a_cell_replace_the_note_for_older_programs(files: Any) -> None:
    book = openpyxl.Workbook()
    book.active.append(["price", 3])
    book.active["B1"].comment = Comment("[Threaded comment] Your version …", "tc={1}")
    thread = (
        '<t:ThreadedComments xmlns:t="urn:t"><t:threadedComment ref="B1" personId="{1}"><t:text>Too much</t:text>'
        '</t:threadedComment><t:threadedComment ref="B1" personId="{2}"><t:text>Fair</t:text></t:threadedComment>'
        "</t:ThreadedComments>"
    )
    persons = (
        '<t:personList xmlns:t="urn:t"><t:person id="{1}" displayName="Ann"/><t:person id="{2}" displayName="Bo"/>'
        "</t:personList>"
    )

    def refer(target: str, kind: str) -> Callable[[bytes], bytes]:
        relation = f'<Relationship Id="rId99" Type="http://x/{kind}" Target="{target}"/></Relationships>'.encode()
        return lambda old: old.replace(b"</Relationships>", relation)

    data = files.changed(
        files.saved(book),
        {
            "xl/worksheets/_rels/sheet1.xml.rels": refer("/xl/threads.xml", "threadedComment"),
            "xl/threads.xml": lambda _: thread.encode(),
            "xl/_rels/workbook.xml.rels": refer("/xl/persons.xml", "person"),
            "xl/persons.xml": lambda _: persons.encode(),
        },
    )
    assert texts(SpreadsheetParser(), data)[-1] == "- Comment on B1 (Ann): Too much\n- Comment on B1 (Bo): Fair"


def damaged(_: bytes) -> bytes:
    return b"<a><b>"


def test_parts_of_a_presentation_that_cannot_be_read_are_named_and_the_rest_is_read(files: Any) -> None:
    def write(presentation: Any) -> None:
        data = CategoryChartData()
        data.categories = ["tea"]
        data.add_series("2025", (1,))
        add_chart(presentation, XL_CHART_TYPE.COLUMN_CLUSTERED, data)
        for title in ("Two", "Three"):
            slide = presentation.slides.add_slide(presentation.slide_layouts[5])
            slide.shapes.title.text = title
            slide.notes_slide.notes_text_frame.text = "Slowly."

    slides = files.slides(write)
    names = zipfile.ZipFile(io.BytesIO(slides)).namelist()
    [chart] = [name for name in names if name.startswith("ppt/charts/chart")]
    parts = {chart: damaged, "ppt/slides/slide2.xml": damaged, "ppt/notesSlides/notesSlide2.xml": damaged}
    document = PptxParser().parse(files.changed(slides, parts), source="x.pptx")
    assert [block.text for block in document.blocks] == ["Three"]
    assert document.metadata["unread"] == ["a chart on page 1", "slide 2", "the notes of slide 3"]


def refer_first(target: str, kind: str) -> Callable[[bytes], bytes]:
    """Add a relation before all others of a part."""
    relation = f'<Relationship Id="rId98" Type="http://x/{kind}" Target="{target}"/><Relationship '.encode()
    return lambda old: old.replace(b"<Relationship ", relation, 1)


def test_a_drawing_after_one_that_cannot_be_read_is_read(files: Any) -> None:
    parts = {
        "ppt/slides/_rels/slide1.xml.rels": refer_first("broken.xml", "diagramData"),
        "ppt/slides/broken.xml": damaged,
    }
    document = PptxParser().parse(files.changed(with_drawing(files, "diagramData"), parts), source="x.pptx")
    assert [block.text for block in document.blocks] == ["Tea", "- Boil"]
    assert document.metadata["unread"] == ["a diagram on page 1"]


@pytest.mark.parametrize("kind", ["printerSettings", "threadedComment", "drawing"])
def test_what_a_sheet_refers_to_first_hides_neither_its_charts_nor_its_comments(files: Any, kind: str) -> None:
    book = openpyxl.Workbook()
    book.active.append(["price", 3])
    book.active["B1"].comment = Comment("Too much", "Ann")
    chart = BarChart()
    chart.title = "Prices"
    chart.add_data(Reference(book.active, min_col=2, min_row=1, max_row=1))
    book.active.add_chart(chart)
    data = files.changed(files.saved(book), {"xl/worksheets/_rels/sheet1.xml.rels": refer_first("/xl/gone.xml", kind)})
    shown = texts(SpreadsheetParser(), data)
    assert [text for text in shown if text.startswith("Chart: Prices")]
    assert shown[-1] == "- Comment on B1 (Ann): Too much"


def test_comments_and_notes_that_cannot_be_read_are_named(files: Any) -> None:
    def write(document: Any) -> None:
        paragraph = document.add_paragraph("Forty sockets")
        document.add_comment(paragraph.runs, text="Really?", author="Ann", initials="A")

    word = DocxParser().parse(files.changed(files.word(write), {"word/comments.xml": damaged}), source="x.docx")
    assert [block.text for block in word.blocks] == ["Forty sockets[^c0]"]
    assert word.metadata["unread"] == ["the comments"]
    book = openpyxl.Workbook()
    book.active.append(["price", 3])
    book.active["B1"].comment = Comment("Too much", "Ann")
    data = files.changed(files.saved(book), {"xl/comments/comment1.xml": damaged})
    sheets = SpreadsheetParser().parse(data, source="x.xlsx")
    assert [block.kind for block in sheets.blocks] == ["heading", "table"]
    assert sheets.metadata["unread"] == ["the comments of sheet 1"]


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


@pytest.mark.parametrize(("number", "name"), [("0", "Ann"), ("1", "Bo"), ("2", ""), ("-1", ""), ("", ""), ("x", "")])
def test_a_comment_whose_author_is_not_in_the_list_has_none(number: str, name: str) -> None:
    assert _at(["Ann", "Bo"], number) == name


def element(xml: str) -> Any:
    return etree.fromstring(f'<x xmlns:c="{C}" xmlns:a="{A}">{xml}</x>')


def points(*texts: str) -> str:
    return "".join(f'<c:pt idx="{index}"><c:v>{text}</c:v></c:pt>' for index, text in enumerate(texts))


def test_labels_are_those_of_the_first_series_and_the_lowest_of_several_levels() -> None:
    levels = f"<c:lvl>{points('Q1', 'Q2')}</c:lvl><c:lvl>{points('2025')}</c:lvl>"
    series = [
        element(f"<c:cat>{levels}</c:cat><c:val>{points('1', '2')}</c:val>"),
        element(f"<c:cat>{points('other', 'names', 'third')}</c:cat><c:val>{points('3')}</c:val>"),
    ]
    rows = [line for line in _table(series).splitlines() if "---" not in line]
    assert rows == ["| Q1 | 1 | 3 |", "| Q2 | 2 |  |", "| third |  |  |"]


def test_a_drawing_without_a_text_is_no_block() -> None:
    assert list(_texts("diagramData", element("<a:p/>"), 1)) == []


@pytest.mark.parametrize(("length", "is_kept"), [(300, True), (301, False)])
def test_only_a_link_of_moderate_length_is_written(length: int, is_kept: bool) -> None:
    relation = Relation("hyperlink", "https://example.org/(a)".ljust(length, "x"), is_external=True)
    assert links_in({"r": relation}) == ({"r": "https://example.org/%28a%29" + "x" * (length - 23)} if is_kept else {})
    assert links_in({"r": Relation("hyperlink", "slide2.xml", is_external=False)}) == {}
