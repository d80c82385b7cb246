"""Parser for tar archives and compressed files."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import zlib
from collections.abc import Iterator
from typing import BinaryIO, ClassVar

from jackfield.errors import DocParserError
from jackfield.retrieval import Document, Parser
from jackfield_archive.members import (
    ALWAYS_ALLOWED_BYTES,
    MAX_ENTRIES,
    MAX_RATIO,
    MAX_UNPACKED,
    Member,
    document_of,
)

_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz"}
_FAULTS = (
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    OSError,
    OverflowError,
    UnicodeError,
    ValueError,
)


class TarParser(Parser):
    """Parses tar archives, compressed or not, and single compressed files. Each file inside is left to its own parser.

    Nothing is written to disk. Links and devices are listed but not followed. Damaged members are listed in
    `metadata["unread"]`.
    """

    name: ClassVar[str] = "tar"

    def parse(self, data: bytes, *, source: str) -> Document:
        """List and unpack the files in an archive.

        Raises:
            DocParserError: The file is empty, damaged, of another type, or too large when unpacked.
        """
        if not data:
            raise DocParserError(f"{source} is empty")
        kind = next((kind for magic, kind in _MAGIC.items() if data.startswith(magic)), "")
        content = _decompress(data, kind, source) if kind else data
        members = list(_members(content, source, is_compressed=bool(kind)))
        return document_of(members, source=source)


def _members(content: bytes, source: str, *, is_compressed: bool) -> Iterator[Member]:
    try:
        archive = tarfile.open(fileobj=io.BytesIO(content), mode="r:")  # noqa: SIM115 - it holds nothing open
    except _FAULTS as error:
        if not is_compressed:
            raise DocParserError(f"{source} is corrupted or not a tar archive: copy or download it again") from error
        yield Member("", len(content), content)
        return
    if is_compressed and not _has_members(archive):  # zeros at the beginning of a file look like the end of an archive
        yield Member("", len(content), content)
        return
    entries = 0
    try:
        for entry in archive:
            entries += 1
            if entries > MAX_ENTRIES:
                raise DocParserError(f"{source} cannot be read: it contains more than {MAX_ENTRIES:,} files")
            if not entry.isdir():
                yield _unpack(entry, content)
        # tarfile stops at a damaged header as if it were the end of the archive.
        if content[archive.offset : archive.offset + tarfile.BLOCKSIZE].strip(b"\0"):
            yield Member("the rest of the archive", 0, None)
    except _FAULTS as error:
        if not entries:
            raise DocParserError(f"{source} is corrupted or not a tar archive: copy or download it again") from error
        yield Member("the rest of the archive", 0, None)


def _has_members(archive: tarfile.TarFile) -> bool:
    try:
        return archive.next() is not None
    except _FAULTS:
        return False


def _unpack(entry: tarfile.TarInfo, content: bytes) -> Member:
    if entry.issym() or entry.islnk():
        return Member(entry.name, 0, None, "it is a link")
    if not entry.isreg():
        return Member(entry.name, 0, None, "not a regular file")
    if entry.sparse is not None:  # it may claim any size
        return Member(entry.name, 0, None, "it is a sparse file")
    data = content[entry.offset_data : entry.offset_data + entry.size]
    return Member(entry.name, entry.size, data if len(data) == entry.size else None)


def _decompress(data: bytes, kind: str, source: str) -> bytes:
    """Decompress a file.

    Raises:
        DocParserError: The file is damaged, truncated, or too large.
    """
    most = min(MAX_UNPACKED, max(ALWAYS_ALLOWED_BYTES, MAX_RATIO * len(data)))
    try:
        with _open(io.BytesIO(data), kind) as stream:
            content = stream.read(most + 1)
    except _FAULTS as error:
        raise DocParserError(f"{source} is corrupted or truncated: copy or download it again") from error
    if len(content) > most:
        raise DocParserError(f"{source} cannot be read: its unpacked size exceeds {most / 2**20:.0f} MiB")
    return content


def _open(file: BinaryIO, kind: str) -> gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile:
    match kind:
        case "gzip":
            return gzip.GzipFile(fileobj=file)
        case "bzip2":
            return bz2.BZ2File(file)
        case _:
            return lzma.LZMAFile(file)
