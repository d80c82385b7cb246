"""Tables, headings, columns and whatever stands around the text."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pypdfium2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from reportlab.lib.colors import black
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph, SimpleDocTemplate, Table

from jackfield import sync
from jackfield.errors import DocParserError
from jackfield.plugins import PluginHost, Settings
from jackfield.retrieval import Block, Document
from jackfield_documents import DocumentReader, cells_of
from jackfield_pdf import scans
from jackfield_pdf.columns import in_columns
from jackfield_pdf.parser import PdfParser
from jackfield_pdf.typeset import Line, Part

MakePdf = Callable[..., bytes]
Draw = Callable[[Canvas], object]

PROSE = "The text goes on for a while, as texts do, and is wide enough to show how wide its column is on this page."


def drawn(*pages: Draw) -> bytes:
    """A PDF with these pages."""
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=A4, invariant=True)
    for draw in pages:
        draw(canvas)
        canvas.showPage()
    canvas.save()
    return file.getvalue()


def lines(*texts: str, x: float = 72, y: float = 700, font: str = "Helvetica", size: float = 11) -> Draw:
    def draw(canvas: Canvas) -> None:
        canvas.setFont(font, size)
        for number, text in enumerate(texts):
            canvas.drawString(x, y - 1.2 * size * number, text)

    return draw


def in_forms(draw: Draw, depth: int) -> Draw:
    """The drawing in a form, in a form …, each at half the size and moved."""

    def draw_form(canvas: Canvas) -> None:
        for number in range(depth):
            canvas.beginForm(f"form{number}")
            if number:
                canvas.translate(20, 30)
                canvas.scale(0.5, 0.5)
                canvas.doForm(f"form{number - 1}")
            else:
                draw(canvas)
            canvas.endForm()
        canvas.translate(40, 50)
        canvas.scale(2, 2)
        canvas.doForm(f"form{depth - 1}")

    return draw_form


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_tables_are_found_in_forms(depth: int) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.setFont("Helvetica", 10)
        canvas.grid([0, 40, 80, 120], [100, 120, 140, 160])
        for row, y in enumerate((146, 126, 106)):
            for column, x in enumerate((3, 43, 83)):  # so near to each other that only rules separate them
                canvas.drawString(x, y, f"a cell {row}{column}")

    (table,) = PdfParser().parse(drawn(in_forms(draw, depth)), source="a.pdf").blocks
    assert cells_of(table) == [[f"a cell {row}{column}" for column in range(3)] for row in range(3)]


def all_of(*parts: Draw) -> Draw:
    def draw(canvas: Canvas) -> None:
        for part in parts:
            part(canvas)

    return draw


def rules(xs: Sequence[float], ys: Sequence[float]) -> Draw:
    def draw(canvas: Canvas) -> None:
        canvas.setStrokeColor(black)
        for x in xs:
            canvas.line(x, min(ys), x, max(ys))
        for y in ys:
            canvas.line(min(xs), y, max(xs), y)

    return draw


def read(data: bytes, **settings: Any) -> Document:
    return PdfParser(settings).parse(data, source="a.pdf")


def told(data: bytes, **settings: Any) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in read(data, **settings).blocks]


def tables_of(data: bytes) -> list[list[list[str]]]:
    return [cells_of(block) for block in read(data).blocks if block.kind == "table"]


def ruled(rows: Sequence[Sequence[object]], *style: tuple[object, ...], widths: Sequence[float] | None = None) -> bytes:
    file = io.BytesIO()
    above, below = (Paragraph(PROSE) for _ in range(2))
    table = Table(rows, widths, style=[("GRID", (0, 0), (-1, -1), 0.5, black), *style])
    SimpleDocTemplate(file).build([above, table, below])
    return file.getvalue()


# --- tables ---


def test_a_ruled_table_has_its_cells_between_the_text_above_and_below() -> None:
    data = ruled([["sort", "price | note"], ["green", "3.50"], ["black", ""], ["", "9.10"]])
    assert told(data) == [
        ("paragraph", PROSE),
        ("table", "| sort | price \\| note |\n|---|---|\n| green | 3.50 |\n| black |  |\n|  | 9.10 |"),
        ("paragraph", PROSE),
    ]


def test_lines_in_a_cell_are_its_text() -> None:
    note = "a text that is much longer than its column is wide, so that it takes several lines in its cell"
    style = ParagraphStyle("narrow", fontSize=9)
    data = ruled([["sort", "note"], ["green", Paragraph(note, style)], ["black", "none"]], widths=[60, 120])
    assert tables_of(data) == [[["sort", "note"], ["green", note], ["black", "none"]]]


def test_the_text_of_merged_cells_is_in_the_first_of_them_only() -> None:
    rows = [["all", "", ""], ["green", "Linz", "3"], ["", "Graz", "4"]]
    data = ruled(rows, ("SPAN", (0, 0), (2, 0)), ("SPAN", (0, 1), (0, 2)))
    assert tables_of(data) == [rows]


def test_a_row_split_by_narrow_cells_is_found_although_no_gap_is_wide() -> None:
    texts = [
        lines(text, x=101 + 24 * column, y=603 - 14 * row)
        for row, cells in enumerate((("1ab", "xyz"), ("2cd", "uvw"), ("3ef", "rst")))
        for column, text in enumerate(cells)
    ]
    data = drawn(all_of(lines(PROSE), rules((100, 124, 148), (615, 600, 586, 572)), *texts))
    assert tables_of(data) == [[["1ab", "xyz"], ["2cd", "uvw"], ["3ef", "rst"]]]


def test_text_beside_a_table_stays_text() -> None:
    table = all_of(
        rules((100, 180, 260), (600, 580, 560)),
        *(lines(t, x=x, y=y) for t, x, y in (("a", 104, 585), ("b", 184, 585), ("c", 104, 565), ("d", 184, 565))),
    )
    data = drawn(all_of(table, lines("a remark", x=300, y=585)))
    found = told(data)
    assert ("paragraph", "a remark") in found
    assert ("table", "| a | b |\n|---|---|\n| c | d |") in found


def test_two_tables_are_two_and_a_drawing_is_none() -> None:
    def table(y: float, text: str) -> Draw:
        cells = [lines(f"{text}{n}", x=104 + 80 * (n % 2), y=y - 15 - 20 * (n // 2)) for n in range(4)]
        return all_of(rules((100, 180, 260), (y, y - 20, y - 40)), *cells)

    bars = all_of(rules((100, 140, 180, 220, 260), (300, 270, 240, 210, 180)), lines("only a legend", x=105, y=185))
    data = drawn(all_of(table(700, "a"), table(500, "b"), bars))
    assert tables_of(data) == [[["a0", "a1"], ["a2", "a3"]], [["b0", "b1"], ["b2", "b3"]]]
    assert ("paragraph", "only a legend") in told(data)


def test_a_table_is_read_on_a_page_that_is_turned() -> None:
    def turned(canvas: Canvas) -> None:
        canvas.setPageRotation(90)
        canvas.translate(A4[0], 0)
        canvas.rotate(90)
        rules((100, 180, 260), (300, 280, 260))(canvas)
        for number, text in enumerate("abcd"):
            lines(text, x=104 + 80 * (number % 2), y=285 - 20 * (number // 2))(canvas)
        lines("One line below the other", "on a page that is turned.", x=100, y=200)(canvas)

    assert told(drawn(turned)) == [
        ("table", "| a | b |\n|---|---|\n| c | d |"),
        ("paragraph", "One line below the other on a page that is turned."),
    ]


def test_a_drawing_of_many_thousand_lines_costs_its_table_only() -> None:
    def scribble(canvas: Canvas) -> None:
        for number in range(21_000):
            canvas.line(100, number / 35, 200, number / 35)
        lines("left", x=72)(canvas)
        lines("right", x=300)(canvas)

    assert "left right" in told(drawn(scribble))[0][1]


def cells(xs: Sequence[float], ys: Sequence[float], rows: Sequence[Sequence[str]], *, size: float = 8) -> Draw:
    """Rules at these places, and a text at each place of a row, the first row at the first height minus 10."""
    texts = [
        lines(text, x=xs[column] + 3, y=ys[0] - 10 - 10 * row, size=size)
        for row, of_row in enumerate(rows)
        for column, text in enumerate(of_row)
    ]
    return all_of(rules(xs, ys), *texts)


def test_lines_with_numbers_are_rows_although_no_rule_separates_them() -> None:
    rows = [["offense", "2008", "2009"], ["Total", "11", "12"], ["Robbery", "–", "7"], ["Arson", "4", "5"]]
    assert tables_of(drawn(cells((100, 180, 220, 260), (700, 686, 650), rows))) == [rows]


def test_columns_of_numbers_are_columns_although_no_rule_separates_them() -> None:
    header = all_of(*(lines(text, x=x, y=690, size=8) for text, x in (("Sex", 104), ("Men and women", 200))))
    numbers = [
        ("Total", "1,062.6", "9,540.0"),
        ("Violent crime", "67.9", "9.1"),
        ("Arson", "5", "6"),
        ("Fraud", "", "8"),
    ]

    def body(canvas: Canvas) -> None:
        canvas.setFont("Helvetica", 8)
        for number, (label, male, female) in enumerate(numbers):
            y = 676 - 10 * number
            canvas.drawString(104, y, label)
            canvas.drawRightString(224, y, male)
            canvas.drawRightString(258, y, female)

    data = drawn(all_of(rules((100, 190, 262), (700, 686, 640)), header, body))
    assert tables_of(data) == [[["Sex", "Men and women", ""], *(list(row) for row in numbers)]]


def test_lines_with_short_texts_are_rows_where_nothing_else_separates_rows() -> None:
    rows = [["sort", "town"], ["green", "Linz"], ["black", "Graz"], ["white", "Wels"]]
    assert tables_of(drawn(cells((100, 200, 300), (700, 686, 650), rows))) == [rows]


def test_a_line_of_a_label_without_numbers_is_a_row_of_its_own() -> None:
    rows = [["offense", "2008", "2009"], ["Murder and", "", ""], ["manslaughter", "1", "2"], ["Arson", "4", "5"]]
    assert tables_of(drawn(cells((100, 180, 220, 260), (700, 686, 650), rows))) == [rows]


def test_wrapped_texts_with_the_same_number_of_lines_are_one_row() -> None:
    one = ["all of the tea that", "was drunk in Linz", "in the last year"]
    other = ["and no more coffee", "than had been left", "in the pot before"]
    rows = [["sort", "town"], *([a, b] for a, b in zip(one, other, strict=True))]
    data = drawn(cells((100, 178, 256), (700, 686, 650), rows))
    assert tables_of(data) == [[["sort", "town"], [" ".join(one), " ".join(other)]]]


def test_a_heading_of_two_lines_is_one_row() -> None:
    rows = [["sort", "home"], ["of tea", "town"], ["green", "Linz"]]
    data = drawn(cells((100, 200, 300), (700, 676, 660), rows))
    assert tables_of(data) == [[["sort of tea", "home town"], ["green", "Linz"]]]


def test_where_rules_separate_rows_lines_do_not() -> None:
    rows = [["who", "call"], ["Ann", "71"], ["Bo", "72"], ["Cy", "73"], ["Di Fo", "74 12"], ["Boss", "74 13"]]
    data = drawn(cells((100, 200, 300), (700, 687, 677, 667, 657, 637), rows))
    assert tables_of(data) == [[*rows[:4], ["Di Fo Boss", "74 12 74 13"]]]


def test_lines_that_dots_fill_are_rows() -> None:
    rows = [["sort", "sold"], ["green . . . . . . . . .", "often"], ["black . . . . . . . . .", "never"]]
    data = drawn(cells((100, 180, 260), (700, 686, 665), rows))
    assert tables_of(data) == [rows]


def test_a_word_with_a_hyphen_at_the_end_of_its_line_is_in_one_row() -> None:
    halves = [("a trans-", "lation"), ("some lite-", "rature")]
    words = [lines(*text, x=103 + 100 * at, y=676, size=9) for at, text in enumerate(halves)]
    heads = [lines(text, x=x, y=690, size=9) for text, x in (("one", 103), ("two", 203))]
    data = drawn(all_of(rules((100, 200, 300), (700, 686, 655)), *heads, *words))
    assert tables_of(data) == [[["one", "two"], ["a translation", "some literature"]]]


def test_a_cell_over_several_columns_changes_none_of_them() -> None:
    def page(canvas: Canvas) -> None:
        rules((100, 150, 200, 250), (700, 686, 662))(canvas)
        rules((100, 200, 250), (662, 638))(canvas)
        rows = [("a", "b", "c", "d"), ("1", "2", "3", "4"), ("5", "6", "7", "8")]
        for row, texts in enumerate(rows):
            for x, text in zip((104, 132, 154, 204), texts, strict=True):
                lines(text, x=x, y=690 - 12 * row, size=8)(canvas)
        lines("all of them in tons", "and none in pounds", x=104, y=654, size=8)(canvas)
        lines("9", "10", x=204, y=654, size=8)(canvas)

    [table] = tables_of(drawn(page))
    assert table == [
        ["a", "b", "c", "d"], ["1", "2", "3", "4"], ["5", "6", "7", "8"],
        ["all of them in tons", "", "", "9"], ["and none in pounds", "", "", "10"],
    ]  # fmt: skip


def test_a_tick_at_a_rule_makes_no_row() -> None:
    rows = [["sort", "price"], ["green", "3.50"]]
    tick = rules((177, 183), (668,))
    assert tables_of(drawn(all_of(cells((100, 180, 260), (700, 686, 650), rows), tick))) == [rows]


def test_characters_with_room_for_a_rule_between_them_are_in_two_cells() -> None:
    def page(canvas: Canvas) -> None:
        rules((100, 106.1, 112.2, 118.3), (700, 688, 676))(canvas)
        canvas.setFont("Helvetica", 9)
        for row, text in enumerate(("123", "456")):
            for column, digit in enumerate(text):
                canvas.drawString(100.6 + 6.1 * column, 691 - 12 * row, digit)

    data = drawn(all_of(page, lines(PROSE, y=750)))
    assert tables_of(data) == [[["1", "2", "3"], ["4", "5", "6"]]]


def test_raised_numbers_do_not_divide_a_row() -> None:
    table = cells((100, 180, 220, 260), (700, 686, 674), [["offense", "2008", "2009"], ["Arson", "4", "5"]])
    raised = all_of(lines("1", x=186, y=683, size=5), lines("2", x=226, y=683, size=5))
    [[_, row]] = tables_of(drawn(all_of(table, raised)))
    assert [cell.replace(" ", "") for cell in row] == ["Arson", "41", "52"]


# --- drawings ---


def box(x: float, y: float, *texts: str) -> Draw:
    """A box of a diagram, 100 wide and 60 high, with a rule below its first text."""
    return all_of(rules((x, x + 100), (y, y - 16, y - 60)), lines(*texts, x=x + 4, y=y - 12, size=9))


def test_a_diagram_is_text_and_each_of_its_words_is_written_once() -> None:
    names = ["Kettle", "Pot", "Cup", "Leaf"]
    boxes = [box(90 + 150 * (n % 2), 700 - 45 * n, name, "size: Length", "owner: Text") for n, name in enumerate(names)]
    frame = all_of(rules((80, 420), (720, 480)), lines("Figure of a kitchen", x=84, y=706, size=9))
    arrows = rules((140, 290), (660, 610, 520))
    document = read(drawn(all_of(lines("left", x=72, y=750), lines("right", x=300, y=750), frame, arrows, *boxes)))
    assert {block.kind for block in document.blocks} <= {"paragraph", "list", "heading"}
    words = " ".join(block.text for block in document.blocks).split()
    assert [words.count(name) for name in names] == [1, 1, 1, 1]
    assert words.count("Length") == 4


def test_a_rule_across_words_does_not_cut_them() -> None:
    text = lines("Kettles, teapots", "strainers, saucers", "and many spoons", x=72, y=700)
    grid = rules((60, 84, 108, 132, 200), (714, 695, 682, 668))
    document = read(drawn(all_of(text, lines("beside", x=300, y=700), grid)))
    assert {block.kind for block in document.blocks} == {"paragraph"}
    assert " ".join(block.text for block in document.blocks).split() == [
        "Kettles,", "teapots", "strainers,", "saucers", "and", "many", "spoons", "beside",
    ]  # fmt: skip


def test_a_chart_with_its_scales_is_no_table() -> None:
    frame = rules((100, 220), (600, 480))
    scales = [rules((112 + 12 * at,), (480, 492)) for at in range(9)] + [
        rules((100, 112), (492 + 12 * at, 492 + 12 * at)) for at in range(9)
    ]
    names = [lines(str(at), x=103 + 12 * at, y=483, size=6) for at in range(10)]
    names += [lines(str(at), x=103, y=483 + 12 * at, size=6) for at in range(1, 10)]
    assert tables_of(drawn(all_of(frame, *scales, *names, lines("The sales", x=150, y=550)))) == []


def test_a_grid_with_hardly_any_text_is_no_table() -> None:
    grid = rules([100 + 30 * at for at in range(6)], [600 - 30 * at for at in range(6)])
    labels = [lines(text, x=104 + 60 * (at % 2), y=580 - 60 * (at // 2), size=8) for at, text in enumerate("abcd")]
    assert tables_of(drawn(all_of(grid, *labels))) == []


def test_frames_that_touch_are_no_table() -> None:
    texts = [lines(text, x=104 + 100 * (at % 2), y=690 - 20 * at, size=8) for at, text in enumerate("abcd")]
    beside = lines("beside", x=400, y=690)
    assert tables_of(drawn(all_of(rules((100, 200, 300), (700, 680, 660, 640, 620)), *texts, beside))) == []


def test_the_words_of_a_drawing_in_a_cell_are_the_cells() -> None:
    rows = [["sort", "sketch"], ["green", ""]]
    table = cells((100, 180, 300), (700, 686, 600), rows)
    sketch = all_of(rules((190, 215, 240, 290), (680, 670, 650, 610)), lines("a kettle here", x=195, y=660, size=8))
    assert tables_of(drawn(all_of(table, sketch))) == [[["sort", "sketch"], ["green", "a kettle here"]]]


def test_a_table_inside_of_a_drawing_is_a_table() -> None:
    rows = [["sort", "2008", "2009"], ["green", "4", "5"], ["black", "7", "8"]]
    table = cells((100, 180, 220, 260), (700, 686, 650), rows)
    frame = all_of(rules((80, 300), (760, 740, 560)), rules((80, 190), (740, 600)), lines("a sketch", x=84, y=746))
    document = read(drawn(all_of(frame, table)))
    assert [cells_of(block) for block in document.blocks if block.kind == "table"] == [rows]
    assert "a sketch" in [block.text for block in document.blocks]


_PLACES = st.integers(0, 40).map(lambda number: 72.0 + 11 * number)
_RULES = st.lists(st.tuples(_PLACES, _PLACES, _PLACES, st.booleans()), max_size=40)
_TEXTS = st.lists(st.tuples(_PLACES, _PLACES, st.text("ab 12.-", min_size=1, max_size=12)), min_size=1, max_size=30)


@settings(max_examples=settings().max_examples // 2)
@given(_RULES, _TEXTS, st.sampled_from((6, 9, 11)))
def test_no_drawn_line_makes_a_page_say_more_than_its_text(
    edges: list[tuple[float, float, float, bool]], texts: list[tuple[float, float, str]], size: int
) -> None:
    def page(canvas: Canvas) -> None:
        for at, start, end, is_across in edges:
            canvas.line(*((start, at, end, at) if is_across else (at, start, at, end)))
        canvas.setFont("Helvetica", size)
        for x, y, text in texts:
            canvas.drawString(x, y, text)
        canvas.drawString(40, 40, "end")

    data = drawn(page)
    with closing(pypdfium2.PdfDocument(data)) as file, closing(file[0]) as only, closing(only.get_textpage()) as layer:
        shown = Counter(re.findall(r"\w", layer.get_text_range()))
    assert Counter(re.findall(r"\w", " ".join(block.text for block in read(data).blocks))) == shown


# --- headings ---


def outlined(canvas: Canvas) -> None:
    entries = (("Tea", 0, 700), ("2.1 Water", 1, 640))
    for number, (title, level, y) in enumerate(entries):
        canvas.bookmarkHorizontal(str(number), 0, y)
        canvas.addOutlineEntry(title, str(number), level)
        lines(title, PROSE[:62], PROSE[62:], y=y)(canvas)


def test_titles_of_the_outline_are_headings_even_in_the_type_of_the_text() -> None:
    found = [(block.kind, block.level, block.text) for block in read(drawn(outlined)).blocks]
    assert found == [
        ("heading", 1, "Tea"),
        ("paragraph", 0, PROSE),
        ("heading", 2, "2.1 Water"),
        ("paragraph", 0, PROSE),
    ]


def test_a_bold_line_is_a_heading_below_the_larger_ones() -> None:
    page = all_of(
        lines("Tea", y=760, size=18),
        lines("Water", y=700, font="Helvetica-Bold"),
        lines(PROSE[:62], PROSE[62:], y=686),
        lines(*[PROSE[:62]] * 4, y=600),
    )
    blocks = read(drawn(page)).blocks
    assert [(block.text, block.level) for block in blocks if block.kind == "heading"] == [("Tea", 1), ("Water", 2)]
    assert blocks[2] == Block(PROSE, page=1)


def test_where_most_is_bold_bold_says_nothing() -> None:
    page = all_of(lines("Water", y=700, font="Helvetica-Bold"), lines(*[PROSE] * 3, y=650, font="Helvetica-Bold"))
    assert {block.kind for block in read(drawn(page)).blocks} == {"paragraph"}


def headings_in(data: bytes, **settings: Any) -> list[str]:
    return [block.text for block in read(data, **settings).blocks if block.kind == "heading"]


def test_entries_of_a_table_of_contents_are_no_headings_although_they_are_bold() -> None:
    entries = [("1 Green tea 3", True), ("1.1 Leaves . . . . . . . 3", False), ("1.2 Water . . . . . . . 5", False)]
    entries += [("2 Black tea vii", True), ("2.1 Milk . . . . . . . 9", False), ("3 Mint 12", True)]
    listed = [
        lines(text, y=700 - 16 * at, font="Helvetica-Bold" if is_bold else "Helvetica")
        for at, (text, is_bold) in enumerate(entries)
    ]
    chapter = all_of(lines("1 Green tea", font="Helvetica-Bold"), lines(*[PROSE] * 3, y=650))
    data = drawn(all_of(lines("Contents", y=760, size=18), *listed), all_of(chapter, lines(*[PROSE] * 6, y=500)))
    assert headings_in(data) == ["Contents", "1 Green tea"]


def test_bold_lines_that_end_in_numbers_are_headings_where_others_do_not() -> None:
    page = all_of(lines("Version 4", font="Helvetica-Bold"), lines(*[PROSE] * 4, y=686), lines(*[PROSE] * 9, y=600))
    assert headings_in(drawn(page, page)) == ["Version 4", "Version 4"]


@pytest.mark.parametrize("running_lines", [False, True])
@pytest.mark.parametrize(
    "top",
    [
        lambda n: "Tea quarterly, issue 4",
        lambda n: f"Chapter {'ABCD'[n // 2]}. Of teas {n + 7}",  # the number of the page at the end,
        lambda n: f"{n + 7} Chapter {'ABCD'[n // 2]}. Of teas",  # or at the beginning
        lambda n: ["i", "ii", "iii", "iv", "v", "vi"][n],
        lambda n: ", ",
        lambda n: "– 12 –",
    ],
)
def test_bold_headers_and_page_numbers_are_no_headings(top: Callable[[int], str], running_lines: bool) -> None:
    def page(number: int) -> Draw:
        text = all_of(lines("Green tea", y=700, font="Helvetica-Bold"), lines(*[PROSE] * 6, y=686))
        return all_of(lines(top(number), x=300, y=800, font="Helvetica-Bold"), text)

    data = drawn(*map(page, range(6)))
    assert set(headings_in(data, running_lines=running_lines)) == {"Green tea"}


def test_bold_lines_at_the_top_of_two_pages_are_headings() -> None:
    def page(number: int) -> Draw:
        return all_of(lines(f"{number + 1} Tea", y=800, font="Helvetica-Bold"), lines(*[PROSE] * 6, y=700))

    assert headings_in(drawn(page(0), page(1))) == ["1 Tea", "2 Tea"]


def test_large_titles_are_headings_although_their_numbers_count_the_pages() -> None:
    pages = [all_of(lines(f"Chapter {n}", y=800, size=18), lines(*[PROSE] * 6, y=700)) for n in range(1, 6)]
    assert headings_in(drawn(*pages)) == [f"Chapter {n}" for n in range(1, 6)]


def test_a_title_may_be_most_of_a_short_text() -> None:
    page = all_of(lines("The whole history of tea", y=760, size=18), lines("Still to be written by us."))
    assert headings_in(drawn(page)) == ["The whole history of tea"]


def test_text_is_no_heading_although_most_characters_are_smaller() -> None:
    listing = lines(*["brew(pot, water, leaves, 180)  # as long as it takes, and not any longer"] * 20, y=300, size=7)
    texts = all_of(*(lines("It is defined in line 65 of a file.", y=700 - 20 * at, size=10) for at in range(19)))
    page = all_of(lines("Brewing", y=760, size=14), texts, listing)
    assert headings_in(drawn(page, page, page)) == ["Brewing"] * 3


def test_lines_of_one_width_are_code_with_their_indents() -> None:
    page = all_of(lines("def brew():", font="Courier"), lines("pour()", x=72 + 4 * 6.6, y=700 - 13.2, font="Courier"))
    assert told(drawn(all_of(lines(*[PROSE] * 4, y=600), page)))[-1] == ("code", "def brew():\n    pour()")


# --- columns ---

LEFT = ["The left column begins here and", "goes on over some other lines", "until it comes to the very end"]
LEFT += ["of what it has, and continues", "on top of the column"]
RIGHT = [
    "at the right, where it says what",
    "was left over and what nobody",
    "has read so far or will ever",
    "read here, and ends",
]


def test_columns_that_a_file_has_line_by_line_are_read_one_after_the_other() -> None:
    def both(canvas: Canvas) -> None:
        for number, text in enumerate(LEFT):
            lines(text, y=700 - 14 * number)(canvas)
            if number < len(RIGHT):
                lines(RIGHT[number], x=320, y=700 - 14 * number)(canvas)

    [(kind, text), *_] = told(drawn(all_of(both, lines(PROSE, y=500))))
    assert (kind, text) == ("paragraph", " ".join(LEFT + RIGHT))


def test_long_texts_of_a_table_are_not_columns_of_text() -> None:
    rows = [
        ("Green tea from the hills of Linz", "three pounds and fifty"),
        ("Black tea", "two pounds and ten, or less for friends of ours"),
        ("White tea of the last year", "sold out"),
        ("Mint", "by the pound, as long as there is any of it"),
        ("Red tea from far away", "ask at the counter"),
    ]
    page = [lines(text, x=72 + 220 * c, y=700 - 14 * r) for r, row in enumerate(rows) for c, text in enumerate(row)]
    assert tables_of(drawn(all_of(*page))) == [[list(row) for row in rows]]


def test_of_very_long_columns_nothing_is_lost() -> None:
    texts = [f"{side} words in line {number}" for number in range(1000) for side in ("left", "right")]
    rows = [
        Line(
            f"{left} {right}", 72, 500, 9000 - 9.0 * number, 9000 - 9.0 * number, 9.0,
            parts=(Part(left, 72, 200), Part(right, 300, 500)),
        )
        for number, (left, right) in enumerate(zip(texts[::2], texts[1::2], strict=True))
    ]  # fmt: skip
    ordered = [line.text for line in in_columns(rows)]
    assert sorted(ordered) == sorted(texts)
    assert ordered[:3] == texts[:6:2]


def test_short_texts_in_two_columns_are_a_table() -> None:
    rows = [("green", "3.50"), ("black", "2.10"), ("white", "9.10"), ("red", "1.00"), ("mint", "0.50")]
    page = [lines(text, x=72 + 200 * c, y=700 - 14 * r) for r, row in enumerate(rows) for c, text in enumerate(row)]
    assert tables_of(drawn(all_of(*page))) == [[list(row) for row in rows]]


# --- around the text ---


def sheet(number: int, *, top: str, foot: str) -> Draw:
    text = [f"Here begins sheet {chr(96 + number)}, which nobody has read", "and which says little."]
    return all_of(lines(top, y=800, size=9), lines(*text, y=700), lines(foot, x=290, y=40, size=9))


def test_what_is_repeated_around_the_text_stays_where_it_stands_first() -> None:
    data = drawn(*(sheet(n, top="Tea quarterly", foot=f"Page {n} of 5") for n in range(1, 6)))
    document = read(data)
    assert next(block.text for block in document.blocks if block.page == 1) == "Tea quarterly"
    assert [block.text for block in document.blocks if block.page == 3] == [
        "Here begins sheet c, which nobody has read and which says little."
    ]
    assert document.metadata["running_lines"] == ["Page # of #", "Tea quarterly"]
    kept = [text for _, text in told(data, running_lines=True)]
    assert kept.count("Tea quarterly") == 5
    assert "Page 3 of 5" in kept


@pytest.mark.parametrize(
    ("top", "count"),
    [
        (lambda n: "Tea quarterly", 2),  # on too few pages
        (lambda n: f"Invoice {4711 + 7 * n}", 5),  # numbers that do not count the pages
        (lambda n: f"Invoice {4711 + n}", 5),  # nor do these, which are much larger
        (lambda n: f"Chapter {'abcde'[n - 1]}", 5),
    ],
)
def test_what_may_be_a_part_of_the_text_stays(top: Callable[[int], str], count: int) -> None:
    data = drawn(*(sheet(n, top=top(n), foot=f"foot {'abcde'[n - 1]}") for n in range(1, count + 1)))
    texts = [text for _, text in told(data)]
    assert [text for text in texts if text in {top(n) for n in range(1, 6)}] == [top(n) for n in range(1, count + 1)]


def test_signs_that_stand_where_others_have_numbers_are_no_numbers() -> None:
    tops = ["Part 1#", "Part #1", "Part #2", "Part ##"]
    texts = [text for _, text in told(drawn(*(sheet(n, top=tops[n - 1], foot="end") for n in range(1, 5))))]
    assert [text for text in texts if text in tops] == tops


def test_a_page_never_loses_its_only_line() -> None:
    data = drawn(*[lines("The same on every page")] * 5)
    assert [block.page for block in read(data).blocks] == [1, 2, 3, 4, 5]


# --- pages that are pictures ---


def picture(canvas: Canvas) -> None:
    canvas.drawImage(ImageReader(Image.new("L", (20, 20), 99)), 0, 0, *A4)


def nothing(canvas: Canvas) -> None:
    canvas.setLineWidth(1)


def test_a_scan_is_refused_where_no_parser_has_ocr(tmp_path: Path) -> None:
    for data, reason in (
        (drawn(picture, picture, picture), "3 pages are images"),
        (drawn(nothing, picture), "its only page is an image"),
    ):
        (tmp_path / "a.pdf").write_bytes(data)
        reader = DocumentReader(PluginHost(Settings(allow=frozenset({"jackfield-pdf"}))))
        expected = rf"^a.pdf has no text layer: {reason}, and no parser with OCR is .*pip install jackfield-ocr"
        with pytest.raises(DocParserError, match=expected):
            sync.run(reader.read(tmp_path / "a.pdf"))


def test_pages_that_are_pictures_are_parts_and_the_same_each_time() -> None:
    data = drawn(lines("one"), picture, nothing, picture)
    first = read(data).parts
    assert [(part.name, part.page) for part in first] == [("page.pdf-scan", 2), ("page.pdf-scan", 4)]
    assert all(part.data.startswith(b"%PDF-") and part.data.endswith(b"%%EOF\r\n") for part in first)
    assert read(data).parts == first


def test_pages_that_share_a_large_picture_are_not_all_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scans, "_SPARE_BYTES", 0)
    image = ImageReader(Image.effect_noise((300, 300), 90))
    data = drawn(*[lambda canvas: canvas.drawImage(image, 0, 0, *A4)] * 9)
    document = read(data)
    assert 1 <= len(document.parts) <= 2
    rest = f"pages {len(document.parts) + 1}-9"
    assert f"[No text on {rest}, only images: install jackfield-ocr to read them]" in [
        block.text for block in document.blocks
    ]


def test_an_empty_file_is_refused_with_its_pages() -> None:
    with pytest.raises(DocParserError, match="every page is empty or an image"):
        read(drawn(nothing, nothing))


def test_pages_that_are_pictures_are_named_where_they_stand() -> None:
    document = read(drawn(lines("one"), picture, picture, nothing, lines("five"), picture))
    assert [(block.page, block.text) for block in document.blocks] == [
        (1, "one"),
        (2, "[No text on pages 2-3, only images: install jackfield-ocr to read them]"),
        (5, "five"),
        (6, "[No text on page 6, only images: install jackfield-ocr to read them]"),
    ]
    assert document.metadata["scanned_pages"] == [2, 3, 6]
    assert document.metadata["pages_without_text"] == [2, 3, 4, 6]
