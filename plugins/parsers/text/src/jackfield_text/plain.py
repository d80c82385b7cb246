"""Parser for plain text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jackfield.retrieval import Block, Document, Parser
from jackfield_documents import decode

_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")
_TITLE_CHARS = 120


class TextParser(Parser):
    """Parses plain text. Blank lines separate paragraphs, line breaks are kept, and a form feed starts a new page."""

    def parse(self, data: bytes, *, source: str) -> Document:
        """Parse a text file into paragraphs.

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
