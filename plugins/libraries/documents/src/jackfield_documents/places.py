"""Where each block stands in its document: its page, its headings, its offsets, and the cells of a table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from jackfield.retrieval import Block, Document

BETWEEN_BLOCKS = "\n\n"
_HEADING_CHARS = 200  # of a heading that is carried along with everything below it
_DEEPEST = 9  # levels, as Word has; a page on the web may claim any, and each chunk carries all headings above it
_PIPE = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, slots=True)
class Place:
    """A block, and where it stands.

    Attributes:
        block: The block.
        page: The page it begins on: its own, or that of the block before it; None for formats without pages.
        headings: The headings it stands under, outermost first, of nine levels at most; a heading stands under itself.
        start: The offset of its text in `text_of` the document, in characters; it ends at `start + len(block.text)`.
    """

    block: Block
    page: int | None
    headings: tuple[str, ...]
    start: int


def text_of(document: Document) -> str:
    """The text of a document: its blocks, with an empty line between them."""
    return BETWEEN_BLOCKS.join(block.text for block in filter(_has_text, document.blocks))


def places_of(document: Document) -> Iterator[Place]:
    """Where the blocks of a document stand, in order; blocks without text are left out."""
    page = next((block.page for block in document.blocks if block.page is not None), None)
    path: tuple[tuple[int, str], ...] = ()
    headings: tuple[str, ...] = ()
    start = 0
    for block in filter(_has_text, document.blocks):
        page = page if block.page is None else block.page
        if block.kind == "heading":
            path = _path_to(block, path)
            headings = tuple(text for _, text in path)
        yield Place(block, page, headings, start)
        start += len(block.text) + len(BETWEEN_BLOCKS)


def _has_text(block: Block) -> bool:
    return bool(block.text.strip())


def _path_to(heading: Block, path: tuple[tuple[int, str], ...]) -> tuple[tuple[int, str], ...]:
    level = min(max(1, heading.level), _DEEPEST)
    return (*(entry for entry in path if entry[0] < level), (level, heading.text.strip()[:_HEADING_CHARS]))


def cells_of(block: Block) -> list[list[str]]:
    """The cells of a table, row by row, the header first; [] for a block that is not a table."""
    if block.kind != "table":
        return []
    header, *rest = block.text.split("\n")
    return [_cells(line) for line in (header, *rest[1:])]  # the second line is the rule


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip().replace("\\|", "|").replace("<br>", "\n") for cell in _PIPE.split(inner)]
