"""What lies beside packages is read with limits, whatever it is, and nothing of it stays open."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from jackfield.plugins import _metadata as metadata
from jackfield.plugins import read_file


def test_a_file_and_an_entry_of_an_archive_are_read_alike(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"one")
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.writestr("folder/file", b"two")
    assert read_file(str(tmp_path / "file")) == b"one"
    assert read_file(f"{tmp_path}/archive.zip/folder/file") == b"two"


@pytest.mark.parametrize("place", ["absent", "folder", "file/below", "archive.zip/absent", "\0"])
def test_what_is_no_file_is_none_and_leaves_nothing_open(tmp_path: Path, place: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"one")
    zipfile.ZipFile(tmp_path / "archive.zip", "w").close()
    before = len(list(Path("/dev/fd").iterdir()))
    assert read_file(f"{tmp_path}/{place}") is None
    assert len(list(Path("/dev/fd").iterdir())) == before


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert not read_file(str(tmp_path / "pipe"))


def test_what_is_too_large_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "_MAX_FILE_BYTES", 3)
    (tmp_path / "file").write_bytes(b"four")
    (tmp_path / "less").write_bytes(b"two")
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.writestr("file", b"four")
        archive.writestr("less", b"two")
    for folder in (tmp_path, tmp_path / "archive.zip"):
        assert read_file(f"{folder}/file") is None
        assert read_file(f"{folder}/less") == b"two"


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, 8192, 100_000, 3_000_000])
def test_a_file_of_any_size_is_read_whole(tmp_path: Path, size: int) -> None:
    content = os.urandom(size)
    (tmp_path / "file").write_bytes(content)
    assert metadata.read_some(str(tmp_path / "file"), 4_000_000) == content


@pytest.mark.parametrize("most", [4096, 5000, 99_999])
def test_no_more_is_read_than_shows_that_it_is_too_large(tmp_path: Path, most: int) -> None:
    (tmp_path / "file").write_bytes(b"x" * 200_000)
    assert len(metadata.read_some(str(tmp_path / "file"), most) or b"") == most + 1
