"""Names, limits and kinds of members, each at its boundary."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable

import pytest

from jackfield.errors import DocParserError
from jackfield.retrieval import Document
from jackfield_archive import members, tars
from jackfield_archive.members import Member, document_of
from jackfield_archive.plugin import parsers
from jackfield_archive.tars import TarParser
from jackfield_archive.zips import ZipParser


def lines(document: Document) -> list[str]:
    return document.blocks[0].text.splitlines()


@pytest.mark.parametrize(
    ("name", "is_hidden"),
    [
        (".git/config", True), ("a/.hidden", True), ("a\\.hidden", True), ("__MACOSX/a", True),
        ("a/__pycache__/b", True),
        ("node_modules/a.js", True), ("..", False), ("../a", False), ("./a", False), ("a//b", False), ("...", True),
        ("a.b", False), ("__MACOSX.txt", False), ("", False),
    ],
)  # fmt: skip
def test_files_that_programs_make_for_themselves_are_hidden(name: str, is_hidden: bool) -> None:
    document = document_of([Member("seen.txt", 1, b"a"), Member(name, 1, b"b")], source="x.zip")
    assert len(document.parts) == (1 if is_hidden else 2)
    assert document.metadata == {"files": len(document.parts)}
    assert ("- and 1 hidden file (not read)" in lines(document)) == is_hidden


def test_an_archive_of_hidden_files_is_empty() -> None:
    with pytest.raises(DocParserError, match=r"^x\.zip contains no files, or only hidden files"):
        document_of([Member(".a", 1, b"a")], source="x.zip")


def test_members_are_listed_in_their_order_with_their_sizes_and_states() -> None:
    given = [
        Member("b.txt", 1_234_567, b"b"), Member("a.txt", 0, b""), Member("c.txt", 7, None),
        Member("d", 1, None, "why"),
        Member("x" * 200 + "z", 2, None), Member("y" * 200 + "z", 2, b"yy"), Member("", 3, b"abc"),
    ]  # fmt: skip
    document = document_of(given, source="x.zip")
    assert lines(document) == [
        "- b.txt (1,234,567 bytes)", "- a.txt (0 bytes)", "- c.txt (7 bytes, not read: corrupted)",
        "- d (1 byte, not read: why)", f"- {'x' * 200} (2 bytes, not read: corrupted)", f"- {'y' * 200} (2 bytes)",
        "- compressed file (3 bytes)",
    ]  # fmt: skip
    assert [(part.name, part.data) for part in document.parts] == [
        ("b.txt", b"b"),
        ("y" * 200 + "z", b"yy"),
        ("", b"abc"),
    ]
    assert document.metadata == {"files": 7, "unread": ["c.txt", "x" * 200]}
    assert document.blocks[0].kind == "list"


@pytest.mark.parametrize(
    ("count", "last"), [(1000, "- 999 (1 byte)"), (1001, "- and 1 more file"), (3000, "- and 2,000 more files")]
)
def test_a_thousand_names_are_listed_and_all_files_are_given(count: int, last: str) -> None:
    document = document_of([Member(str(number), 1, b"a") for number in range(count)], source="x.zip")
    assert (lines(document)[-1], len(document.parts)) == (last, count)
    assert lines(document)[999] == "- 999 (1 byte)"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("größe.txt", "größe.txt"),
        ("a├ñ.txt", "aä.txt"),
        ("数据.txt", "数据.txt"),
        ("a/", None),
        ("a\\", None),
        ("b/c.txt", "b/c.txt"),
    ],
)
def test_names_of_a_zip_file_are_decoded_and_folders_are_left_out(name: str, shown: str | None) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("z.txt", b"z")
        archive.writestr(name, b"" if name.endswith(("/", "\\")) else b"a")
    document = ZipParser().parse(data.getvalue(), source="x.zip")
    assert [part.name for part in document.parts] == ["z.txt", *([shown] if shown else [])]
    assert len(lines(document)) == len(document.parts)


def tarred(*entries: tuple[str, bytes, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=form) as archive:
        for name, kind, content in entries:
            entry = tarfile.TarInfo(name)
            entry.type, entry.size = kind, len(content)
            archive.addfile(entry, io.BytesIO(content))
    return data.getvalue()


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_an_archive_is_read_in_each_form_and_compression(form: int, compress: Callable[[bytes], bytes]) -> None:
    data = tarred(
        ("d", tarfile.DIRTYPE, b""), ("d/b.txt", tarfile.REGTYPE, b"text"), ("a" * 90, tarfile.AREGTYPE, b"more"),
        ("pipe", tarfile.FIFOTYPE, b""), ("c", tarfile.CONTTYPE, b"x"), form=form,
    )  # fmt: skip
    document = TarParser().parse(compress(data), source="x.tar")
    assert [(part.name, part.data) for part in document.parts] == [
        ("d/b.txt", b"text"), ("a" * 90, b"more"), ("c", b"x")
    ]  # fmt: skip
    assert "- pipe (0 bytes, not read: not a regular file)" in lines(document)
    assert document.metadata == {"files": 4}


def test_a_sparse_file_is_listed_and_not_read() -> None:
    entry = tarfile.TarInfo("s")
    entry.pax_headers = {
        "GNU.sparse.major": "1",
        "GNU.sparse.minor": "0",
        "GNU.sparse.name": "s",
        "GNU.sparse.realsize": "9",
    }
    content = b"1\n0\n1\n".ljust(512, b"\0") + b"x"
    entry.size = len(content)
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(entry, io.BytesIO(content))
    document = TarParser().parse(data.getvalue(), source="x.tar")
    assert (lines(document), document.parts) == (["- s (0 bytes, not read: it is a sparse file)"], ())


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_a_compressed_file_that_is_not_an_archive_is_given_as_it_is(compress: Callable[[bytes], bytes]) -> None:
    for content in (b"text", bytes(2000), b"x" * 600):
        document = TarParser().parse(compress(content), source="x.gz")
        assert [(part.name, part.data) for part in document.parts] == [("", content)]
        assert lines(document) == [f"- compressed file ({len(content):,} bytes)"]


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_several_compressed_pieces_are_one_file_and_a_damaged_one_is_refused(
    compress: Callable[[bytes], bytes],
) -> None:
    whole = compress(b"one") + compress(b"two")
    assert TarParser().parse(whole, source="x.gz").parts[0].data == b"onetwo"
    damaged = bytearray(compress(b"x" * 999))
    damaged[-9] ^= 255
    for data in (bytes(damaged), compress(b"text")[:-5]):
        with pytest.raises(DocParserError, match=r"^x\.gz is corrupted or truncated: copy or download it again"):
            TarParser().parse(data, source="x.gz")


def test_a_file_that_is_not_an_archive_and_not_compressed_is_damaged() -> None:
    for data in (b"x" * 600, b"text"):
        with pytest.raises(DocParserError, match=r"^x\.tar is corrupted or not a tar archive"):
            TarParser().parse(data, source="x.tar")


def test_members_after_a_damaged_header_are_named_as_the_rest() -> None:
    data = bytearray(tarred(("a", tarfile.REGTYPE, b"a"), ("b", tarfile.REGTYPE, b"b"), form=tarfile.USTAR_FORMAT))
    data[1024 + 150] ^= 255  # in the checksum of the second
    for content in (bytes(data), gzip.compress(bytes(data))):
        document = TarParser().parse(content, source="x.tar")
        assert [part.name for part in document.parts] == ["a"]
        assert document.metadata == {"files": 2, "unread": ["the rest of the archive"]}


def test_a_member_that_was_cut_off_is_named() -> None:
    data = tarred(("a", tarfile.REGTYPE, b"a" * 512), ("b", tarfile.REGTYPE, b"b" * 512), form=tarfile.USTAR_FORMAT)
    whole, cut = (TarParser().parse(data[: 3 * 512 + size], source="x.tar") for size in (512, 511))
    assert [len(part.data) for part in whole.parts] == [512, 512]
    assert [len(part.data) for part in cut.parts] == [512]
    assert "b" in cut.metadata["unread"]


def test_folders_count_as_entries_and_not_as_files(monkeypatch: pytest.MonkeyPatch) -> None:
    data = tarred(("d", tarfile.DIRTYPE, b""), ("a", tarfile.REGTYPE, b"a"))
    monkeypatch.setattr(tars, "MAX_ENTRIES", 2)
    assert TarParser().parse(data, source="x.tar").metadata == {"files": 1}
    monkeypatch.setattr(tars, "MAX_ENTRIES", 1)
    with pytest.raises(DocParserError, match=r"^x\.tar cannot be read: it contains more than 1 files"):
        TarParser().parse(data, source="x.tar")


def test_the_limits_are_those_that_the_readme_states() -> None:
    assert (members.MAX_UNPACKED, members.MAX_RATIO, members.MAX_ENTRIES) == (200 * 2**20, 200, 10_000)
    # What compresses a thousandfold is read up to 16 MiB.
    assert len(TarParser().parse(gzip.compress(bytes(16 * 2**20)), source="x.gz").parts[0].data) == 16 * 2**20
    with pytest.raises(DocParserError, match=r"^x\.gz cannot be read: its unpacked size exceeds 16 MiB"):
        TarParser().parse(gzip.compress(bytes(16 * 2**20 + 1)), source="x.gz")


def test_files_are_recognised_by_each_of_these_extensions() -> None:
    assert {spec.name: " ".join(spec.extensions) for spec in parsers()} == {
        "zip": "zip",
        "tar": "tar tgz tbz2 txz gz bz2 xz",
    }


def test_files_are_recognised_by_each_of_these_media_types() -> None:
    assert {spec.name: list(spec.media_types) for spec in parsers()} == {
        "zip": [
            "application/zip",
        ],
        "tar": [
            "application/x-tar",
            "application/gzip",
            "application/x-bzip2",
            "application/x-xz",
        ],
    }
