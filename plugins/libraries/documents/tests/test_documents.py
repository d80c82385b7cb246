from __future__ import annotations

import asyncio
import io
import os
import sys
import textwrap
import time
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from email.message import EmailMessage
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import SecretStr

from jackfield.errors import ConfigError, DocParserError
from jackfield.plugins import PluginHost
from jackfield.retrieval import Document
from jackfield.settings import Settings
from jackfield_documents import (
    DocumentReader,
    Fingerprint,
    RAGConfig,
    Reading,
    chunk_document,
    documents,
    passages,
    why_nothing_reads,
)
from jackfield_documents.documents import _is_text, _read_bytes, file_signature, is_settled
from jackfield_documents.parsing import StopSignal

PARSER = """
    from pathlib import Path
    from jackfield.errors import DocParserError
    from jackfield.retrieval import Block, Document, Parser

    class LineParser(Parser):
        def parse(self, data, *, source):
            with Path(__file__).with_suffix(".calls").open("a") as calls:
                calls.write(f"{source}\\n")
            if data.startswith(b"crash"):
                raise KeyError("inside of a library")
            if data.startswith(b"broken"):
                raise DocParserError(f"{source} is damaged")
            return Document(source, tuple(map(Block, data.decode().splitlines())), "", metadata=dict(self.cfg))
"""


WITH_CONFIG = f"""
    from jackfield import config
    {PARSER}
    class Config(config.Config):
        depth: int = 1
"""
PICTURES = """
    from jackfield.retrieval import Document, Parser, Part

    class LineParser(Parser):
        def parse(self, data, *, source):
            settings = (f"{key}={value}" for key, value in sorted(self.cfg.items()))
            return Document(source, (), "", parts=tuple(Part(one, b"x") for one in settings))
"""
TOUCH = """
    from pathlib import Path
    (Path(__file__).parent / "imported").touch()
"""


class Site:
    """A folder of installed parser plugins."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.modules: list[str] = []
        self.enabled: list[str] = []

    def install(self, name: str, *, parser: str, facts: str, body: str = PARSER, apart: bool = False) -> None:
        """Install a parser, which reads small files in this process unless it is to have its own: that takes longer."""
        here = 0 if apart else 1000
        module = f"parser_{name}"
        self.modules.append(module)
        self.enabled.append(f"parser.{name}/{parser}")
        metadata = self.folder / f"{name}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "entry_points.txt").write_text(f"[jackfield.v1]\nparser.{parser} = {module}_plugin\n")
        (self.folder / f"{module}.py").write_text(textwrap.dedent(body))
        (self.folder / f"{module}_plugin.py").write_text(
            "from jackfield.plugins import ParserSpec, hook\n"
            "@hook.parsers\n"
            f"def parsers():\n    return [ParserSpec(name={parser!r}, target='{module}:LineParser', "
            f"in_process_bytes={here}, {facts})]\n"
        )

    def reader(self, **prefer: str) -> DocumentReader:
        wanted = {key.replace("_", "."): value for key, value in prefer.items()}
        settings = Settings(prefer=wanted, enabled=tuple(self.enabled))
        return DocumentReader(PluginHost(settings, paths=[str(self.folder)]))

    def parsed(self, name: str) -> list[str]:
        """What the parser of a distribution was asked to parse, in order."""
        calls = self.folder / f"parser_{name}.calls"
        return calls.read_text().splitlines() if calls.exists() else []


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    site = Site(folder)
    yield site
    for name in site.modules:
        sys.modules.pop(name, None)
        sys.modules.pop(f"{name}_plugin", None)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, bytes], str]:
    def write_file(name: str, data: bytes) -> str:
        path = tmp_path / name
        path.write_bytes(data)
        long_ago = time.time() - 60
        os.utime(path, (long_ago, long_ago))
        return str(path)

    return write_file


Write = Callable[[str, bytes], str]


def read(reader: DocumentReader, path: str) -> Document:
    return asyncio.run(reader.read(path))


def read_all(reader: DocumentReader, *paths: str) -> Reading:
    return asyncio.run(reader.read_all(paths))


def test_the_extension_chooses_the_parser_and_no_other_is_imported(site: Site, write: Write) -> None:
    site.install("lines", parser="lines", facts="extensions=('ln',)", apart=True)
    site.install("other", parser="other", facts="extensions=('ot',), magic=(b'one',)", body=TOUCH + PARSER)
    document = read(site.reader(), path := write("a.LN", b"one\ntwo"))
    assert [block.text for block in document.blocks] == ["one", "two"]
    assert document.source == path
    assert site.parsed("lines") == ["a.LN"]
    assert not (site.folder / "imported").exists()
    assert "parser_lines" not in sys.modules, "this process parses nothing itself"


def test_without_a_known_extension_the_longest_magic_decides(site: Site, write: Write) -> None:
    site.install("short", parser="short", facts="magic=(b'%P',)")
    site.install("long", parser="long", facts="magic=(b'%PDF-',)")
    read(site.reader(), write("a.unknown", b"%PDF-1"))
    assert site.parsed("long") == ["a.unknown"]


def test_then_the_media_type_decides_and_text_is_text(site: Site, write: Write) -> None:
    site.install("lines", parser="lines", facts="media_types=('text/plain',)")
    reader = site.reader()
    for name in ("README", "script.py", "notes.weird"):
        assert read(reader, write(name, "grüße".encode())).blocks[0].text == "grüße"


def test_the_content_hash_is_of_the_bytes(site: Site, write: Write) -> None:
    site.install("lines", parser="lines", facts="extensions=('ln',)")
    document = read(site.reader(), write("a.ln", b"abc"))
    assert document.content_hash == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_two_parsers_for_one_extension_are_an_error_with_a_way_out(site: Site, write: Write) -> None:
    site.install("lines", parser="lines", facts="extensions=('ln',)")
    site.install("other", parser="other", facts="extensions=('ln',)")
    path = write("a.ln", b"one")
    with pytest.raises(DocParserError, match=r"'lines/lines' and by 'other/other': choose.*\"parser.ln\" = \"lines\""):
        read(site.reader(), path)
    read(site.reader(parser_ln="other"), path)
    assert site.parsed("other") == ["a.ln"]


def test_a_file_is_parsed_once_until_its_bytes_change(site: Site, write: Write) -> None:
    site.install("lines", parser="lines", facts="extensions=('ln',)")
    reader = site.reader()
    path = write("a.ln", b"old")
    for _ in range(3):
        assert read(reader, path).blocks[0].text == "old"
    assert site.parsed("lines") == ["a.ln"]
    Path(path).write_bytes(b"new")  # the same length, within the same second
    assert read(reader, path).blocks[0].text == "new"
    assert site.parsed("lines") == ["a.ln", "a.ln"]


def test_a_file_just_written_is_read_again_even_if_its_times_do_not_move(site: Site, tmp_path: Path) -> None:
    site.install("lines", parser="lines", facts="extensions=('ln',)")
    reader = site.reader()
    path = tmp_path / "a.ln"
    for number in range(10, 60):
        path.write_bytes(str(number).encode())
        assert read(reader, str(path)).blocks[0].text == str(number)


def test_a_file_system_with_a_coarse_clock_does_not_hide_a_quick_rewrite(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def coarse(path: str) -> tuple[int, ...]:
        modified, changed, *rest = file_signature(path)
        tick = 2 * 10**9  # as FAT's
        return (modified // tick * tick, changed // tick * tick, *rest)

    monkeypatch.setattr(documents, "file_signature", coarse)
    site.install("lines", parser="lines", facts="extensions=('ln',)")
    reader = site.reader()
    path = tmp_path / "a.ln"
    signatures = set()
    for number in range(10, 60):
        path.write_bytes(str(number).encode())
        signatures.add(coarse(str(path)))
        assert read(reader, str(path)).blocks[0].text == str(number)
    assert len(signatures) < 50, "some rewrites did not show in the times"


def test_the_same_bytes_under_another_name_are_parsed_once_and_keep_their_own_name(site: Site, write: Write) -> None:
    site.install("lines", parser="lines", facts="extensions=('ln',)")
    paths = [write("a.ln", b"same"), write("b.ln", b"same")]
    reading = read_all(site.reader(), *paths)
    assert [document.source for document in reading.documents] == paths
    assert len(site.parsed("lines")) == 1


def test_settings_reach_the_parser_they_are_for(site: Site, write: Write) -> None:
    site.install("lines", parser="lines", facts="extensions=('ln',)", apart=True)
    host = PluginHost(Settings(enabled=tuple(site.enabled)), paths=[str(site.folder)])
    reader = DocumentReader(host, parser_cfg={"lines": {"depth": 3}, "other": {"depth": 4}})
    assert read(reader, write("a.ln", b"x")).metadata == {"depth": 3}


@pytest.mark.parametrize(
    ("table", "own", "depth"),
    [("parser.lines", {}, 3), ("parser.lines/lines", {}, 3), ("parser.lines", {"depth": 5}, 5)],
    ids=["by name", "by address", "overridden"],
)
def test_settings_of_the_users_file_reach_each_parser(
    site: Site, write: Write, table: str, own: dict[str, int], depth: int
) -> None:
    site.install("lines", parser="lines", facts="extensions=('ln',)", apart=True)
    settings = Settings(enabled=tuple(site.enabled), options={table: {"depth": 3, "color": "red"}})
    reader = DocumentReader(PluginHost(settings, paths=[str(site.folder)]), parser_cfg={"lines": own})
    path = write("a.ln", b"x")
    assert read(reader, path).metadata == {"depth": depth, "color": "red"}
    without = DocumentReader(
        PluginHost(Settings(enabled=tuple(site.enabled)), paths=[str(site.folder)]), parser_cfg={"lines": own}
    )
    assert reader.parsers() != without.parsers()
    assert asyncio.run(reader.fingerprint(path)) != asyncio.run(without.fingerprint(path))


def test_a_file_type_can_be_given_to_another_parser(site: Site, write: Write) -> None:
    site.install("lines", parser="lines", facts="extensions=('ln',)")
    site.install("other", parser="lines", facts="extensions=('ot',)")
    host = PluginHost(Settings(enabled=tuple(site.enabled)), paths=[str(site.folder)])
    settings = {"lines": {"depth": 1}, "other/lines": {"depth": 2}}
    reader = DocumentReader(host, parser_cfg=settings, parser_for={"ln": "other/lines", "log": "lines/lines"})
    assert [read(reader, write(name, b"x")).metadata["depth"] for name in ("a.ln", "b.log", "c.ot")] == [2, 1, 2]
    assert why_nothing_reads(host, also=("log",))("d.log") == ""
    assert "no installed package can read .log files" in why_nothing_reads(host)("d.log")


def test_a_fingerprint_changes_with_a_password_and_does_not_hold_it(site: Site, write: Write) -> None:
    site.install("lines", parser="lines", facts="extensions=('ln',)")
    host, path = PluginHost(Settings(enabled=tuple(site.enabled)), paths=[str(site.folder)]), write("a.ln", b"x")
    marks = set()
    for password in ("geheim", SecretStr("geheim"), "other", SecretStr("other"), None):
        reader = DocumentReader(host, parser_cfg={"lines": {"password": password}})
        marks.add(asyncio.run(reader.fingerprint(path)))
        assert "geheim" not in f"{marks} {reader.parsers()}"
    assert len(marks) == 5


def test_the_reader_of_a_configuration_names_the_setting_that_is_wrong(site: Site, write: Write) -> None:
    site.install("lines", parser="lines", facts="extensions=('ln',), config='parser_lines:Config'", body=WITH_CONFIG)
    site.install("other", parser="other", facts="extensions=('ln',)")
    host = PluginHost(Settings(enabled=tuple(site.enabled)), paths=[str(site.folder)])
    for wrong, says in (
        ({"parsers": {"line": {}}}, "rag_cfg: parsers: .*'line'"),
        ({"parsers": {"lines": {"dept": 3}}}, "rag_cfg: parsers: lines: unknown setting 'dept'; did you mean 'depth'"),
        ({"parser_for": {"ln": "lins"}}, "rag_cfg: parser_for: ln: .*'lins'"),
    ):
        with pytest.raises(ConfigError, match=says):
            RAGConfig.parse(wrong).reader(host)
    config = RAGConfig.parse({"parsers": {"lines": {"depth": 3}}, "parser_for": {"ln": "lines"}})
    assert read(config.reader(host, kept_chars=1), write("a.ln", b"x")).metadata == {"depth": 3}


def test_pictures_are_looked_for_with_the_settings_of_the_parser(site: Site, write: Write) -> None:
    facts = "extensions=('ln',), pictures='parser_lines:LineParser'"
    site.install("lines", parser="lines", facts=facts, body=PICTURES)
    host = PluginHost(Settings(enabled=tuple(site.enabled)), paths=[str(site.folder)])
    reader = DocumentReader(host, parser_cfg={"lines": {"password": "p"}, "other": {"password": "q"}})
    path = write("a.ln", b"x")
    for most in (1, 2, 3):
        parts = asyncio.run(reader.pictures(path, most=most))
        assert [part.name for part in parts] == [f"max_pictures={most}", "password=p"][:most]


def test_one_bad_file_does_not_stop_the_others(site: Site, write: Write) -> None:
    site.install("lines", parser="lines", facts="extensions=('ln',)", apart=True)
    good, bad, worse = write("good.ln", b"x"), write("bad.ln", b"broken"), write("worse.ln", b"crash")
    reading = read_all(site.reader(), bad, good, worse, good, "missing.ln")
    assert [document.source for document in reading.documents] == [good]
    assert list(reading.errors) == [bad, worse, "missing.ln"]
    assert str(reading.errors[bad]) == "bad.ln is damaged"
    assert "worse.ln cannot be read: parser 'lines' of lines failed (KeyError)" in str(reading.errors[worse])
    assert "missing.ln does not exist" in str(reading.errors["missing.ln"])


def test_an_error_names_the_file_without_the_folders_above_it(site: Site, write: Write, tmp_path: Path) -> None:
    site.install("lines", parser="lines", facts="extensions=('ln',)")
    for data in (b"broken", b"crash", b""):
        with pytest.raises(DocParserError, match=r"^a\.ln ") as caught:
            read(site.reader(), write("a.ln", data))
        assert str(tmp_path) not in str(caught.value)


def test_a_parser_that_cannot_be_imported_is_named(site: Site, write: Write) -> None:
    site.install("lines", parser="lines", facts="extensions=('ln',)", body="import a_package_nobody_has", apart=True)
    with pytest.raises(DocParserError, match=r"a\.ln cannot be read: lines cannot be loaded.*a_package_nobody_has"):
        read(site.reader(), write("a.ln", b"x"))


def test_a_file_nobody_can_read_says_what_can_be_read(site: Site, write: Write) -> None:
    site.install("lines", parser="lines", facts="extensions=('ln', 'lines')")
    with pytest.raises(DocParserError, match=r"no parser for '\.xyz' files is installed; installed .* read: lines, ln"):
        read(site.reader(), write("a.xyz", b"\0\1\2"))


def test_a_broken_neighbour_is_named_where_it_may_be_the_reason(site: Site, write: Write) -> None:
    site.install("lines", parser="lines", facts="extensions=('ln', 1)")
    with pytest.raises(DocParserError, match="lines/lines cannot be loaded"):
        read(site.reader(), write("a.ln", b"\0"))


def test_a_file_that_is_too_large_is_refused(site: Site, write: Write) -> None:
    site.install("lines", parser="lines", facts="extensions=('ln',)")
    reader = DocumentReader(
        PluginHost(Settings(enabled=tuple(site.enabled)), paths=[str(site.folder)]), max_bytes=2**20
    )
    assert read(reader, write("a.ln", b"x" * 2**20)).blocks
    with pytest.raises(DocParserError, match=r"b\.ln is larger than 1 MiB: split it, or raise max_bytes"):
        read(reader, write("b.ln", b"x" * (2**20 + 1)))


@pytest.mark.parametrize("size_gib", [1, 900])
def test_a_file_of_many_gigabytes_is_refused_unread(size_gib: int, site: Site, tmp_path: Path) -> None:
    site.install("lines", parser="lines", facts="extensions=('ln',)")
    with (tmp_path / "huge.ln").open("wb") as file:
        file.truncate(size_gib * 2**30)  # it takes no room
    tracemalloc.start()
    try:
        with pytest.raises(DocParserError, match=r"^huge\.ln is larger than 100 MiB: split it, or raise max_bytes$"):
            read(site.reader(), str(tmp_path / "huge.ln"))
        assert tracemalloc.get_traced_memory()[1] < 10 * 2**20
    finally:
        tracemalloc.stop()


def test_what_is_no_file_is_refused_without_waiting_for_it(site: Site, tmp_path: Path) -> None:
    site.install("lines", parser="lines", facts="extensions=('ln',)")
    os.mkfifo(tmp_path / "pipe.ln")
    (tmp_path / "device.ln").symlink_to(os.devnull)
    (tmp_path / "folder.ln").mkdir()
    for name, told in (
        ("pipe.ln", "not a regular file"),
        ("device.ln", "not a regular file"),
        ("folder.ln", "is a folder"),
        ("a\0.ln", "cannot be opened"),
    ):
        with pytest.raises(DocParserError, match=told):
            read(site.reader(), str(tmp_path / name))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not take such names")
def test_a_name_that_is_no_text_is_read_and_can_be_shown(site: Site, tmp_path: Path) -> None:
    site.install("lines", parser="lines", facts="extensions=('ln',)", apart=True)
    for data in (b"text", b"broken"):
        path = os.fsdecode(bytes(tmp_path) + b"/caf\xe9\n.ln")
        Path(path).write_bytes(data)
        reading = read_all(site.reader(), path)
        if data == b"text":
            assert reading.documents[0].source == path
            shown = passages(chunk_document(reading.documents[0]))[0]["url"]
        else:
            shown = str(reading.errors[path])
        assert shown.encode().decode().isprintable()
        assert r"caf\udce9\n.ln" in shown


@pytest.mark.parametrize("name", ["", "a\0b.ln", "\ud800.ln", "x" * 300 + ".ln", "y/" * 3000 + "a.ln", "\x1b[2J.ln"])
def test_whatever_a_path_is_it_is_read_or_refused(site: Site, tmp_path: Path, name: str) -> None:
    site.install("lines", parser="lines", facts="extensions=('ln',)")
    with pytest.raises(DocParserError) as caught:
        read(site.reader(), f"{tmp_path}/missing/{name}" if name else "")
    assert str(caught.value).encode().decode().isprintable()
    assert len(str(caught.value)) < 500


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pipes with names")
def test_a_file_that_becomes_a_pipe_does_not_keep_anybody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.ln")
    with pytest.raises(DocParserError, match="not a regular file"):
        _read_bytes(str(tmp_path / "a.ln"), 1000)


def test_a_fingerprint_names_the_parsers_of_parts_with_known_extensions_only(site: Site, write: Write) -> None:
    """A parser of other files must not make an index read all PDFs again."""
    path = write("a.pg", b"x")

    def fingerprint() -> Fingerprint:
        host = PluginHost(Settings(enabled=tuple(site.enabled)), paths=[str(site.folder)])
        return asyncio.run(DocumentReader(host).fingerprint(path))

    site.install("pages", parser="pages", facts="extensions=('pg',), has_parts=True, part_extensions=('scan',)")
    alone = fingerprint()
    site.install("other", parser="other", facts="extensions=('ot',)")
    assert fingerprint() == alone
    site.install("scans", parser="scans", facts="extensions=('scan',)")
    assert fingerprint() != alone
    assert fingerprint().without_parts == alone.without_parts


def test_a_fingerprint_changes_with_all_that_a_reading_depends_on(site: Site, write: Write) -> None:
    outer = "extensions=('pg', 'pgx'), has_parts=True, part_extensions=('scan',)"
    site.install("pages", parser="pages", facts=outer)
    site.install("scans", parser="scans", facts="extensions=('scan',)")
    path, twin = write("a.pg", b"x"), write("a.pgx", b"x")

    def fingerprint(path: str = path, **options: Any) -> Fingerprint:
        host = PluginHost(Settings(enabled=tuple(site.enabled)), paths=[str(site.folder)])
        return asyncio.run(DocumentReader(host, **options).fingerprint(path))

    marks = [
        fingerprint(),
        fingerprint(twin),
        fingerprint(write("b.pg", b"y")),
        fingerprint(parser_cfg={"pages": {"depth": 2}}),
        fingerprint(parser_cfg={"scans": {"depth": 2}}),
        fingerprint(parser_cfg={"scans": {"depth": 3}}),
    ]
    assert len(set(marks)) == len(marks)
    assert fingerprint(parser_cfg={"others": {"depth": 2}}) == marks[0]


def test_the_hash_of_the_parsers_changes_with_what_chooses_and_sets_them(site: Site) -> None:
    for name in ("one", "two"):
        site.install(name, parser="lines", facts="extensions=('ln',)")

    def parsers(prefer: str = "", **options: Any) -> str:
        settings = Settings(prefer={"parser.ln": prefer} if prefer else {}, enabled=tuple(site.enabled))
        return DocumentReader(PluginHost(settings, paths=[str(site.folder)]), **options).parsers()

    hashes = [
        parsers(),
        parsers("one"),
        parsers("two"),
        parsers(parser_cfg={"lines": {"depth": 2}}),
        parsers(parser_for={"ln": "one/lines"}),
    ]
    assert len(set(hashes)) == len(hashes)
    assert parsers() == hashes[0]


def test_a_document_depends_on_the_parsers_of_parts_only_if_it_has_some() -> None:
    fingerprint = Fingerprint("h", "p", "parts")
    assert fingerprint.of(Document("a", (), "h")) == Fingerprint("h", "p")
    assert fingerprint.of(Document("a", (), "h", metadata={"parts": 2})) == fingerprint


@pytest.mark.parametrize(
    ("head", "is_text"),
    [
        (b"text", True),
        ("中".encode()[:2], True),
        (b"abc" + "\U0001f642".encode()[:3], True),
        ("\U0001f642".encode()[:3] + b"a", False),
        (b"a\0b", False),
    ],
)
def test_a_sample_may_end_within_a_character(head: bytes, is_text: bool) -> None:
    assert _is_text(head) is is_text


def test_a_file_is_settled_once_neither_its_content_nor_its_facts_have_just_changed() -> None:
    now = time.time_ns()
    assert is_settled((0, 0, now, now))
    assert not is_settled((now, 0))
    assert not is_settled((0, now))
    assert not is_settled((now - 1_000_000_000, 0)), "the coarsest clock ticks every two seconds"


def test_so_many_files_are_read_at_once_as_wanted_and_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, begun, most = DocumentReader(), list[str](), 0
    running = 0

    async def read(name: str) -> Document:
        nonlocal running, most
        begun.append(name)
        running += 1
        most = max(most, running)
        for _ in range(5):
            await asyncio.sleep(0)
        running -= 1
        return Document(name, (), "")

    monkeypatch.setattr(reader, "read", read)
    reading = asyncio.run(reader.read_all(["a", "b", "a", "c", "d"], at_once=2))
    assert (begun, most) == (["a", "b", "c", "d"], 2)
    assert [document.source for document in reading.documents] == begun


def test_a_file_that_changes_between_its_key_and_its_parsing_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("before")
    reader = DocumentReader()
    key, _ = reader._identify(str(path))
    path.write_text("after")
    with pytest.raises(DocParserError, match=r"a\.txt changed while it was being read"):
        reader._parse(str(path), key, None, StopSignal())


@pytest.mark.parametrize(("size", "where"), [(2**20, "here"), (2**20 + 1, "there")])
def test_a_large_file_gets_a_process_whatever_its_parser_allows(
    size: int, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = DocumentReader()
    monkeypatch.setattr(reader, "_parse_here", lambda *_: "here")
    monkeypatch.setattr(reader, "_parse_in_subprocess", lambda *_: "there")
    spec: Any = SimpleNamespace(in_process_bytes=2**30)
    assert reader._parse_one(None, spec, b"x" * size, "a", StopSignal()) == where  # type: ignore[arg-type]


def test_files_in_files_are_read_three_levels_deep(tmp_path: Path) -> None:
    data = b"the innermost text"
    name = "text.txt"
    for level in range(4):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr(name, data)
        data, name = packed.getvalue(), f"{level}.zip"
    path = tmp_path / name
    path.write_bytes(data)
    reader = DocumentReader()
    document = asyncio.run(reader.read(path))
    assert "was not read: nested more than 3 levels deep" in document.blocks[-1].text
    inner = "2.zip › 1.zip › 0.zip"
    assert reader._open_part(str(path), inner, StopSignal())[0] == "0.zip"
    with pytest.raises(DocParserError, match=r"0\.zip contains no file text\.txt"):
        reader._open_part(str(path), f"{inner} › text.txt", StopSignal())


def test_of_parts_with_one_name_each_is_opened_by_its_own(tmp_path: Path) -> None:
    message = EmailMessage()
    message["Subject"] = "s"
    for text in ("one", "two", "three"):
        message.add_attachment(text, filename="a.txt")
    (tmp_path / "x.eml").write_bytes(message.as_bytes())
    reader = DocumentReader()
    document = asyncio.run(reader.read(tmp_path / "x.eml"))
    for name, text in (("a.txt", b"one"), ("a (2).txt", b"two"), ("a (3).txt", b"three")):
        assert [block.text for block in document.blocks if block.part == name] == [name, text.decode()]
        assert reader._open_part(str(tmp_path / "x.eml"), name, StopSignal())[1].strip() == text


def test_parsers_that_cannot_be_used_are_named_once_with_their_reason() -> None:
    class Named:
        def __init__(self, name: str) -> None:
            self.address = f"acme/{name}"

    used, broken, blocked = map(Named, ("used", "broken", "blocked"))
    policy = SimpleNamespace(left_out=lambda _: {blocked: "is disabled"}, rows=lambda _: [used, broken, blocked])
    reader = DocumentReader(SimpleNamespace(policy=policy))  # type: ignore[arg-type]
    assert reader._list_unavailable([(used, None)]) == (  # type: ignore[list-item]
        "; acme/broken cannot be loaded (see: jackfield plugins doctor); acme/blocked is disabled"
    )
