from __future__ import annotations

import io
import zipfile
from typing import Any

import pytest

from jackfield.errors import DocParserError
from jackfield_epub.parser import EpubParser


def blocks(data: bytes) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in EpubParser().parse(data, source="x.epub").blocks]


def test_chapters_stand_in_the_order_of_the_spine(book: Any) -> None:
    chapters = {"z.xhtml": "<h1>One</h1><p>a&nbsp;b</p>", "a.xhtml": "<h2>Two</h2><ul><li>c</li></ul>"}
    assert blocks(book(chapters)) == [("heading", "One"), ("paragraph", "a b"), ("heading", "Two"), ("list", "- c")]


def test_title_and_metadata_are_kept(book: Any) -> None:
    document = EpubParser().parse(book(), source="x.epub")
    assert document.title == "Tea for two"
    assert document.metadata == {"chapters": 1, "unread": [], "author": "Ada, Bo"}


def test_without_a_title_the_first_heading_is_one(book: Any) -> None:
    assert EpubParser().parse(book(metadata=""), source="x.epub").title == "Tea"


@pytest.mark.parametrize(
    ("item", "contents"),
    [
        (
            'media-type="application/xhtml+xml" properties="nav"',
            "<nav><a href='my%20one.xhtml#x'>The beginning</a></nav>",
        ),
        (
            'media-type="application/x-dtbncx+xml"',
            "<ncx xmlns='http://www.daisy.org/z3986/2005/ncx/'><navMap><navPoint>"
            "<navLabel><text>The beginning</text></navLabel><content src='my%20one.xhtml'/></navPoint></navMap></ncx>",
        ),
    ],
)
def test_a_chapter_without_a_heading_has_that_of_the_contents(book: Any, item: str, contents: str) -> None:
    manifest = f'<item id="toc" href="toc.x" {item}/>'
    data = book({"my one.xhtml": "<p>a</p>", "two.xhtml": "<p>b</p>"}, manifest=manifest, **{"OEBPS/toc.x": contents})
    assert blocks(data) == [("heading", "The beginning"), ("paragraph", "a"), ("paragraph", "b")]


def test_the_first_name_of_a_chapter_in_the_contents_counts(book: Any) -> None:
    manifest = '<item id="toc" href="toc.x" media-type="application/xhtml+xml" properties="nav"/>'
    links = "".join(f"<a href='one.xhtml#{name}'>The {name}</a>" for name in ("beginning", "middle", "end"))
    data = book({"one.xhtml": "<p>a</p>"}, manifest=manifest, **{"OEBPS/toc.x": f"<nav>{links}</nav>"})
    assert blocks(data) == [("heading", "The beginning"), ("paragraph", "a")]


def test_the_table_of_contents_is_no_chapter(book: Any) -> None:
    contents = '<item id="n" href="n.xhtml" media-type="text/html" properties="nav"/><itemref idref="n"/>'
    data = book({"one.xhtml": "<p>a</p>"}, manifest=contents, **{"OEBPS/n.xhtml": "<nav>Contents</nav>"})
    assert blocks(data) == [("paragraph", "a")]


def test_a_damaged_table_of_contents_does_not_take_the_book_along(book: Any) -> None:
    contents = '<item id="n" href="n.xhtml" media-type="text/html" properties="nav"/>'
    assert blocks(book(manifest=contents, **{"OEBPS/n.xhtml": bytes(200)})) == blocks(book())


def test_a_chapter_that_is_missing_does_not_take_the_others_along(book: Any) -> None:
    data = book({"one.xhtml": "<p>a</p>", "two.xhtml": "<p>b</p>"}).replace(b"OEBPS/two.xhtml", b"OEBPS/tow.xhtml")
    document = EpubParser().parse(data, source="x.epub")
    assert [block.text for block in document.blocks] == ["a"]
    assert document.metadata["unread"] == ["the chapter OEBPS/two.xhtml"]


def test_a_file_is_read_once_however_many_items_name_a_place_in_it(book: Any) -> None:
    places = [f"one.xhtml#o{number}" for number in range(5)]
    manifest = "".join(
        f'<item id="{place}" href="{place}" media-type="application/xhtml+xml"/><itemref idref="{place}"/>'
        for place in places
    )
    document = EpubParser().parse(book({"one.xhtml": "<p>a</p>"}, manifest=manifest), source="x.epub")
    assert [block.text for block in document.blocks] == ["a"]
    assert document.metadata["chapters"] == 1


def test_a_name_in_the_book_leads_to_no_file_outside_of_it(book: Any, tmp_path: Any) -> None:
    (tmp_path / "secret.xhtml").write_text("<p>the secret</p>")
    manifest = (
        f'<item id="s" href="../../../../../..{tmp_path}/secret.xhtml" media-type="text/html"/><itemref idref="s"/>'
    )
    document = EpubParser().parse(book(manifest=manifest), source="x.epub")
    assert [block.text for block in document.blocks] == ["Tea", "Green tea."]
    assert len(document.metadata["unread"]) == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: data[:-40], "is corrupted or truncated"),
        (lambda data: data.replace(b"META-INF/container.xml", b"META-INF/containes.xml"), "is not an e-book"),
        (lambda data: data.replace(b"OEBPS/one.xhtml", b"OEBPS/two.xhtml"), "is corrupted: none of its chapters"),
        (lambda data: data.replace(b"OEBPS/book.opf", b"OEBPS/bock.opf"), "is corrupted: 'OEBPS/book.opf' is missing"),
    ],
)
def test_an_error_names_the_file_and_the_reason(book: Any, change: Any, reason: str) -> None:
    with pytest.raises(DocParserError, match=rf"^my book\.epub {reason}"):
        EpubParser().parse(change(book()), source="my book.epub")


def test_a_book_with_copy_protection_is_refused_and_one_with_hidden_fonts_is_read(book: Any) -> None:
    def locked(path: str) -> bytes:
        entry = f'<enc:CipherReference xmlns:enc="http://www.w3.org/2001/04/xmlenc#" URI="{path}"/>'
        return bytes(book(**{"META-INF/encryption.xml": f"<encryption>{entry}</encryption>"}))

    with pytest.raises(DocParserError, match=r"^x\.epub is encrypted: copy-protected books"):
        blocks(locked("OEBPS/one.xhtml"))
    assert blocks(locked("OEBPS/font.otf"))


def test_a_chapter_with_a_heading_keeps_it_and_gets_no_other(book: Any) -> None:
    item = '<item id="toc" href="toc.x" media-type="application/xhtml+xml" properties="nav"/>'
    contents = "<nav><a href='one.xhtml'>The beginning</a></nav>"
    data = book({"one.xhtml": "<p>a</p><h2>Tea</h2><p>b</p>"}, manifest=item, **{"OEBPS/toc.x": contents})
    assert blocks(data) == [("paragraph", "a"), ("heading", "Tea"), ("paragraph", "b")]


def test_a_container_without_a_book_is_damaged() -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as book:
        book.writestr("META-INF/container.xml", "<container><rootfiles><rootfile/></rootfiles></container>")
    with pytest.raises(DocParserError, match=r"x\.epub is corrupted: the location of the book's content is missing"):
        EpubParser().parse(data.getvalue(), source="x.epub")
