"""Paragraphs, lists, notes, tables and metadata of OpenDocument files, at their limits and in their order."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import pytest
from lxml import etree

from jackfield.errors import DocParserError
from jackfield.retrieval import Document
from jackfield_opendocument.names import TABLE
from jackfield_opendocument.plugin import parsers
from jackfield_opendocument.sheets import OdsParser, _letters
from jackfield_opendocument.slides import OdpParser
from jackfield_opendocument.tables import Spare, repeats
from jackfield_opendocument.texts import OdtParser

STYLES = """
<style:style style:family="paragraph" style:name="Heading" style:parent-style-name="Title"/>
<style:style style:family="paragraph" style:name="Heading" style:parent-style-name="Source_20_Code"/>
<style:style style:family="text" style:name="Red" style:parent-style-name="Title"/>
<style:style style:family="table" style:name="P3" style:master-page-name="First"/>
<style:style style:family="paragraph" style:name="P1" style:master-page-name="First"/>
<style:style style:family="paragraph" style:name="P2" style:parent-style-name="P1"/>
<style:style style:family="paragraph" style:name="P3" style:master-page-name="">
  <style:paragraph-properties fo:break-before="column"/></style:style>
<style:style style:family="paragraph" style:name="P4"><style:paragraph-properties fo:break-after="page"/></style:style>
<text:list-style style:name="L">
  <text:list-level-style-number text:level="1" style:num-format="1"/>
  <text:list-level-style-number text:level="2" style:num-format="a" text:start-value="4"/>
  <text:list-level-style-number text:level="3" style:num-format="" text:start-value="7"/>
</text:list-style>
<text:list-style style:name="L"><text:list-level-style-number text:level="1" style:num-format="1" text:start-value="9"/>
</text:list-style>
<text:list-style style:name="Z"><text:list-level-style-number text:level="1" style:num-format="1" text:start-value="0"/>
</text:list-style>
""" + "".join(
    f'<style:style style:family="paragraph" style:name="B{n}" style:parent-style-name="B{n + 1}"/>' for n in range(9)
) + '<style:style style:family="paragraph" style:name="B9" style:parent-style-name="Title"/>'  # fmt: skip


def read(data: bytes) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in OdtParser().parse(data, source="x.odt").blocks]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # Headings and styles.
        ('<text:h text:outline-level="0">a</text:h>', [("heading1", "a")]),
        ("<text:h>a</text:h>", [("heading1", "a")]),
        ('<text:h text:outline-level="99999">a</text:h>', [("heading99999", "a")]),
        ('<text:h text:outline-level="100000">a</text:h>', [("heading1", "a")]),
        ('<text:h text:outline-level="2" text:style-name="Title">a</text:h>', [("heading2", "a")]),
        ('<text:p text:style-name="Heading">a <text:s/> b</text:p>', [("heading1", "a b")]),
        ('<text:p text:style-name="Red">a</text:p>', [("paragraph", "a")]),
        ('<text:p text:style-name="B1">a</text:p>', [("heading1", "a")]),
        ('<text:p text:style-name="B0">a</text:p>', [("paragraph", "a")]),
        ('<text:p text:style-name="HTML_20_Preformatted"> <text:s/> a </text:p>', [("code", "   a")]),
        ('<text:p text:style-name="Plain_20_Text">a</text:p><text:p text:style-name="Code"/>'
         '<text:p text:style-name="Code_20_Block">b</text:p>', [("code", "a\n\nb")]),
        ('<text:p text:style-name="Codes">a</text:p>', [("paragraph", "a")]),
        ('<text:p text:style-name="Code"/><text:p text:style-name="Code">a</text:p><text:p text:style-name="Code"/>'
         "<text:p>b</text:p>", [("code", "a"), ("paragraph", "b")]),
        ('<text:p text:style-name="Code">a</text:p><text:p> </text:p><text:p text:style-name="Code">b</text:p>',
         [("code", "a\nb")]),
        ('<text:p text:style-name="Code">a</text:p><text:list><text:list-item><text:p>b</text:p></text:list-item>'
         "</text:list>", [("code", "a"), ("list", "- b")]),
        # Spaces, links and text that is left out.
        ("<text:p> a\t\n <text:span> b </text:span>\r c </text:p>", [("paragraph", "a  b  c")]),
        ("<text:p>a<text:span>b<text:tab/>c</text:span>d<text:line-break/>e</text:p>", [("paragraph", "ab\tcd\ne")]),
        ('<text:p><text:a xlink:href="https://e.org/">a <text:span>b</text:span></text:a>c</text:p>',
         [("paragraph", "[a b](https://e.org/)c")]),
        ('<text:p>x<text:a xlink:href="https://e.org/"> </text:a>y</text:p>', [("paragraph", "x y")]),
        ("<text:p><text:a>a</text:a></text:p>", [("paragraph", "a")]),
        ("<text:p><text:span>a</text:span> <text:span>b</text:span></text:p>", [("paragraph", "a b")]),
        (f'<text:p><text:a xlink:href="{300 * "u"}">a</text:a></text:p>', [("paragraph", f"[a]({300 * 'u'})")]),
        (f'<text:p><text:a xlink:href="{301 * "u"}">a</text:a></text:p>', [("paragraph", "a")]),
        *[(f"<text:{name}><text:p>gone</text:p></text:{name}><text:p>a</text:p>", [("paragraph", "a")])
          for name in ("illustration-index", "table-index", "object-index", "alphabetical-index", "sequence-decls",
                       "variable-decls", "user-field-decls")],
        *[(f"<text:p>a<draw:frame><draw:{name}><text:p>b</text:p></draw:{name}></draw:frame></text:p>",
           [("paragraph", "a")]) for name in ("object-ole", "plugin", "image")],
        # Boxes and pictures come after their paragraph, in a cell in the text.
        ("<text:p>a<draw:custom-shape><text:p>b</text:p></draw:custom-shape><draw:custom-shape><text:p>c</text:p>"
         "</draw:custom-shape></text:p><text:p>d</text:p>", [("paragraph", one) for one in "abcd"]),
        ("<table:table><table:table-row><table:table-cell><text:p>a<draw:custom-shape><text:p>b</text:p>"
         "</draw:custom-shape></text:p></table:table-cell></table:table-row></table:table><text:p>c</text:p>",
         [("table", "| a<br>b |\n|---|"), ("paragraph", "c")]),
        ("<text:p><draw:frame><svg:title>A  cat</svg:title><draw:image/></draw:frame></text:p>",
         [("paragraph", "(Picture: A cat)")]),
        ("<text:p><draw:frame><svg:title> </svg:title><svg:desc>asleep</svg:desc><draw:image/></draw:frame></text:p>",
         [("paragraph", "(Picture: asleep)")]),
        ("<text:p>a<draw:frame><svg:title>box</svg:title></draw:frame></text:p>", [("paragraph", "a")]),
        ("<text:p>a<draw:frame><draw:image/></draw:frame></text:p>", [("paragraph", "a")]),
    ],
)  # fmt: skip
def test_a_paragraph_is_what_its_style_and_its_content_make_it(
    file: Any, body: str, expected: list[tuple[str, str]]
) -> None:
    blocks = OdtParser().parse(file("odt", body, STYLES), source="x.odt").blocks
    assert [(f"{block.kind}{block.level or ''}", block.text) for block in blocks] == expected


def items(*contents: str, style: str = "", more: str = "") -> str:
    named = f'text:style-name="{style}"' if style else ""
    return f"<text:list {named} {more}>{''.join(contents)}</text:list>"


def item(text: str, inner: str = "", more: str = "") -> str:
    return f"<text:list-item {more}><text:p>{text}</text:p>{inner}</text:list-item>"


AGAIN = 'text:continue-numbering="true"'


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (items(item("a"), item("b"), style="L"), "1. a\n2. b"),
        (items(item("a"), item("b"), style="Z"), "0. a\n1. b"),
        (items(item("a"), style="Unknown"), "- a"),
        (items(item("a", items(item("b"), item("c"))), item("d"), style="L"), "1. a\n  4. b\n  5. c\n2. d"),
        (items(item("a", items(item("b", items(item("c"))))), style="L"), "1. a\n  4. b\n    - c"),
        (items(item("a", items(item("b"), style="Z")), style="L"), "1. a\n  - b"),
        (items(item("a", items(item("b"))), item("c", items(item("d"))), style="L"), "1. a\n  4. b\n2. c\n  4. d"),
        (items(item("a"), item("b", more='text:start-value="7"'), item("c"), style="L"), "1. a\n7. b\n8. c"),
        (items(item("a"), style="L") + items(item("b"), style="L"), "1. a\n1. b"),
        (items(item("a"), style="L") + items(item("b"), style="L", more=AGAIN), "1. a\n2. b"),
        (items(item("a"), style="L") + 2 * items(item("b"), style="L", more=AGAIN), "1. a\n2. b\n3. b"),
        (
            items(item("a"), style="L") + items(item("b"), style="L", more='text:continue-numbering="false"'),
            "1. a\n1. b",
        ),
        (items(item("a"), style="L") + items(item("b"), style="L", more='text:continue-list="x"'), "1. a\n2. b"),
        (items(item("a"), style="L") + items(item("b"), style="Z", more=AGAIN), "1. a\n0. b"),
        (items(item("a"), style="L", more=AGAIN), "1. a"),
        (items(item("a", items(item("b"))), style="L") + items(item("c", items(item("d"), more=AGAIN)), style="L"),
         "1. a\n  4. b\n1. c\n  5. d"),
        (items(item("a"), style="L") + "<text:p/>" + items(item("b"), style="L", more=AGAIN), "1. a\n2. b"),
        (items("<text:list-header><text:p>h</text:p></text:list-header>", item("a"), style="L"), "  h\n1. a"),
        (items("<text:list-item><text:p/><text:p>a</text:p><text:p>b<text:line-break/>c</text:p></text:list-item>"),
         "- a\n  b c"),
        (items(item("a", items(item("b"))) + item("c")), "- a\n  - b\n- c"),
    ],
)  # fmt: skip
def test_items_are_counted_as_their_list_says(file: Any, body: str, expected: str) -> None:
    assert read(file("odt", body, STYLES)) == [("list", expected)]


def test_lists_are_indented_to_a_depth_of_twenty(file: Any) -> None:
    body = "<text:p>x</text:p>"
    for _ in range(23):
        body = items(f"<text:list-item><text:p>a</text:p>{body if 'list' in body else ''}</text:list-item>")
    ((_, text),) = read(file("odt", body))
    assert [len(line) - 3 for line in text.splitlines()] == [*range(0, 41, 2), 40, 40]


def test_what_an_item_holds_follows_it(file: Any) -> None:
    box = "<draw:frame><draw:text-box><text:p>b</text:p></draw:text-box></draw:frame>"
    body = items(item(f"a{box}", table(cell("t"))), item("c"))
    assert read(file("odt", body)) == [
        ("list", "- a"), ("paragraph", "b"), ("table", "| t |\n|---|"), ("list", "- c")
    ]  # fmt: skip


def note(text: str, kind: str = "footnote") -> str:
    body = f"<text:note-citation>9</text:note-citation><text:note-body>{text}</text:note-body>"
    return f'<text:note text:note-class="{kind}">{body}</text:note>'


def comment(text: str, author: str = "") -> str:
    return f"<office:annotation><dc:creator>{author}</dc:creator><text:p>{text}</text:p></office:annotation>"


def test_notes_of_each_kind_are_counted_alone_and_empty_ones_have_no_mark(file: Any) -> None:
    body = (
        f"<text:p>a{note('<text:p>one</text:p><text:p>more</text:p>')}{note('<text:p> </text:p>')}"
        f"{note('<text:p>end</text:p>', 'endnote')}{note('<text:p>two</text:p>')}</text:p>"
        f"<text:h>b{comment('why?', ' Ann ')}{comment('how?')}</text:h>"
        f"{items(item('c' + note('<text:p>three</text:p>')))}"
    )
    assert [text for _, text in read(file("odt", body))] == [
        "a[^1][^e1][^2]", "b[^c1][^c2]", "- c[^3]", "[^1]: one\nmore", "[^e1]: end", "[^2]: two",
        "[^c1]: Ann: why?", "[^c2]: how?", "[^3]: three",
    ]  # fmt: skip


def test_pages_turn_at_breaks_of_styles_but_not_before_the_first_block(file: Any) -> None:
    body = "".join(f'<text:p text:style-name="{style}">{style}</text:p>' for style in ("P1", "P2", "P3", "P4"))
    body += (
        f"{items(item('<text:soft-page-break/>i'), item('j'))}<text:h>h<text:soft-page-break/>h</text:h>"
        f"<text:p>k{note('<text:p>n</text:p>')}</text:p>"
    )
    blocks = OdtParser().parse(file("odt", body, STYLES), source="x.odt").blocks
    assert [(block.text, block.page) for block in blocks] == [
        ("P1", 1), ("P2", 2), ("P3", 2), ("P4", 2), ("- i\n- j", 2), ("hh", 3), ("k[^1]", 4), ("[^1]: n", 4)
    ]  # fmt: skip


def cell(text: str, more: str = "") -> str:
    return f"<table:table-cell {more}>{f'<text:p>{text}</text:p>' if text else ''}</table:table-cell>"


def table(*rows: str) -> str:
    return f"<table:table>{''.join(map(row, rows))}</table:table>"


def row(cells: str) -> str:
    return f"<table:table-row>{cells}</table:table-row>"


COVERED = "<table:covered-table-cell/>"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (table(cell("a", 'table:number-rows-spanned="3"') + cell("b"), COVERED + cell("c"), COVERED + cell("d"),
               COVERED + cell("e")), ["a | b", "a | c", "a | d", " | e"]),
        (table(cell("a") + cell("b", 'table:number-rows-spanned="2"'), cell("c") + COVERED, cell("d") + COVERED),
         ["a | b", "c | b", "d"]),
        (table(cell("a", 'table:number-columns-repeated="2"') + cell("b"), cell("", 'table:number-columns-repeated="2"')
               + cell("c")), ["a | a | b", " |  | c"]),
        (table(cell("a") + cell("b"), "", cell("c") + cell("d")), ["a | b", "c | d"]),
        (f"<table:table><table:table-header-rows>{row(cell('h'))}</table:table-header-rows><table:table-row-group>"
         f"<table:table-rows>{row(cell('a'))}</table:table-rows></table:table-row-group></table:table>", ["h", "a"]),
        (table(f"<table:table-cell><text:p>a</text:p>{table(cell('b'), cell('c'))}</table:table-cell>" + cell("d")),
         ["a<br>b<br>c | d"]),
        (table(cell("a") + cell("b", 'table:number-rows-spanned="2"') + cell("c"), cell("") + COVERED + cell("d")),
         ["a | b | c", " | b | d"]),
        (table(cell("a", 'table:number-columns-repeated="x"') + cell("b", 'table:number-columns-repeated="0"')),
         ["a | b"]),
    ],
)  # fmt: skip
def test_cells_stay_in_their_columns(file: Any, body: str, expected: list[str]) -> None:
    ((kind, text),) = read(file("odt", body))
    head, _, *rest = text.splitlines()
    assert (kind, [head, *rest]) == ("table", [f"| {line} |" for line in expected])


def test_merged_cells_of_a_spreadsheet_are_not_repeated(file: Any) -> None:
    body = table(cell("a", 'table:number-rows-spanned="2"') + cell("b"), COVERED + cell("c"))
    assert OdsParser().parse(file("ods", body), source="x.ods").blocks[1].text.endswith("\n|  | c |")


def test_repetitions_are_counted_down_to_one() -> None:
    spare = Spare(etree.fromstring("<a/>"))
    assert [spare.repetitions(3), spare.repetitions(1), spare.repetitions(0)] == [3, 1, 1]
    # One element allows 2 ** 20 + 100 characters, of which two are used.
    assert spare.repetitions(9, 2**19) == 3
    assert [spare.repetitions(200), spare.repetitions(200), spare.repetitions(5, 1)] == [99, 1, 1]
    assert Spare(etree.fromstring("<a><b/></a>")).repetitions(10**9) == 2**20 + 200 + 1


@pytest.mark.parametrize(
    ("stated", "count"),
    [("2", 2), ("1048576", 1_048_576), ("1048577", 1_048_576), ("99999999", 1_048_576), ("100000000", 1), ("-1", 1)],
)
def test_a_cell_is_repeated_at_most_as_often_as_a_sheet_has_rows(stated: str, count: int) -> None:
    name = TABLE + "number-rows-repeated"
    assert repeats(etree.Element("a"), "rows") == 1
    assert repeats(etree.Element("a", {name: stated}), "rows") == count


@pytest.mark.parametrize(("column", "letters"), [(1, "A"), (26, "Z"), (27, "AA"), (52, "AZ"), (53, "BA"), (703, "AAA")])
def test_columns_have_letters(column: int, letters: str) -> None:
    assert _letters(column) == letters


@pytest.mark.parametrize(
    ("values", "shown", "expected"),
    [
        ('office:value-type="float" office:value="999999999999999"', "", "999999999999999"),
        ('office:value-type="float" office:value="1e15"', "", "1000000000000000.0"),
        ('office:value-type="float" office:value="-1e15"', "", "-1000000000000000.0"),
        ('office:value-type="float" office:value="nan"', "", "nan"),
        ('office:value-type="float"', "7", "7"),
        ('office:value-type="date"', "May", "May"),
        ('office:value-type="date" office:date-value="2026-11-28T00:00:00"', "x", "2026-11-28"),
        ('office:value-type="boolean" office:boolean-value="false"', "x", "FALSE"),
        ('office:value-type="boolean"', "WAHR", "WAHR"),
        ('office:value-type="string" office:string-value="kept"', "", "kept"),
        ('office:value-type="string" office:string-value="kept"', "shown", "shown"),
        ('office:value-type="percentage" office:value="0.5"', "", "0.5"),
        ("", "plain", "plain"),
        ('office:value-type="string"', "a</text:p><text:p>b", "a<br>b"),
    ],
)
def test_a_value_of_a_cell(file: Any, values: str, shown: str, expected: str) -> None:
    blocks = OdsParser().parse(file("ods", table(cell("x"), cell(shown, values))), source="x.ods").blocks
    assert blocks[1].text.splitlines()[-1] == f"| {expected} |"


def test_a_sheet_is_heading_table_comments_and_drawings_in_this_order(file: Any) -> None:
    shapes = "<table:shapes><draw:custom-shape><text:p>box</text:p></draw:custom-shape></table:shapes>"

    def sheet(name: str, content: str) -> str:
        return f'<table:table table:name="{name}">{content}</table:table>'

    noted = f"<table:table-cell>{comment('why?', 'Ann')}<text:p>a</text:p></table:table-cell>"
    silent = f"<table:table-cell>{comment(' ')}{comment('how?')}</table:table-cell>"
    body = sheet(" ", shapes + row(noted)) + sheet("Only a comment", row(COVERED + silent))
    body += sheet("Only a box", shapes) + sheet("None", row(cell("")))
    document = OdsParser().parse(file("ods", body), source="x.ods")
    assert [(block.page, block.kind, block.text) for block in document.blocks] == [
        (1, "heading", "Sheet 1"),
        (1, "table", "| a |\n|---|"),
        (1, "list", "- Comment on A1 (Ann): why?"),
        (1, "paragraph", "box"),
        (2, "heading", "Only a comment"),
        (2, "list", "- Comment on B1: how?"),
        (3, "heading", "Only a box"),
        (3, "paragraph", "box"),
    ]


@pytest.mark.parametrize(
    ("parser", "kind", "body", "reason"),
    [
        (OdtParser, "odt", "<text:p> </text:p>", "contains no text: it may contain only images"),
        (OdsParser, "ods", table(cell("")), "is empty: none of its cells contains text"),
        (OdpParser, "odp", "<draw:page/>", "contains no text: its slides may contain only images"),
    ],
)
def test_a_file_without_text_is_refused(file: Any, parser: Any, kind: str, body: str, reason: str) -> None:
    with pytest.raises(DocParserError, match=f"^x {reason}"):
        parser().parse(file(kind, body), source="x")


def test_a_file_of_another_kind_is_named(file: Any, flat: Any) -> None:
    for data in (
        file("ods", table(cell("a"))),
        flat("ods", table(cell("a"))),
        file("odt", "", **{"content.xml": "<a/>"}),
    ):
        with pytest.raises(DocParserError, match=r"^x is not an OpenDocument text: its extension may be wrong"):
            OdtParser().parse(data, source="x")


def test_a_zip_file_without_content_is_of_another_kind() -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("a.txt", "a")
    with pytest.raises(DocParserError, match=r"^x is not an OpenDocument text: its extension may be wrong"):
        OdtParser().parse(data.getvalue(), source="x")


def page(*shapes: str) -> str:
    return f"<draw:page>{''.join(shapes)}</draw:page>"


def frame(text: str, kind: str = "") -> str:
    role = f' presentation:class="{kind}"' if kind else ""
    return f"<draw:frame{role}><draw:text-box><text:p>{text}</text:p></draw:text-box></draw:frame>"


def slides(data: bytes) -> Document:
    return OdpParser().parse(data, source="x.odp")


@pytest.mark.parametrize("kind", ["page-number", "date-time", "footer", "header", "page"])
def test_what_each_slide_repeats_is_left_out(file: Any, kind: str) -> None:
    document = slides(file("odp", page(frame("x", kind), frame("a"))))
    assert [block.text for block in document.blocks] == ["Slide 1", "a"]


def test_all_that_a_slide_repeats_is_left_out_and_empty_slides_are_counted(file: Any) -> None:
    around = (frame("T", "title"), frame("x", "footer"), frame("y", "page-number"), frame("z", "date-time"))
    document = slides(file("odp", page(*around, frame("a"), *around[1:]) + page() + page(*around[1:])))
    assert [block.text for block in document.blocks] == ["T", "a"]
    assert document.metadata["slides"] == 3


def test_an_empty_title_is_passed_over_and_notes_have_several_frames(file: Any) -> None:
    notes = (
        f"<presentation:notes>{frame('one', 'notes')}{frame(' ', 'notes')}{frame('two', 'notes')}</presentation:notes>"
    )
    document = slides(
        file("odp", page(notes, frame(" ", "title"), frame("A <text:s/> b", "title"), frame("x", "subtitle")))
    )
    assert [block.text for block in document.blocks] == ["A b", "x", "Notes: one\ntwo"]
    assert [block.text for block in slides(file("odp", page(notes))).blocks] == ["Slide 1", "Notes: one\ntwo"]


@pytest.mark.parametrize(
    ("body", "title"),
    [
        (page(frame("A", "title")) + page(frame("B", "title")), "A"),
        (page(frame("a")) + page(frame("B", "title")), ""),
        (page() + page(frame("a")), ""),
        (page() + page(frame("B", "title")), "B"),
    ],
)
def test_the_title_is_that_of_the_first_slide_with_text(file: Any, content: Any, body: str, title: str) -> None:
    assert slides(file("odp", body)).title == title
    meta = content("odp", "", more="<office:meta><dc:title>Stated</dc:title></office:meta>")
    assert slides(file("odp", body, **{"meta.xml": meta})).title == "Stated"


def test_metadata_have_our_names(file: Any, content: Any) -> None:
    stated = (
        "<dc:title>Tea\n <b>time</b></dc:title><dc:creator>Bo</dc:creator><meta:creation-date>1</meta:creation-date>"
        "<dc:subject>s</dc:subject><dc:language>en</dc:language><meta:keyword> </meta:keyword><dc:rights>r</dc:rights>"
    )
    meta = content("odt", "", more=f"<office:meta>{stated}</office:meta>")
    document = OdtParser().parse(file("odt", "<text:h>One</text:h>", **{"meta.xml": meta}), source="x.odt")
    assert document.title == "Tea time"
    assert document.metadata == {"author": "Bo", "created": "1", "subject": "s", "language": "en"}
    later = OdtParser().parse(
        file("odt", '<text:h text:outline-level="2">a</text:h><text:h>b</text:h><text:h>c</text:h>'), source="x.odt"
    )
    assert (later.title, later.metadata) == ("b", {})


def test_styles_of_the_file_are_in_two_parts_and_the_nearer_counts(file: Any, content: Any) -> None:
    named = '<style:style style:family="paragraph" style:name="{}" style:parent-style-name="Title"/>'
    parts = {"styles.xml": content("odt", "", named.format("A") + named.format("P1"))}
    body = '<text:p text:style-name="A">a</text:p><text:p text:style-name="P1">b</text:p>'
    assert read(file("odt", body, STYLES, **parts)) == [("heading", "a"), ("paragraph", "b")]


OBJECT = '<text:p>a<draw:frame><draw:object xlink:href="{}"/></draw:frame></text:p>'


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ("<chart:chart/>", [("paragraph", "Chart")]),
        (f"<chart:chart><chart:title><text:p>a</text:p><text:p>b</text:p></chart:title>{table(cell('c'))}{table(cell('d'))}</chart:chart>",
         [("paragraph", "Chart: a b"), ("table", "| c |\n|---|"), ("table", "| d |\n|---|")]),
        ('<math xmlns="http://www.w3.org/1998/Math/MathML"> <mi>x</mi> <mo>+</mo></math>', [("paragraph", "x +")]),
    ],
)  # fmt: skip
def test_an_object_in_a_flat_file_or_a_folder_is_read(
    file: Any, flat: Any, content: Any, inner: str, expected: list[tuple[str, str]]
) -> None:
    whole = inner if inner.startswith("<math") else content("odt", inner)
    for reference in ("./Object 1", "Object 1", "Object 1/"):
        data = file("odt", OBJECT.format(reference), **{"Object 1/content.xml": whole})
        assert read(data) == [("paragraph", "a"), *expected]
    bare = whole.removeprefix('<?xml version="1.0" encoding="UTF-8"?>')
    data = flat("odt", f"<text:p>a<draw:frame><draw:object>{bare}</draw:object></draw:frame></text:p>")
    assert read(data) == [("paragraph", "a"), *expected]


def test_the_picture_of_an_object_that_is_read_is_not_named(file: Any, content: Any) -> None:
    frame = OBJECT.format("O").replace("</draw:frame>", "<draw:image/><svg:title>Sales</svg:title></draw:frame>")
    data = file("odt", frame, **{"O/content.xml": content("odt", "<chart:chart/>")})
    assert [text for _, text in read(data)] == ["a", "Chart"]


def test_all_sheets_of_an_embedded_book_are_read_and_a_lost_object_of_a_flat_file_is_named(
    file: Any, flat: Any, content: Any
) -> None:
    book = {"O/content.xml": content("ods", table(cell("c")) + table(cell("d")))}
    assert [text for _, text in read(file("odt", OBJECT.format("O"), **book))] == ["a", "| c |\n|---|", "| d |\n|---|"]
    document = OdtParser().parse(flat("odt", OBJECT.format("x" * 101)), source="x.odt")
    assert document.metadata["unread"] == [f"the object {'x' * 100!r}"]


def test_a_flat_file_may_begin_with_a_mark_and_with_space(flat: Any) -> None:
    xml = flat("odt", "<text:p>a</text:p>").partition(b"?>")[2]
    assert read(b"\xef\xbb\xbf" + xml) == read(b"\n " + xml) == [("paragraph", "a")]


def test_files_are_recognised_by_each_of_these_extensions() -> None:
    assert {spec.name: " ".join(spec.extensions) for spec in parsers()} == {
        "odt": "odt ott fodt",
        "ods": "ods ots fods",
        "odp": "odp otp fodp",
    }


def test_files_are_recognised_by_each_of_these_media_types() -> None:
    assert {spec.name: list(spec.media_types) for spec in parsers()} == {
        "odt": [
            "application/vnd.oasis.opendocument.text",
            "application/vnd.oasis.opendocument.text-template",
            "application/vnd.oasis.opendocument.text-flat-xml",
        ],
        "ods": [
            "application/vnd.oasis.opendocument.spreadsheet",
            "application/vnd.oasis.opendocument.spreadsheet-template",
            "application/vnd.oasis.opendocument.spreadsheet-flat-xml",
        ],
        "odp": [
            "application/vnd.oasis.opendocument.presentation",
            "application/vnd.oasis.opendocument.presentation-template",
            "application/vnd.oasis.opendocument.presentation-flat-xml",
        ],
    }
