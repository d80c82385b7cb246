"""Locate blocks in a document by page, headings and offset, and read table cells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from jackfield.messages import PART_SEPARATOR
from jackfield.retrieval import Block, Chunk, Document

BETWEEN_BLOCKS = "\n\n"
_HEADING_CHARS = 200  # every chunk below a heading repeats it
_MAX_LEVEL = 9  # as in Word; web pages may claim any level, and chunks repeat all their headings
_PIPE = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, slots=True)
class Place:
    """A block and its position in the document.

    Attributes:
        block: The block.
        page: The page on which the block begins, else that of the previous block in its file. None for formats without
            pages.
        headings: The headings above the block, outermost first, at most nine. A heading includes itself.
        start: The offset of the block's text within `text_of` the document, in characters.
    """

    block: Block
    page: int | None
    headings: tuple[str, ...]
    start: int


def text_of(document: Document) -> str:
    """Return a document's text: its blocks, separated by blank lines."""
    return BETWEEN_BLOCKS.join(block.text for block in document.blocks if block.text.strip())


def names_of_part(part: str) -> list[str]:
    """Return the names on a part's path, outermost first, or [] for the document itself."""
    return part.split(PART_SEPARATOR) if part else []


def headings_in_part(chunk: Chunk) -> tuple[str, ...]:
    """Return a chunk's headings without the part names they begin with."""
    names = tuple(names_of_part(chunk.part))
    return chunk.headings[len(names) :] if chunk.headings[: len(names)] == names else chunk.headings


def places_of(document: Document) -> Iterator[Place]:
    """Yield a document's blocks that have text, in order, with their positions."""
    first_pages: dict[str, int] = {}
    for block in document.blocks:
        if block.page is not None:
            first_pages.setdefault(block.part, block.page)
    part, page = "", first_pages.get("")
    path: list[tuple[int, str]] = []  # levels and texts of the current headings
    headings: tuple[str, ...] = ()
    start = 0
    for block in document.blocks:
        if not block.text.strip():
            continue
        if block.part != part:
            part, page = block.part, first_pages.get(block.part)
            # The names of the part and of those around it are the first headings.
            path = [heading for heading in path if heading[0] <= len(names_of_part(part))]
            headings = tuple(text for _, text in path)
        page = page if block.page is None else block.page
        if block.kind == "heading":
            level = min(max(1, block.level), _MAX_LEVEL)
            path = [heading for heading in path if heading[0] < level]
            path.append((level, block.text.strip()[:_HEADING_CHARS]))
            headings = tuple(text for _, text in path)
        yield Place(block, page, headings, start)
        start += len(block.text) + len(BETWEEN_BLOCKS)


def cells_of(block: Block) -> list[list[str]]:
    """Return a table's cells row by row, header first, or [] if the block is not a table."""
    if block.kind != "table":
        return []
    header, *rest = block.text.split("\n")
    rows = []
    for line in (header, *rest[1:]):  # the second line is the rule
        inner = line.strip().removeprefix("|").removesuffix("|")
        rows.append([cell.strip().replace("\\|", "|").replace("<br>", "\n") for cell in _PIPE.split(inner)])
    return rows
