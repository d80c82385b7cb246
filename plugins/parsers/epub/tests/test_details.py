"""The spine, the manifest, the contents and the metadata of e-books, each branch alone and in its order."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.errors import DocParserError
from jackfield.retrieval import Document
from jackfield_epub.parser import EpubParser
from jackfield_epub.plugin import parsers

NAV = '<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="{}"/>'
NCX = '<item id="ncx" href="toc/toc.ncx" media-type="application/x-dtbncx+xml"/>'


def read(data: bytes) -> Document:
    return EpubParser().parse(data, source="x.epub")


def texts(data: bytes) -> list[str]:
    return [block.text for block in read(data).blocks]


def item(name: str, kind: str, properties: str = "") -> str:
    return f'<item id="{name}" href="{name}" media-type="{kind}" properties="{properties}"/><itemref idref="{name}"/>'


@pytest.mark.parametrize(
    ("kind", "properties", "is_read"),
    [
        ("application/xhtml+xml", "", True), ("text/html", "svg", True), ("application/x-dtbook+xml", "", True),
        ("text/x-oeb1-document", "", True), ("image/svg+xml", "", False), ("text/css", "", False), ("", "", False),
        ("application/xhtml+xml", "scripted nav", False), ("application/xhtml+xml", "navigation", True),
    ],
)  # fmt: skip
def test_pages_of_the_spine_are_chapters_and_the_contents_are_not(
    book: Any, kind: str, properties: str, is_read: bool
) -> None:
    data = book(manifest=item("b.x", kind, properties), **{"OEBPS/b.x": "<p>b</p>"})
    assert texts(data) == [*(["b"] if is_read else []), "Tea", "Green tea."]
    assert read(data).metadata["chapters"] == (2 if is_read else 1)


def test_what_only_the_manifest_lists_is_not_read_and_an_unknown_chapter_is_passed_over(book: Any) -> None:
    manifest = '<item id="b" href="b.x" media-type="text/html"/><itemref idref="gone"/><itemref/>'
    assert texts(book(manifest=manifest, **{"OEBPS/b.x": "<p>b</p>"})) == ["Tea", "Green tea."]


def test_chapters_come_in_the_order_of_the_spine_and_each_once(book: Any) -> None:
    manifest = '<item id="0" href="zero.xhtml" media-type="text/html"/>'
    spine = "".join(f'<itemref idref="{name}"/>' for name in ("b.xhtml", "0", "a.xhtml", "b.xhtml"))
    for name in ("a.xhtml", "b.xhtml"):
        manifest += f'<item id="{name}" href="{name}" media-type="text/html"/>'
    pages = {f"OEBPS/{name}.xhtml": f"<p>{name}</p>" for name in ("zero", "a", "b")}
    data = book({}, manifest=manifest + spine, **pages)
    assert texts(data) == ["b", "zero", "a"]


NAMED = {"a.xhtml": "<p>a</p>", "b.xhtml": "<p>b</p>"}


def ncx(*points: tuple[str, str]) -> str:
    inner = "".join(
        f"<navPoint><navLabel><text>{name}</text></navLabel><content src='{target}'/></navPoint>"
        for name, target in points
    )
    return f"<ncx><navMap>{inner}<navPoint><navLabel><text>no target</text></navLabel></navPoint></navMap></ncx>"


def test_a_number_sign_in_the_name_of_a_file_is_no_fragment(book: Any) -> None:
    manifest = '<item id="b" href="c%23.x" media-type="text/html"/><itemref idref="b"/>'
    assert texts(book(manifest=manifest, **{"OEBPS/c#.x": "<p>b</p>"})) == ["b", "Tea", "Green tea."]


def test_a_point_of_the_contents_without_a_name_is_passed_over(book: Any) -> None:
    contents = "<ncx><navMap><navPoint><content src='../zero.xhtml'/></navPoint></navMap></ncx>"
    assert texts(book(manifest=NCX, **{"OEBPS/toc/toc.ncx": contents})) == ["Tea", "Green tea."]


@pytest.mark.parametrize(
    ("manifest", "files", "expected"),
    [
        (NAV.format("nav"), {"nav.xhtml": "<a href='b.xhtml#x'> The \n<i>second</i> </a><a>x</a>"},
         ["a", "The second", "b"]),
        (NAV.format(""), {"nav.xhtml": "<a href='b.xhtml'>B</a>"}, ["a", "b"]),
        (NCX, {"toc/toc.ncx": ncx(("B", "../b.xhtml"), ("A", "../a.xhtml#1"), ("A2", "../a.xhtml"))},
         ["A", "a", "B", "b"]),
        (NCX, {"toc/toc.ncx": ncx(("B", "b.xhtml"))}, ["a", "b"]),
        (NCX, {"toc/toc.ncx": ncx(("", "../b.xhtml"))}, ["a", "b"]),
        (NCX + NAV.format("nav"), {"toc/toc.ncx": ncx(("1", "../a.xhtml")), "nav.xhtml": "<a href='a.xhtml'>2</a>"},
         ["1", "a", "b"]),
        (NAV.format("nav") + NCX, {"toc/toc.ncx": ncx(("1", "../a.xhtml")), "nav.xhtml": "<a href='a.xhtml'>2</a>"},
         ["2", "a", "b"]),
        (NCX, {}, ["a", "b"]),
    ],
)  # fmt: skip
def test_chapters_have_the_names_of_the_contents(
    book: Any, manifest: str, files: dict[str, str], expected: list[str]
) -> None:
    data = book(NAMED, manifest=manifest, **{f"OEBPS/{name}": text for name, text in files.items()})
    assert texts(data) == expected
    assert [block.level for block in read(data).blocks] == [0 if text in "ab" else 1 for text in expected]


def test_an_empty_chapter_has_no_heading_of_the_contents(book: Any) -> None:
    nav = {"OEBPS/nav.xhtml": "<a href='a.xhtml'>A</a><a href='b.xhtml'>B</a>"}
    assert texts(book({"a.xhtml": "<img/>", "b.xhtml": "<p>b</p>"}, manifest=NAV.format("nav"), **nav)) == ["B", "b"]


def test_the_facts_about_a_book_are_joined_and_the_first_title_counts(book: Any) -> None:
    metadata = (
        "<dc:title> </dc:title><dc:title>The\n book</dc:title><dc:title>Subtitle</dc:title>"
        "<dc:language>en</dc:language>"
        "<dc:publisher>P</dc:publisher><dc:date>2026</dc:date><dc:description>d <b>e</b></dc:description>"
        "<dc:subject>s</dc:subject><dc:subject>t</dc:subject><dc:rights>r</dc:rights><dc:creator/>"
    )
    document = read(book(metadata=metadata))
    assert document.title == "The book"
    assert document.metadata == {
        "chapters": 1, "unread": [], "language": "en", "publisher": "P", "published": "2026", "description": "d e",
        "subject": "s, t",
    }  # fmt: skip


def test_a_book_without_text_and_one_with_damaged_chapters_are_refused(book: Any) -> None:
    with pytest.raises(DocParserError, match=r"^x\.epub contains no text: it may contain only images"):
        read(book({"a.xhtml": "<img/>"}))
    with pytest.raises(DocParserError, match=r"^x\.epub contains no text: it may contain only images"):
        read(book({}))
    manifest = "".join(item(name, "text/html") for name in ("gone.x", "lost.x"))
    with pytest.raises(DocParserError, match=r"^x\.epub is corrupted: none of its chapters can be read"):
        read(book({"a.xhtml": "<img/>"}, manifest=manifest))
    document = read(book(manifest=manifest))
    assert document.metadata["unread"] == ["the chapter OEBPS/gone.x", "the chapter OEBPS/lost.x"]
    assert document.metadata["chapters"] == 3


@pytest.mark.parametrize(
    ("uri", "is_refused"),
    [
        ("OEBPS/one.xhtml", True),
        ("OEBPS/./one.xhtml#x", True),
        ("OEBPS/%6fne.xhtml", True),
        ("OEBPS/b.x", True),
        ("one.xhtml", False),
    ],
)
def test_a_book_is_encrypted_if_one_of_its_chapters_is(book: Any, uri: str, is_refused: bool) -> None:
    entries = "".join(f'<CipherReference URI="{one}"/>' for one in ("OEBPS/font.otf", uri)) + "<CipherReference/>"
    second = {"manifest": item("b.x", "text/html"), "OEBPS/b.x": "<p>b</p>"}
    data = book(**second, **{"META-INF/encryption.xml": f"<encryption>{entries}</encryption>"})
    if is_refused:
        with pytest.raises(DocParserError, match=r"^x\.epub is encrypted"):
            read(data)
    else:
        assert texts(data) == ["b", "Tea", "Green tea."]


def test_the_first_book_that_the_container_names_is_read(book: Any) -> None:
    data = book().replace(b"OEBPS/book.opf", b"OEBPS/bo%6f.op")
    with pytest.raises(DocParserError, match="is missing"):
        read(data)


def test_files_are_recognised_by_each_of_these_extensions() -> None:
    assert {spec.name: " ".join(spec.extensions) for spec in parsers()} == {
        "epub": "epub",
    }


def test_files_are_recognised_by_each_of_these_media_types() -> None:
    assert {spec.name: list(spec.media_types) for spec in parsers()} == {
        "epub": [
            "application/epub+zip",
        ],
    }
