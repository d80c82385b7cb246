"""A plugin is put on the disk whole, or not at all, and never over something else."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

import pytest

from jackfield.errors import ConfigError
from jackfield_new.folder import write_folder

FILES = {PurePosixPath("a.txt"): b"one", PurePosixPath("b/c/d.txt"): b"two"}


def everything(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def test_folders_above_are_made_too(tmp_path: Path) -> None:
    write_folder(tmp_path / "x/y/z", FILES)
    assert (tmp_path / "x/y/z/b/c/d.txt").read_bytes() == b"two"
    assert everything(tmp_path) == {"x", "x/y", "x/y/z", "x/y/z/a.txt", "x/y/z/b", "x/y/z/b/c", "x/y/z/b/c/d.txt"}


def test_a_name_may_be_as_long_as_the_file_system_allows(tmp_path: Path) -> None:
    write_folder(tmp_path / ("x" * 255), FILES)
    assert (tmp_path / ("x" * 255) / "a.txt").read_bytes() == b"one"


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    write_folder(tmp_path / "x", FILES)
    assert (tmp_path / "x/a.txt").read_bytes() == b"one"


def test_a_path_is_taken_relative_to_where_we_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    write_folder(Path("../beside"), FILES)
    assert (tmp_path / "beside/a.txt").exists()


def test_folders_have_the_permissions_that_any_new_folder_has(tmp_path: Path) -> None:
    (tmp_path / "usual").mkdir()
    write_folder(tmp_path / "x", FILES)
    assert (tmp_path / "x").stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.parametrize("what", ["full folder", "file", "link", "dead link"])
def test_what_is_there_is_left_as_it_is(tmp_path: Path, what: str) -> None:
    place = tmp_path / "x"
    if what == "full folder":
        place.mkdir()
        (place / "mine").write_text("mine")
    elif what == "file":
        place.write_text("mine")
    else:
        if what == "link":
            (tmp_path / "elsewhere").mkdir()
        place.symlink_to(tmp_path / "elsewhere")
    before = everything(tmp_path)
    said = (
        "is not empty: choose another folder with --dir"
        if what == "full folder"
        else "already exists and is not a folder"
    )
    with pytest.raises(ConfigError, match=said):
        write_folder(place, FILES)
    assert everything(tmp_path) == before


def test_an_error_half_way_leaves_nothing_behind(tmp_path: Path) -> None:
    too_long = {**FILES, PurePosixPath("x" * 300): b"no file system takes this name"}
    with pytest.raises(ConfigError, match=r"too long.*--dir"):
        write_folder(tmp_path / "x/y", too_long)
    assert everything(tmp_path) == set()


def test_an_interruption_half_way_leaves_nothing_behind(tmp_path: Path) -> None:
    class Interrupted(dict[PurePosixPath, bytes]):
        def items(self):  # type: ignore[no-untyped-def]
            yield from FILES.items()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_folder(tmp_path / "x/y", Interrupted())
    assert everything(tmp_path) == set()


def test_a_file_in_the_way_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ConfigError, match="cannot be created"):
        write_folder(tmp_path / "file/x", FILES)
    assert everything(tmp_path) == {"file"}


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_is_an_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(ConfigError, match="Permission denied"):
        write_folder(tmp_path / "x", FILES)


def test_a_place_that_cannot_be_shown_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="contains unprintable characters") as caught:
        write_folder(tmp_path / "x\x1b[31m", FILES)
    assert str(caught.value).isprintable()
