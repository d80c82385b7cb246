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
    """A block of a document, such as a paragraph, in reading order.

    Attributes:
        text: The text; a table is a Markdown pipe table.
        kind: The kind of block.
        page: The first page of the block, from 1; None for formats without pages.
        level: The level of a heading, from 1; 0 for other blocks.
        part: The file inside the document that contains the block: 'a.pdf', or 'scans.zip › a.pdf'. '' for the
            document's own blocks. `DocumentReader` sets it.
    """

    text: str
    kind: BlockKind = "paragraph"
    page: int | None = None
    level: int = 0
    part: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """A file inside a file: an attachment of a mail, a member of an archive, a scanned page.

    Attributes:
        name: The part's name, perhaps with folders. It is text from the file; never use it as a path. '' for the only
            file in a compressed file, which is named like the outer file without the last extension.
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
        content_hash: The SHA-256 of its bytes, in hex.
        title: The document's title; '' if it has none.
        metadata: Properties in the file, such as its author. `unread` names the parts that could not be read:
            `["chapter 3"]`.
        parts: The files in it for other parsers. `DocumentReader` reads each in a process with limits, and adds the
            blocks below the file's name or in place of a page. A parser returns parts only if its descriptor says so.
    """

    source: str
    blocks: tuple[Block, ...]
    content_hash: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class PageImage:
    """A page of a document as an image, with the position of a passage.

    Attributes:
        page: The number of the page, from 1.
        png: The image, as a PNG file.
        width, height: The image's size in pixels.
        boxes: The lines of the passage: left, top, right and bottom as fractions of the width and the height, from 0 to
            1. Empty if the passage is not on the page.
        has_text: True if the page has text. A scanned page has none, so passages read from its image have no boxes.
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
    """Reads one type of file. Parsers run in separate processes, or in threads with one instance each.

    `config_class` defines its settings; see `Configured`.
    """

    @abstractmethod
    def parse(self, data: bytes, *, source: str) -> Document:
        """Turn the bytes of a file into blocks.

        Raises:
            DocParserError: The file is empty, encrypted, damaged or has another type. The text names `source`.
        """

    def draw_page(self, data: bytes, *, page: int, passage: str, source: str) -> PageImage:  # noqa: ARG002
        """Draw the page that shows a passage. Set `ParserSpec.draws_pages` if a parser can do this.

        Args:
            data: The file.
            page: The page on which the passage begins, from 1. It may continue on later pages.
            passage: Text returned by `parse`, or part of it; '' for none.
            source: The file's name in errors.

        Raises:
            DocParserError: The page does not exist, or cannot be drawn.
        """
        raise DocParserError(f"{source} has no pages that can be drawn")


def shown_path(path: str) -> str:
    """Return a path or URL with invalid UTF-8 and invisible characters escaped, so that it is safe to send and show."""
    text = path.encode("utf-8", "backslashreplace").decode()
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
