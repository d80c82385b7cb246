"""The history of a chat is in a file that only its owner can read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jackfield_terminal import line_editor
from jackfield_terminal.line_editor import history_path, private_file

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes of files are those of POSIX")


@pytest.fixture(autouse=True)
def _usual_mask() -> object:
    mask = os.umask(0o022)
    yield
    os.umask(mask)


def test_the_file_and_a_folder_that_is_made_for_it_are_private_and_a_link_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state" / "history"
    for _ in range(2):
        assert private_file(path) == path
        assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        path.write_text("kept")
    assert path.read_text() == "kept"
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(OSError, match=r"."):
        private_file(tmp_path / "link")


def test_the_history_is_below_the_folder_for_states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert history_path() == tmp_path / "state/jackfield/chat-history"
    monkeypatch.setenv("XDG_STATE_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert history_path() == tmp_path / ".local/state/jackfield/chat-history"


@pytest.mark.parametrize(("count", "left"), [(4, 4), (5, 2)])
def test_the_oldest_messages_are_dropped_once_there_are_twice_as_many_as_kept(
    count: int, left: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_editor, "_MAX_ENTRIES", 2)
    path = tmp_path / "history"
    path.write_text("".join(f"\n# 2026-01-0{number}\n+message {number}\n" for number in range(count)))
    line_editor._trim(path)
    entries = path.read_text().split("\n# ")[1:]
    assert [entry.split()[-1] for entry in entries] == [str(number) for number in range(count - left, count)]
