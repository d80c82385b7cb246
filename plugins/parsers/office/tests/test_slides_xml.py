"""Texts, lists, tables and notes in the XML of slides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jackfield.errors import DocParserError
from jackfield.retrieval import Document
from jackfield_office.slides import PptxParser

Read = Callable[..., Document]


@pytest.fixture
def read(files: Any) -> Read:
    """A reader of a presentation, each of whose slides has these shapes."""

    def read(*slides: str, relations: str = "", changes: dict[str, Any] | None = None) -> Document:
        def write(presentation: Any) -> None:
            for _ in slides:
                presentation.slides.add_slide(presentation.slide_layouts[6])

        def add(shapes: str) -> Callable[[bytes], bytes]:
            return lambda old: old.replace(b"</p:spTree>", f"{shapes}</p:spTree>".encode())

        parts = {f"ppt/slides/slide{number}.xml": add(shapes) for number, shapes in enumerate(slides, start=1)}
        parts["ppt/slides/_rels/slide1.xml.rels"] = lambda old: old.replace(b"</R", f"{relations}</R".encode())
        return PptxParser().parse(files.changed(files.slides(write), {**parts, **(changes or {})}), source="x.pptx")

    return read


def paragraph(text: str, properties: str = "") -> str:
    return f"<a:p>{properties}<a:r><a:t>{text}</a:t></a:r></a:p>"


def shape(*paragraphs: str, kind: str | None = None) -> str:
    """A text box, or a placeholder of a kind; '' is one that names no kind."""
    place = "" if kind is None else "<p:ph/>" if not kind else f'<p:ph type="{kind}"/>'
    head = f"<p:nvSpPr><p:nvPr>{place}</p:nvPr></p:nvSpPr>"
    return f"<p:sp>{head}<p:txBody>{''.join(paragraphs)}</p:txBody></p:sp>"


def texts(document: Document) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in document.blocks]


A, B = paragraph("a"), paragraph("b")
BULLET = '<a:pPr><a:buChar char="x"/></a:pPr>'


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        # An outline of several paragraphs is a list, a single one is not, and a text box is one where it has bullets.
        (shape(A, B, kind="body"), [("list", "- a\n- b")]),
        (shape(A, B, kind=""), [("list", "- a\n- b")]),
        (shape(A, B, kind="obj"), [("list", "- a\n- b")]),
        (shape(A, paragraph(" "), kind="body"), [("paragraph", "a")]),
        (shape(A, B, kind="subTitle"), [("paragraph", "a"), ("paragraph", "b")]),
        (shape(A, B), [("paragraph", "a"), ("paragraph", "b")]),
        (shape(A, paragraph("b", BULLET), B), [("paragraph", "a"), ("list", "- b"), ("paragraph", "b")]),
        (shape(paragraph("a", '<a:pPr><a:buAutoNum type="x"/></a:pPr>')), [("list", "- a")]),
        (shape(paragraph("a", "<a:pPr><a:buBlip/></a:pPr>")), [("list", "- a")]),
        (shape(paragraph("a", "<a:pPr/>")), [("paragraph", "a")]),
        (shape(A, paragraph("b", "<a:pPr><a:buNone/></a:pPr>"), kind="body"), [("list", "- a"), ("paragraph", "b")]),
        (
            shape(A, paragraph("b", '<a:pPr lvl="1"/>'), paragraph("c", '<a:pPr lvl="8"/>'), kind="body"),
            [("list", f"- a\n  - b\n{' ' * 16}- c")],
        ),
        (shape(A, paragraph("b", '<a:pPr lvl="9"/>'), paragraph("c", '<a:pPr lvl="x"/>'), kind="body"),
         [("list", "- a\n- b\n- c")]),
        (
            shape(A, "<a:p><a:r><a:t>b</a:t></a:r><a:br/><a:r><a:t>c</a:t></a:r></a:p>", kind="body"),
            [("list", "- a\n- b c")],
        ),
        (shape("<a:p><a:r><a:t> a</a:t></a:r><a:br/><a:fld><a:t>b </a:t></a:fld></a:p>"), [("paragraph", "a\nb")]),
        (shape("<a:p><a:r><a:t/></a:r><a:r><a:t>b</a:t></a:r></a:p>"), [("paragraph", "b")]),
    ],
)  # fmt: skip
def test_paragraphs_of_a_shape_are_a_list_where_they_have_bullets(
    read: Read, shapes: str, expected: list[tuple[str, str]]
) -> None:
    assert texts(read(shapes)) == [("heading", "Slide 1"), *expected]


def test_the_first_title_is_the_heading_wherever_it_is_and_a_second_one_is_text(read: Read) -> None:
    shapes = shape(A) + shape(paragraph(" Tea "), paragraph("time"), kind="ctrTitle") + shape(B, kind="title")
    document = read(shapes)
    assert texts(document) == [("heading", "Tea time"), ("paragraph", "a"), ("paragraph", "b")]
    assert document.title == "Tea time"


def test_the_texts_of_the_layout_are_not_notes(files: Any) -> None:
    def write(presentation: Any) -> None:
        for layout in presentation.slide_layouts:
            presentation.slides.add_slide(layout).shapes.add_textbox(0, 0, 9, 9).text_frame.text = "box"

    assert {text for _, text in texts(PptxParser().parse(files.slides(write), source="x.pptx")) if text[0] != "S"} == {
        "box"
    }


def test_an_empty_title_is_passed_over(read: Read) -> None:
    assert texts(read(shape(paragraph(" "), kind="title") + shape(B, kind="title"))) == [("heading", "b")]


@pytest.mark.parametrize("kind", ["dt", "ftr", "hdr", "sldNum", "sldImg"])
def test_what_each_slide_repeats_is_left_out(read: Read, kind: str) -> None:
    assert texts(read(shape(A, kind=kind) + shape(B))) == [("heading", "Slide 1"), ("paragraph", "b")]


def cell(text: str, attributes: str = "") -> str:
    return f"<a:tc {attributes}><a:txBody>{paragraph(text)}</a:txBody></a:tc>"


def table(*rows: str) -> str:
    return "<p:graphicFrame><a:tbl>" + "".join(f"<a:tr>{row}</a:tr>" for row in rows) + "</a:tbl></p:graphicFrame>"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([cell("a") + cell("b"), cell("x", 'vMerge="1"') + cell("c")], ["a | b", "a | c"]),
        ([cell("a") + cell("b"), cell("c") + cell("x", 'vMerge="true"')], ["a | b", "c | b"]),
        ([cell("a") + cell("b"), cell("x", 'vMerge="0"') + cell("c")], ["a | b", "x | c"]),
        ([cell("a") + cell("b"), cell("c") + cell("d") + cell("e", 'vMerge="1"')], ["a | b | ", "c | d | e"]),
        ([cell("a") + cell("x", 'hMerge="on"'), cell("c") + cell("d")], ["a | ", "c | d"]),
        (
            [cell("a") + cell("x", 'hMerge="1"'), cell("c", 'vMerge="1"') + cell("d", 'vMerge="1" hMerge="1"'),
             cell("e") + cell("f")],
            ["a | ", "a | ", "e | f"],
        ),
    ],
)  # fmt: skip
def test_what_spans_rows_of_a_table_is_repeated_and_what_spans_columns_is_not(
    read: Read, rows: list[str], expected: list[str]
) -> None:
    head, _, *rest = texts(read(table(*rows)))[1][1].splitlines()
    assert [head, *rest] == [f"| {line} |" for line in expected]


def link(key: str, text: str) -> str:
    return f'<a:p><a:r><a:rPr><a:hlinkClick r:id="{key}"/></a:rPr><a:t>{text}</a:t></a:r></a:p>'


def test_links_of_shapes_and_tables_are_markdown_and_those_to_slides_are_text(read: Read) -> None:
    relations = "".join(
        f'<Relationship Id="{key}" Type="http://x/hyperlink" Target="{target}" {mode}/>'
        for key, target, mode in (
            ("a", "https://e.org/(a)", 'TargetMode="External"'),
            ("b", "slide2.xml", ""),
            ("c", "https://e.org/" + 300 * "c", 'TargetMode="External"'),
        )
    )
    shapes = shape(link("a", " x "), link("b", "y"), link("c", "z"), link("a", " "), kind="obj")
    shapes += table(f"<a:tc><a:txBody>{link('a', 'cell')}</a:txBody></a:tc>" + cell("b"))
    shapes += shape(link("a", "Tea"), kind="title")
    document = read(shapes, relations=relations)
    assert texts(document) == [
        ("heading", "Tea"),
        ("list", "- [x](https://e.org/%28a%29)\n- y\n- z"),
        ("table", "| [cell](https://e.org/%28a%29) | b |\n|---|---|"),
    ]


def test_slides_come_in_the_order_in_which_they_are_shown_with_their_numbers(files: Any) -> None:
    def write(presentation: Any) -> None:
        for title in "abc":
            slide = presentation.slides.add_slide(presentation.slide_layouts[5])
            slide.shapes.title.text = title
            slide.notes_slide.notes_text_frame.text = f" note {title} \n\n more "
        entries = presentation.slides._sldIdLst
        entries.insert(0, entries[2])

    document = PptxParser().parse(files.slides(write), source="x.pptx")
    assert [(block.page, block.text) for block in document.blocks] == [
        (1, "c"), (1, "Notes: note c\nmore"), (2, "a"), (2, "Notes: note a\nmore"), (3, "b"), (3, "Notes: note b\nmore")
    ]  # fmt: skip
    assert document.metadata["slides"] == 3


def lose_the_first(old: bytes) -> bytes:
    return old.replace(b'Target="slides/slide1.xml"', b'Target="slides/gone.xml"')


def test_a_slide_that_is_missing_is_named_and_the_others_keep_their_numbers(read: Read) -> None:
    document = read(shape(A), shape(B), changes={"ppt/_rels/presentation.xml.rels": lose_the_first})
    assert [(block.page, block.text) for block in document.blocks] == [(2, "Slide 2"), (2, "b")]
    assert (document.metadata["unread"], document.metadata["slides"], document.title) == (["slide 1"], 2, "")


def test_a_presentation_without_a_slide_that_can_be_read_is_damaged(read: Read) -> None:
    with pytest.raises(DocParserError, match=r"^x\.pptx is corrupted: slide 1 cannot be read"):
        read(shape(A), changes={"ppt/_rels/presentation.xml.rels": lose_the_first})
    with pytest.raises(DocParserError, match=r"^x\.pptx contains no text: its slides may contain only images"):
        read(shape(paragraph(" ")))


@pytest.mark.parametrize(
    ("first", "title"), [("Tea", "Tea"), ("Slide 1", ""), ("Slide 12", ""), ("Slide show", "Slide show")]
)
@pytest.mark.parametrize("stated", ["", "PowerPoint Presentation", "Stated"])
def test_the_title_of_the_first_slide_replaces_one_that_says_nothing(
    files: Any, first: str, title: str, stated: str
) -> None:
    def write(presentation: Any) -> None:
        presentation.core_properties.title = stated
        for text in (first, "Last"):
            presentation.slides.add_slide(presentation.slide_layouts[5]).shapes.title.text = text

    assert PptxParser().parse(files.slides(write), source="x.pptx").title == ("Stated" if stated == "Stated" else title)
