"""Files of the conversation come to the code, and nothing that was there is lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jackfield_code_interpreter.files import BroughtFiles


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
