"""What is given besides a question: documents, attachments, standard input."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jackfield.errors import ConfigError
from jackfield_terminal.given import attachment, documents_of, is_piped, question


def texts_only(extension: str) -> bool:
    return extension in ("md", "txt")


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
    found = documents_of(["docs"], texts_only)
    assert found.files == ("docs/a.md", "docs/deep/b.TXT")
    assert found.lines() == [
        "skipped docs/README: it has no extension",
        "skipped docs/empty.md: empty",
        "skipped docs/logo.png: no installed package reads .png files",
    ]


@pytest.mark.parametrize(
    ("pattern", "files"),
    [
        ("docs/*.md", ("docs/a.md",)),
        ("docs/**/*", ("docs/a.md", "docs/deep/b.TXT")),
        ("docs/[ab].md", ("docs/a.md",)),
    ],
)
def test_a_glob_is_every_file_that_fits(docs: Path, pattern: str, files: tuple[str, ...]) -> None:
    assert documents_of([pattern], texts_only).files == files


def test_a_file_that_is_named_is_taken_whatever_it_is_and_an_address_too(docs: Path) -> None:
    given = ["other.bin", "docs", "https://acme.example/x.pdf", "docs/a.md"]
    found = documents_of(given, texts_only)
    assert found.files == ("other.bin", "docs/a.md", "docs/deep/b.TXT", "https://acme.example/x.pdf")


def test_a_name_with_a_star_that_is_there_is_that_file(docs: Path) -> None:
    (docs / "a[1].md").write_text("x")
    assert documents_of(["a[1].md"], texts_only).files == ("a[1].md",)


@pytest.mark.parametrize(
    ("given", "told"),
    [("none.md", "there is no file 'none.md'"), ("*.pdf", "no file matches"), ("docs/.git", "nothing to read")],
)
def test_what_is_not_there_is_an_error(docs: Path, given: str, told: str) -> None:
    (docs / "docs/.git/c.md").unlink()
    with pytest.raises(ConfigError, match=told):
        documents_of([given], texts_only)


def test_many_that_were_skipped_are_told_in_a_line(docs: Path) -> None:
    for number in range(9):
        Path(f"docs/{number}.exe").write_text("x")
    (line,) = [line for line in documents_of(["docs"], texts_only).lines() if "exe" in line]
    assert line == (
        "skipped docs/0.exe, docs/1.exe, docs/2.exe, docs/3.exe, docs/4.exe and 4 more: "
        "no installed package reads .exe files"
    )


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.png", "image"), ("a.JPG", "image"), ("a.wav", "audio"), ("a.mp4", "video"), ("a.pdf", "file"), ("a", "file")],
)
def test_an_attachment_goes_as_what_it_is(tmp_path: Path, name: str, kind: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"x")
    assert attachment(str(path)).get_type_and_value() == (kind, str(path))
    assert attachment(f"https://acme.example/{name}?size=1").type == kind


def test_an_attachment_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    for name in (str(tmp_path), str(tmp_path / "none.png")):
        with pytest.raises(ConfigError, match="the attachment"):
            question("What is it?", [name])


def test_only_what_somebody_has_put_there_is_read() -> None:
    readable, writable = os.pipe()
    with os.fdopen(readable) as pipe, os.fdopen(writable, "w"), open(os.devnull) as nothing:  # noqa: PTH123 - a name
        assert is_piped(pipe)
        assert not is_piped(nothing)
    assert not is_piped(pipe), "it is closed"
    assert not is_piped(None)
