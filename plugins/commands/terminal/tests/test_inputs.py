"""What is given besides a question: documents, attachments, standard input."""

from __future__ import annotations

import io
import os
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from jackfield.errors import ConfigError
from jackfield.messages import ContentItem
from jackfield.retrieval import Block, Document
from jackfield_terminal.inputs import (
    find_documents,
    is_piped,
    make_attachment,
    make_question,
    read_fragment,
    read_input,
    read_text,
    why_not_sent,
)


def texts_only(path: str) -> str:
    return "" if path.lower().endswith((".md", ".txt")) else "nothing reads it"


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what folders have."""
    monkeypatch.chdir(tmp_path)
    files = {
        "docs/a.md": "a", "docs/deep/b.TXT": "b", "docs/logo.png": "x", "docs/empty.md": "", "docs/README": "r",
        "docs/.git/c.md": "c", "docs/node_modules/d.md": "d", "docs/.hidden.md": "e", "other.bin": "o",
    }  # fmt: skip
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    Path("docs/loop").symlink_to(tmp_path / "docs")
    return tmp_path


def test_a_folder_is_read_with_what_is_in_it_and_says_what_it_left_out(docs: Path) -> None:
    found = find_documents(["docs"], texts_only)
    assert found.files == ("docs/a.md", "docs/deep/b.TXT")
    assert [(one.path, one.reason) for one in found.skipped] == [
        ("docs/README", "nothing reads it"),
        ("docs/empty.md", "empty"),
        ("docs/logo.png", "nothing reads it"),
        ("docs/loop", "a link to a folder"),
    ]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("none.md", "no files or folders match 'none.md'"),
        ("*.pdf", r"match '\*.pdf'"),
        ("docs/.git", "nothing to read"),
    ],
)
def test_what_is_not_there_is_an_error(docs: Path, name: str, told: str) -> None:
    (docs / "docs/.git/c.md").unlink()
    with pytest.raises(ConfigError, match=told):
        find_documents([name], texts_only)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.png", "image"), ("a.JPG", "image"), ("a.wav", "audio"), ("a.mp4", "video"), ("a.pdf", "file"), ("a", "file")],
)
def test_an_attachment_goes_as_what_it_is(tmp_path: Path, name: str, kind: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"x")
    assert make_attachment(str(path)).get_type_and_value() == (kind, str(path))
    assert make_attachment(f"https://acme.example/{name}?size=1").type == kind


@pytest.mark.parametrize(
    ("begins", "media_type"),
    [
        (b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff\xe0", "image/jpeg"), (b"GIF89a", "image/gif"),
        (b"BM6\0", "image/bmp"), (b"RIFF\n\0\0\0WEBPVP8 ", "image/webp"),
    ],
)  # fmt: skip
def test_a_picture_that_comes_without_a_name_is_known_by_how_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begins: bytes, media_type: str
) -> None:
    def attached(content: bytes) -> ContentItem:
        (tmp_path / "input").write_bytes(content)
        with (tmp_path / "input").open() as standard_input:
            monkeypatch.setattr("sys.stdin", standard_input)
            return make_attachment("-")

    assert str(attached(begins).image).startswith(f"data:{media_type};base64,")
    with pytest.raises(ConfigError, match="does not contain a PNG"):
        attached(b"RIFF\0\0\0\0WAVE" + begins)


def test_an_attachment_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    for name in (str(tmp_path), str(tmp_path / "none.png")):
        with pytest.raises(ConfigError, match="the attachment"):
            make_question("What is it?", [name])


def test_only_what_somebody_has_put_there_is_read() -> None:
    readable, writable = os.pipe()
    with os.fdopen(readable) as pipe, os.fdopen(writable, "w"), open(os.devnull) as nothing:  # noqa: PTH123 - a name
        assert is_piped(pipe)
        assert not is_piped(nothing)
    assert not is_piped(pipe), "it is closed"
    near, far = socket.socketpair()
    with near, far, far.makefile() as stream:
        assert is_piped(stream)
    assert not is_piped(None)


class _Timer:
    """Stands in for the timer that prints a hint, and records what happens to it."""

    daemon = False
    journal: ClassVar[list[str]] = []

    def __init__(self, seconds: float, work: Any) -> None:
        self.journal.append(f"{seconds:g} s")

    def start(self) -> None:
        self.journal.append("started")

    def cancel(self) -> None:
        self.journal.append("cancelled")


@pytest.mark.parametrize("content", [b"text", None])
def test_the_hint_is_cancelled_once_the_input_is_read_or_fails(
    content: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    _Timer.journal.clear()
    monkeypatch.setattr("jackfield_terminal.inputs.threading.Timer", _Timer)
    stream: Any = SimpleNamespace(buffer=io.BytesIO(content or b""))
    if content is None:
        stream.buffer.close()
    monkeypatch.setattr("sys.stdin", stream)
    if content is None:
        with pytest.raises(ValueError, match="closed"):
            read_input()
    else:
        assert read_input() == content
    assert _Timer.journal == ["2 s", "started", "cancelled"]
    monkeypatch.setattr("sys.stdin", None)
    assert read_input() == b""


def test_input_that_is_not_text_names_the_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"ab\xff")))
    with pytest.raises(
        ConfigError, match=r"not valid UTF-8 \(invalid byte at position 2\); to attach an image, pass -a -"
    ):
        read_text()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"\xef\xbb\xbfab")))
    assert read_text() == "ab"


def test_fragments_are_texts_or_what_a_parser_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbf  text \n")
    assert read_fragment("a.txt") == "text"
    late = "a" * 8192 + "\0"
    (tmp_path / "late.txt").write_text(late)
    assert read_fragment("late.txt") == late, "only the beginning tells text from other files"
    (tmp_path / "a.bin").write_bytes(b"\0\1")
    with pytest.raises(ConfigError, match=r"the fragment .*a\.bin' cannot be read"):
        read_fragment("a.bin")


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        (".", "is a folder; "),
        ("gone", "is not in "),
        ("/gone", "does not exist$"),
        ("pipe", "is not a regular file; copy its content into one$"),
    ],
)
def test_an_input_that_is_no_file_has_its_reason(
    name: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    with pytest.raises(ConfigError, match=f"^the fragment '{name}' {fault}"):
        read_fragment(name)
    with pytest.raises(ConfigError, match=f"^the attachment '{name}' {fault}"):
        make_attachment(name)


def test_only_the_host_of_a_typed_address_may_be_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    settings: list[Any] = []

    class Reader:
        def __init__(self, **more: Any) -> None:
            settings.append(more["fetch_cfg"])

        async def read(self, source: str) -> Document:
            return Document(source, (Block("one "), Block("two ")), "")

    monkeypatch.setattr("jackfield_documents.DocumentReader", Reader)
    assert read_fragment("http://127.0.0.1:8000/a.html") == "one \n\ntwo"
    assert settings == [{"allow": ["127.0.0.1"]}]


def test_files_that_no_parser_reads_are_sent_if_they_are_text_or_pdf(tmp_path: Path) -> None:
    why_not = why_not_sent(lambda path: "" if path.endswith(".md") else "nothing reads it")
    contents = {
        "a.md": b"\0", "a.pdf": b"%PDF-1", "a.log": "é".encode(), "empty.log": b"", "a.bin": b"\0\xff\xfe\x01"
    }  # fmt: skip
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    assert {name: why_not(str(tmp_path / name)) for name in contents} == {
        "a.md": "",
        "a.pdf": "",
        "a.log": "",
        "empty.log": "",
        "a.bin": "nothing reads it",
    }
