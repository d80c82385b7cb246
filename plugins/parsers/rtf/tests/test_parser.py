from __future__ import annotations

import pytest

from jackfield.errors import DocParserError
from jackfield.retrieval import Document
from jackfield_rtf.parser import RtfParser

Blocks = list[tuple[str, str]]
FONTS = r"{\fonttbl{\f0\fcharset0 A;}{\f1\fcharset204 B;}{\f2\fcharset128 C;}{\f3\fcharset1\cpg1250 D;}}"
STYLES = r"{\stylesheet{Normal;}{\s1 heading 1;}{\s2\outlinelevel1 Custom;}{\s3 Title;}{\*\cs4 heading 3 Char;}}"


def parse(text: str, head: str = r"\ansi\ansicpg1252") -> Document:
    return RtfParser().parse(f"{{\\rtf1{head}{FONTS}{STYLES}{text}}}".encode("latin-1"), source="x.rtf")


def blocks(text: str, head: str = r"\ansi\ansicpg1252") -> Blocks:
    return [(block.kind, block.text) for block in parse(text, head).blocks]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"a\par b\line c\par", [("paragraph", "a"), ("paragraph", "b\nc")]),
        (r"a{\b b}{\i\'e4\'f6}\~\{c\}\_d\-e", [("paragraph", "abäö\xa0{c}-de")]),
        (r"\ldblquote a\rdblquote\emdash b", [("paragraph", "“a”—b")]),
        ("a\r\nb", [("paragraph", "ab")]),
        ("a\\\nb", [("paragraph", "a"), ("paragraph", "b")]),
        (r"\u228?\u228 ?b", [("paragraph", "ää" "b")]),
        (r"\uc2\u22823\'b4\'f3x", [("paragraph", "大x")]),
        (r"\uc0\u22823x", [("paragraph", "大x")]),
        (r"\u-10179?\u-8704?", [("paragraph", "😀")]),
        (r"{\f1\'cf\'f0}{\f2\'83\'5c}{\f3\'b3}\'e4", [("paragraph", "Прソłä")]),
        (r"a{\v hidden}b{\deleted c}\v d\v0 e\v f\plain g", [("paragraph", "abeg")]),
        (r"a{\*\unknown b}{\header c}{\pict 00ff}{\object{\*\objdata 00}{\result d}}", [("paragraph", "ad")]),
        (r"a\bin3 }}}b", [("paragraph", "ab")]),
        (r"a\bin3 xyzb\bin-3 c", [("paragraph", "abc")]),
        (r"{\upr{a}{\*\ud{b}}}", [("paragraph", "a")]),
    ],
)  # fmt: skip
def test_text_is_read_as_it_is_shown(text: str, expected: Blocks) -> None:
    assert blocks(text) == expected


def test_without_a_font_the_code_page_of_the_file_counts() -> None:
    assert blocks(r"\'cf\'f0", r"\ansi\ansicpg1251") == [("paragraph", "Пр")]
    assert blocks(r"{\f0\'cf\'f0}", r"\ansi\ansicpg1251") == [("paragraph", "Пр")]
    assert blocks(r"\'e4", r"\ansi\ansicpg99999") == [("paragraph", "ä")]


@pytest.mark.parametrize(
    ("style", "level"), [(r"\s1", 1), (r"\s2", 2), (r"\s3", 1), (r"\outlinelevel4", 5), (r"\s4", 0), (r"\s9", 0)]
)
def test_headings_are_found_by_their_style(style: str, level: int) -> None:
    first, second = parse(rf"\pard{style} A\line B\par\pard c\par").blocks
    assert first.level == level
    assert first.text == ("A B" if level else "A\nB")
    assert second.level == 0


def test_lists_keep_their_numbers() -> None:
    text = (
        r"\pard{\listtext\pard\plain 1.\tab}\ls1\ilvl0 a\par\pard{\listtext\f1\'b7\tab}\ilvl1 b\par"
        r"\pard{\listtext 2.\tab}c\par\pard d\par"
    )
    assert blocks(text) == [("list", "1. a\n  - b\n2. c"), ("paragraph", "d")]


def test_a_numbered_heading_is_a_heading() -> None:
    assert blocks(r"\pard\s1{\listtext\pard 1.\tab}One\par") == [("heading", "1. One")]


def test_tables_are_rows_of_cells() -> None:
    row = r"\trowd\cellx1\cellx2\pard\intbl {}\cell {}\cell\row"
    text = "x\\par" + row.format("a", r"b\par c") + row.format("1", "2|3") + r"\pard y\par"
    assert blocks(text) == [
        ("paragraph", "x"),
        ("table", "| a | b<br>c |\n|---|---|\n| 1 | 2\\|3 |"),
        ("paragraph", "y"),
    ]


def test_merged_cells_are_repeated_downwards_within_limits() -> None:
    rows = r"\trowd\clvmgf\cellx1\cellx2\intbl {}\cell b\cell\row\trowd\clvmrg\cellx1\cellx2\intbl\cell c\cell\row"
    assert blocks(rows.format("a")) == [("table", "| a | b |\n|---|---|\n| a | c |")]
    many = rows.format("x" * 100_000) + r"\trowd\clvmrg\cellx1\cellx2\intbl\cell c\cell\row" * 500
    assert len(parse(many).blocks[0].text) < 3_000_000


def test_a_table_that_was_cut_off_keeps_its_cells() -> None:
    assert blocks(r"\trowd\cellx1\intbl a\cell b") == [("table", "| a | b |\n|---|---|")]


def test_links_are_kept() -> None:
    text = r'a {\field{\*\fldinst{HYPERLINK "https://x.org/(a)"}}{\fldrslt{\ul b}}} c'
    assert blocks(text) == [("paragraph", "a [b](https://x.org/%28a%29) c")]
    assert blocks(r"{\field{\*\fldinst PAGE}{\fldrslt 7}}") == [("paragraph", "7")]


@pytest.mark.parametrize("target", ["#mark", "https://x.org/" + "a" * 300])
def test_a_link_inside_of_the_file_or_a_long_one_is_its_text(target: str) -> None:
    assert blocks(rf'a {{\field{{\*\fldinst{{HYPERLINK "{target}"}}}}{{\fldrslt b}}}} c') == [("paragraph", "a b c")]


def test_notes_and_comments_are_at_the_end_and_leave_the_paragraph_as_it_was() -> None:
    text = (
        r"\pard\s1 A{\super\chftn}{\footnote\pard\plain{\chftn} one\par two} B\par"
        r"\pard c{\*\atnauthor Ann}{\*\annotation{\*\atnref 1}why?}{\footnote three}\par"
    )
    assert blocks(text) == [
        ("heading", "A[^1] B"),
        ("paragraph", "c[^c1][^2]"),
        ("paragraph", "[^1]: one two"),
        ("paragraph", "[^c1]: why?"),
        ("paragraph", "[^2]: three"),
    ]


def test_the_text_of_a_mail_is_free_of_its_html() -> None:
    text = r"{\*\htmltag64 <p>}\htmlrtf {\htmlrtf0 a{\*\htmltag72 </p>}\htmlrtf b\htmlrtf0 c"
    assert blocks(text, r"\ansi\fromhtml1") == [("paragraph", "ac")]


def test_title_and_metadata_are_kept() -> None:
    document = parse(r"{\info{\title T\'e4}{\author Ada}{\operator Bo}}\pard\s1 A\par")
    assert (document.title, document.metadata) == ("Tä", {"author": "Ada"})
    assert parse(r"\pard\s1 A\par").title == "A"


@pytest.mark.parametrize(
    ("data", "reason"), [(b"", "is empty"), (b"text", "is not RTF"), (rb"{\rtf1 }", "contains no text")]
)
def test_an_error_names_the_file_and_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(DocParserError, match=rf"^x\.rtf {reason}"):
        RtfParser().parse(data, source="x.rtf")
