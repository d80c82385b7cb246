from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from reportlab.pdfgen.canvas import Canvas

from jackfield import sync
from jackfield.errors import DocParserError
from jackfield.retrieval import Document, Hit, Where
from jackfield_archive import tars
from jackfield_archive.tars import TarParser
from jackfield_archive.zips import ZipParser
from jackfield_documents import DocumentReader, chunk_document, corpus_of, headings_in_part, with_surroundings


def zipped(files: Mapping[str, bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


def tarred(files: Mapping[str, bytes]) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return data.getvalue()


def pdf(*pages: str) -> bytes:
    data = io.BytesIO()
    canvas = Canvas(data)
    for page in pages:
        canvas.drawString(72, 700, page)
        canvas.showPage()
    canvas.save()
    return data.getvalue()


def read(folder: Path, name: str, data: bytes) -> Document:
    (folder / name).write_bytes(data)
    return sync.run(DocumentReader().read(folder / name))


def texts(document: Document) -> list[str]:
    return [block.text for block in document.blocks]


def test_each_file_is_read_by_its_own_parser_below_its_name(tmp_path: Path) -> None:
    data = zipped({"a/b.md": b"# One\n\ntext", "c.pdf": pdf("first", "second"), "d.raw": b"\0\1"})
    document = read(tmp_path, "x.zip", data)
    assert [(block.kind, block.text, block.part, block.page, block.level) for block in document.blocks[1:]] == [
        ("heading", "a/b.md", "a/b.md", None, 1),
        ("heading", "One", "a/b.md", None, 2),
        ("paragraph", "text", "a/b.md", None, 0),
        ("heading", "c.pdf", "c.pdf", 1, 1),
        ("paragraph", "first", "c.pdf", 1, 0),
        ("paragraph", "second", "c.pdf", 2, 0),
        ("paragraph", "(Not read, because no installed parser reads files of this type: d.raw)", "", None, 0),
    ]
    assert document.parts == ()
    assert document.content_hash


def test_a_passage_names_its_file_in_the_archive_and_the_page_in_that_file(tmp_path: Path) -> None:
    inner = zipped({"deep.pdf": pdf("below one", "below two")})
    data = zipped({"r/a.pdf": pdf("first", "second"), "b.txt": b"plain", "in.zip": inner, "r/c.pdf": pdf("third")})
    document = read(tmp_path, "x.zip", data)
    by_text = {
        word: [(one.part, one.page, headings_in_part(one)) for one in chunk_document(document) if word in one.text]
        for word in ("first", "plain", "below one", "third")
    }
    assert by_text == {
        "first": [("r/a.pdf", 1, ())],
        "plain": [("b.txt", None, ())],
        "below one": [("in.zip › deep.pdf", 1, ())],
        "third": [("r/c.pdf", 1, ())],
    }


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [
        ("*", {"r/a.txt", "in.zip", "in.zip › s/b.txt"}),
        ("r/*", {"r/a.txt"}),
        ("b.txt", {"in.zip › s/b.txt"}),
        ("s/b.txt", {"in.zip › s/b.txt"}),
        ("in.zip", {"in.zip"}),
        ("in.zip*", {"in.zip", "in.zip › s/b.txt"}),
    ],
)
def test_passages_are_filtered_by_their_file_in_the_archive(tmp_path: Path, pattern: str, parts: set[str]) -> None:
    data = zipped({"r/a.txt": b"one", "in.zip": zipped({"s/b.txt": b"two"})})
    corpus = corpus_of([read(tmp_path, "x.zip", data)])
    selected = corpus.select(Where.parse({"path": "x.zip", "part": pattern})).numbers
    assert {corpus.chunks[number].part for number in selected} == parts


def test_neighbours_of_a_passage_are_from_the_same_file(tmp_path: Path) -> None:
    data = zipped({f"{name}.txt": f"{name} ".encode() * 900 for name in "abc"})
    corpus = corpus_of([read(tmp_path, "x.zip", data)])
    hits = [Hit(next(chunk for chunk in corpus.chunks if chunk.part == "b.txt"), 1.0)]
    around = with_surroundings(hits, [corpus], neighbours=50, whole_sections=True, max_tokens=10**6)
    assert {hit.chunk.part for hit in around} == {"b.txt"}
    assert len(around) == sum(chunk.part == "b.txt" for chunk in corpus.chunks) > 1


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    document = read(tmp_path, "x.zip", zipped({"a.pdf": b"%PDF-1.7", "b.txt": b"text"}))
    assert texts(document)[-2:] == ["b.txt", "text"]
    assert document.metadata["unread"] == ["a.pdf"]


def test_a_member_that_crashes_its_parser_does_not_take_the_others_along(tmp_path: Path) -> None:
    levels = b"[" * 900 + b"1," * 3_000_000 + b"1" + b"]" * 900
    document = read(tmp_path, "x.zip", zipped({"a.ipynb": b'{"cells":' * 60_000, "b.json": levels, "c.txt": b"text"}))
    assert texts(document)[-1] == "text"


def test_archives_in_archives_are_read_to_a_depth(tmp_path: Path) -> None:
    data = zipped({"deepest.txt": b"deepest"})
    for level in range(4, 0, -1):
        data = zipped({f"{level}.zip": data, f"{level}.txt": f"level {level}".encode()})
    document = read(tmp_path, "x.zip", data)
    assert [text for text in texts(document) if text.startswith("level")] == ["level 3", "level 2", "level 1"]
    assert "(4.txt was not read: nested more than 3 levels deep)" in texts(document)
    assert document.metadata["unread"][0] == "4.zip of 3.zip of 2.zip of 1.zip"


def test_an_archive_that_holds_itself_ends(tmp_path: Path) -> None:
    """The file of Russ Cox: a gzip file that unpacks to itself would need the real thing; equal copies behave alike."""
    inner = zipped({"a.txt": b"text"})
    document = read(tmp_path, "x.zip", zipped({f"{number}.zip": inner for number in range(20)}))
    assert texts(document).count("text") == 20


def test_a_name_leads_to_no_file_of_the_machine(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    folder = tmp_path / "in"
    folder.mkdir()
    document = read(folder, "x.zip", zipped({"../secret.txt": b"harmless", f"{tmp_path}/secret.txt": b"text"}))
    assert "secret" not in texts(document)
    assert (tmp_path / "secret.txt").read_text() == "secret"
    assert [path.name for path in folder.iterdir()] == ["x.zip"]


def test_links_and_devices_are_listed_and_not_followed() -> None:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name, kind in (("link", tarfile.SYMTYPE), ("hard", tarfile.LNKTYPE), ("device", tarfile.CHRTYPE)):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, "/etc/passwd"
            archive.addfile(entry)
    document = TarParser().parse(data.getvalue(), source="x.tar")
    assert document.parts == ()
    assert texts(document) == [
        "- link (0 bytes, not read: it is a link)\n- hard (0 bytes, not read: it is a link)\n"
        "- device (0 bytes, not read: not a regular file)"
    ]


def test_a_compressed_file_keeps_its_inner_name(tmp_path: Path) -> None:
    reader, data = DocumentReader(), gzip.compress(b"# One")
    for name, text in (("x.md.gz", "One"), ("y.txt.gz", "# One")):
        (tmp_path / name).write_bytes(data)
        assert texts(sync.run(reader.read(tmp_path / name)))[1:] == [name.removesuffix(".gz"), text]


def test_zeros_in_a_compressed_file_are_no_archive() -> None:
    document = TarParser().parse(gzip.compress(bytes(2000)), source="x.bin.gz")
    assert [(part.name, len(part.data)) for part in document.parts] == [("", 2000)]


def test_the_rest_of_a_damaged_archive_is_named() -> None:
    data = tarred({"a.txt": b"x" * 600, "b.txt": b"x" * 600})
    document = TarParser().parse(data[: 512 + 1024 + 512 + 10], source="x.tar")
    assert [part.name for part in document.parts] == ["a.txt"]
    assert document.metadata["unread"] in (["b.txt"], ["b.txt", "the rest of the archive"], ["the rest of the archive"])


def test_a_damaged_member_is_named() -> None:
    data = bytearray(zipped({"a.txt": b"x", "b.txt": b"text"}))
    data[36] ^= 1  # in the content of the first
    document = ZipParser().parse(bytes(data), source="x.zip")
    assert [part.name for part in document.parts] == ["b.txt"]
    assert document.metadata == {"files": 2, "unread": ["a.txt"]}


def test_a_name_in_utf8_without_its_flag_is_read() -> None:
    data = zipped({"größe.txt": b"a"})
    flagged = zipfile.ZipFile(io.BytesIO(data)).infolist()[0].flag_bits
    assert flagged & 0x800
    data = data.replace(b"\x14\x00\x00\x08", b"\x14\x00\x00\x00")
    assert ZipParser().parse(data, source="x.zip").parts[0].name == "größe.txt"


def test_hidden_files_are_counted_and_not_read() -> None:
    document = ZipParser().parse(zipped({"a.txt": b"a", ".git/b": b"b", "__MACOSX/c": b"c"}), source="x.zip")
    assert texts(document) == ["- a.txt (1 byte)\n- and 2 hidden files (not read)"]
    assert [part.name for part in document.parts] == ["a.txt"]


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_a_compressed_file_is_unpacked_up_to_a_size_and_a_ratio(
    compress: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = compress(bytes(5000))
    monkeypatch.setattr(tars, "ALWAYS_ALLOWED_BYTES", 1000)
    for size, ratio, is_read in ((5000, 5000, True), (4999, 5000, False), (5000, 4999 // len(data), False)):
        monkeypatch.setattr(tars, "MAX_UNPACKED", size)
        monkeypatch.setattr(tars, "MAX_RATIO", ratio)
        if is_read:
            assert len(TarParser().parse(data, source="x.gz").parts[0].data) == 5000
        else:
            with pytest.raises(DocParserError, match=r"^x\.gz cannot be read: its unpacked size exceeds 0 MiB"):
                TarParser().parse(data, source="x.gz")


def test_an_archive_holds_up_to_so_many_files(monkeypatch: pytest.MonkeyPatch) -> None:
    data = tarred({"a.txt": b"a", "b.txt": b"b", "c.txt": b"c"})
    monkeypatch.setattr(tars, "MAX_ENTRIES", 3)
    assert len(TarParser().parse(data, source="x.tar").parts) == 3
    monkeypatch.setattr(tars, "MAX_ENTRIES", 2)
    with pytest.raises(DocParserError, match="it contains more than 2 files"):
        TarParser().parse(data, source="x.tar")


@pytest.mark.parametrize(
    ("parser", "data", "reason"),
    [
        (ZipParser, b"text", "does not match its extension"),
        (ZipParser, zipped({}), "contains no files"),
        (TarParser, b"", "is empty"),
        (TarParser, b"text", "is corrupted or not a tar archive"),
        (TarParser, gzip.compress(b"text")[:-4], "is corrupted or truncated"),
    ],
)
def test_an_error_names_the_file_and_the_reason(
    parser: type[ZipParser] | type[TarParser], data: bytes, reason: str
) -> None:
    with pytest.raises(DocParserError, match=rf"^x\.y {reason}"):
        parser().parse(data, source="x.y")


def test_a_change_of_parsers_changes_the_fingerprint_of_archives_only(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(zipped({"a.txt": b"a"}))
    (tmp_path / "a.txt").write_bytes(b"a")
    before, after = DocumentReader(), DocumentReader(parser_cfg={"pdf": {"password": "x"}})
    for name, is_same in (("a.zip", False), ("a.txt", True)):
        prints = [sync.run(reader.fingerprint(tmp_path / name)) for reader in (before, after)]
        assert (prints[0] == prints[1]) == is_same
