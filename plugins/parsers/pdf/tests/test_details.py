"""Headings, running lines, paragraphs, lists and columns by the measures of their lines, each at its boundary."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import replace

import pypdfium2
import pytest
from PIL import Image
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from jackfield.errors import DocParserError
from jackfield.retrieval import Block
from jackfield_pdf.cells import Word, _heights
from jackfield_pdf.edges import edge_lines, lines_around_text
from jackfield_pdf.headings import Headings, headings_of
from jackfield_pdf.pages import Entry, Page
from jackfield_pdf.paragraphs import blocks_of, in_ranges
from jackfield_pdf.parser import PdfParser
from jackfield_pdf.pictures import PdfPictures
from jackfield_pdf.plugin import parsers
from jackfield_pdf.running import without_running_lines
from jackfield_pdf.typeset import HYPHEN, Line, Part

MakePdf = Callable[..., bytes]
PLAIN = Headings({}, 0, {}, has_code=True, others=())


def line(
    text: str, first: float = 700.0, *, size: float = 10.0, left: float = 50.0, right: float = 450.0, **more: bool
) -> Line:
    return Line(text, left=left, right=right, first=first, last=first, size=size, **more)


def page(*lines: Line, number: int = 1) -> Page:
    return Page(number, lines)


def texts(blocks: Sequence[Block]) -> list[str]:
    return [block.text for block in blocks]


# --- headings ---------------------------------------------------------------------------------------------------------

BODY = [line("x" * 80, 600.0 - 12 * number) for number in range(20)]


@pytest.mark.parametrize(
    ("size", "level"), [(11.0, 0), (11.24, 0), (11.5, 1), (11.74, 1), (12.0, 1), (30.0, 1), (9.0, 0)]
)
def test_type_that_is_clearly_larger_than_the_text_is_a_heading(size: float, level: int) -> None:
    title = line("A title", size=size)
    assert headings_of([page(title, *BODY)], ()).level([title], title.text, 1) == level


def test_each_larger_size_is_a_level_down_to_the_sixth() -> None:
    sizes = (36.0, 32.0, 28.0, 24.0, 20.0, 16.0, 14.0)
    titles = [line("Title", 900 - size, size=size) for size in sizes]
    headings = headings_of([page(*titles, *BODY)], ())
    assert [headings.level([title], title.text, 1) for title in titles] == [1, 2, 3, 4, 5, 6, 6]
    assert headings.bold_level == 6


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("Tea", 1), ("I", 0), ("iv", 0), ("xii", 0), ("A", 0), ("12", 0), ("1.2", 0), ("• –", 0), ("茶", 1), ("a1b", 1),
        ("T" * 200, 1), ("T" * 201, 0), ("ivory", 1),
    ],
)  # fmt: skip
def test_a_heading_has_letters_and_is_not_long(text: str, level: int) -> None:
    title = line(text, size=20.0)
    headings = headings_of([page(line("Another", 800, size=20.0), *BODY)], ())
    assert headings.level([title], text, 1) == level


@pytest.mark.parametrize(
    ("text", "lines", "is_heading"),
    [
        ("Tea", 1, True), ("Tea", 2, True), ("Tea", 3, False), ("Tea.", 1, False), ("Tea:", 1, False),
        ("茶。", 1, False),
        ("Why tea?", 1, False), ("T" * 120, 1, True), ("T" * 121, 1, False), ("12 34", 1, False),
    ],
)  # fmt: skip
def test_a_bold_line_is_a_heading_if_it_looks_like_one(text: str, lines: int, is_heading: bool) -> None:
    bold = [line(text, is_bold=True)] * lines
    headings = headings_of([page(*bold, *BODY)], ())
    assert headings.level(bold, text, 1) == (1 if is_heading else 0)
    assert headings.level([*bold[1:], line(text)], text, 1) == 0


@pytest.mark.parametrize(("count", "level"), [(30, 1), (31, 0)])
def test_bold_type_says_nothing_where_much_is_bold(count: int, level: int) -> None:
    lines = [line("x" * 10, 700 - n, is_bold=n < count) for n in range(100)]
    assert headings_of([page(*lines)], ()).bold_level == level


def test_the_outline_decides_about_its_titles_and_their_size() -> None:
    one, two, three = line("2.1 The  Tea", size=10.0), line("Water", 650, size=20.0), line("Milk", 640, size=20.0)
    outline = [Entry("The tea", 3, 1), Entry("water", 2, 1), Entry("Elsewhere", 1, 2), Entry("Deep", 9, 1)]
    headings = headings_of([page(one, two, three, line("Deep", 630), *BODY)], outline)
    assert [headings.level([each], each.text, 1) for each in (one, two, three)] == [3, 2, 2]
    assert headings.level([one], one.text, 2) == 0
    assert headings.level([line("Deep")], "Deep", 1) == 6
    assert headings.stated("A.1 water", 1) == 2
    assert headings.stated("Elsewhere", 1) == 0


def test_a_size_below_one_of_the_outline_is_a_level_lower() -> None:
    part, title = line("The part", size=30.0), line("A title", 680.0, size=20.0)
    headings = headings_of([page(part, title, *BODY)], [Entry("The part", 3, 1)])
    assert [headings.level([one], one.text, 1) for one in (part, title)] == [3, 4]


@pytest.mark.parametrize(("long", "is_text"), [(25, False), (26, True)])
def test_large_type_that_is_much_of_a_long_text_is_text(long: int, is_text: bool) -> None:
    lines = [line("x" * 100, 700 - n, size=14.0 if n < long else 10.0) for n in range(100)]
    headings = headings_of([page(*lines)], ())
    assert headings.level([lines[0]], "Tea", 1) == (0 if is_text else 1)


@pytest.mark.parametrize(("count", "has_code"), [(50, True), (51, False)])
def test_type_of_one_width_is_code_unless_most_is(count: int, has_code: bool) -> None:
    lines = [line("x" * 10, 700 - n, is_mono=n < count) for n in range(100)]
    assert headings_of([page(*lines)], ()).has_code == has_code


# --- lines around the text --------------------------------------------------------------------------------------------


def around(top: str, foot: str, number: int, *, gap: float = 30.0) -> Page:
    body = [line(f"text {number} {letter}", 600.0 - 12 * n) for n, letter in enumerate("abc")]
    return page(line(top, 600 + gap), *body, line(foot, 576 - gap), number=number)


@pytest.mark.parametrize(("gap", "places"), [(15.0, []), (15.1, [(4, False), (0, True)])])
def test_lines_at_the_edges_are_those_that_a_gap_separates(gap: float, places: list[tuple[int, bool]]) -> None:
    assert list(edge_lines(around("top", "foot", 1, gap=gap))) == places


def test_lines_at_one_height_are_at_the_edge_together_and_lines_without_a_place_are_not() -> None:
    lines = (line("a", 800), line("b", 804.9), line("c", 700), line("d", 0.0, size=0.0))
    assert list(edge_lines(page(*lines))) == [(2, False), (1, True), (0, True)]
    assert list(edge_lines(page(lines[0]))) == []


@pytest.mark.parametrize(
    ("tops", "left_out", "kept"),
    [
        (["Tea", "Tea", "Tea"], ["Tea"], 1),
        (["Tea", "Tea"], [], 2),
        (["Tea 1", "Tea 2", "Tea 3"], ["Tea #"], 1),
        (["1", "2", "3"], ["#"], 0),
        (["Page 1 of 3", "Page 2 of 3", "Page 3 of 3"], ["Page # of #"], 0),
        (["Seite 5", "Seite 6", "Seite 7"], ["Seite #"], 0),
        (["第 1 页", "第 2 页", "第 3 页"], ["第 # 页"], 0),
        (["1", "3", "4"], [], 3),
        (["Rule 201", "Rule 202", "Rule 203"], ["Rule #"], 1),
        (["Rule 202", "Rule 203", "Rule 204"], [], 3),
        (["Tea  2", "Tea 2", "Tea 2 "], ["Tea #"], 1),
        (["0000001", "0000002", "0000003"], [], 3),
        (["1234567", "1234567", "1234567"], ["#"], 0),
        (["Tea", "Teas", "Tea"], [], 3),
    ],
)
def test_lines_that_are_repeated_or_count_the_pages_are_left_out(
    tops: list[str], left_out: list[str], kept: int
) -> None:
    pages = [around(top, f"foot {chr(97 + number)}", number + 1) for number, top in enumerate(tops)]
    shorter, running = without_running_lines(pages, PLAIN)
    assert running == left_out
    assert sum(each.lines[0].text in tops for each in shorter) == kept
    if left_out and kept:
        assert shorter[0] == pages[0]


def test_a_running_line_has_its_height_and_its_side_and_no_large_type() -> None:
    moved = [around("Tea", f"end {'abc'[number - 1]}", number) for number in (1, 2, 3)]
    moved[2] = replace(moved[2], lines=(replace(moved[2].lines[0], first=632.0, last=632.0), *moved[2].lines[1:]))
    assert without_running_lines(moved, PLAIN)[1] == []
    large = [around("Tea", "end", number) for number in (1, 2, 3)]
    headings = replace(PLAIN, levels={10.0: 1})
    assert without_running_lines(large, headings)[1] == []


@pytest.mark.parametrize(
    ("lines", "others"),
    [
        (["Tea 1", "Milk 2", "Water 3", "Sugar 4"], 4),
        (["Tea 1", "Milk 2", "Water 3"], 0),
        (["Tea … iv", "Milk.....2", "Water,3", "Sugar · 4444"], 4),
        (["Tea 1", "Milk", "Water", "Sugar 4", "Salt 5"], 0),
        (["Tea 12345", "Milk 12345", "Water 12345", "Sugar 12345"], 0),
        (["1 2", "3 4", "5 6", "7 8"], 0),
        (["Tea 1", "x", "y", "Milk 2", "z", "Water 3", "Sugar 4"], 1),
    ],
)
def test_lines_that_end_in_numbers_among_others_are_entries(lines: list[str], others: int) -> None:
    pages = [page(*(line(text, 700 - 12 * n) for n, text in enumerate(lines)))]
    assert len(lines_around_text(pages, lambda _: False)) == others


def test_headers_are_repeated_on_three_pages_or_count_them() -> None:
    pages = [around("Tea", f"{number} / x", number) for number in (1, 2, 3)]
    others = lines_around_text(pages, lambda _: False)
    assert {text for _, text in others} == {"Tea", "1 / x", "2 / x", "3 / x"}
    assert (2, "Tea") in others
    assert lines_around_text(pages[:2], lambda _: False) == frozenset()
    assert lines_around_text(pages, lambda _: True) == frozenset()
    last = [around(f"Tea {chr(number)}", f"{chr(number)} {number}", number) for number in (101, 102, 103)]
    assert {text for _, text in lines_around_text(last, lambda _: False)} == {"e 101", "f 102", "g 103"}


# --- paragraphs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("numbers", "shown"),
    [
        ([3], "page 3"), ([3, 4], "pages 3-4"), ([1, 3], "pages 1 and 3"), ([1, 2, 3, 7], "pages 1-3 and 7"),
        ([1, 3, 5, 6], "pages 1, 3 and 5-6"),
    ],
)  # fmt: skip
def test_numbers_of_pages_are_written_as_ranges(numbers: list[int], shown: str) -> None:
    assert in_ranges(numbers) == shown


def read(*lines: Line, headings: Headings = PLAIN) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in blocks_of([page(*lines)], headings)]


def paragraph(*lines: str, step: float = 12.0, right: float = 450.0) -> list[Line]:
    return [line(text, 700 - step * n, right=right) for n, text in enumerate(lines)]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["one ﬁne ﬀort", "ﬂow ﬃx ﬄy ﬅ ﬆ"], ["one fine ffort flow ffix ffly st st"]),
        (["soft\u00adness"], ["softness"]),
        ([f"a {HYPHEN} b", f"{HYPHEN}c"], ["a - b -c"]),
        (["中文 and", "字句"], ["中文 and 字句"]),
        ([f"hyphen{HYPHEN}ation"], ["hyphenation"]),
        ([f"well-{HYPHEN}known"], ["wellknown"]),
        ([f"well-{HYPHEN}known", "and well-known"], ["well-known and well-known"]),
        (["中文", "字句"], ["中文字句"]),
        (["中文，", "字句"], ["中文，字句"]),
        (["a  b", " c "], ["a b c"]),
    ],
)
def test_lines_are_joined_and_their_letters_are_usual_ones(lines: list[str], expected: list[str]) -> None:
    assert [" ".join(text.split()) for _, text in read(*paragraph(*lines))] == expected


@pytest.mark.parametrize(
    ("bullet", "is_list"),
    [
        *((f"{sign} ", True) for sign in "•‣◦▪●○■□–—*·-"),
        ("\uf0b7 ", True),
        ("\uf0a7 ", True),
        ("-", False),
        ("+ ", False),
        ("> ", False),
    ],
)
def test_a_bullet_begins_an_item(bullet: str, is_list: bool) -> None:
    blocks = read(*paragraph(f"{bullet}one thing", f"{bullet}two things"))
    assert [kind for kind, _ in blocks] == (["list"] if is_list else ["paragraph"])
    if is_list:
        assert blocks[0][1].count("\n") == 1


END = "A sentence that ends here."


@pytest.mark.parametrize(
    ("second", "count"),
    [
        (line("and goes on", 688), 1),
        (line("1. one", 688), 2), (line("(a) one", 688), 2), (line("iv) one", 688), 2), (line("1.2 one", 688), 2),
        (line("一、one", 688), 2), (line("1234. one", 688), 1), (line("1.one", 688), 1),
        (line("indented", 688, left=58.1), 2), (line("indented", 688, left=57.9), 1),
        (line("to the left", 688, left=41.9), 1),
        (line("larger", 688, size=11.3), 1), (line("larger", 688, size=11.5), 2),
        (line("bold", 688, is_bold=True), 2),
        (line("- one", 688), 2),
        (line("Further up", 720), 2),
    ],
)  # fmt: skip
def test_a_paragraph_begins_after_a_sentence_where_its_place_or_its_text_says_so(second: Line, count: int) -> None:
    assert len(read(line(END), second)) == count


@pytest.mark.parametrize(
    ("second", "count"),
    [
        (line("1. one", 688), 1), (line("indented", 688, left=80.0), 1), (line("bold", 688, is_bold=True), 1),
        (line("further up", 720), 1), (line("Further up", 720), 2), (line("- one", 688), 2), (line("far", 670), 2),
    ],
)  # fmt: skip
def test_a_sentence_that_has_not_ended_goes_on(second: Line, count: int) -> None:
    assert len(read(line("A sentence that goes on and"), second)) == count


@pytest.mark.parametrize(("gap", "count"), [(16.7, 1), (16.9, 2)])
def test_a_gap_wider_than_those_between_lines_begins_a_paragraph(gap: float, count: int) -> None:
    assert len(read(*paragraph("one and", "two and", "three and"), line("four", 676 - gap))) == count


@pytest.mark.parametrize("end", [".", "!", "?", ":", ";", "。", "！", "？", "：", "；", "…", '."', ".)", "。」"])
def test_a_sentence_ends_with_a_sign(end: str) -> None:
    assert len(read(line(f"A sentence{end}"), line("1. one", 688))) == 2


@pytest.mark.parametrize(("right", "count"), [(349, 2), (351, 1)])
def test_a_line_that_ends_well_before_its_column_ends_a_paragraph(right: float, count: int) -> None:
    lines = [*paragraph("wide and", "wide and", "wide and"), line("short and", 664, right=right), line("next", 652)]
    assert len(read(*lines)) == count


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        ((line("in the section and"), line("1.2 the rest", 688)), 1),
        ((line("1.1 In the section and"), line("1.2 the rest", 688)), 2),
        ((line(END, is_bold=True), line("plain", 688)), 2),
        ((line("one and"), line(END, 688), line("to the left", 676, left=41.9)), 2),
        ((Line("A short end."), Line("next")), 2),
        ((Line(f"{'A long line of many words ' * 2}ends."), Line("next")), 1),
        ((Line(f"{'A long line of many words ' * 2}ends."), Line("1. next")), 2),
        ((Line("A line that goes on and"), Line("1. next")), 1),
    ],
)
def test_a_block_begins_by_what_both_lines_are(lines: tuple[Line, ...], count: int) -> None:
    assert len(read(*lines)) == count


def test_lines_of_code_keep_the_indentation_that_they_have_beside_each_other() -> None:
    def code(*lefts: float) -> str:
        lines = [line(f"x{HYPHEN}{n} ", 700 - 12 * n, left=left, is_mono=True) for n, left in enumerate(lefts)]
        return read(*lines)[0][1]

    assert code(74, 50, 62) == "    x--0\nx--1\n  x--2".replace("--", "-")
    assert code(50, 50 + 6 * 100, 50 + 6 * 150) == "\n".join(f"{' ' * n}x-{i}" for i, n in enumerate((0, 100, 100)))


def test_code_keeps_its_lines_and_one_line_of_it_is_text() -> None:
    code = [line(text, 700 - 12 * n, is_mono=True, left=50 + 6 * 4 * n) for n, text in enumerate(("if x:", "y = 1"))]
    assert read(*code)[0][0] == "code"
    assert read(*code)[0][1].splitlines()[1].endswith("y = 1")
    assert [kind for kind, _ in read(code[0])] == ["paragraph"]
    assert [kind for kind, _ in read(code[0], replace(code[1], first=675.0, last=675.0))] == ["code"]
    assert len(read(code[0], replace(code[1], first=674.9, last=674.9))) == 2


@pytest.mark.parametrize(
    ("has_code", "block"), [(True, ("code", "one and\ntwo")), (False, ("paragraph", "one and two"))]
)
def test_monospaced_lines_are_text_where_they_do_not_mark_code(has_code: bool, block: tuple[str, str]) -> None:
    lines = [replace(each, is_mono=True) for each in paragraph("one and", "two")]
    assert read(*lines, headings=replace(PLAIN, has_code=has_code)) == [block]


def row(first: float, *cells: tuple[str, float, float]) -> Line:
    parts = tuple(Part(text, left, right) for text, left, right in cells)
    text = "   ".join(text for text, *_ in cells)
    return Line(text, left=parts[0].left, right=parts[-1].right, first=first, last=first, size=10.0, parts=parts)


def test_rows_with_shared_columns_are_a_table() -> None:
    rows = [row(700 - 12 * n, (f"a{n}", 50, 70), (f"b{n}", 200, 220)) for n in range(3)]
    assert read(*rows) == [("table", "| a0 | b0 |\n|---|---|\n| a1 | b1 |\n| a2 | b2 |")]
    assert [kind for kind, _ in read(rows[0])] == ["paragraph"]
    far = [rows[0], rows[1], replace(rows[2], first=640.0, last=640.0)]
    assert [kind for kind, _ in read(*far)] == ["table", "paragraph"]


def test_rows_that_share_no_columns_are_lines_and_their_texts_are_cleaned() -> None:
    three = row(700, ("a", 50, 70), ("b", 80, 100), ("c", 200, 220))
    two = row(688, ("a long one", 50, 100), ("ﬁne", 200, 220))
    assert [(kind, text.split()) for kind, text in read(three, two)] == [
        ("paragraph", ["a", "b", "c", "a", "long", "one", "fine"])
    ]
    assert read(two, replace(two, first=676.0, last=676.0)) == [
        ("table", "| a long one | fine |\n|---|---|\n| a long one | fine |")
    ]
    dotted = line(f"ﬁne{'.' * 9}3", 676)
    assert read(two, dotted)[0][1].splitlines()[-1] == "fine … 3"


def test_lines_of_a_ruled_cell_are_joined_as_those_of_a_paragraph() -> None:
    table = Line("x", size=10.0, table=(("中文\n字句", "one\ntwo"), ("three", f"four-\nteen {HYPHEN}")))
    (block,) = read(table)
    assert block == ("table", "| 中文字句 | one two |\n|---|---|\n| three | fourteen - |")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Tea " + "." * 7 + " 1", "Tea … 1"),
        ("Tea " + "." * 6 + " 1", "Tea ...... 1"),
        ("Tea" + " ·" * 8 + " 1", "Tea … 1"),
    ],
)
def test_leaders_are_shortened(text: str, shown: str) -> None:
    assert " ".join(read(line(text))[0][1].split()) == shown


def test_pages_that_are_pictures_are_named_in_ranges_unless_they_are_copied() -> None:
    pages = [Page(1, (line("a"),)), *(Page(n, (), is_picture=True) for n in (2, 3, 4)), Page(5, ())]
    blocks = list(blocks_of(pages, PLAIN))
    assert [(block.page, block.text[:26]) for block in blocks] == [(1, "a"), (2, "[No text on pages 2-4, onl")]
    copied = list(blocks_of(pages, PLAIN, {3}))
    assert [block.page for block in copied] == [1, 2, 3, 4]


# --- whole files ------------------------------------------------------------------------------------------------------


def drawn(*pages: Sequence[tuple[float, float, float, float]]) -> bytes:
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=(600, 800), invariant=True)
    for boxes in pages:
        for number, (x, y, width, height) in enumerate(boxes):
            picture = Image.new("RGB", (8, 8), (255 - 80 * number, 0, 0))
            canvas.drawImage(ImageReader(picture), x, y, width, height)
        canvas.showPage()
    canvas.save()
    return file.getvalue()


def pictures(data: bytes, **settings: int) -> list[tuple[int | None, tuple[int, int]]]:
    document = PdfPictures(settings).parse(data, source="x.pdf")
    assert document.blocks == ()
    images = [Image.open(io.BytesIO(part.data)).convert("RGB") for part in document.parts]
    sizes = [image.size for image in images]
    assert all(colour[1:] == (0, 0) for image in images for _, colour in image.getcolors() or ()), "nothing around it"
    assert [part.name for part in document.parts] == [f"picture on page {part.page}.png" for part in document.parts]
    return [(part.page, size) for part, size in zip(document.parts, sizes, strict=True)]


@pytest.mark.parametrize(
    ("box", "size"),
    [
        ((0, 0, 60, 60), (120, 120)), ((0, 0, 59, 60), None), ((0, 0, 60, 59), None),
        ((100, 100, 200, 100), (400, 200)),
        ((0, 0, 600, 800), (900, 1200)), ((-300, 0, 600, 100), (600, 200)), ((500, 0, 200, 100), (200, 200)),
    ],
)  # fmt: skip
def test_large_pictures_are_drawn_twice_as_large_up_to_a_limit(
    box: tuple[float, float, float, float], size: tuple[int, int] | None
) -> None:
    assert pictures(drawn([box])) == ([(1, size)] if size else [])


def test_pictures_come_page_by_page_up_to_a_number_of_them_and_of_pages() -> None:
    data = drawn([(0, 0, 100, 100)], [], [(0, 0, 80, 80), (200, 200, 90, 90), (0, 0, 80, 80)], [(0, 0, 70, 70)])
    every = [(1, (200, 200)), (3, (160, 160)), (3, (180, 180)), (4, (140, 140))]
    assert pictures(data) == every
    assert pictures(data, max_pictures=2) == every[:2]
    assert pictures(data, max_pictures=1) == every[:1]
    assert pictures(data, max_pages=3) == every[:3]


def test_a_file_that_is_protected_in_an_unknown_way_says_so(lay_out: MakePdf) -> None:
    data = lay_out(["text"], encrypt="x").replace(b"/Filter /Standard", b"/Filter /Unknown1")
    assert b"/Unknown1" in data
    with pytest.raises(DocParserError, match=r"^x\.pdf uses an unsupported encryption: save it without prot"):
        PdfParser().parse(data, source="x.pdf")


@pytest.mark.parametrize(
    ("bases", "lines"), [((100, 95.6), 1), ((100, 95.4), 2), ((100, 97, 94, 91), 2), ((100, 97, 94, 50, 47), 3)]
)
def test_words_at_nearly_one_height_are_a_line(bases: tuple[float, ...], lines: int) -> None:
    words = [Word("a", " ", 0.0, 5.0, float(base), 10.0) for base in bases]
    assert len(_heights(words)) == lines


@pytest.mark.parametrize(("lead", "is_read"), [(1018, True), (1024, False)])
def test_a_pdf_begins_within_its_first_kibibyte(lay_out: MakePdf, lead: int, is_read: bool) -> None:
    data = b" " * lead + lay_out(["text"])
    if is_read:
        assert PdfParser().parse(data, source="x.pdf").blocks
    else:
        with pytest.raises(DocParserError, match=r"^x\.pdf is not a PDF"):
            PdfParser().parse(data, source="x.pdf")


@pytest.mark.parametrize(("tail", "is_read"), [(2000, True), (2100, False)])
def test_a_pdf_ends_within_its_last_two_kibibytes(lay_out: MakePdf, tail: int, is_read: bool) -> None:
    data = lay_out(["text"]).rstrip() + b" " * tail
    if is_read:
        assert PdfParser().parse(data, source="x.pdf").blocks
    else:
        with pytest.raises(DocParserError, match=r"^x\.pdf is truncated"):
            PdfParser().parse(data, source="x.pdf")


@pytest.mark.parametrize(
    ("stated", "title"),
    [
        ("Tea", "Tea"),
        ("", "One"),
        ("Untitled", "One"),
        ("UNTITLED Document", "One"),
        ("(anonymous)", "One"),
        ("unknown", "One"),
        ("(unspecified)", "One"),
        ("Unknown tea", "Unknown tea"),
    ],
)
def test_a_title_that_a_program_made_up_is_replaced(typeset: MakePdf, stated: str, title: str) -> None:
    data = typeset(("h1", "One"), ("body", "Some text that is long. " * 9), ("h1", "Two"), title=stated)
    assert PdfParser().parse(data, source="x.pdf").title == title


def test_a_smaller_heading_before_the_first_large_one_is_no_title(typeset: MakePdf) -> None:
    body = ("body", "Some text that is long. " * 9)
    document = PdfParser().parse(typeset(("h2", "Foreword"), body, ("h1", "One"), body), source="x.pdf")
    assert [(block.text, block.level) for block in document.blocks if block.kind == "heading"] == [
        ("Foreword", 2),
        ("One", 1),
    ]
    assert document.title == "One"


def test_a_file_may_have_as_many_characters_and_pages_as_allowed(lay_out: MakePdf) -> None:
    data = lay_out(["12345"], ["1234567"])
    assert PdfParser({"max_chars": 12, "max_pages": 2}).parse(data, source="x.pdf").metadata["pages"] == 2
    with pytest.raises(DocParserError, match="has more than 11 characters"):
        PdfParser({"max_chars": 11}).parse(data, source="x.pdf")


def test_entries_of_an_outline_count_their_pages_and_levels_from_one(lay_out: MakePdf) -> None:
    from jackfield_pdf.pages import Limits, read_pages

    file = io.BytesIO()
    canvas = Canvas(file, invariant=True)
    for number, level in ((1, 0), (2, 1)):
        canvas.bookmarkPage(f"p{number}")
        canvas.addOutlineEntry(f"  Title\n {number} ", f"p{number}", level)
        canvas.drawString(72, 700, f"text {number}")
        canvas.showPage()
    canvas.save()
    reading = read_pages(file.getvalue(), source="x.pdf", password=None, limits=Limits(9, 99))
    assert reading.outline == (Entry("Title 1", 1, 1), Entry("Title 2", 2, 2))
    assert pypdfium2.PdfDocument(file.getvalue())[0].get_size() == pytest.approx(canvas._pagesize)


def test_files_are_recognised_by_each_of_these_extensions() -> None:
    assert {spec.name: " ".join(spec.extensions) for spec in parsers()} == {
        "pdf": "pdf",
    }


def test_files_are_recognised_by_each_of_these_media_types() -> None:
    assert {spec.name: list(spec.media_types) for spec in parsers()} == {
        "pdf": [
            "application/pdf",
            "application/x-pdf",
        ],
    }
