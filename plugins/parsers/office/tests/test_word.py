from __future__ import annotations

from typing import Any

import pytest
from docx.enum.style import WD_STYLE_TYPE
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls

from jackfield.errors import DocParserError
from jackfield_office.word import DocxParser


def blocks(data: bytes) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in DocxParser().parse(data, source="x.docx").blocks]


def run(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def test_paragraphs_and_tables_stand_in_their_order(files: Any) -> None:
    def write(document: Any) -> None:
        document.add_heading("The book", 0)
        document.add_heading("Tea", 2)
        document.add_paragraph("before")
        document.add_table(1, 2).rows[0].cells[0].text = "a|b"
        document.add_paragraph("after")

    document = DocxParser().parse(files.word(write), source="x.docx")
    assert [(block.kind, block.level, block.text) for block in document.blocks] == [
        ("heading", 1, "The book"),
        ("heading", 2, "Tea"),
        ("paragraph", 0, "before"),
        ("table", 0, "| a\\|b |\n|---|"),
        ("paragraph", 0, "after"),
    ]


def test_title_and_metadata_are_those_of_the_file(files: Any) -> None:
    def write(document: Any) -> None:
        document.core_properties.title, document.core_properties.author = "Tea for two", "Ada"
        document.add_paragraph("x")

    document = DocxParser().parse(files.word(write), source="x.docx")
    assert (document.title, document.metadata["author"]) == ("Tea for two", "Ada")


def test_a_style_that_stands_on_a_heading_is_one(files: Any) -> None:
    def write(document: Any) -> None:
        style = document.styles.add_style("Chapter", WD_STYLE_TYPE.PARAGRAPH)
        style.base_style = document.styles["Heading 3"]
        document.add_paragraph("Tea", style="Chapter")

    (block,) = DocxParser().parse(files.word(write), source="x.docx").blocks
    assert (block.kind, block.level) == ("heading", 3)


def test_the_items_of_lists_are_counted_and_joined(files: Any) -> None:
    def write(document: Any) -> None:
        for text in ("one", "two"):
            document.add_paragraph(text, style="List Number")
        for text in ("a", "b"):
            document.add_paragraph(text, style="List Bullet")
        document.add_paragraph("end")

    assert blocks(files.word(write)) == [("list", "1. one\n2. two\n- a\n- b"), ("paragraph", "end")]


def test_lists_in_lists_are_indented_and_counted_anew(files: Any) -> None:
    def write(document: Any) -> None:
        numbering = document.part.numbering_part.element
        for place, form in enumerate(("decimal", "lowerLetter")):
            levels = "".join(
                f'<w:lvl w:ilvl="{level}"><w:start w:val="{level + 1}"/><w:numFmt w:val="{form}"/></w:lvl>'
                for level in (0, 1)
            )
            numbering.insert(
                0, parse_xml(f'<w:abstractNum {nsdecls("w")} w:abstractNumId="{90 + place}">{levels}</w:abstractNum>')
            )
        numbering.append(parse_xml(f'<w:num {nsdecls("w")} w:numId="90"><w:abstractNumId w:val="90"/></w:num>'))
        for level, text in ((0, "a"), (1, "b"), (1, "c"), (0, "d"), (1, "e")):
            properties = document.add_paragraph(text)._p.get_or_add_pPr()
            properties.append(
                parse_xml(f'<w:numPr {nsdecls("w")}><w:ilvl w:val="{level}"/><w:numId w:val="90"/></w:numPr>')
            )

    assert blocks(files.word(write)) == [("list", "1. a\n  2. b\n  3. c\n2. d\n  2. e")]


@pytest.mark.parametrize("level", [0, 1])
def test_the_list_zero_is_no_list_in_a_style_as_in_a_paragraph(files: Any, level: int) -> None:
    def zero() -> Any:
        return parse_xml(f'<w:numPr {nsdecls("w")}><w:ilvl w:val="{level}"/><w:numId w:val="0"/></w:numPr>')

    def write(document: Any) -> None:
        document.add_paragraph("item", style="List Bullet")
        style = document.styles.add_style("Plain", WD_STYLE_TYPE.PARAGRAPH)
        style.base_style = document.styles["List Bullet"]
        style.element.get_or_add_pPr().append(zero())
        document.add_paragraph("by its style", style="Plain")
        document.add_paragraph("by itself", style="List Bullet")._p.get_or_add_pPr().append(zero())
        below = document.styles.add_style("Below", WD_STYLE_TYPE.PARAGRAPH)
        below.base_style = style
        document.add_paragraph("by a style below", style="Below")

    assert blocks(files.word(write)) == [
        ("list", "- item"), ("paragraph", "by its style"), ("paragraph", "by itself"), ("paragraph", "by a style below")
    ]  # fmt: skip


def test_the_list_of_the_usual_style_is_that_of_paragraphs_that_name_no_style(files: Any) -> None:
    def write(document: Any) -> None:
        bullet = document.styles["List Bullet"].element.pPr.numPr.numId.val
        document.styles["Normal"].element.get_or_add_pPr().append(
            parse_xml(f'<w:numPr {nsdecls("w")}><w:numId w:val="{bullet}"/></w:numPr>')
        )
        document.add_paragraph("without properties")
        document.add_paragraph("with some").alignment = 1

    assert blocks(files.word(write)) == [("list", "- without properties\n- with some")]


def test_what_spans_rows_stands_in_each_and_inner_tables_are_text(files: Any) -> None:
    def write(document: Any) -> None:
        table = document.add_table(3, 3)
        for place, cell in enumerate(cell for row in table.rows for cell in row.cells):
            cell.text = str(place)
        table.cell(1, 0).merge(table.cell(2, 0)).text = "tall"
        table.cell(0, 1).merge(table.cell(0, 2)).text = "wide"
        table.cell(2, 2).add_table(1, 1).cell(0, 0).text = "inner"

    assert blocks(files.word(write)) == [
        ("table", "| 0 | wide |  |\n|---|---|---|\n| tall | 4 | 5 |\n| tall | 7 | 8<br>inner |")
    ]


def test_a_box_around_text_is_no_table(files: Any) -> None:
    def write(document: Any) -> None:
        cell = document.add_table(1, 1).cell(0, 0)
        cell.text = "one"
        cell.add_paragraph("two", style="Heading 1")

    assert blocks(files.word(write)) == [("paragraph", "one"), ("heading", "two")]


def test_links_are_markdown(files: Any) -> None:
    def write(document: Any) -> None:
        paragraph = document.add_paragraph("see ")
        target = paragraph.part.relate_to("https://e.org/a(b)", RELATIONSHIP_TYPE.HYPERLINK, is_external=True)
        link = parse_xml(f'<w:hyperlink {nsdecls("w", "r")} r:id="{target}">{run("the ")}{run("page")}</w:hyperlink>')
        paragraph._p.append(link)

    assert blocks(files.word(write)) == [("paragraph", "see [the page](https://e.org/a%28b%29)")]


@pytest.mark.parametrize(
    ("xml", "expected"),
    [
        (f"<w:p><w:ins>{run('new')}</w:ins><w:del>{run('gone')}</w:del></w:p>", "new"),
        (f"<w:p><w:moveFrom>{run('here')}</w:moveFrom><w:moveTo>{run('there')}</w:moveTo></w:p>", "there"),
        (f"<w:sdt><w:sdtContent><w:p>{run('in a control')}</w:p></w:sdtContent></w:sdt>", "in a control"),
        ("<w:p><w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t><w:noBreakHyphen/></w:r></w:p>", "a\tb\nc-"),
        (f"<w:p><w:r><w:instrText>PAGE</w:instrText></w:r>{run('7')}</w:p>", "7"),
        (
            f"<w:p>{run('a')}<w:r><w:txbxContent><w:p>{run('box')}</w:p></w:txbxContent></w:r>{run('b')}</w:p>",
            "ab\nbox",
        ),
    ],
)
def test_what_a_reader_sees_is_read(files: Any, xml: str, expected: str) -> None:
    assert "\n".join(text for _, text in blocks(files.body(xml))) == expected


def test_pages_are_those_that_word_noted(files: Any) -> None:
    rendered = "<w:r><w:lastRenderedPageBreak/></w:r>"
    a, b, c, d = (run(letter) for letter in "abcd")
    xml = f"<w:p>{a}</w:p><w:p>{b}{rendered}{b}</w:p><w:p>{rendered}{c}</w:p><w:p>{d}</w:p>"
    document = DocxParser().parse(files.body(xml), source="x.docx")
    assert [(block.text, block.page) for block in document.blocks] == [("a", 1), ("bb", 1), ("c", 3), ("d", 3)]


def test_footnotes_stand_at_the_end(files: Any) -> None:
    note = f'<w:footnote w:id="2"><w:p>{run("Only green.")}</w:p></w:footnote><w:footnote w:id="0" w:type="separator"/>'
    data = files.changed(
        files.body(f'<w:p>{run("Tea")}<w:r><w:footnoteReference w:id="2"/></w:r></w:p><w:p>{run("end")}</w:p>'),
        {"word/footnotes.xml": lambda _: f"<w:footnotes {nsdecls('w')}>{note}</w:footnotes>".encode()},
    )
    assert [text for _, text in blocks(data)] == ["Tea[^2]", "end", "[^2]: Only green."]


def test_the_strict_form_of_the_standard_is_read(files: Any) -> None:
    strict = {
        name: lambda old: old.replace(
            b"http://schemas.openxmlformats.org/wordprocessingml/2006/main",
            b"http://purl.oclc.org/ooxml/wordprocessingml/main",
        )
        for name in ("word/document.xml", "word/styles.xml")
    }
    data = files.changed(files.word(lambda document: document.add_heading("Tea", 1)), strict)
    assert blocks(data) == [("heading", "Tea")]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: data[:-200], "is corrupted or truncated"),
        (lambda data: b"", "is empty"),
        (lambda data: b"%PDF-1.7" + data, "does not match its extension"),
        (lambda data: data.replace(b"word/document.xml", b"word/documenu.xml"), "is not a docx file"),
    ],
)
def test_an_error_names_the_file_and_the_reason(files: Any, change: Any, reason: str) -> None:
    with pytest.raises(DocParserError, match=rf"^my letter\.docx {reason}"):
        DocxParser().parse(change(files.word(lambda document: document.add_paragraph("x"))), source="my letter.docx")


def test_a_bomb_is_refused_before_it_is_unpacked(files: Any) -> None:
    data = files.bomb("word/document.xml", files.word(lambda document: document.add_paragraph("x")))
    assert len(data) < 2**20
    with pytest.raises(DocParserError, match=r"x\.docx cannot be read: it decompresses to 25 MiB"):
        DocxParser().parse(data, source="x.docx")
