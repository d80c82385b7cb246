"""Parsed documents are kept by content and by how they were parsed, for many processes, within a size."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import os
import time
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.retrieval import Block, Document
from jackfield.tools import ToolContext
from jackfield_doc_parser.cache import DocumentCache, default_folder
from jackfield_doc_parser.chunks import DocParser
from jackfield_doc_parser.simple import SimpleDocParser
from jackfield_documents import DocumentReader, Fingerprint
from jackfield_testkit.forks import outputs_of

DOCUMENT = Document("", (Block("Tea", "heading", 1, 1), Block("| a |\n|---|", "table", 2)), "c" * 64, "Tea", {"n": 1})
PRINT = Fingerprint("c" * 64, "parser 1")


def text_of(tool: Any, path: Path) -> Any:
    return asyncio.run(tool.call({"url": str(path)}, context=ToolContext(files=(str(path),)))).content


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were parsed, in order."""
    paths: list[str] = []
    read = DocumentReader.read

    async def noted(self: DocumentReader, path: str) -> Document:
        paths.append(Path(path).name)
        return await read(self, path)

    monkeypatch.setattr(DocumentReader, "read", noted)
    return paths


# --- what it is kept by -----------------------------------------------------------------------------------------------


def test_a_document_is_parsed_once_whoever_asks_and_whatever_it_is_called(tmp_path: Path, parsed: list[str]) -> None:
    (tmp_path / "a.txt").write_text("Tea.")
    cache = {"path": str(tmp_path / "cache")}
    assert text_of(SimpleDocParser(cache), tmp_path / "a.txt") == "Tea."
    (tmp_path / "a.txt").rename(tmp_path / "b.txt")
    assert text_of(SimpleDocParser(cache), tmp_path / "b.txt") == "Tea."
    record = text_of(DocParser(cache), tmp_path / "b.txt")
    assert record["url"] == record["raw"][0]["metadata"]["source"] == "b.txt"
    assert parsed == ["a.txt"]


def test_an_edited_file_is_read_anew_even_if_its_time_and_size_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    for tool in (SimpleDocParser(path=tmp_path / "cache"), SimpleDocParser(cache_max_bytes=0)):
        path.write_text("black tea")
        facts = path.stat()
        assert text_of(tool, path) == "black tea"
        path.write_text("green tea")
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        assert text_of(tool, path) == "green tea"


def test_other_sizes_take_effect_at_once_and_need_no_parsing(tmp_path: Path, parsed: list[str]) -> None:
    path = tmp_path / "a.txt"
    path.write_text("A sentence of some words. " * 60)
    counts = [
        len(text_of(DocParser(path=tmp_path / "cache", **sizes), path)["raw"])
        for sizes in ({}, {"max_ref_token": 300, "chunk_size": 100}, {"max_ref_token": 300, "chunk_size": 30})
    ]
    assert counts[0] == 1 < counts[1] < counts[2]
    assert parsed == ["a.txt"]


def test_another_parser_or_other_bytes_are_another_entry(tmp_path: Path) -> None:
    cache = DocumentCache(tmp_path, max_bytes=10_000)
    cache.put(PRINT, DOCUMENT)
    assert cache.get(PRINT, source="x") == Document("x", DOCUMENT.blocks, "c" * 64, "Tea", {"n": 1})
    assert cache.get(Fingerprint("d" * 64, "parser 1"), source="x") is None
    assert cache.get(Fingerprint("c" * 64, "parser 2"), source="x") is None


@pytest.mark.parametrize("has_attachment", [False, True])
def test_other_parsers_read_only_documents_again_that_have_files_in_them(
    tmp_path: Path, parsed: list[str], monkeypatch: pytest.MonkeyPatch, has_attachment: bool
) -> None:
    mail = EmailMessage()
    mail.set_content("Green tea.")
    if has_attachment:
        mail.add_attachment("A pot.", filename="pot.txt")
    (tmp_path / "a.eml").write_bytes(bytes(mail))
    for parsers in ("some", "others", "others"):
        monkeypatch.setattr(DocumentReader, "parsers", lambda _, parsers=parsers: parsers)
        assert "Green tea." in text_of(SimpleDocParser(path=tmp_path / "cache"), tmp_path / "a.eml")
    assert parsed == ["a.eml"] * (2 if has_attachment else 1)


def test_what_changes_between_two_looks_is_not_kept_under_the_wrong_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    read = DocumentReader.read

    async def edited(self: DocumentReader, name: str) -> Document:
        path.write_text("new")
        return await read(self, name)

    with monkeypatch.context() as patch:
        patch.setattr(DocumentReader, "read", edited)
        assert text_of(SimpleDocParser(path=tmp_path / "cache"), path) == "new"
    path.write_text("old")
    assert text_of(SimpleDocParser(path=tmp_path / "cache"), path) == "old"


# --- files that are not whole -----------------------------------------------------------------------------------------


def kept(folder: Path) -> Path:
    (path,) = folder.glob("*.doc")
    return path


def test_a_file_that_was_cut_or_changed_is_parsed_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, folder = tmp_path / "a.txt", tmp_path / "cache"
    path.write_text("Tea.")
    assert text_of(SimpleDocParser(path=folder), path) == "Tea."
    whole = kept(folder).read_bytes()
    for damaged in (*(whole[:end] for end in range(len(whole))), whole[:-1] + b"?", b"x" * 50):
        kept(folder).write_bytes(damaged)
        assert DocumentCache(folder, max_bytes=10_000).get(fingerprint_of(path), source="x") is None
    assert "documents will be parsed without it" in caplog.text
    assert text_of(SimpleDocParser(path=folder), path) == "Tea."
    assert kept(folder).read_bytes() == whole


def fingerprint_of(path: Path) -> Fingerprint:
    return asyncio.run(DocumentReader().fingerprint(path))


BLOCKS = st.builds(
    Block,
    st.text(),
    st.sampled_from(["paragraph", "list", "table", "code"]),
    st.none() | st.integers(1, 9999),
)


@given(
    blocks=st.lists(BLOCKS, max_size=5),
    title=st.text(),
    metadata=st.dictionaries(st.text(), st.text() | st.tuples(st.text())),
)
def test_a_document_comes_back_as_it_was_or_not_at_all(
    blocks: list[Block], title: str, metadata: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    cache = DocumentCache(tmp_path_factory.mktemp("cache"), max_bytes=100_000)
    document = Document("", tuple(blocks), "c" * 64, title, metadata)
    cache.put(PRINT, document)
    assert cache.get(PRINT, source="") in (document, None)
    if not any(isinstance(value, tuple) for value in metadata.values()):  # JSON would make a list of it
        assert cache.get(PRINT, source="") == document


# --- size -------------------------------------------------------------------------------------------------------------


def numbered(number: int) -> Fingerprint:
    return Fingerprint(f"{number:064}", "p")


def long_document(number: int) -> Document:
    return Document("", (Block("".join(f"{number * place % 9973} " for place in range(400))),), f"{number:064}")


def test_it_stays_within_its_size_and_forgets_what_was_used_longest_ago(tmp_path: Path) -> None:
    DocumentCache(tmp_path, max_bytes=10**6).put(numbered(0), long_document(7))
    size = 8 * kept(tmp_path).stat().st_size
    cache = DocumentCache(tmp_path, max_bytes=size)
    for number in range(1, 100):
        cache.put(numbered(number), long_document(number))
        # As if it were long ago, so that the order does not depend on the clock of the file system.
        os.utime(cache._path(numbered(number)), (number, number))
        if number % 3 == 0:
            assert cache.get(numbered(1), source="") is not None, "it was used a moment ago"
        assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= size
    assert cache.get(numbered(2), source="") is None
    assert cache.get(numbered(99), source="") is not None


def test_what_is_larger_than_all_of_it_pushes_nothing_out(tmp_path: Path) -> None:
    cache = DocumentCache(tmp_path, max_bytes=300)
    cache.put(PRINT, DOCUMENT)
    cache.put(numbered(1), long_document(7))
    assert cache.get(PRINT, source="") is not None
    assert cache.get(numbered(1), source="") is None


def test_what_a_killed_process_left_is_removed_and_what_another_writes_is_not(tmp_path: Path) -> None:
    (tmp_path / ".new-old").write_bytes(b"half")
    (tmp_path / ".new-young").write_bytes(b"half")
    (tmp_path / "note.txt").write_text("somebody's own")
    long_ago = time.time() - 7200
    os.utime(tmp_path / ".new-old", (long_ago, long_ago))
    os.utime(tmp_path / "note.txt", (long_ago, long_ago))
    DocumentCache(tmp_path, max_bytes=10_000).put(PRINT, DOCUMENT)
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".doc") == [".new-young", "note.txt"]


@pytest.mark.skipif(os.name != "posix", reason="modes of files")
def test_only_the_user_can_read_it(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    DocumentCache(folder, max_bytes=10_000).put(PRINT, DOCUMENT)
    assert folder.stat().st_mode & 0o077 == 0
    assert kept(folder).stat().st_mode & 0o077 == 0


def test_a_cache_that_cannot_be_used_fails_no_call_and_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("not a folder")
    (tmp_path / "a.txt").write_text("Tea.")
    (tmp_path / "b.txt").write_text("Coffee.")
    tool = SimpleDocParser(path=tmp_path / "file" / "cache")
    with caplog.at_level(logging.WARNING):
        assert text_of(tool, tmp_path / "a.txt") == "Tea."
        assert text_of(tool, tmp_path / "b.txt") == "Coffee."
    assert len([record for record in caplog.records if "document cache" in record.message]) == 1


# --- processes --------------------------------------------------------------------------------------------------------

_READER = """
import asyncio, sys
from jackfield.tools import ToolContext
from jackfield_doc_parser.simple import SimpleDocParser
folder, cache = sys.argv[1:]
for turn in range(4):
    tool = SimpleDocParser(path=cache, cache_max_bytes=1000, max_ref_token=100_000)
    content = asyncio.run(tool.call({"url": folder}, context=ToolContext(files=(folder,)))).content
    assert [number for number in range(12) if f"Document {number}." not in content] == []
print("read")
"""


def test_several_processes_share_it_while_it_overflows(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for number in range(12):
        (tmp_path / "docs" / f"{number}.txt").write_text(f"Document {number}. " + "tea " * 50)
    assert outputs_of(_READER, [(tmp_path / "docs", tmp_path / "cache")] * 3) == ["read"] * 3
    left = list((tmp_path / "cache").iterdir())
    assert left
    assert all(path.suffix == ".doc" for path in left)
    assert sum(path.stat().st_size for path in left) <= 1000


def test_a_document_of_just_the_size_is_kept(tmp_path: Path) -> None:
    DocumentCache(tmp_path / "a", max_bytes=10**6).put(PRINT, DOCUMENT)
    size = next((tmp_path / "a").iterdir()).stat().st_size
    for name, most, is_kept in (("b", size, True), ("c", size - 1, False), ("d", 0, False)):
        cache = DocumentCache(tmp_path / name, max_bytes=most)
        cache.put(PRINT, DOCUMENT)
        assert (cache.get(PRINT, source="") is not None) is is_kept


@pytest.mark.parametrize(("age_s", "is_noted"), [(30, False), (90, True)])
def test_a_use_is_noted_if_the_last_one_is_a_minute_ago(tmp_path: Path, age_s: int, is_noted: bool) -> None:
    cache = DocumentCache(tmp_path, max_bytes=10**6)
    cache.put(PRINT, DOCUMENT)
    before = time.time() - age_s
    os.utime(cache._path(PRINT), (before, before))
    assert cache.get(PRINT, source="x.txt") == dataclasses.replace(DOCUMENT, source="x.txt")
    assert (cache._path(PRINT).stat().st_mtime > before + 20) is is_noted


def test_each_part_of_a_fingerprint_is_another_entry(tmp_path: Path) -> None:
    prints = [
        PRINT, dataclasses.replace(PRINT, content_hash="d" * 64), dataclasses.replace(PRINT, parser="parser 2"),
        dataclasses.replace(PRINT, of_parts="x"),
    ]  # fmt: skip
    cache = DocumentCache(tmp_path, max_bytes=10**6)
    assert len({cache._path(one) for one in prints}) == 4


def test_a_document_that_json_would_change_is_not_kept(tmp_path: Path) -> None:
    cache = DocumentCache(tmp_path, max_bytes=10**6)
    cache.put(PRINT, dataclasses.replace(DOCUMENT, metadata={"of": (1, 2)}))
    assert cache.get(PRINT, source="") is None


def test_the_folder_of_documents_is_that_of_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert default_folder() == tmp_path / ".cache/jackfield/documents"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "c"))
    assert default_folder() == tmp_path / "c/jackfield/documents"
