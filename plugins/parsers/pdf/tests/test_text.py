"""What is read is PDFium's own text, whoever made the file."""

from __future__ import annotations

import re
from collections.abc import Callable

import pypdfium2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.retrieval import Block, Document
from jackfield_pdf.parser import PdfParser

MakePdf = Callable[..., bytes]

SENTENCE = "The reader takes a file, finds its paragraphs and gives them back with the page on which they stand. "
HEBREW = "שלום עולם"


HELVETICA = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"


def written(text: bytes, *, font: bytes = HELVETICA, box: bytes = b"[0 0 600 800]") -> bytes:
    """A page with this content. It has no table of its objects, which readers can do without."""
    objects = (
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox%s/Resources<</Font<</F 5 0 R>>>>/Contents 4 0 R>>" % box,
        b"<</Length %d>>stream\n%s\nendstream" % (len(text), text),
        font,
    )
    body = b"".join(b"%d 0 obj %s endobj\n" % (number, made) for number, made in enumerate(objects, start=1))
    return b"%PDF-1.7\n" + body + b"trailer <</Root 1 0 R>>\n%%EOF"


def own_text(data: bytes) -> str:
    """PDFium's text, page by page."""
    with pypdfium2.PdfDocument(data) as document:
        return "\n".join(page.get_textpage().get_text_range() for page in document)


def letters(text: str) -> str:
    """A text without what is made of line ends: white space, hyphens there, and signs of tables."""
    return re.sub(r"[\s\ufffe\ufeff|-]+", "", text)


def read(data: bytes) -> Document:
    return PdfParser({"running_lines": True}).parse(data, source="a.pdf")


def assert_is_own_text(data: bytes) -> None:
    assert letters("\n".join(block.text for block in read(data).blocks)) == letters(own_text(data))


def test_a_typeset_document_is_pdfiums_text(typeset: MakePdf) -> None:
    rows = [["fruit", "number", "price"], ["apple", "3", "1.50"], ["pear", "12", "0.75"]]
    assert_is_own_text(
        typeset(
            ("h1", "Part one"),
            ("body", SENTENCE * 3),
            rows,
            ("justified", SENTENCE * 9),
            None,
            ("zh", "检索系统读取每个文档一次，并保存所读的内容。" * 9),
            ("h2", "The end"),
        )
    )


@given(
    st.lists(
        st.tuples(st.integers(0, 500), st.integers(0, 800), st.sampled_from(("one", "two three", "x", "4 5"))),
        min_size=1,
        max_size=12,
        unique_by=lambda entry: (entry[0] // 60, entry[1] // 20),
    )
)
def test_wherever_texts_stand_none_is_lost_or_read_twice(texts: list[tuple[int, int, str]]) -> None:
    body = b" ".join(b"BT /F 12 Tf %d %d Td (%s) Tj ET" % (x, y, text.encode()) for x, y, text in texts)
    data = written(body)
    assert sorted(letters("".join(block.text for block in read(data).blocks))) == sorted(letters(own_text(data)))


def differing(*names: bytes) -> bytes:
    """A font whose codes from 1 stand for glyphs with these names."""
    return b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding<</Differences[1 %s]>>>>" % b" ".join(names)


def test_a_glyph_without_a_letter_leaves_the_places_of_the_others() -> None:
    text = b"BT /F 20 Tf 72 700 Td (Title) Tj /F 10 Tf 0 -40 Td (before \\001 after it the) Tj 0 -12 Td (text) Tj ET"
    data = written(text, font=differing(b"/nobodyknowsthis"))
    assert [(block.kind, block.text) for block in read(data).blocks] == [
        ("heading", "Title"),
        ("paragraph", "before after it the text"),
    ]


def test_smaller_type_in_a_line_does_not_break_its_paragraph() -> None:
    text = b"BT /F 10 Tf 72 700 Td (the line above names) Tj /F 7 Tf ( some_small_code ) Tj /F 10 Tf (in it) Tj "
    text += b"0 -12 Td (and goes on in the line that is below) Tj ET"
    assert [block.text for block in read(written(text)).blocks] == [
        "the line above names some_small_code in it and goes on in the line that is below"
    ]


def test_ligatures_are_letters() -> None:
    data = written(b"BT /F 10 Tf 72 700 Td (\\001nd the \\002ow) Tj ET", font=differing(b"/fi", b"/fl"))
    assert read(data).blocks[0].text == "find the flow"


def test_bullets_of_office_programs_make_a_list() -> None:
    text = b"BT /F 10 Tf 72 700 Td (What there is to say:) Tj 0 -12 Td (\\001 one) Tj 0 -12 Td (\\001 two) Tj ET"
    assert read(written(text, font=differing(b"/uniF0B7"))).blocks[-1] == Block("• one\n• two", kind="list", page=1)


def test_what_runs_from_right_to_left_is_not_lost() -> None:
    glyphs = {"ש": b"/afii57689", "ל": b"/afii57676", "ו": b"/afii57669", "ם": b"/afii57677", "ע": b"/afii57682"}
    codes = {letter: number for number, letter in enumerate(glyphs, start=1)}
    shown = "".join(letter if letter == " " else f"\\00{codes[letter]}" for letter in HEBREW[::-1])
    data = written(f"BT /F 10 Tf 72 700 Td ({shown}) Tj ET".encode(), font=differing(*glyphs.values()))
    assert sorted(letters(read(data).blocks[0].text)) == sorted(letters(HEBREW))


@pytest.mark.parametrize(
    ("before", "after"), [("hyphen", "ation"), ("25", "ation"), ("Ref.", "5"), ("hyphen", " ation")]
)
def test_a_soft_hyphen_is_a_place_to_break_and_never_a_letter_or_a_space(before: str, after: str) -> None:
    text = f"BT /F 10 Tf 72 700 Td (a word that {before}\\001) Tj 0 -12 Td ({after} breaks in two) Tj ET"
    data = written(text.encode(), font=differing(b"/uni00AD"))
    assert read(data).blocks[0].text == f"a word that {before}{after.strip()} breaks in two"


@pytest.mark.parametrize("glyph", ["hyphen", "uni2010", "uni00AD", "softhyphen", "sfthyphen"])
def test_a_word_that_a_hyphen_breaks_is_one(glyph: str) -> None:
    text = b"BT /F 10 Tf 72 700 Td (a word that hyphen\\001) Tj 0 -12 Td (ation breaks in two) Tj ET"
    data = written(text, font=differing(b"/%s" % glyph.encode()))
    assert read(data).blocks[0].text == "a word that hyphenation breaks in two"


@pytest.mark.parametrize(
    "place",
    [
        b"1 0 0 1 1e38 1e38 cm",
        b"1e38 0 0 1e38 0 0 cm",
        b"0 0 0 0 0 0 cm",
        b"1 0 0 1 -1e30 5 cm",
        b"-3 0 0 -3 200 300 cm",
        b"1e20 1e20 1e20 1e20 1e38 -1e38 cm 1e20 0 0 1e20 1e38 -1e38 cm",
        b"99999999999999999999999999999999999999999999999 0 0 1 0 0 cm",
    ],
)
@pytest.mark.parametrize(
    "box", [b"[0 0 600 800]", b"[600 800 0 0]", b"[0 0 0 0]", b"[0 0 1e38 1e38]", b"[-9 -9 1e9 1]"]
)
def test_texts_and_lines_at_impossible_places_are_read_or_left_out(place: bytes, box: bytes) -> None:
    body = (
        b"BT /F 12 Tf 50 700 Td (near) Tj 200 0 Td (by) Tj ET %s 0 0 m 9 0 l 9 9 l S BT /F 12 Tf 50 700 Td (far) Tj ET"
    )
    data = written(body % place, box=box)
    assert "near" in "".join(block.text for block in read(data).blocks)


def test_titles_that_are_no_text_are_left_out() -> None:
    data = written(b"BT /F 10 Tf 72 700 Td (text) Tj ET")
    outline = b"/Outlines 7 0 R>> endobj 7 0 obj <</First 8 0 R/Last 8 0 R/Count 1>> endobj"
    entry = b"8 0 obj <</Title<FEFFD800>/Parent 7 0 R/Dest[3 0 R/Fit]>> endobj 9 0 obj <</Title<FEFFDC00D800>>> endobj"
    data = data.replace(b"<</Type/Catalog/Pages 2 0 R>> endobj", b"<</Type/Catalog/Pages 2 0 R" + outline + entry)
    document = read(data.replace(b"/Root 1 0 R", b"/Root 1 0 R/Info 9 0 R"))
    assert document.title == ""
    assert [block.text for block in document.blocks] == ["text"]
