"""Parse an RTF file into a document."""

from __future__ import annotations

from typing import ClassVar

from jackfield.errors import DocParserError
from jackfield.retrieval import Document, Parser
from jackfield_rtf.reader import Reader
from jackfield_rtf.tokens import tokens_of

_MAGIC = b"{\\rtf"


class RtfParser(Parser):
    """Parses RTF as written by Word, WordPad and LibreOffice. Hidden and deleted text is dropped."""

    name: ClassVar[str] = "rtf"

    def parse(self, data: bytes, *, source: str) -> Document:
        """Parse a file into blocks.

        Raises:
            DocParserError: The file is empty, is not RTF, or has no text.
        """
        if not data.strip():
            raise DocParserError(f"{source} is empty")
        start = data[:64].find(_MAGIC)
        if start < 0:
            raise DocParserError(f"{source} is not RTF: its extension may be wrong")
        reader = Reader(spare_chars=2**20 + len(data))
        for token in tokens_of(data[start:]):
            reader.read(token)
        blocks = reader.finish()
        if not blocks:
            raise DocParserError(f"{source} contains no text: it may contain only images")
        title = reader.stated.get("title", "")
        headings = [block.text for block in blocks if block.kind == "heading" and block.level == 1]
        metadata = {name: text for name, text in reader.stated.items() if name != "title"}
        return Document(
            source, tuple(blocks), content_hash="", title=title or next(iter(headings), ""), metadata=metadata
        )
