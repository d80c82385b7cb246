"""What is given besides a question: documents, attachments, standard input."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jackfield.errors import ConfigError
from jackfield.messages import ContentItem
from jackfield_terminal.inputs import find_documents, is_piped, make_attachment, make_question


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
        ("none.md", "no file, folder or pattern matches 'none.md'"),
        ("*.pdf", r"matches '\*.pdf'"),
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
    with pytest.raises(ConfigError, match="does not hold a PNG"):
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
    assert not is_piped(None)
