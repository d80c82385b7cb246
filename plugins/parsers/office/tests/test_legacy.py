from __future__ import annotations

import asyncio
import gzip
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from jackfield.errors import DocParserError
from jackfield.retrieval import Document
from jackfield_documents import DocumentReader
from jackfield_office.legacy import LegacyConfig, LegacyParser
from jackfield_office.libreoffice import _environment, _without_network
from jackfield_office.plugin import parsers
from jackfield_testkit.effects import undeclared, watching

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)
WORD = OLE + "WordDocument".encode("utf-16-le") + bytes(500)

posix = pytest.mark.skipif(os.name != "posix", reason="sessions of POSIX")
needs_libreoffice = pytest.mark.skipif(not shutil.which("soffice"), reason="LibreOffice is not installed")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is empty"),
        (b"PK\x03\x04", "is in a newer format than its extension"),
        (b"just a text", "does not match its extension"),
        (OLE + "Workbook".encode("utf-16-le"), r"cannot be read: it is a spreadsheet: rename it to \.xls"),
        (OLE, "cannot be read: it is encrypted, or created by another program"),
    ],
)
def test_what_is_no_old_word_or_powerpoint_file_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(DocParserError, match=rf"^a\.doc {reason}"):
        LegacyParser().parse(data, source="a.doc")


def test_without_libreoffice_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(DocParserError, match=r"^a\.doc cannot be read: .* require LibreOffice, which is not installed"):
        LegacyParser().parse(WORD, source="a.doc")


# --- a program in the place of LibreOffice ----------------------------------------------------------------------------


def program(folder: Path, script: str) -> str:
    path = folder / "office"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def parse(soffice: str, **settings: Any) -> Document:
    return LegacyParser(LegacyConfig(soffice=soffice, **settings)).parse(WORD, source="a.doc")


def is_running(pid: int) -> bool:
    """Whether a process does anything; one that was killed may wait for long for somebody who asks how it ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait, for a minute at most: what is killed does not end at that very moment."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.01)


def pids_in(*files: Path) -> list[int]:
    """The processes that noted themselves, as far as they came to it before they were killed."""
    return [int(text) for text in (file.read_text() for file in files if file.exists()) if text.endswith("\n")]


@pytest.fixture
def answer(files: Any, tmp_path: Path) -> str:
    """What a program in the place of LibreOffice does to give a document."""
    made = tmp_path / "answer.docx"
    made.write_bytes(files.word(lambda document: document.add_paragraph("Green tea.")))
    return f'while [ "$1" != --outdir ]; do shift; done; mkdir -p "$2"; cp {made} "$2/document.docx"'


def test_it_does_what_its_descriptor_declares_and_nothing_else(tmp_path: Path, answer: str) -> None:
    (spec,) = (spec for spec in parsers() if spec.name == "doc")
    with watching() as effects:
        assert parse(program(tmp_path, answer)).blocks[0].text == "Green tea."
    assert undeclared(effects, spec.effects) == []
    assert effects.kinds == spec.effects == {"files", "processes"}
    assert all(spec.effects == frozenset() for spec in parsers() if spec.name != "doc")


@posix
def test_it_sees_nothing_of_the_users_session_and_leaves_nothing_behind(
    tmp_path: Path, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, temporary, note = tmp_path / "home", tmp_path / "tmp", tmp_path / "note"
    for name, folder in (("HOME", home), ("TMPDIR", temporary), ("XDG_CONFIG_HOME", home / ".config")):
        folder.mkdir(exist_ok=True)
        monkeypatch.setenv(name, str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("no_proxy", "intranet.example")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("DISPLAY", ":0")
    script = f'pwd > {note}; echo "$@" >> {note}; env >> {note}; touch "$HOME/a" "$TMPDIR/b"; {answer}'
    parse(program(tmp_path, script))
    folder, command, *lines = note.read_text().splitlines()
    seen = dict(line.split("=", 1) for line in lines if "=" in line)
    assert Path(folder).is_relative_to(temporary.resolve())
    assert f"-env:UserInstallation=file://{folder}/profile" in command
    assert (seen["HOME"], seen["TMPDIR"]) == (folder, f"{folder}/tmp")
    assert {name: value for name, value in seen.items() if "proxy" in name.lower()} == dict.fromkeys(
        ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy"), "http://127.0.0.1:9"
    )
    assert not {"XDG_CONFIG_HOME", "DISPLAY"} & set(seen)
    assert list(temporary.iterdir()) == []
    assert sorted(path.name for path in home.rglob("*")) == [".config"]


@posix
@pytest.mark.parametrize(
    ("data", "old", "new"),
    [
        (WORD, "doc", "docx"),
        (b"{\\rtf1 Tea}", "doc", "docx"),
        (OLE + "PowerPoint Document".encode("utf-16-le"), "ppt", "pptx"),
        (WORD + "PowerPoint Document".encode("utf-16-le"), "ppt", "pptx"),  # with a Word file in a slide
    ],
)
def test_the_content_decides_what_a_file_is_turned_into(
    files: Any, tmp_path: Path, data: bytes, old: str, new: str
) -> None:
    made, note = tmp_path / "answer", tmp_path / "note"
    made.write_bytes(
        files.word(lambda document: document.add_paragraph("Tea"))
        if new == "docx"
        else files.slides(lambda one: setattr(one.slides.add_slide(one.slide_layouts[5]).shapes.title, "text", "Tea"))
    )
    script = (
        f'for file; do :; done; echo "$@" > {note}; cat "$file" >> {note}; '
        f'cp "$HOME/profile/user/registrymodifications.xcu" {note}.settings; '
        f'while [ "$1" != --outdir ]; do shift; done; mkdir -p "$2"; cp {made} "$2/document.{new}"'
    )
    soffice = program(tmp_path, script)
    document = LegacyParser(LegacyConfig(soffice=soffice)).parse(data, source="a.doc")
    assert (document.source, document.blocks[0].text) == ("a.doc", "Tea")
    command, content = note.read_bytes().split(b"\n", 1)
    assert command.split()[:3] == [b"--headless", b"--norestore", b"--nolockcheck"]
    assert b" --convert-to " + new.encode() + b" " in command
    assert command.endswith(f"/document.{old}".encode())
    assert content == data
    settings = Path(f"{note}.settings").read_text()
    for name in ("BlockUntrustedRefererLinks", "DisableActiveContent", "DisableMacrosExecution"):
        assert f'"{name}" oor:op="fuse"><value>true</value>' in settings


@posix
def test_the_first_of_its_usual_names_on_the_path_is_started(
    tmp_path: Path, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = tmp_path / "note"
    for name in ("libreoffice", "soffice"):
        (tmp_path / "office").unlink(missing_ok=True)
        program(tmp_path, f"echo {name} > {note}; {answer}")
        (tmp_path / "office").rename(tmp_path / name)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        assert parse("").blocks[0].text == "Green tea."
        assert note.read_text() == f"{name}\n"


@posix
def test_a_program_that_cannot_be_started_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    _without_network()  # it keeps what it finds out
    monkeypatch.setattr(subprocess, "Popen", refuse)
    with pytest.raises(DocParserError, match=r"^a\.doc cannot be read: .*office cannot be started \(Cannot allocate"):
        parse(program(tmp_path, "exit 0"))


@posix
def test_its_memory_and_its_time_are_limited(tmp_path: Path, answer: str) -> None:
    note = tmp_path / "note"
    parse(program(tmp_path, f"ulimit -v > {note}; ulimit -t >> {note}; {answer}"))
    assert note.read_text().split() == [str(4 * 2**20), "90"]


@posix
def test_two_run_at_once_each_in_its_own_folder(tmp_path: Path, answer: str) -> None:
    # Each waits until the other has begun.
    scripts = [
        f"pwd > {tmp_path}/{one}.new; mv {tmp_path}/{one}.new {tmp_path}/{one}; "
        f"until [ -e {tmp_path}/{other} ]; do sleep 0.02; done; {answer}"
        for one, other in (("first", "second"), ("second", "first"))
    ]
    for number, script in enumerate(scripts):
        (tmp_path / f"at{number}").mkdir()
        program(tmp_path / f"at{number}", script)
    with ThreadPoolExecutor(2) as pool:
        documents = list(pool.map(lambda number: parse(str(tmp_path / f"at{number}" / "office")), range(2)))
    assert [document.blocks[0].text for document in documents] == ["Green tea."] * 2
    assert (tmp_path / "first").read_text() != (tmp_path / "second").read_text()


@posix
def test_it_has_no_network_where_the_machine_allows_that(tmp_path: Path, answer: str) -> None:
    if not _without_network():
        pytest.skip("this machine allows no network of one's own")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        ask = f"import socket; socket.create_connection(('127.0.0.1', {port}), timeout=60)"
        note = tmp_path / "note"
        parse(program(tmp_path, f'"{sys.executable}" -c "{ask}" 2> {note}; {answer}'))
        assert "Error" in note.read_text()
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


@posix
def test_an_office_that_never_ends_is_ended_with_its_children(tmp_path: Path) -> None:
    own, child = tmp_path / "own", tmp_path / "child"
    script = f"sleep 1000 & echo $! > {child}; echo $$ > {own}; wait"
    with pytest.raises(DocParserError, match=r"^a\.doc cannot be read: LibreOffice timed out after 3 s"):
        parse(program(tmp_path, script), timeout_s=3)
    wait_until(lambda: not any(map(is_running, pids_in(own, child))))


@posix
def test_what_an_office_leaves_running_is_ended(tmp_path: Path, answer: str) -> None:
    child = tmp_path / "child"
    parse(program(tmp_path, f"sleep 1000 & echo $! > {child}; {answer}"))
    wait_until(lambda: not is_running(*pids_in(child)))


_KILLED = """
import sys
from jackfield.retrieval import Document
from jackfield_office.legacy import LegacyConfig, LegacyParser
from jackfield_office.libreoffice import _without_network
from jackfield_office.plugin import parsers
from jackfield_testkit.effects import undeclared, watching
data = bytes.fromhex(sys.stdin.read())
LegacyParser(LegacyConfig(soffice=sys.argv[1])).parse(data, source="a.doc")
"""


@posix
def test_an_office_ends_when_the_process_that_asked_for_it_is_killed(tmp_path: Path) -> None:
    temporary, child, ready = tmp_path / "tmp", tmp_path / "child", tmp_path / "ready"
    temporary.mkdir()
    soffice = program(tmp_path, f"sleep 1000 & echo $! > {child}; echo $$ > {ready}.new; mv {ready}.new {ready}; wait")
    process = subprocess.Popen(
        [sys.executable, "-c", _KILLED, soffice],
        stdin=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    assert process.stdin is not None
    process.stdin.write(WORD.hex().encode())
    process.stdin.close()
    wait_until(ready.exists)
    process.kill()
    process.wait()
    wait_until(lambda: not any(map(is_running, pids_in(ready, child))))
    wait_until(lambda: list(temporary.iterdir()) == [])


@pytest.mark.parametrize("script", ["exit 0", "exit 1", "kill -9 $$"])
def test_an_office_that_makes_nothing_is_an_error(tmp_path: Path, script: str) -> None:
    with pytest.raises(DocParserError, match=r"^a\.doc is corrupted or encrypted: LibreOffice cannot read it"):
        parse(program(tmp_path, script))


def test_an_office_that_is_not_there_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "exit 0")
    (tmp_path / "office").rename(tmp_path / "soffice")
    monkeypatch.setenv("PATH", str(tmp_path))  # another one is not what the user named
    with pytest.raises(DocParserError, match=r"^a\.doc cannot be read: no program '/no/such/office'"):
        parse("/no/such/office")


# --- LibreOffice itself -----------------------------------------------------------------------------------------------


def old_file(name: str, replaced: Mapping[str, str] | None = None) -> bytes:
    """A file that LibreOffice 7.4 saved, with texts in place of others as long.

    `letter.doc` has a heading, a paragraph, a table, a picture that is at an address, and three fields that ask for a
    file (INCLUDETEXT, LINK, DDEAUTO); `slides.ppt` a slide with a title and a note.
    """
    data = gzip.decompress((Path(__file__).parent / f"{name}.gz").read_bytes())
    for before, after in (replaced or {}).items():
        assert len(before) == len(after)
        for encoding in ("latin-1", "utf-16-le"):
            data = data.replace(before.encode(encoding), after.encode(encoding))
        assert after.encode("utf-16-le") in data
    return data


@needs_libreoffice
@pytest.mark.slow
def test_files_of_before_2007_are_read_at_the_same_time_and_nothing_that_they_name_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    with listening(asked) as port:
        (tmp_path / "secret.txt").write_text("TOP SECRET")
        named = {
            "/" + 199 * "s": str(tmp_path / "secret.txt").rjust(200, "/"),
            "http://127.0.0.1:00009/": f"http://127.0.0.1:{port:05}/",
        }
        (tmp_path / "a.doc").write_bytes(old_file("letter.doc", named))
        (tmp_path / "b.ppt").write_bytes(old_file("slides.ppt"))
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        reading = asyncio.run(DocumentReader().read_all([tmp_path / "a.doc", tmp_path / "b.ppt"]))
    assert dict(reading.errors) == {}
    word, powerpoint = reading.documents
    assert [(block.kind, block.text) for block in word.blocks[:4]] == [
        ("heading", "Tea"),
        ("paragraph", "Green tea."),
        ("table", "| a\\|b | c |\n|---|---|\n| d | e |"),
        ("paragraph", "end"),
    ]
    assert [(block.page, block.text) for block in powerpoint.blocks] == [(1, "Tea"), (1, "Notes: Pour slowly.")]
    assert {block.text for block in word.blocks[4:]} == {"old"}  # what the fields showed when the file was saved
    assert asked == []


@contextmanager
def listening(asked: list[str]) -> Iterator[int]:
    """A server that has nothing, and notes what it is asked for; its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        do_HEAD = do_OPTIONS = do_GET  # noqa: N815 - http.server's names

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_libreoffice_has_the_environment_without_the_session_and_the_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"PATH": "/bin", "LANG": "de_DE.UTF-8", "DISPLAY": ":0", "XDG_RUNTIME_DIR": "/run", "no_proxy": "intranet"}
    given |= {"HTTP_PROXY": "http://proxy", "DBUS_SESSION_BUS_ADDRESS": "unix:x", "HOME": "/home/ada"}
    for name in list(os.environ):
        monkeypatch.delenv(name)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    nowhere = {f"{scheme}_proxy": "http://127.0.0.1:9" for scheme in ("http", "https", "ftp", "all")}
    home = {"HOME": str(tmp_path), "TMPDIR": str(tmp_path / "tmp")}
    assert _environment(tmp_path) == {"PATH": "/bin", "LANG": "de_DE.UTF-8", **nowhere, **home}
