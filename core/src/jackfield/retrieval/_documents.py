"""Documents and their parsers. Parsers run in separate processes, so this module imports little."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from jackfield.config import Configured
from jackfield.errors import DocParserError
from jackfield.messages import basename_of

BlockKind = Literal["heading", "paragraph", "list", "table", "code"]


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a document, such as a paragraph. Blocks are in reading order.

    Attributes:
        text: The text. Tables are Markdown pipe tables.
        kind: The kind of block.
        page: The first page of the block, counted from 1, or None for formats without pages.
        level: The level of a heading, counted from 1, or 0 for other blocks.
        part: The file inside the document that contains the block, such as 'a.pdf' or 'scans.zip › a.pdf', or '' for
            the document's own blocks. `DocumentReader` sets it.
    """

    text: str
    kind: BlockKind = "paragraph"
    page: int | None = None
    level: int = 0
    part: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """A file inside a file, such as an email attachment, an archive member or a scanned page.

    Attributes:
        name: The part's name, possibly with folders. It is text from the file, so never use it as a path. '' for the
            only file in a compressed file, which takes the outer file's name without the last extension.
        data: The part's content.
        page: For an image of a page, the page of the outer file. The part's blocks replace those of this page.
    """

    name: str
    data: bytes
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed document.

    Attributes:
        source: The document's path or URL.
        blocks: The document's text, in order.
        content_hash: The SHA-256 hash of the file's bytes, in hex.
        title: The document's title, or '' if it has none.
        metadata: Properties stored in the file, such as its author. `unread` lists the parts that could not be read:
            `["chapter 3"]`.
        parts: Embedded files for other parsers. `DocumentReader` reads each in a process with limits, and adds the
            blocks below the file's name or in place of a page. Parsers return parts only if their descriptor says so.
    """

    source: str
    blocks: tuple[Block, ...]
    content_hash: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class PageImage:
    """An image of a document's page, with the position of a passage.

    Attributes:
        page: The page number, counted from 1.
        png: The image, as a PNG file.
        width, height: The image's size in pixels.
        boxes: The passage's lines: left, top, right and bottom as fractions of the width and height, from 0 to 1. Empty
            if the passage is not on the page.
        has_text: True if the page contains text. A scanned page has none, so passages read from its image have no
            boxes.
    """

    page: int
    png: bytes
    width: int
    height: int
    boxes: tuple[tuple[float, float, float, float], ...] = ()
    has_text: bool = True


def unread_parts(document: Document) -> list[str]:
    """Return a line for each unreadable part of a document, for people and models."""
    parts = document.metadata.get("unread", ())
    name = shown_path(basename_of(document.source))
    return [f"{name}: {part} could not be read" for part in parts]


class Parser(Configured, ABC):
    """Parser for one type of file. Parsers run in separate processes, or in threads with one instance each.

    `config_class` defines the settings; see `Configured`.
    """

    @abstractmethod
    def parse(self, data: bytes, *, source: str) -> Document:
        """Parse a file's bytes into blocks.

        Raises:
            DocParserError: The file is empty, encrypted, damaged or of another type. The message names `source`.
        """

    def draw_page(self, data: bytes, *, page: int, passage: str, source: str) -> PageImage:  # noqa: ARG002
        """Render the page that contains a passage. A parser that supports this must set `ParserSpec.draws_pages`.

        Args:
            data: The file's bytes.
            page: The page on which the passage starts, counted from 1. It may continue on later pages.
            passage: Text returned by `parse`, or part of it, or '' for none.
            source: The file's name, for error messages.

        Raises:
            DocParserError: The page does not exist, or cannot be rendered.
        """
        raise DocParserError(f"{source} has no pages that can be drawn")


def shown_path(path: str) -> str:
    """Escape invalid UTF-8 and invisible characters in a path or URL, so that it is safe to send and display."""
    text = path.encode("utf-8", "backslashreplace").decode()
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
