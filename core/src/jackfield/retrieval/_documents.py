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
    """A block in a document, such as a paragraph. Blocks are in reading order.

    Attributes:
        text: The block's text. Tables are written as Markdown pipe tables.
        kind: The block's kind.
        page: The page on which the block starts, counted from 1, or None for formats without pages.
        level: The heading level, counted from 1, or 0 if the block is not a heading.
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
    """A file embedded in another file, such as an email attachment, an archive member or a scanned page.

    Attributes:
        name: The part's name, possibly with directories. The name comes from the file, so never use it as a path. If
            '', the part is the only file in a compressed file, and its name is the outer file's name without the last
            extension.
        data: The part's content.
        page: If the part is a page image, the number of that page in the outer file. The part's blocks replace the
            blocks of that page.
    """

    name: str
    data: bytes
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed document.

    Attributes:
        source: The document's path or URL.
        blocks: The document's blocks, in reading order.
        content_hash: The SHA-256 hash of the file's bytes, in hex.
        title: The document's title, or '' if it has none.
        metadata: Properties stored in the file, such as the author. `unread` lists the parts that could not be read,
            such as `["chapter 3"]`.
        parts: Embedded files for other parsers. `DocumentReader` reads each part in a process with resource limits, and
            adds its blocks below the file's name or in place of a page. Parsers only return parts if their descriptor
            says so.
    """

    source: str
    blocks: tuple[Block, ...]
    content_hash: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class PageImage:
    """An image of a page in a document, with the position of a passage.

    Attributes:
        page: The page number, counted from 1.
        png: The image as a PNG file.
        width, height: The image's size in pixels.
        boxes: The bounding box of each line in the passage: left, top, right and bottom as fractions of the width and
            height, from 0 to 1. If the passage is not on the page, the tuple is empty.
        has_text: True if the page contains text. Scanned pages do not, so passages read from their images have no
            boxes.
    """

    page: int
    png: bytes
    width: int
    height: int
    boxes: tuple[tuple[float, float, float, float], ...] = ()
    has_text: bool = True


def unread_parts(document: Document) -> list[str]:
    """Return a line about each unreadable part of a document, for people and models."""
    parts = document.metadata.get("unread", ())
    name = shown_path(basename_of(document.source))
    return [f"{name}: {part} could not be read" for part in parts]


class Parser(Configured, ABC):
    """Parser for one file type. Parsers run in separate processes, or in threads with one instance each.

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
            page: The page on which the passage starts, counted from 1. The passage may continue on later pages.
            passage: All or part of the text returned by `parse`, or '' for no passage.
            source: The file's name, for error messages.

        Raises:
            DocParserError: The page does not exist or cannot be rendered.
        """
        raise DocParserError(f"{source} has no pages that can be rendered")


def shown_path(path: str) -> str:
    """Escape invalid UTF-8 and invisible characters in a path or URL to make it safe to send and display."""
    text = path.encode("utf-8", "backslashreplace").decode()
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
