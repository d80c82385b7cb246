"""Files of the conversation come to the code, and nothing that was there is lost."""

from __future__ import annotations

import os
import signal
import socket
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jackfield_code_interpreter import made
from jackfield_code_interpreter.files import BroughtFiles, FileLimits, remove_folder
from jackfield_code_interpreter.made import FolderWatch


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def given(path: Path, text: str) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return str(path)


def test_a_file_is_copied_once_so_that_changes_stay(tmp_path: Path, folder: Path) -> None:
    source = given(tmp_path / "in/a.csv", "old")
    files = BroughtFiles(folder)
    assert files.bring([source]) == []
    (folder / "a.csv").write_text("changed by the code")
    files.bring([source])
    assert (folder / "a.csv").read_text() == "changed by the code"
    assert Path(source).read_text() == "old"


def test_a_file_that_has_changed_comes_again_under_the_same_name(tmp_path: Path, folder: Path) -> None:
    source = given(tmp_path / "in/a.csv", "old")
    files = BroughtFiles(folder)
    files.bring([source])
    given(Path(source), "newer")
    os.utime(source, (1, 1))
    assert files.bring([source]) == []
    assert (folder / "a.csv").read_text() == "newer"
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize(("mode", "copied"), [(0o600, 0o600), (0o640, 0o640), (0o755, 0o644), (0o400, 0o600)])
def test_a_copy_lets_nobody_read_who_could_not_read_the_original(
    tmp_path: Path, folder: Path, mode: int, copied: int
) -> None:
    source = given(tmp_path / "in/a.csv", "secret")
    Path(source).chmod(mode)
    BroughtFiles(folder).bring([source])
    assert stat.S_IMODE((folder / "a.csv").stat().st_mode) == copied


def test_files_of_one_name_get_two_and_what_was_there_stays(tmp_path: Path, folder: Path) -> None:
    given(folder / "a.csv", "mine")
    one, two = given(tmp_path / "1/a.csv", "one"), given(tmp_path / "2/a.csv", "two")
    notes = BroughtFiles(folder).bring([one, two])
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        "a.csv": "mine",
        "a-2.csv": "one",
        "a-3.csv": "two",
    }
    assert len(notes) == 2
    assert "'a-3.csv'" in notes[1]


def test_a_file_that_is_in_the_folder_already_is_used_as_it_is(folder: Path) -> None:
    inside = given(folder / "a.csv", "here")
    assert BroughtFiles(folder).bring([inside]) == []
    assert [path.name for path in folder.iterdir()] == ["a.csv"]


@pytest.mark.parametrize(
    "name", ["https://example.org/a.csv", "data:text/plain," + "a" * 5000, "no-such-file", "a\0b", ""]
)
def test_what_is_no_local_file_is_left_out(folder: Path, name: str) -> None:
    assert BroughtFiles(folder).bring([name, str(folder)]) == []
    assert list(folder.iterdir()) == []


# --- what the code, or anybody, may have put there ---


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/id_rsa").write_text("secret")
    return tmp_path / "home/id_rsa"


def everything_in(folder: Path) -> str:
    return "".join(path.read_text() for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def test_no_link_is_followed_from_where_files_come(tmp_path: Path, folder: Path, secret: Path) -> None:
    (tmp_path / "a.csv").symlink_to(secret)
    assert (
        "it is a symbolic link; pass the path of the file itself"
        in BroughtFiles(folder).bring([str(tmp_path / "a.csv")])[0]
    )
    assert everything_in(folder) == ""


def test_a_file_or_a_folder_that_became_a_link_is_not_followed(tmp_path: Path, folder: Path, secret: Path) -> None:
    source = given(tmp_path / "in/id_rsa", "old")
    files = BroughtFiles(folder)
    files.bring([source])
    Path(source).unlink()
    (tmp_path / "in").rmdir()
    (tmp_path / "in").symlink_to(secret.parent)
    assert "could not be copied" in files.bring([source])[0]
    assert everything_in(folder) == "old"


def test_a_link_the_code_put_in_the_way_is_replaced_and_not_written_through(
    tmp_path: Path, folder: Path, secret: Path
) -> None:
    source = given(tmp_path / "in/a.csv", "old")
    files = BroughtFiles(folder)
    files.bring([source])
    (folder / "a.csv").unlink()
    (folder / "a.csv").symlink_to(secret)
    given(Path(source), "newer")
    files.bring([source])
    assert secret.read_text() == "secret"
    assert (folder / "a.csv").read_text() == "newer"
    (folder / "b.csv").symlink_to(tmp_path / "nothing")  # a link that leads nowhere yet
    assert "'b-2.csv'" in files.bring([given(tmp_path / "in/b.csv", "b")])[0]
    assert not (tmp_path / "nothing").exists()


def test_links_below_the_working_directory_bring_nothing_in(folder: Path, secret: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub/link").symlink_to(secret)
    os.link(secret, folder / "sub/hard")
    notes = BroughtFiles(folder).bring([str(folder / "sub/link"), str(folder / "sub/hard")])
    assert ["link" in notes[0], "another hard link" in notes[1]] == [True, True]
    assert sorted(path.name for path in folder.iterdir()) == ["sub"]


def _socket(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)


def _link_to_zero(path: str) -> None:
    Path(path).symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [os.mkfifo, _socket, _link_to_zero])
def test_what_is_no_regular_file_is_left_alone_and_nothing_waits(
    tmp_path: Path, folder: Path, make: Callable[[str], None]
) -> None:
    make(str(tmp_path / "p"))
    assert "was not copied" in BroughtFiles(folder).bring([str(tmp_path / "p")])[0]
    assert list(folder.iterdir()) == []


def test_a_pipe_that_takes_the_place_of_a_file_after_its_check_is_not_read(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, look = Path(given(tmp_path / "in/a", "1234")), os.stat

    def look_and_plant(path: str, **how: Any) -> os.stat_result:
        facts = look(path, **how)
        if path == "a" and "dir_fd" in how:
            source.unlink()
            os.mkfifo(source)
        return facts

    monkeypatch.setattr(os, "stat", look_and_plant)
    (note,) = BroughtFiles(folder).bring([str(source)])
    assert note.endswith("not a regular file.")
    assert list(folder.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="leases are Linux's")
def test_a_leased_file_is_left_alone_and_nothing_waits(tmp_path: Path, folder: Path) -> None:
    import fcntl

    source = given(tmp_path / "in/a", "1234")
    with Path(source).open("r+") as held:
        fcntl.fcntl(held, fcntl.F_SETSIG, 0)
        before = signal.signal(signal.SIGIO, signal.SIG_IGN)
        try:
            fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            (note,) = BroughtFiles(folder).bring([source])
        finally:
            fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_UNLCK)
            signal.signal(signal.SIGIO, before)
    assert note.endswith("could not be copied to the working directory: Resource temporarily unavailable.")


def test_a_device_is_not_read(folder: Path) -> None:
    assert "not a regular file" in BroughtFiles(folder).bring(["/dev/zero"])[0]


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (FileLimits(file_bytes=3), "its size of 4 bytes exceeds the limit of 3"),
        (FileLimits(total_bytes=7), "'brought_mb'"),
        (FileLimits(files=1), "'brought_files'"),
    ],
)
def test_no_more_than_the_limits_is_copied(tmp_path: Path, folder: Path, limits: FileLimits, reason: str) -> None:
    files = BroughtFiles(folder, limits)
    notes = files.bring([given(tmp_path / "in/a", "1234"), given(tmp_path / "in/b", "1234")])
    assert reason in notes[-1]
    assert not (folder / "b").exists()
    assert len(everything_in(folder)) <= 4


def test_just_as_much_as_the_limits_is_copied(tmp_path: Path, folder: Path) -> None:
    files = BroughtFiles(folder, FileLimits(file_bytes=4, total_bytes=8, files=2))
    sources = [given(tmp_path / "in" / name, "1234") for name in "ab"]
    assert files.bring(sources) == []
    # The bytes of one that has changed count again.
    given(Path(sources[0]), "5678")
    os.utime(sources[0], (1, 1))
    assert "the copied files would exceed 8 bytes in total" in files.bring(sources)[0]
    # It is no further file, though.
    more = BroughtFiles(folder, FileLimits(files=1))
    assert more.bring([sources[0]])[0].endswith("the conversation's file was copied as 'a-2'.")
    given(Path(sources[0]), "9")
    assert more.bring([sources[0]]) == []
    assert (folder / "a-2").read_text() == "9"


def test_of_very_many_notes_some_are_given(tmp_path: Path, folder: Path) -> None:
    sources = [given(tmp_path / "in" / str(number), "12") for number in range(22)]
    notes = BroughtFiles(folder, FileLimits(file_bytes=1)).bring(sources)
    assert len(notes) == 21
    assert notes[-1] == "Note: the same applies to 2 more files."
    assert len(BroughtFiles(folder, FileLimits(file_bytes=1)).bring(sources[:20])) == 20


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_a_copy_that_root_makes_belongs_to_the_owner_of_the_folder(tmp_path: Path, folder: Path) -> None:
    files = BroughtFiles(folder)
    files.bring([given(tmp_path / "in/a", "x")])
    os.chown(folder, 12345, 12345)
    files.bring([given(tmp_path / "in/b", "x")])
    assert [(folder / name).stat().st_uid for name in "ab"] == [0, 12345]
    assert (folder / "b").stat().st_gid == 12345


def test_a_name_that_is_free_keeps_the_ending(tmp_path: Path, folder: Path) -> None:
    for name in ("a.tar.gz", "a.tar-2.gz"):
        (folder / name).touch()
    (note,) = BroughtFiles(folder).bring([given(tmp_path / "in/a.tar.gz", "x")])
    assert note == "Note: a file named 'a.tar.gz' already existed; the conversation's file was copied as 'a.tar-3.gz'."
    assert (folder / "a.tar-3.gz").read_text() == "x"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_a_file_that_grows_while_it_is_copied_ends_at_the_limit(folder: Path) -> None:
    # It says it is empty, and is not: as a file that grows does.
    files = BroughtFiles(folder, FileLimits(file_bytes=10))
    assert "grew beyond the limit" in files.bring(["/proc/self/status"])[0]
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", ["a\nb", "\udcff\udcfe", "n" * 255, "-rf", " ", "..a", "a\x1b[2J"])
def test_any_name_of_a_file_is_taken_and_told_on_one_line(tmp_path: Path, folder: Path, name: str) -> None:
    given(folder / name, "mine")
    (tmp_path / "in").mkdir()
    source = given(tmp_path / "in" / name, "theirs")
    notes = BroughtFiles(folder).bring([source])
    assert all(note.isprintable() for note in notes)
    assert (folder / name).read_text() == "mine"
    assert len(notes) == 1


@pytest.mark.parametrize("path", ["..", "/", ".", "/..", "a/.."])
def test_a_path_that_ends_in_no_name_is_left_out(folder: Path, path: str) -> None:
    assert BroughtFiles(folder).bring([path]) == []


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs the list of open files")
def test_no_descriptor_stays_open_when_files_are_copied_and_folders_removed(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "in").mkdir()
    os.mkfifo(tmp_path / "in/pipe")
    before = len(list(Path("/proc/self/fd").iterdir()))
    files = BroughtFiles(folder, FileLimits(file_bytes=4))
    files.bring([given(tmp_path / "in/a", "1234"), given(tmp_path / "in/b", "12345"), str(tmp_path / "in/pipe")])
    FolderWatch(folder).changed()
    (folder / "inner").mkdir()
    remove_folder(folder)
    remove_folder(folder)
    assert not folder.exists()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_folder_is_removed_however_deep_and_through_no_link(tmp_path: Path, secret: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    (top / "link").symlink_to(secret.parent)
    (top / "file").write_text("x")
    os.mkfifo(top / "pipe")
    handle = os.open(top, os.O_RDONLY)
    for depth in range(3000):  # a path to the last of them would be too long
        os.mkdir("d", dir_fd=handle)
        if depth % 1000 == 500:
            os.symlink(secret, "link", dir_fd=handle)
        inner = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = inner
    os.close(handle)
    remove_folder(top)
    assert not top.exists()
    assert secret.read_text() == "secret"
    remove_folder(top)


# --- files that the code made ---


def test_a_folder_that_is_a_link_is_not_listed(tmp_path: Path) -> None:
    work, host = tmp_path / "work", tmp_path / "host"
    work.mkdir()
    host.mkdir()
    watch = FolderWatch(work)
    watch.begin()
    (host / "id_rsa").write_text("secret")
    (work / "results").symlink_to(host)
    (work / "made").write_text("x")
    assert watch.changed() == (str(work / "made"),)
    moved = work.rename(tmp_path / "moved")
    work.symlink_to(host)
    assert moved.exists()
    assert watch.changed() == ()


def test_pipes_and_endless_trees_end_the_listing(tmp_path: Path) -> None:
    watch = FolderWatch(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "made").write_text("x")
    handle = os.open(tmp_path, os.O_RDONLY)
    for _ in range(300):  # deeper than a path can be
        os.mkdir("d" * 200, dir_fd=handle)
        inner = os.open("d" * 200, os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = inner
    os.close(os.open("too-deep", os.O_CREAT, dir_fd=handle))
    os.close(handle)
    try:
        assert watch.changed() == (str(tmp_path / "made"),)
    finally:
        for path in tmp_path.iterdir():
            if path.is_dir():
                remove_folder(path)


def test_a_folder_of_very_many_files_is_read_as_far_as_is_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(made, "_MOST_LOOKED_AT", 10)
    for number in range(50):
        (tmp_path / f"{number}").touch()
    read = 0

    def counted(entry: os.DirEntry[str]) -> os.stat_result | None:
        nonlocal read
        read += 1
        return entry.stat(follow_symlinks=False)

    monkeypatch.setattr(made, "_facts", counted)
    assert len(FolderWatch(tmp_path).changed()) == read == 10


def test_files_that_are_new_or_changed_are_named_in_order_and_hidden_ones_are_not(tmp_path: Path) -> None:
    for name in ("same", "larger", "touched", "gone"):
        (tmp_path / name).write_text("x")
        os.utime(tmp_path / name, (1, 1))
    watch = FolderWatch(tmp_path)
    watch.begin()
    (tmp_path / "larger").write_text("xy")
    os.utime(tmp_path / "larger", (1, 1))
    os.utime(tmp_path / "touched", (2, 2))
    (tmp_path / "gone").unlink()
    for path in ("b/new", "a/new", ".hidden", ".folder/new", "__pycache__/new", "a/.hidden"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    assert watch.changed() == tuple(str(tmp_path / name) for name in ("a/new", "b/new", "larger", "touched"))
    watch.begin()
    assert watch.changed() == ()


def test_so_many_files_are_named_at_most(tmp_path: Path) -> None:
    watch = FolderWatch(tmp_path)
    for number in range(201):
        (tmp_path / f"{number:03}").touch()
    assert watch.changed() == tuple(str(tmp_path / f"{number:03}") for number in range(200))


def test_files_are_named_down_to_a_depth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made, "_DEEPEST", 2)
    (tmp_path / "1/2/3").mkdir(parents=True)
    for folder in ("1/2", "1/2/3"):
        (tmp_path / folder / "file").touch()
    assert FolderWatch(tmp_path).changed() == (str(tmp_path / "1/2/file"),)
