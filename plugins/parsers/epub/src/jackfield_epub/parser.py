"""Parse an e-book into a document."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import unquote

from jackfield.errors import DocParserError
from jackfield.retrieval import Block, Document, Parser
from jackfield_documents import Archive
from jackfield_markup import Element, blocks_of, xhtml_tree

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_PAGES = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml", "text/x-oeb1-document")
_CONTENTS = "application/x-dtbncx+xml"
_STATED = {
    "title": "title",
    "creator": "author",
    "language": "language",
    "publisher": "publisher",
    "date": "published",
    "description": "description",
    "subject": "subject",
}


@dataclass(frozen=True, slots=True)
class _Item:
    """An entry in a book's manifest."""

    path: str
    media_type: str
    properties: str

    @property
    def is_navigation(self) -> bool:
        """True for the navigation document of EPUB 3."""
        return "nav" in self.properties.split()

    @property
    def is_chapter(self) -> bool:
        """True for a page of content."""
        return self.media_type in _PAGES and not self.is_navigation

    @property
    def lists_chapters(self) -> bool:
        """True for a table of contents."""
        return self.is_navigation or self.media_type == _CONTENTS


class EpubParser(Parser):
    """Parses e-books chapter by chapter, in spine order.

    Unreadable chapters are listed in `metadata["unread"]`.
    """

    name: ClassVar[str] = "epub"

    def parse(self, data: bytes, *, source: str) -> Document:
        """Parse a book into blocks.

        Raises:
            DocParserError: The file is empty, encrypted, damaged, not an e-book, too large when unpacked, or without
                text.
        """
        archive = Archive(data, source=source)
        path = _path_of_book(archive, source)
        book = xhtml_tree(archive.read(path), source=source)
        items = _manifest(book, posixpath.dirname(path))
        # Items that differ only in the fragment are the same file.
        chapters = list(dict.fromkeys(item.path for item in map(items.get, _spine(book)) if item and item.is_chapter))
        _check_open(archive, set(chapters), source)
        blocks, unreadable = _read(archive, chapters, _contents(archive, items.values(), source), source)
        if not blocks:
            raise DocParserError(f"{source} {_why_nothing(unreadable)}")
        title, stated = _stated(book)
        metadata = {"chapters": len(chapters), "unread": unreadable, **stated}
        return Document(source, tuple(blocks), content_hash="", title=title or _heading(blocks), metadata=metadata)


def _why_nothing(unreadable: Collection[str]) -> str:
    if unreadable:
        return "is corrupted: none of its chapters can be read"
    return "contains no text: it may contain only images"


def _read(
    archive: Archive, chapters: Iterable[str], names: Mapping[str, str], source: str
) -> tuple[list[Block], list[str]]:
    """Return the blocks of the chapters, and a list of unreadable chapters."""
    blocks: list[Block] = []
    unreadable: list[str] = []
    for path in chapters:
        try:
            blocks += _chapter(archive.read(path), names.get(path, ""), source)
        except DocParserError:  # the other chapters are still worth reading
            unreadable.append(f"the chapter {path}")
    return blocks, unreadable


def _path_of_book(archive: Archive, source: str) -> str:
    if _CONTAINER not in archive.names:
        raise DocParserError(f"{source} is not an e-book: its extension may be wrong")
    for entry in xhtml_tree(archive.read(_CONTAINER), source=source).iter("rootfile"):
        if path := entry.get("full-path"):
            return _path("", path)
    raise DocParserError(f"{source} is corrupted: the location of the book's content is missing")


def _manifest(book: Element, folder: str) -> dict[str, _Item]:
    return {
        entry.get("id", ""): _Item(
            _path(folder, entry.get("href", "")), entry.get("media-type", ""), entry.get("properties", "")
        )
        for entry in book.iter("item")
    }


def _spine(book: Element) -> list[str]:
    """Return the ids of the chapters in reading order, without duplicates."""
    return list(dict.fromkeys(entry.get("idref") or "" for entry in book.iter("itemref")))


def _check_open(archive: Archive, paths: set[str], source: str) -> None:
    """Reject a book with encrypted text. Encrypted fonts do not matter."""
    if _ENCRYPTION in archive.names:
        for entry in xhtml_tree(archive.read(_ENCRYPTION), source=source).iter("cipherreference"):
            if _path("", entry.get("URI") or "") in paths:
                raise DocParserError(f"{source} is encrypted: copy-protected books cannot be read")


def _contents(archive: Archive, items: Iterable[_Item], source: str) -> Mapping[str, str]:
    """Return chapter names from the tables of contents, by path. The first name for a chapter wins."""
    names: dict[str, str] = {}
    for item in items:
        if item.path in archive.names and item.lists_chapters:
            folder = posixpath.dirname(item.path)
            for target, name in _entries(archive.read, item, source):
                names.setdefault(_path(folder, target), name)
    return names


def _entries(read: Callable[[str], bytes], item: _Item, source: str) -> Iterable[tuple[str, str]]:
    """Return the targets and names in a table of contents, or nothing if it is unreadable."""
    try:
        tree = xhtml_tree(read(item.path), source=source)
    except DocParserError:  # a book can be read without it
        return ()
    return _links(tree) if item.is_navigation else _points(tree)


def _links(tree: Element) -> Iterator[tuple[str, str]]:
    for link in tree.iter("a"):
        yield link.get("href") or "", _line(link)


def _points(tree: Element) -> Iterator[tuple[str, str]]:
    for point in tree.iter("navpoint"):
        content, label = point.find("content"), point.find("navlabel")
        if content is not None and label is not None:
            yield content.get("src") or "", _line(label)


def _chapter(data: bytes, name: str, source: str) -> Iterator[Block]:
    blocks = list(blocks_of(xhtml_tree(data, source=source)))
    if blocks and name and not any(block.kind == "heading" for block in blocks):
        yield Block(name, kind="heading", level=1)
    yield from blocks


def _stated(book: Element) -> tuple[str, dict[str, str]]:
    """Return the title and metadata declared in a book."""
    found: dict[str, list[str]] = {}
    for metadata in book.iter("metadata"):
        for entry in metadata.iter(*_STATED):
            if text := _line(entry):
                found.setdefault(_STATED[entry.tag], []).append(text)
    title, *_ = found.pop("title", [""])
    return title, {name: ", ".join(texts) for name, texts in found.items()}


def _heading(blocks: list[Block]) -> str:
    return next((block.text for block in blocks if block.kind == "heading"), "")


def _path(folder: str, reference: str) -> str:
    """Resolve a reference to a name in the zip file."""
    return posixpath.normpath(posixpath.join(folder, unquote(reference.partition("#")[0])))


def _line(element: Element) -> str:
    return " ".join("".join(element.itertext()).split())
