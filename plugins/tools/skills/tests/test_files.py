"""A file of a skill is read through no link, even if one takes its place after the check."""

from __future__ import annotations

from pathlib import Path

import pytest

from jackfield.errors import ToolArgumentError
from jackfield.tools import Workspace
from jackfield_skills.files import read_text


def test_a_file_that_becomes_a_link_after_its_check_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, private = tmp_path / "skill", tmp_path / "private"
    folder.mkdir()
    private.write_text("private")
    (folder / "notes.md").write_text("notes")
    assert read_text(folder, "notes.md") == "notes"
    resolve = Workspace.resolve

    def resolve_and_replace(self: Workspace, name: str) -> Path:
        path = resolve(self, name)
        path.unlink()
        path.symlink_to(private)
        return path

    monkeypatch.setattr(Workspace, "resolve", resolve_and_replace)
    with pytest.raises(ToolArgumentError, match="cannot be read"):
        read_text(folder, "notes.md")
