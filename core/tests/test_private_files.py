"""Files for their owner alone: written whole or not at all, and through no link."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path

import pytest

from jackfield.privatefiles import lock_changes, open_private, write_private


@pytest.mark.parametrize("content", ["é\ud800", b"\xff"])
def test_a_private_file_is_written_whole_or_not_at_all(tmp_path: Path, content: str | bytes) -> None:
    path = tmp_path / "own" / "file.json"
    before = os.umask(0)
    try:
        write_private(path, content)
    finally:
        os.umask(before)
    assert path.read_bytes() == ("é?".encode() if isinstance(content, str) else content)
    assert (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode)) == (0o600, 0o700)
    write_private(path, "second")
    assert path.read_text() == "second"
    with pytest.raises(TypeError):
        write_private(path, 5)  # type: ignore[arg-type]
    (path.parent / "folder").mkdir()
    with pytest.raises(OSError, match="irectory"):
        write_private(path.parent / "folder", "x")
    assert sorted(one.name for one in path.parent.iterdir()) == ["file.json", "folder"], "nothing is left behind"
    assert path.read_text() == "second"
    write_private(path.parent / ("n" * 250), "a long name")


def test_a_private_file_is_opened_for_its_owner_alone_and_no_link_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("earlier")
    path.chmod(0o644)
    handle = open_private(path)
    os.write(handle, b"new")
    os.close(handle)
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o600)
    handle = open_private(path, os.O_WRONLY | os.O_APPEND)
    os.write(handle, b" more")
    os.close(handle)
    assert path.read_text() == "new more"
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(OSError, match=r"."):
        open_private(tmp_path / "link")


def test_a_file_whose_mode_cannot_be_changed_is_closed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []

    def refuse(handle: int, _mode: int) -> None:
        opened.append(handle)
        raise PermissionError("it belongs to another user")

    monkeypatch.setattr(os, "fchmod", refuse)
    with pytest.raises(PermissionError):
        open_private(tmp_path / "log")
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(opened[0])


def test_each_file_has_a_lock_of_its_own_beside_it(tmp_path: Path) -> None:
    with lock_changes(tmp_path / "new" / "a.json"):
        assert [file.name for file in (tmp_path / "new").iterdir()] == [".a.json.lock"]
        with lock_changes(tmp_path / "new" / "b.json"):
            assert (tmp_path / "new" / ".b.json.lock").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EIO, errno.EINTR])
def test_only_a_file_system_without_locks_is_used_without_a_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fail(_handle: int, _operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", fail)
    if number in (errno.EIO, errno.EINTR):
        with pytest.raises(OSError, match=os.strerror(number)), lock_changes(tmp_path / "keys.json"):
            pytest.fail("the block must not run")
    else:
        with lock_changes(tmp_path / "keys.json"):
            write_private(tmp_path / "keys.json", "{}")
        assert (tmp_path / "keys.json").read_text() == "{}"
