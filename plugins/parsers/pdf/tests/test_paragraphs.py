from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from jackfield_pdf.headings import headings_of
from jackfield_pdf.pages import Page
from jackfield_pdf.paragraphs import blocks_of
from jackfield_pdf.parser import PdfParser
from jackfield_pdf.typeset import Line

MakePdf = Callable[..., bytes]

SENTENCE = "The reader takes a file, finds its paragraphs and gives them back with the page on which they stand. "


def parse(data: bytes) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in PdfParser().parse(data, source="a.pdf").blocks]


def test_a_paragraph_comes_back_as_it_was_typeset(typeset: MakePdf) -> None:
    texts = [(SENTENCE * count).strip() for count in (3, 1, 5)]
    for style in ("body", "justified"):
        assert parse(typeset(*[(style, text) for text in texts])) == [("paragraph", text) for text in texts]


def test_large_type_is_a_heading_with_a_level(typeset: MakePdf) -> None:
    data = typeset(("h1", "Part one"), ("body", SENTENCE * 3), ("h2", "A section"), ("body", SENTENCE * 3))
    blocks = PdfParser().parse(data, source="a.pdf").blocks
    assert [(block.text, block.level) for block in blocks if block.kind == "heading"] == [
        ("Part one", 1),
        ("A section", 2),
    ]


def test_chinese_lines_are_joined_without_spaces(typeset: MakePdf) -> None:
    text = "检索系统读取每个文档一次，并保存所读的内容，这样下一个问题就不用再读一遍。" * 4
    assert parse(typeset(("zh", text))) == [("paragraph", text)]


def test_rows_that_stand_in_columns_are_a_table(typeset: MakePdf) -> None:
    rows = [["fruit", "number", "price"], ["apple", "3", "1.50"], ["pear", "12", "0.75"]]
    assert parse(typeset(("body", SENTENCE * 3), rows, ("body", SENTENCE * 2)))[1] == (
        "table",
        "| fruit | number | price |\n|---|---|---|\n| apple | 3 | 1.50 |\n| pear | 12 | 0.75 |",
    )


def test_pages_are_kept_and_nothing_is_joined_across_them(typeset: MakePdf) -> None:
    data = typeset(("body", "One without an end"), None, ("body", "two"), None, ("body", "three"))
    blocks = PdfParser().parse(data, source="a.pdf").blocks
    assert [(block.page, block.text) for block in blocks] == [(1, "One without an end"), (2, "two"), (3, "three")]


def test_words_broken_at_the_end_of_a_line_are_mended(lay_out: MakePdf) -> None:
    data = lay_out(
        ["A para-", "graph that breaks its long-", "est words, also a well-", "known one, from 10-", "20 on."]
    )
    [(_, text)] = parse(data)
    assert text == "A paragraph that breaks its longest words, also a wellknown one, from 10-20 on."


def test_a_compound_that_stands_elsewhere_keeps_its_hyphen(lay_out: MakePdf) -> None:
    data = lay_out(["A well-known word, and again a well-", "known one at the end of a line that is long."])
    assert "again a well-known one" in parse(data)[0][1]


def test_the_items_of_a_list_are_one_block(lay_out: MakePdf) -> None:
    data = lay_out(
        ["What there is to say about lists and their items:", "- first item", "- second item", "- third item"]
    )
    assert parse(data)[-1] == ("list", "- first item\n- second item\n- third item")


def test_two_columns_are_read_one_after_the_other(lay_out: MakePdf) -> None:
    column = [
        "The left column begins here and",
        "goes on over three lines until it",
        "ends in the middle of a sentence",
    ]
    other = ["and continues in the right column", "where it comes to its end."]
    left = [(72.0, 740.0 - 14 * number, text) for number, text in enumerate(column)]
    right = [(330.0, 740.0 - 14 * number, text) for number, text in enumerate(other)]
    assert parse(lay_out(left + right)) == [("paragraph", " ".join(column + other))]


def test_a_gap_begins_a_paragraph(lay_out: MakePdf) -> None:
    data = lay_out([(72.0, y, f"A line of text that stands at {y:.0f}") for y in (740, 726, 700, 686)])
    assert [text.count("A line") for _, text in parse(data)] == [2, 2]


def test_dots_that_lead_to_a_page_number_are_shortened_and_entries_stay_lines(lay_out: MakePdf) -> None:
    data = lay_out(["Introduction " + "." * 60 + " 1", "Conclusion " + ". " * 30 + "12"])
    assert parse(data) == [("paragraph", "Introduction … 1\nConclusion … 12")]


def test_entries_with_numbers_of_sections_stay_apart(lay_out: MakePdf) -> None:
    entries = ["7.1.4 The struct of a hash in some words", "7.2 Functions that encrypt, and more", "7.2.1 One of them"]
    assert parse(lay_out(entries)) == [("paragraph", entry) for entry in entries]


lines = st.builds(
    Line,
    text=st.text(alphabet="abc DE.-•中文1", min_size=1).filter(lambda text: text.strip()),
    left=st.floats(50, 300),
    right=st.floats(300, 500),
    first=st.floats(50, 700),
    last=st.floats(50, 700),
    size=st.sampled_from([0.0, 9.0, 12.0, 18.0]),
    parts=st.just(()),
)


@given(st.lists(lines, max_size=12))
def test_no_letter_is_lost_wherever_lines_stand(page: list[Line]) -> None:
    letters = [character for line in page for character in line.text if character.isalnum()]
    pages = [Page(1, tuple(page))]
    blocks = blocks_of(pages, headings_of(pages, ()))
    assert [character for block in blocks for character in block.text if character.isalnum()] == letters
