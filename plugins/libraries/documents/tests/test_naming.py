"""Which files a model reaches by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from jackfield.errors import ToolArgumentError
from jackfield.tools import Workspace
from jackfield_documents import file_meant


def test_a_file_of_the_conversation_is_meant_by_its_path_and_by_its_last_part() -> None:
    files = ("/data/a.md", "b.md")
    assert file_meant("/data/a.md", files, Workspace("nowhere")) == "/data/a.md"
    assert file_meant("a.md", files, Workspace("nowhere")) == "/data/a.md"


def test_of_two_files_with_one_name_the_path_says_which() -> None:
    files = ("/one/a.md", "/two/a.md")
    with pytest.raises(ToolArgumentError, match=r"2 documents are named 'a\.md': leave it out"):
        file_meant("a.md", files, Workspace("nowhere"), if_several="leave it out")
    assert file_meant("/two/a.md", files, Workspace("nowhere")) == "/two/a.md"


def test_a_file_in_the_workspace_is_meant_by_its_path_there(tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "plan.md").write_text("x")
    assert file_meant("made/plan.md", (), Workspace(tmp_path)) == str((tmp_path / "made" / "plan.md").resolve())


@pytest.mark.parametrize("name", ["scans.zip › a.pdf", "scans.zip › b.zip › c.md", "scans.zip"])
def test_a_file_in_a_file_is_read_with_the_file_around_it(name: str) -> None:
    files = ("/data/scans.zip", "/data/a.pdf", "/data/c.md")
    assert file_meant(name, files, Workspace("nowhere")) == "/data/scans.zip"


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../secret.md", "%2e%2e/secret.md", "file:///etc/passwd", "made", "", "a\0b"]
)
def test_nothing_else_is_reached_and_the_answer_names_what_is_there(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret.md").write_text("secret")
    (tmp_path / "inside" / "made").mkdir(parents=True)
    with pytest.raises(ToolArgumentError, match=r"no document named .* available: a\.md, b\.md$"):
        file_meant(name, ("/x/a.md", "b.md", "/y/b.md"), Workspace(tmp_path / "inside"))
