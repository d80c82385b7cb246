"""Styles, lists, tables, notes and links in the XML of Word files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from docx.oxml.ns import nsdecls

from jackfield.errors import DocParserError
from jackfield.retrieval import Document
from jackfield_office.word import DocxParser

STYLES = """
<w:style w:type="paragraph" w:default="1" w:styleId="Normal"><w:name w:val="Normal"/></w:style>
<w:style w:type="paragraph" w:styleId="T"><w:name w:val="Title"/></w:style>
<w:style w:type="paragraph" w:styleId="H1"><w:name w:val="HEADING 1"/></w:style>
<w:style w:type="paragraph" w:styleId="H9"><w:name w:val="heading 9"/></w:style>
<w:style w:type="paragraph" w:styleId="H10"><w:name w:val="heading 10"/></w:style>
<w:style w:type="paragraph" w:styleId="Outline"><w:name w:val="Part"/><w:pPr><w:outlineLvl w:val="3"/></w:pPr></w:style>
<w:style w:type="paragraph" w:styleId="Below"><w:name w:val="heading 2"/><w:basedOn w:val="H1"/></w:style>
<w:style w:type="paragraph" w:styleId="Code"><w:name w:val="Source Code"/></w:style>
<w:style w:type="paragraph" w:styleId="Listing"><w:name w:val="Listing"/><w:basedOn w:val="Code"/></w:style>
<w:style w:type="paragraph" w:styleId="Plain"><w:name w:val="Plain Text"/></w:style>
<w:style w:type="paragraph" w:styleId="Html"><w:name w:val="HTML Preformatted"/></w:style>
<w:style w:type="paragraph" w:styleId="Codes"><w:name w:val="Code of conduct"/></w:style>
<w:style w:type="character" w:styleId="Mark"><w:name w:val="heading 1"/></w:style>
<w:style w:type="paragraph" w:styleId="Item"><w:name w:val="Item"/>
  <w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>
<w:style w:type="paragraph" w:styleId="Subitem"><w:name w:val="Subitem"/><w:basedOn w:val="Item"/>
  <w:pPr><w:numPr><w:ilvl w:val="1"/><w:numId w:val="1"/></w:numPr></w:pPr></w:style>
""" + "".join(
    f'<w:style w:type="paragraph" w:styleId="D{number}"><w:name w:val="d"/><w:basedOn w:val="D{number + 1}"/></w:style>'
    for number in range(9)
) + '<w:style w:type="paragraph" w:styleId="D9"><w:name w:val="heading 5"/></w:style>'  # fmt: skip
NUMBERING = """
<w:abstractNum w:abstractNumId="7">
  <w:lvl w:ilvl="0"><w:start w:val="3"/><w:numFmt w:val="decimal"/></w:lvl>
  <w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/></w:lvl>
  <w:lvl w:ilvl="2"><w:numFmt w:val="upperRoman"/></w:lvl>
  <w:lvl w:ilvl="9"><w:numFmt w:val="decimal"/></w:lvl>
</w:abstractNum>
<w:abstractNum w:abstractNumId="8">
  <w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/></w:lvl><w:lvl w:ilvl="1"><w:numFmt w:val="none"/></w:lvl>
  <w:lvl w:ilvl="2"/><w:lvl w:ilvl="8"><w:start w:val="0"/><w:numFmt w:val="decimal"/></w:lvl>
</w:abstractNum>
<w:abstractNum w:abstractNumId="9">
  <w:lvl w:ilvl="0"><w:start w:val="99999"/><w:numFmt w:val="decimal"/></w:lvl>
  <w:lvl w:ilvl="1"><w:start w:val="100000"/><w:numFmt w:val="decimal"/></w:lvl>
</w:abstractNum>
<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num>
<w:num w:numId="2"><w:abstractNumId w:val="7"/></w:num>
<w:num w:numId="3"><w:abstractNumId w:val="8"/></w:num>
<w:num w:numId="4"><w:abstractNumId w:val="6"/></w:num>
<w:num w:numId="5"><w:abstractNumId w:val="9"/></w:num>
"""


@pytest.fixture
def read(files: Any) -> Callable[..., Document]:
    """A reader of a Word file with a body, the styles and lists above, and further parts."""

    def read(body: str, **parts: str) -> Document:
        xml = {"styles": f"<w:styles {nsdecls('w')}>{STYLES}</w:styles>"}
        xml["numbering"] = f"<w:numbering {nsdecls('w')}>{NUMBERING}</w:numbering>"
        xml |= {name: f"<w:{name} {nsdecls('w')}>{content}</w:{name}>" for name, content in parts.items()}
        changes = {f"word/{name}.xml": lambda _, text=text: text.encode() for name, text in xml.items()}
        return DocxParser().parse(files.changed(files.body(body), changes), source="x.docx")

    return read


def texts(document: Document) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in document.blocks]


def run(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def styled(style: str, text: str, properties: str = "") -> str:
    return f'<w:p><w:pPr><w:pStyle w:val="{style}"/>{properties}</w:pPr>{run(text)}</w:p>'


def item(number: int, level: object, text: str) -> str:
    properties = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>'
    return f"<w:p><w:pPr>{properties}</w:pPr>{run(text)}</w:p>"


@pytest.mark.parametrize(
    ("style", "properties", "kind", "level"),
    [
        ("T", "", "heading", 1),
        ("H1", "", "heading", 1),
        ("H9", "", "heading", 9),
        ("H10", "", "paragraph", 0),
        ("Outline", "", "heading", 4),
        ("Below", "", "heading", 2),
        ("D0", "", "heading", 5),
        ("Normal", '<w:outlineLvl w:val="0"/>', "heading", 1),
        ("Normal", '<w:outlineLvl w:val="8"/>', "heading", 9),
        ("Normal", '<w:outlineLvl w:val="9"/>', "paragraph", 0),
        ("H1", '<w:outlineLvl w:val="2"/>', "heading", 3),
        ("H1", '<w:numPr><w:numId w:val="1"/></w:numPr>', "heading", 1),
        ("Code", "", "code", 0),
        ("Listing", "", "code", 0),
        ("Plain", "", "code", 0),
        ("Html", "", "code", 0),
        ("Codes", "", "paragraph", 0),
        ("Mark", "", "paragraph", 0),
        ("Unknown", "", "paragraph", 0),
        ("Item", "", "list", 0),
        ("Code", '<w:numPr><w:numId w:val="3"/></w:numPr>', "list", 0),
    ],
)
def test_a_style_or_the_paragraph_itself_makes_a_heading_code_or_an_item(
    read: Any, style: str, properties: str, kind: str, level: int
) -> None:
    (block,) = read(styled(style, "Tea", properties)).blocks
    assert (block.kind, block.level) == (kind, level)


def test_lines_of_code_keep_their_indentation_and_other_texts_lose_it(read: Any) -> None:
    body = [styled("Code", "  if x:  "), styled("Listing", "    y"), styled("Normal", "  z  "), styled("H1", " a   b ")]
    assert texts(read("".join(body))) == [("code", "  if x:\n    y"), ("paragraph", "z"), ("heading", "a b")]


def test_code_after_a_list_is_a_block_of_its_own(read: Any) -> None:
    body = item(3, 0, "a") + styled("Code", "b") + item(3, 0, "c") + f"<w:p>{run('  ')}</w:p>" + item(3, 0, "d")
    assert texts(read(body)) == [("list", "- a"), ("code", "b"), ("list", "- c\n- d")]


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([(1, 0), (1, 0)], "3. x\n4. x"),
        ([(1, 0), (2, 0), (1, 0)], "3. x\n3. x\n4. x"),
        ([(1, 1), (1, 1), (1, 0), (1, 1)], "  1. x\n  2. x\n3. x\n  1. x"),
        ([(1, 1), (1, 2), (1, 2), (1, 1), (1, 2)], "  1. x\n    1. x\n    2. x\n  2. x\n    1. x"),
        ([(1, 1), (2, 0), (1, 1)], "  1. x\n3. x\n  2. x"),
        ([(3, 0), (3, 1), (3, 2), (3, 8)], "- x\n  - x\n    - x\n                0. x"),
        ([(3, 8), (3, 7), (3, 8)], "                0. x\n              - x\n                0. x"),
        ([(1, 9)], "3. x"),
        ([(4, 0), (99, 1)], "- x\n  - x"),
        ([(5, 0), (5, 1)], "99999. x\n  1. x"),
    ],
)
def test_each_level_of_each_list_is_counted_from_its_start(
    read: Any, items: list[tuple[int, int]], expected: str
) -> None:
    assert texts(read("".join(item(number, level, "x") for number, level in items))) == [("list", expected)]


def test_a_paragraph_between_two_items_does_not_begin_the_count_again(read: Any) -> None:
    body = item(1, 0, "a") + f"<w:p>{run('b')}</w:p>" + styled("Item", "c") + styled("Subitem", "d")
    assert texts(read(body)) == [("list", "3. a"), ("paragraph", "b"), ("list", "4. c\n  1. d")]


def test_a_line_break_in_an_item_or_a_heading_is_a_space(read: Any) -> None:
    both = "<w:r><w:t>a</w:t><w:br/><w:t>b</w:t></w:r>"
    numbered = '<w:pPr><w:numPr><w:numId w:val="3"/></w:numPr></w:pPr>'
    body = f'<w:p>{numbered}{both}</w:p><w:p><w:pPr><w:pStyle w:val="H1"/></w:pPr>{both}</w:p>'
    assert texts(read(body)) == [("list", "- a b"), ("heading", "a b")]


def row(*cells: str) -> str:
    return "<w:tr>" + "".join(f"<w:tc>{cell}</w:tc>" for cell in cells) + "</w:tr>"


def cell(text: str, properties: str = "") -> str:
    return (f"<w:tcPr>{properties}</w:tcPr>" if properties else "") + f"<w:p>{run(text)}</w:p>"


def wide(value: str) -> str:
    return f'<w:gridSpan w:val="{value}"/>'


MERGED, CONTINUED, FIRST = "<w:vMerge/>", '<w:vMerge w:val="continue"/>', '<w:vMerge w:val="restart"/>'


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # What spans rows is repeated, in as many columns as it takes.
        ([row(cell("a", FIRST), cell("b")), row(cell("", MERGED), cell("c"))], ["a | b", "a | c"]),
        ([row(cell("a", FIRST), cell("b")), row(cell("", CONTINUED), cell("c"))], ["a | b", "a | c"]),
        ([row(cell("a", FIRST), cell("b")), row(cell("x", FIRST), cell("c"))], ["a | b", "x | c"]),
        (
            [row(cell("a"), cell("b", FIRST)), row(cell("c"), cell("", MERGED)), row(cell("d"), cell("", MERGED))],
            ["a | b", "c | b", "d | b"],
        ),
        ([row(cell("a"), cell("b")), row(cell("c"), cell("d"), cell("e", MERGED))], ["a | b | ", "c | d | e"]),
        ([row(cell("a", wide("2")), cell("b")), row(*map(cell, "cde"))], ["a |  | b", "c | d | e"]),
        ([row(cell("a", wide("0")), cell("b")), row(*map(cell, "cd"))], ["a | b", "c | d"]),
        ([row(cell("a", wide("999999")), cell("b")), row(*map(cell, "cd"))], ["a | b", "c | d"]),
        ([row(cell("a", wide("x")), cell("b")), row(*map(cell, "cd"))], ["a | b", "c | d"]),
        # Rows and cells in a content control, in an insertion, in what was moved here.
        (
            [
                f"<w:sdt><w:sdtContent>{row(*map(cell, 'ab'))}</w:sdtContent></w:sdt>",
                f"<w:customXml>{row(*map(cell, 'cd'))}</w:customXml>",
                f"<w:ins>{row(*map(cell, 'ef'))}</w:ins><w:moveTo>{row(*map(cell, 'gh'))}</w:moveTo>",
            ],
            ["a | b", "c | d", "e | f", "g | h"],
        ),
        (
            ["<w:tr><w:sdt><w:sdtContent><w:tc>" + cell("a") + "</w:tc></w:sdtContent></w:sdt></w:tr>",
             row(cell("b"), "<w:p/>" + cell("c") + "<w:p/>" + cell("d"))],
            ["a | ", "b | c<br>d"],
        ),
    ],
)  # fmt: skip
def test_rows_and_cells_stay_in_their_places(read: Any, rows: list[str], expected: list[str]) -> None:
    (block,) = read(f"<w:tbl>{''.join(rows)}</w:tbl>").blocks
    head, _, *rest = block.text.splitlines()
    assert [head, *rest] == [f"| {line} |" for line in expected]


@pytest.mark.parametrize(("span", "columns"), [("2", 2), ("63", 63), ("64", 63), ("99999", 63)])
def test_a_cell_spans_at_most_as_many_columns_as_word_allows(read: Any, span: str, columns: int) -> None:
    (block,) = read(f"<w:tbl>{row(cell('a', wide(span)), cell('b'))}{row(*[cell('x')] * 99)}</w:tbl>").blocks
    assert block.text.splitlines()[0].split("|").index(" b ") == 1 + columns


def test_a_table_is_on_the_page_it_begins_on(read: Any) -> None:
    break_ = "<w:r><w:lastRenderedPageBreak/></w:r>"
    last = f"<w:p>{break_}{run('d')}</w:p>"
    table = f"<w:tbl>{row(cell('a'), cell('b'))}{row(cell('c'), last)}</w:tbl>"
    listed = item(3, 0, "e") + item(3, 0, "f").replace("<w:r>", break_ + "<w:r>")
    document = read(f"{table}<w:p>{run('x')}</w:p>{listed}<w:p>{run('y')}</w:p>")
    assert [(block.kind, block.page) for block in document.blocks] == [
        ("table", 1), ("paragraph", 2), ("list", 2), ("paragraph", 3)
    ]  # fmt: skip


def test_text_that_goes_on_over_a_page_is_on_the_first(read: Any) -> None:
    broken = f"{run('a')}<w:r><w:lastRenderedPageBreak/></w:r>{run('b')}"
    heading = f'<w:p><w:pPr><w:pStyle w:val="H1"/></w:pPr>{broken}</w:p>'
    code = styled("Code", "c") + f'<w:p><w:pPr><w:pStyle w:val="Code"/></w:pPr>{broken}</w:p>'
    document = read(heading + f"<w:p>{broken}</w:p>" + code, footnotes=note(1, "n"))
    assert [(block.text, block.page) for block in document.blocks] == [
        ("ab", 1), ("ab", 2), ("c\nab", 3), ("[^1]: n", 4)
    ]  # fmt: skip


def test_blocks_have_no_pages_if_word_noted_none(read: Any) -> None:
    assert [block.page for block in read(f"<w:p>{run('a')}<w:r><w:br w:type='page'/></w:r></w:p>").blocks] == [None]


@pytest.mark.parametrize(
    ("xml", "expected"),
    [
        ("<w:p><w:del><w:r><w:t>a</w:t></w:r></w:del>" + run("b") + "</w:p>", "b"),
        ("<w:p><w:r><w:t>a</w:t><w:cr/><w:t>b</w:t></w:r></w:p>", "a\nb"),
        ("<w:p><m:oMath><m:r><m:t>x+1</m:t></m:r></m:oMath></w:p>", "x+1"),
        (f"<w:p>{run('a')}<w:r><w:t/></w:r>{run('b')}</w:p>", "ab"),
        (
            "<w:p><w:r><mc:AlternateContent><mc:Choice><w:txbxContent><w:p><w:r><w:t>new</w:t></w:r></w:p>"
            "</w:txbxContent></mc:Choice><mc:Fallback><w:txbxContent><w:p><w:r><w:t>old</w:t></w:r></w:p>"
            "</w:txbxContent></mc:Fallback></mc:AlternateContent></w:r></w:p>",
            "new",
        ),
        (
            f"<w:p>{run('a')}<w:r><w:txbxContent><w:p>{run('b')}</w:p><w:p>{run('c')}</w:p></w:txbxContent></w:r>"
            f"<w:r><w:txbxContent><w:p>{run('d')}</w:p></w:txbxContent></w:r></w:p><w:p>{run('e')}</w:p>",
            "a / b / c / d / e",
        ),
        (
            "<w:tbl>" + row(cell("a") + "<w:tbl>" + row(cell("b")) + "</w:tbl>", cell("c")) + "</w:tbl>",
            "| a<br>b | c |",
        ),
    ],
)
def test_what_a_page_shows_is_read_once(read: Any, xml: str, expected: str) -> None:
    shown = [text.partition("\n|--")[0] for _, text in texts(read(xml))]
    assert shown == (expected.split(" / ") if expected else [])


def note(number: int, text: str, attributes: str = "", kind: str = "footnote") -> str:
    return f'<w:{kind} w:id="{number}" {attributes}><w:p>{run(text)}</w:p></w:{kind}>'


def test_footnotes_endnotes_and_comments_follow_in_this_order_and_name_their_marks(read: Any) -> None:
    marks = "".join(
        f'<w:r><w:{kind}Reference w:id="{at}"/></w:r>' for at, kind in enumerate(("footnote", "endnote", "comment"))
    )
    document = read(
        f"<w:p>{run('Tea')}{marks}</w:p>",
        comments=note(2, "Really?", 'w:author="Ann"', "comment") + note(3, "Yes", "", "comment"),
        endnotes=note(1, "end", "", "endnote") + note(4, "line", 'w:type="separator"', "endnote"),
        footnotes=note(0, "foot", 'w:type="normal"') + note(5, "") + note(6, "more", 'w:type="continuationNotice"'),
    )
    assert texts(document) == [
        ("paragraph", "Tea[^0][^e1][^c2]"),
        ("paragraph", "[^0]: foot"),
        ("paragraph", "[^e1]: end"),
        ("paragraph", "[^c2]: Ann: Really?"),
        ("paragraph", "[^c3]: Yes"),
    ]


def test_a_list_at_the_end_stands_before_the_notes(read: Any) -> None:
    assert texts(read(item(3, 0, "a"), footnotes=note(1, "b"))) == [("list", "- a"), ("paragraph", "[^1]: b")]


def test_parts_that_are_damaged_are_named_each_once_and_in_their_order(read: Any) -> None:
    changed = read(f"<w:p>{run('x')}</w:p>", comments="<", footnotes="<", styles="<", numbering="<")
    assert changed.metadata["unread"] == ["the styles", "the numbers of its lists", "the footnotes", "the comments"]


@pytest.mark.parametrize(
    ("target", "inner", "expected"),
    [
        ("https://e.org/", run("a") + run(" b "), "[a b](https://e.org/)."),
        ("https://e.org/" + "x" * 286, run("a"), "[a](https://e.org/" + "x" * 286 + ")."),
        ("https://e.org/" + "x" * 287, run("a"), "a."),
        ("https://e.org/", run(" "), "."),
        ("", run("a"), "a."),
    ],
)
def test_a_link_is_written_around_its_text_unless_it_is_very_long(
    files: Any, target: str, inner: str, expected: str
) -> None:
    link = f'<w:p><w:hyperlink r:id="rId99">{inner}</w:hyperlink>{run(".")}</w:p>'
    new = (
        f'<Relationship Id="rId99" Type="http://x/hyperlink" Target="{target}" TargetMode="External"/></Relationships>'
    )
    relations = {"word/_rels/document.xml.rels": lambda old: old.replace(b"</Relationships>", new.encode())}
    data = files.body(link)
    document = DocxParser().parse(files.changed(data, relations) if target else data, source="x.docx")
    assert document.blocks[0].text.strip() == expected


def test_a_link_to_a_part_of_the_file_is_text(files: Any) -> None:
    new = b'<Relationship Id="rId99" Type="http://x/hyperlink" Target="notes.xml"/></Relationships>'
    relations = {"word/_rels/document.xml.rels": lambda old: old.replace(b"</Relationships>", new)}
    data = files.changed(files.body(f'<w:p><w:hyperlink r:id="rId99">{run("a")}</w:hyperlink></w:p>'), relations)
    assert DocxParser().parse(data, source="x.docx").blocks[0].text == "a"


def test_the_title_is_the_stated_one_else_the_first_heading_of_level_one(files: Any, read: Any) -> None:
    headings = styled("Below", "two") + styled("H1", "first") + styled("H1", "second")
    assert read(headings).title == "first"
    assert read(styled("Below", "two") + styled("Normal", "x")).title == ""

    def write(document: Any) -> None:
        properties = document.core_properties
        properties.title, properties.subject, properties.keywords = "All  about\ntea", "Tea", "green, black"
        properties.category = "not known"
        document.add_heading("first", 1)

    document = DocxParser().parse(files.word(write), source="x.docx")
    assert document.title == "All about tea"
    assert {name: document.metadata[name] for name in ("subject", "keywords")} == {
        "subject": "Tea",
        "keywords": "green, black",
    }
    assert document.metadata.keys() == {"author", "created", "modified", "subject", "keywords"}


def test_a_file_without_text_is_refused_by_name(files: Any) -> None:
    with pytest.raises(DocParserError, match=r"^x\.docx contains no text: it may contain only images"):
        DocxParser().parse(
            files.body(f"<w:p>{run('  ')}</w:p><w:tbl>{row(cell(''), cell(''))}</w:tbl>"), source="x.docx"
        )
