"""Parser for zip archives."""

from __future__ import annotations

from typing import ClassVar

from jackfield.errors import DocParserError
from jackfield.retrieval import Document, Parser
from jackfield_archive.members import Member, document_of
from jackfield_documents import Archive


class ZipParser(Parser):
    """Parses zip archives into a list of files. Each file is left to its own parser.

    Nothing is written to disk. Damaged members are listed in `metadata["unread"]`.
    """

    name: ClassVar[str] = "zip"

    def parse(self, data: bytes, *, source: str) -> Document:
        """List and unpack the files in an archive.

        Raises:
            DocParserError: The file is empty, encrypted, damaged, not a zip file, or too large when unpacked.
        """
        archive = Archive(data, source=source)
        members = [
            _unpack(archive, name, size) for name, size in archive.names.items() if not name.endswith(("/", "\\"))
        ]
        return document_of(members, source=source)


def _unpack(archive: Archive, name: str, size: int) -> Member:
    try:
        return Member(_decode_name(name), size, archive.read(name))
    except DocParserError:  # the others are worth reading
        return Member(_decode_name(name), size, None)


def _decode_name(name: str) -> str:
    """Recover a UTF-8 name that was stored without the UTF-8 flag and therefore decoded as code page 437."""
    try:
        return name.encode("cp437").decode()
    except UnicodeError:
        return name
