from __future__ import annotations

import io
import struct
import zipfile
import zlib

import pytest

from jackfield.errors import DocParserError
from jackfield_documents import Archive

ENTRY = b"PK\x01\x02\x14\x03\x14\0"  # and then its flags


def packed(method: int = zipfile.ZIP_DEFLATED, **files: bytes) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as archive:
        for name, content in files.items():
            # Without the time of day, which would be a part of the names of tests: workers must find the same ones.
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return data.getvalue()


def test_files_are_read_by_name() -> None:
    archive = Archive(packed(a=b"tea", b=b"time"), source="x.zip")
    assert dict(archive.names) == {"a": 3, "b": 4}
    assert archive.read("b") == b"time"


def test_a_file_that_is_not_there_is_an_error_that_names_both() -> None:
    archive = Archive(packed(a=b"tea"), source="x.zip")
    with pytest.raises(DocParserError, match=r"^x\.zip is corrupted: '\.\./a' is missing"):
        archive.read("../a")
    with pytest.raises(DocParserError, match=r"^x\.zip is corrupted: 'n{100}' is missing$"):
        archive.read("n" * 101)


def test_an_archive_of_exactly_the_largest_size_is_read() -> None:
    archive = Archive(packed(a=b"a" * 600, b=b"b" * 600), source="x.zip", max_unpacked=1200, max_entries=2)
    assert len(archive.read("a") + archive.read("b")) == 1200


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_file_with_another_checksum_is_damaged_and_the_others_are_read(method: int) -> None:
    data = packed(method, a=b"tea", b=b"time")
    checksum = zlib.crc32(b"tea").to_bytes(4, "little")
    assert data.count(checksum) == 2
    archive = Archive(data.replace(checksum, bytes(4)), source="x.zip")
    with pytest.raises(DocParserError, match=r"^x\.zip is corrupted: 'a' in it cannot be decompressed"):
        archive.read("a")
    assert archive.read("b") == b"time"


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"max_unpacked": 999}, "it decompresses to"),
        ({"max_entries": 1}, "it contains more than 1 files"),
    ],
)
def test_what_is_too_large_is_refused_before_anything_is_unpacked(limits: dict[str, int], reason: str) -> None:
    with pytest.raises(DocParserError, match=rf"^x\.zip cannot be read: {reason}"):
        Archive(packed(a=b"a" * 600, b=b"b" * 600), source="x.zip", **limits)


def test_files_that_contain_what_begins_an_entry_count_once() -> None:
    archive = Archive(packed(zipfile.ZIP_STORED, a=ENTRY, b=ENTRY), source="x.zip", max_entries=2)
    assert archive.read("b") == ENTRY
    with pytest.raises(DocParserError, match="it contains more than 2 files"):
        Archive(packed(zipfile.ZIP_STORED, a=ENTRY * 3, b=b""), source="x.zip", max_entries=2)


def test_what_is_packed_a_thousand_times_is_refused_once_it_is_large() -> None:
    Archive(packed(a=bytes(15 * 2**20)), source="x.zip")
    with pytest.raises(DocParserError, match=r"it decompresses to 17 MiB"):
        Archive(packed(a=bytes(17 * 2**20)), source="x.zip")


def test_a_file_never_gives_more_than_it_says_it_has() -> None:
    data = packed(a=b"a" * 5000)
    lie = data.replace((5000).to_bytes(4, "little"), (50).to_bytes(4, "little"))
    consistent = lie.replace(*(zlib.crc32(b"a" * size).to_bytes(4, "little") for size in (5000, 50)))
    for archive in (lie, consistent):
        with pytest.raises(DocParserError, match=r"^x\.zip is corrupted"):
            Archive(archive, source="x.zip").read("a")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is empty"),
        (b"text", "does not match its extension"),
        (packed(a=b"tea")[:-30], "is corrupted or truncated"),
        (packed(zipfile.ZIP_LZMA, a=b"tea"), "cannot be read: unsupported compression method"),
        (packed(a=b"tea").replace(ENTRY + b"\0\0", ENTRY + b"\1\0"), "is encrypted"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(99), "is in the format of Office before 2007"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"), "is encrypted"),
    ],
)  # fmt: skip
def test_an_error_names_the_file_and_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(DocParserError, match=rf"^x\.zip {reason}"):
        Archive(data, source="x.zip")


@pytest.mark.parametrize(
    "error",
    [
        zipfile.BadZipFile,
        zlib.error,
        struct.error,
        EOFError,
        NotImplementedError,
        OSError,
        OverflowError,
        RuntimeError,
        ValueError,
    ],
)
def test_whatever_a_damaged_archive_makes_the_libraries_raise_is_damage(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    archive = Archive(packed(a=b"tea"), source="x.zip")
    monkeypatch.setattr(archive, "_unpack", fail)
    with pytest.raises(DocParserError, match=r"^x\.zip is corrupted: 'a' in it cannot be decompressed"):
        archive.read("a")
    monkeypatch.setattr(zipfile, "ZipFile", fail)
    with pytest.raises(DocParserError, match=r"^x\.zip is corrupted or truncated"):
        Archive(b"PK", source="x.zip")
