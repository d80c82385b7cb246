"""A call that waits for approval shows what it would change, and changes nothing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jackfield.tools import Workspace
from jackfield_files.diffs import unified_diff
from jackfield_files.tools import EditFile, ReadFile, WriteFile

TEXTS = st.lists(st.sampled_from(["a", "b", "", "-c", "+d", "@@", "\r", "\u2028x"]), max_size=14).flatmap(
    lambda lines: st.sampled_from(["\n".join(lines), "\n".join([*lines, ""])])
)


def patched(old: str, diff: str) -> str:
    """Apply a diff as `patch` does."""
    lines, done, rest = [], 0, re.split(r"(?<=\n)", old)
    hunk: list[str] = diff.split("\n")[2:]
    for number, line in enumerate(hunk):
        if header := re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", line):
            start = int(header[1]) - (0 if header[2] == "0" else 1)
            lines += rest[done:start]
            done = start
            assert len(lines) + (0 if header[4] == "0" else 1) == int(header[3])
            continue
        if line.startswith("\\"):
            continue
        is_last = number + 1 < len(hunk) and hunk[number + 1].startswith("\\")
        text = line[1:] + ("" if is_last else "\n")
        if line[0] in " -":
            assert rest[done] == text
            done += 1
        if line[0] in " +":
            lines.append(text)
    return "".join(lines + rest[done:])


@given(TEXTS, TEXTS)
@example("a\n" * 3000 + "x\n" + "b\n" * 2500, "a\n" * 3000 + "y\n" * 2500 + "b\n" * 2500)
@example("a\n" * 20 + "x\n" + "a\n" * 20, "a\n" * 41)
@example("a\n" * 8, "a\n" * 9)
@example("a\n" * 9, "a\n" * 8)
@example("a\n" * 5, "a\n" * 3000)
@example("a\n" * 3000, "a\n" * 5)
def test_a_diff_turns_the_old_text_into_the_new(old: str, new: str) -> None:
    diff = unified_diff("a.txt", old, new)
    assert (diff == "") == (old == new)
    if diff:
        assert patched(old, diff) == new


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "inside").mkdir()
    (tmp_path / "secret.txt").write_text("outside")
    return Workspace(tmp_path / "inside")


EDIT = [{"old_text": "once", "new_text": "twice"}]


def test_a_preview_shows_the_change_and_makes_none(workspace: Workspace) -> None:
    (workspace.root / "tides.md").write_text("High water comes\nonce a day.\n")
    diff = EditFile().preview({"path": "tides.md", "edits": EDIT}, workspace=workspace)
    assert diff.split("\n")[2:] == ["@@ -1,2 +1,2 @@", " High water comes", "-once a day.", "+twice a day."]
    diff = WriteFile().preview({"path": "tides.md", "content": "New.\n"}, workspace=workspace)
    assert diff.split("\n")[3:] == ["-High water comes", "-once a day.", "+New."]
    diff = WriteFile().preview({"path": "new/file.md", "content": "New."}, workspace=workspace)
    assert diff.split("\n")[0] == "--- /dev/null"
    assert [path.name for path in workspace.root.iterdir()] == ["tides.md"]
    assert (workspace.root / "tides.md").read_text() == "High water comes\nonce a day.\n"
    assert ReadFile().preview({"path": "tides.md"}, workspace=workspace) == ""


def test_a_file_beyond_the_limit_has_no_preview_and_is_not_cut_off(workspace: Workspace) -> None:
    (workspace.root / "a.txt").write_text("once and then some")
    for tool, shows in ((WriteFile(max_file_bytes=17), False), (WriteFile(max_file_bytes=18), True)):
        assert bool(tool.preview({"path": "a.txt", "content": "x"}, workspace=workspace)) is shows
    assert WriteFile().preview({"path": "x" * 300, "content": "y"}, workspace=workspace) == ""


@pytest.mark.parametrize(("inserted", "is_matched"), [(900, True), (1500, False)])
def test_the_lines_of_a_huge_change_are_not_matched_up(inserted: int, is_matched: bool) -> None:
    diff = unified_diff("a", "m\n", "a\n" * inserted + "m\n" + "b\n" * inserted)
    assert ("\n-m\n" not in diff) is is_matched


@pytest.mark.parametrize("path", ["../secret.txt", "%2e%2e/secret.txt", "link.txt", "folder", "binary", "pipe/../x"])
@pytest.mark.parametrize("tool", [WriteFile, EditFile])
def test_a_call_that_would_fail_has_no_preview(path: str, tool: Any, workspace: Workspace) -> None:
    (workspace.root / "link.txt").symlink_to(workspace.root.parent / "secret.txt")
    (workspace.root / "folder").mkdir()
    (workspace.root / "binary").write_bytes(b"once\0\1")
    absolute = str(workspace.root.parent / "secret.txt")
    for one in (path, absolute):
        assert tool().preview({"path": one, "content": "x", "edits": EDIT}, workspace=workspace) == ""


def test_edits_that_do_not_fit_have_no_preview(workspace: Workspace) -> None:
    (workspace.root / "a.txt").write_text("once and once")
    assert EditFile().preview({"path": "a.txt", "edits": EDIT}, workspace=workspace) == ""
