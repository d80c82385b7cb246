"""Parser for OpenDocument text documents."""

from __future__ import annotations

from typing import ClassVar

from jackfield.errors import DocParserError
from jackfield.retrieval import Document, Parser
from jackfield_opendocument.names import TEXT
from jackfield_opendocument.package import Package
from jackfield_opendocument.reader import Reader
from jackfield_opendocument.tables import Spare


class OdtParser(Parser):
    """Parses text documents in reading order. Tables of contents and deleted text are dropped.

    Blocks have page numbers if the application recorded page breaks when saving the file. Unreadable embedded objects
    are listed in `metadata["unread"]`.
    """

    name: ClassVar[str] = "odt"

    def parse(self, data: bytes, *, source: str) -> Document:
        """Parse a text document into blocks.

        Raises:
            DocParserError: The file is empty, encrypted, damaged, not an OpenDocument text, too large when unpacked, or
                without text.
        """
        package = Package(data, source=source, kind="text")
        has_pages = next(package.body.iter(TEXT + "soft-page-break"), None) is not None
        reader = Reader(package, Spare(package.body), page=1 if has_pages else None)
        reader.read(package.body)
        blocks = reader.finish()
        if not blocks:
            raise DocParserError(f"{source} contains no text: it may contain only images")
        title, metadata = package.metadata()
        headings = [block for block in blocks if block.kind == "heading" and block.level == 1]
        title = title or (headings[0].text if headings else "")
        return Document(source, tuple(blocks), content_hash="", title=title, metadata=metadata)
