"""Plain text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jackfield.retrieval import Block, Document, Parser
from jackfield_documents import decode

_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")
_TITLE_CHARS = 120


class TextParser(Parser):
    """Reads plain text: a blank line ends a paragraph, lines stay as they are, a form feed begins a page."""

    def parse(self, data: bytes, *, source: str) -> Document:
        """Turn a text file into paragraphs.

        Raises:
            DocParserError: The file is empty, binary, or in an unknown encoding.
        """
        decoded = decode(data, source=source)
        return Document(
            source,
            tuple(_blocks(decoded.text)),
            content_hash="",
            title=_title(decoded.text),
            metadata={"encoding": decoded.encoding},
        )


def _blocks(text: str) -> Iterator[Block]:
    pages = text.split("\f")
    for number, page in enumerate(pages, start=1):
        for paragraph in _BLANK_LINES.split(page.strip("\n")):
            if paragraph.strip():
                yield Block(paragraph.rstrip(), page=number if len(pages) > 1 else None)


def _title(text: str) -> str:
    first = text.strip().partition("\n")[0].strip()
    return first if len(first) <= _TITLE_CHARS else ""
