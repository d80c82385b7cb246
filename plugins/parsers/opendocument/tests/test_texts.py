from __future__ import annotations

from typing import Any

import pytest

from jackfield.errors import DocParserError
from jackfield.retrieval import Document
from jackfield_opendocument.texts import OdtParser

Blocks = list[tuple[str, str]]
RUBY = "<text:ruby><text:ruby-base>字</text:ruby-base><text:ruby-text>zi</text:ruby-text></text:ruby>"
CODE = '<text:p text:style-name="Preformatted_20_Text">a<text:s/>b</text:p><text:p text:style-name="code">c</text:p>'


def parse(data: bytes) -> Document:
    return OdtParser().parse(data, source="x.odt")


def blocks(data: bytes) -> Blocks:
    return [(block.kind, block.text) for block in parse(data).blocks]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('<text:h text:outline-level="3">A  b\nc</text:h>', [("heading", "A b c")]),
        ("<text:p>a<text:tab/>b<text:line-break/>c<text:s text:c='2'/>d</text:p>", [("paragraph", "a\tb\nc  d")]),
        ("<text:p>a <text:span>b</text:span> c</text:p>", [("paragraph", "a b c")]),
        ('<text:p><text:a xlink:href="https://x.org/(a)">b</text:a></text:p>', [("paragraph", "[b](https://x.org/%28a%29)")]),
        ('<text:p><text:a xlink:href="#b">b</text:a></text:p>', [("paragraph", "b")]),
        ("<text:section><text:section><text:p>a</text:p></text:section></text:section>", [("paragraph", "a")]),
        ("<text:tracked-changes><text:p>gone</text:p></text:tracked-changes><text:p>a</text:p>", [("paragraph", "a")]),
        ("<text:table-of-content><text:p>a 1</text:p></text:table-of-content><text:h>a</text:h>", [("heading", "a")]),
        (f"<text:p>{RUBY}</text:p>", [("paragraph", "字")]),
        ('<text:p text:style-name="Title">A</text:p>', [("heading", "A")]),
        (CODE, [("code", "a b\nc")]),
    ],
)  # fmt: skip
def test_a_paragraph_is_read_as_it_is_shown(file: Any, body: str, expected: Blocks) -> None:
    styles = '<style:style style:family="paragraph" style:name="code" style:parent-style-name="Source_20_Code"/>'
    assert blocks(file("odt", body, styles)) == expected


@pytest.mark.parametrize(("count", "spaces"), [("80", 80), ("81", 80), ("9999", 80), ("9" * 8, 1), ("x", 1), ("", 1)])
def test_a_small_file_has_no_gigabytes_of_spaces(file: Any, count: str, spaces: int) -> None:
    ((_, text),) = blocks(file("odt", f"<text:p>a<text:s text:c='{count}'/>b</text:p>"))
    assert text == f"a{' ' * spaces}b"


NUMBERED = (
    '<text:list-style style:name="L"><text:list-level-style-number text:level="1" style:num-format="1" '
    'text:start-value="3"/><text:list-level-style-bullet text:level="2"/></text:list-style>'
)


def test_lists_have_their_numbers_and_levels(file: Any) -> None:
    inner = "<text:list><text:list-item><text:p>b</text:p><text:p>c</text:p></text:list-item></text:list>"
    body = (
        '<text:list text:style-name="L"><text:list-header><text:p>h</text:p></text:list-header>'
        f"<text:list-item><text:p>a</text:p>{inner}</text:list-item><text:list-item><text:p>d</text:p></text:list-item>"
        '</text:list><text:list text:style-name="L" text:continue-numbering="true">'
        "<text:list-item><text:p>e</text:p></text:list-item></text:list>"
        '<text:p>f</text:p><text:list text:style-name="L"><text:list-item><text:p>g</text:p></text:list-item>'
        "</text:list>"
    )
    assert blocks(file("odt", body, NUMBERED)) == [
        ("list", "  h\n3. a\n  - b\n    c\n4. d\n5. e"),
        ("paragraph", "f"),
        ("list", "3. g"),
    ]


def test_a_heading_in_a_list_is_a_heading(file: Any) -> None:
    body = '<text:list><text:list-item><text:h text:outline-level="2">A</text:h></text:list-item></text:list>'
    assert blocks(file("odt", body)) == [("heading", "A")]


def test_notes_and_comments_are_at_the_end_with_marks_in_the_text(file: Any) -> None:
    note = (
        '<text:note text:note-class="{}"><text:note-citation>x</text:note-citation>'
        "<text:note-body><text:p>{}</text:p></text:note-body></text:note>"
    )
    comment = (
        "<office:annotation><dc:creator>Ann</dc:creator><dc:date>d</dc:date><text:p>why?</text:p></office:annotation>"
    )
    body = (
        f"<text:p>a{note.format('footnote', 'one')} b{note.format('endnote', 'two')}</text:p>"
        f"<table:table><table:table-row><table:table-cell><text:p>c{comment}</text:p></table:table-cell>"
        "</table:table-row></table:table>"
    )
    assert [text for _, text in blocks(file("odt", body))] == [
        "a[^1] b[^e1]",
        "| c[^c1] |\n|---|",
        "[^1]: one",
        "[^e1]: two",
        "[^c1]: Ann: why?",
    ]


def test_notes_in_notes_are_read_in_linear_time(file: Any) -> None:
    note = "<text:note><text:note-body><text:p>n{}</text:p></text:note-body></text:note>"
    body = "a"
    for _ in range(60):
        body = note.format(body)
    assert len(blocks(file("odt", f"<text:p>t{body}</text:p>"))) == 61


def test_a_table_keeps_its_columns_and_repeats_merged_cells_downwards(file: Any) -> None:
    body = (
        "<table:table><table:table-header-rows><table:table-row><table:table-cell><text:p>a</text:p></table:table-cell>"
        '<table:table-cell table:number-columns-spanned="2"><text:p>b|c</text:p></table:table-cell>'
        "<table:covered-table-cell/></table:table-row></table:table-header-rows>"
        '<table:table-row><table:table-cell table:number-rows-spanned="2"><text:p>d</text:p></table:table-cell>'
        "<table:table-cell/><table:table-cell><text:p>e</text:p><text:p>f</text:p></table:table-cell></table:table-row>"
        "<table:table-row><table:covered-table-cell/><table:table-cell><text:p>g</text:p></table:table-cell>"
        "<table:table-cell/></table:table-row></table:table>"
    )
    assert blocks(file("odt", body)) == [("table", "| a | b\\|c |  |\n|---|---|---|\n| d |  | e<br>f |\n| d | g |")]


def test_pages_are_those_that_the_program_noted(file: Any) -> None:
    style = (
        '<style:style style:family="paragraph" style:name="N"><style:paragraph-properties fo:break-before="page"/>'
        "</style:style>"
    )
    body = (
        '<text:p text:style-name="N">a</text:p><text:p>b<text:soft-page-break/>c</text:p><text:p>d</text:p>'
        '<text:p text:style-name="N">e</text:p><text:soft-page-break/><text:p>f</text:p>'
    )
    pages = [(block.text, block.page) for block in parse(file("odt", body, style)).blocks]
    assert pages == [("a", 1), ("bc", 1), ("d", 2), ("e", 3), ("f", 4)]
    unpaged = parse(file("odt", body.replace("<text:soft-page-break/>", ""), style))
    assert {block.page for block in unpaged.blocks} == {None}


def test_boxes_and_names_of_pictures_follow_their_paragraph(file: Any) -> None:
    body = (
        "<text:p>a<draw:frame><draw:text-box><text:p>b</text:p></draw:text-box></draw:frame>c</text:p><text:p>"
        "<draw:frame><draw:image/><svg:title>A cat</svg:title><svg:desc>asleep</svg:desc></draw:frame></text:p>"
    )
    assert [text for _, text in blocks(file("odt", body))] == ["ac", "b", "(Picture: A cat: asleep)"]


CHART = (
    "<chart:chart><chart:title><text:p>Sales</text:p></chart:title><table:table><table:table-row>"
    "<table:table-cell/><table:table-cell><text:p>2025</text:p></table:table-cell></table:table-row><table:table-row>"
    "<table:table-cell><text:p>tea</text:p></table:table-cell><table:table-cell><text:p>7</text:p></table:table-cell>"
    "</table:table-row></table:table></chart:chart>"
)
FRAME = '<text:p>a<draw:frame><draw:object xlink:href="./Object 1"/><draw:image/></draw:frame></text:p>'


def test_a_chart_is_its_title_and_its_data(file: Any, content: Any) -> None:
    chart = {"Object 1/content.xml": content("odt", CHART)}
    expected = [("paragraph", "a"), ("paragraph", "Chart: Sales"), ("table", "|  | 2025 |\n|---|---|\n| tea | 7 |")]
    assert blocks(file("odt", FRAME, **chart)) == expected


def test_an_embedded_sheet_is_a_table_and_another_object_is_named(file: Any, content: Any) -> None:
    row = "<table:table-row><table:table-cell><text:p>7</text:p></table:table-cell></table:table-row>"
    sheet = {"Object 1/content.xml": content("ods", f"<table:table>{row}</table:table>")}
    assert blocks(file("odt", FRAME, **sheet))[1:] == [("table", "| 7 |\n|---|")]
    other = {"Object 1/content.xml": content("odt", "<text:p>x</text:p>")}
    assert blocks(file("odt", FRAME, **other))[1:] == [("paragraph", "(Embedded object, not read)")]


def test_a_formula_is_read_as_it_was_typed(file: Any) -> None:
    formula = '<math xmlns="http://www.w3.org/1998/Math/MathML"><mi>x</mi><annotation>x over 2</annotation></math>'
    assert blocks(file("odt", FRAME, **{"Object 1/content.xml": formula}))[1] == ("paragraph", "x over 2")


@pytest.mark.parametrize("damage", [{}, {"Object 1/content.xml": "<a>"}, {"Object 1/content.xml": "<!DOCTYPE a><a/>"}])
def test_an_object_that_cannot_be_read_is_named(file: Any, damage: dict[str, str]) -> None:
    document = parse(file("odt", FRAME, **damage))
    assert [block.text for block in document.blocks] == ["a"]
    assert document.metadata["unread"] == ["the object './Object 1'"]


def test_damaged_styles_and_metadata_do_not_take_the_text_along(file: Any) -> None:
    document = parse(file("odt", "<text:p>a</text:p>", **{"styles.xml": "<", "meta.xml": "<"}))
    assert [block.text for block in document.blocks] == ["a"]
    assert document.metadata["unread"] == ["its styles", "its metadata"]


META = (
    "<office:meta><dc:title>Tea</dc:title><meta:initial-creator>Ada</meta:initial-creator><dc:creator>Bo</dc:creator>"
    "<meta:keyword>a</meta:keyword><meta:keyword>b</meta:keyword><dc:date>2026-01-01</dc:date></office:meta>"
)


def test_title_and_metadata_are_kept_zipped_and_flat(file: Any, flat: Any, content: Any) -> None:
    meta = content("odt", "", more=META)
    for data in (file("odt", "<text:p>a</text:p>", **{"meta.xml": meta}), flat("odt", "<text:p>a</text:p>", META)):
        document = parse(data)
        assert document.title == "Tea"
        assert document.metadata == {"author": "Ada", "modified": "2026-01-01", "keywords": "a, b"}
    assert parse(file("odt", "<text:h>One</text:h>")).title == "One"


def test_pictures_of_a_flat_file_may_be_large(flat: Any) -> None:
    data = flat("odt", f"<text:p>a</text:p><office:binary-data>{'A' * 12_000_000}</office:binary-data>")
    assert blocks(data) == [("paragraph", "a")]


def test_a_file_refers_to_nothing_outside_of_it(file: Any, tmp_path: Any) -> None:
    (tmp_path / "content.xml").write_text("<a>secret</a>")
    body = f'<text:p>a<draw:frame><draw:object xlink:href="../../../../../..{tmp_path}"/></draw:frame></text:p>'
    assert blocks(file("odt", body)) == [("paragraph", "a")]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is empty"),
        (b"PK\x03\x04", "is corrupted or truncated"),
        (b"<html/>", "is not an OpenDocument text"),
        (b"<office", "is corrupted: its XML cannot be parsed"),
    ],
)
def test_an_error_names_the_file_and_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(DocParserError, match=rf"^x\.odt {reason}"):
        parse(data)


def test_an_encrypted_file_is_refused(file: Any) -> None:
    manifest = {"META-INF/manifest.xml": "<a><manifest:encryption-data/></a>"}
    with pytest.raises(DocParserError, match=r"^x\.odt is encrypted: save it without a password"):
        parse(file("odt", "<text:p>a</text:p>", **manifest))
