"""A file is opened through no link, and nothing in its place makes the opener wait."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jackfield_confine.paths import open_folder, open_listed_folder, open_regular

pytestmark = pytest.mark.skipif(os.open not in os.supports_dir_fd, reason="there are no descriptors of folders")


PATIENCE_S = 20


@pytest.fixture
def note(tmp_path: Path) -> Path:
    path = tmp_path.resolve() / "one" / "two" / "note"
    path.parent.mkdir(parents=True)
    path.write_text("text")
    return path


@pytest.fixture(autouse=True)
def _never_waits() -> Iterator[None]:
    """Fail a test that waits in the kernel, where it would hang the suite."""
    before = signal.signal(signal.SIGALRM, _give_up)
    signal.alarm(PATIENCE_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def _give_up(*_: object) -> None:
    pytest.fail("opening it waits")


def read(path: Path) -> bytes:
    with open_regular(path) as file:
        return file.read()


def test_a_regular_file_is_read_and_its_folder_listed(note: Path) -> None:
    assert read(note) == b"text"
    with open_listed_folder(note.parent) as handle:
        assert os.listdir(handle) == ["note"]  # noqa: PTH208 - of a descriptor
    with open_folder(note.parent) as handle:
        assert os.stat("note", dir_fd=handle).st_size == 4


@pytest.mark.parametrize("replaced", [".", ".."])
def test_no_part_of_the_path_may_be_a_link(note: Path, replaced: str) -> None:
    folder = (note.parent / replaced).resolve()
    moved = folder.rename(folder.with_name("moved"))
    folder.symlink_to(moved)
    assert note.read_text() == "text"
    with pytest.raises(OSError, match=r"Not a directory|Too many"):
        read(note)
    with pytest.raises(OSError, match=r"Not a directory|Too many"), open_listed_folder(note.parent):
        pass


def test_the_file_itself_may_not_be_a_link(note: Path) -> None:
    link = note.with_name("link")
    link.symlink_to(note)
    with pytest.raises(OSError, match="Too many levels"):
        read(link)


def test_pipes_sockets_devices_and_folders_are_refused_at_once(note: Path) -> None:
    pipe = note.with_name("pipe")
    os.mkfifo(pipe)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(note.with_name("s")))
        for path in (pipe, note.with_name("s"), note.parent, Path("/dev/null")):
            with pytest.raises(OSError, match=r"not a regular file|No such device or address|Is a directory"):
                read(path)


@pytest.mark.skipif(sys.platform != "linux", reason="leases are Linux's")
def test_a_leased_file_is_refused_at_once(note: Path) -> None:
    with note.open("r+") as held:
        fcntl.fcntl(held, fcntl.F_SETSIG, 0)
        before = signal.signal(signal.SIGIO, signal.SIG_IGN)
        try:
            fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            with pytest.raises(BlockingIOError):
                read(note)
        finally:
            fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_UNLCK)
            signal.signal(signal.SIGIO, before)


OPEN_TERMINAL = """
import sys
from pathlib import Path
from jackfield_confine.paths import open_regular
for opened in (lambda: open_regular(Path(sys.argv[1])).__enter__(), lambda: open("/dev/tty")):
    try:
        opened()
        print("opened")
    except OSError as error:
        print(error.strerror)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a terminal is taken by a call of its own")
def test_a_terminal_does_not_become_that_of_the_opener() -> None:
    near, far = pty.openpty()
    try:
        command = [sys.executable, "-c", OPEN_TERMINAL, os.ttyname(far)]
        done = subprocess.run(
            command, start_new_session=True, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
    finally:
        os.close(near)
        os.close(far)
    assert done.stdout.splitlines()[1:] == ["No such device or address"], done


def test_no_descriptor_stays_open(note: Path) -> None:
    def count() -> int:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - as the kernel has it

    if not Path("/proc/self/fd").is_dir():
        pytest.skip("there is no list of open files")
    before = count()
    for opener in (open_folder, open_listed_folder):
        with opener(note.parent):
            pass
        with pytest.raises(OSError, match="missing"), opener(note.parent / "missing" / "inner"):
            pass
        with pytest.raises(KeyError), opener(note.parent):
            raise KeyError
    assert count() == before
