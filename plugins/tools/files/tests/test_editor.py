"""In an editor, texts are the editor's, with changes that are not saved; paths are checked as anywhere else."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from jackfield.errors import ToolArgumentError, ToolServiceError
from jackfield.runs import RunResources
from jackfield.tools import BaseTool, CommandEnd, ToolContext, Workspace
from jackfield_files.tools import EditFile, ListFiles, ReadFile, SearchFiles, WriteFile


class Editor:
    """Has some texts open that are not saved, and notes what it is asked for."""

    runs_commands = False

    def __init__(self, unsaved: Mapping[Path, str] | None = None, *, reads: bool = True, writes: bool = True) -> None:
        self.reads, self.writes = reads, writes
        self.unsaved = dict(unsaved or {})
        self.asked: list[Path] = []
        self.written: dict[Path, str] = {}

    async def read_text(self, path: Path) -> str:
        self.asked.append(path)
        if path not in self.unsaved:
            raise ToolServiceError("the editor cannot read it")
        return self.unsaved[path]

    async def write_text(self, path: Path, text: str) -> None:
        self.written[path] = text

    async def run_command(self, argv: Sequence[str], **_: Any) -> CommandEnd:
        raise AssertionError(argv)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "workspace"
    folder.mkdir()
    return folder


def done(tool: BaseTool, editor: Editor, root: Path, **arguments: Any) -> str:
    """The answer of a tool in the run of an editor."""
    context = ToolContext(workspace=Workspace(root), resources=RunResources(editor))

    async def call() -> str:
        answer = tool.call(arguments, context=context)
        return str(await answer if inspect.isawaitable(answer) else answer)

    return asyncio.run(call())


EDIT = [{"old_text": "once", "new_text": "twice"}]


def test_a_text_is_read_with_changes_that_are_not_saved(root: Path) -> None:
    (root / "a").write_text("saved")
    editor = Editor({root / "a": "one\nnot saved \ud83d\n", root / "new": "never saved"})
    assert done(ReadFile(), editor, root, path="a") == "1\tone\n2\tnot saved ?"
    assert done(ReadFile(), editor, root, path="a", start_line=2) == "2\tnot saved ?"
    assert done(ReadFile(), editor, root, path="new") == "1\tnever saved"
    assert editor.asked == [root / "a", root / "a", root / "new"]


@pytest.mark.parametrize("reads", [True, False])
def test_what_the_editor_does_not_read_is_read_from_the_disk(root: Path, reads: bool) -> None:
    (root / "a").write_text("saved")
    editor = Editor({} if reads else {root / "a": "not saved"}, reads=reads)
    assert done(ReadFile(), editor, root, path="a") == "1\tsaved"
    assert editor.asked == ([root / "a"] if reads else [])


@pytest.mark.parametrize("tool", [ReadFile, EditFile])
def test_an_editor_is_not_asked_for_what_is_too_large_or_no_file(root: Path, tool: type[BaseTool]) -> None:
    (root / "large").write_text("once " + "x" * 100)
    os.mkfifo(root / "pipe")
    (root / "folder").mkdir()
    editor = Editor({root / name: "once" for name in ("large", "pipe", "folder")})
    more = {"edits": EDIT} if tool is EditFile else {}
    for name in ("large", "pipe", "folder"):
        with suppress(ToolArgumentError):
            done(tool(max_file_bytes=104), editor, root, path=name, **more)
    assert (editor.asked, editor.written) == ([], {})
    done(tool(max_file_bytes=105), editor, root, path="large", **more)
    assert editor.asked == [root / "large"]


def test_a_text_is_written_by_the_editor_and_by_nothing_else(root: Path) -> None:
    (root / "a").write_text("old")
    editor = Editor()
    assert done(WriteFile(), editor, root, path="a", content="one\ntwo") == "Replaced a: 2 lines, 7 bytes."
    assert done(WriteFile(), editor, root, path="new/b", content="") == "Made new/b: 0 lines, 0 bytes."
    assert editor.written == {root / "a": "one\ntwo", root / "new/b": ""}
    assert (root / "a").read_text() == "old"
    assert list((root / "new").iterdir()) == [], "the editor makes the file, in a folder that exists"


def test_an_edit_changes_the_text_that_the_editor_has(root: Path) -> None:
    (root / "a").write_text("saved")
    editor = Editor({root / "a": "High water comes once a day.\n"})
    assert done(EditFile(), editor, root, path="a", edits=EDIT) == "Edited a: 1 replacement, at line 1."
    assert editor.written == {root / "a": "High water comes twice a day.\n"}
    assert (root / "a").read_text() == "saved"


def test_a_file_that_was_never_saved_is_not_edited(root: Path) -> None:
    editor = Editor({root / "new": "once"})
    with pytest.raises(ToolArgumentError, match="new does not exist"):
        done(EditFile(), editor, root, path="new", edits=EDIT)
    assert (editor.asked, editor.written) == ([], {})


@pytest.mark.parametrize(("reads", "writes"), [(True, False), (False, True), (False, False)])
def test_an_editor_that_does_not_both_read_and_write_edits_nothing(root: Path, reads: bool, writes: bool) -> None:
    (root / "a").write_text("once")
    editor = Editor({root / "a": "not saved"}, reads=reads, writes=writes)
    done(EditFile(), editor, root, path="a", edits=EDIT)
    assert (root / "a").read_text() == "twice"
    done(WriteFile(), editor, root, path="b", content="new")
    assert editor.written == ({root / "b": "new"} if writes else {})
    assert (root / "b").exists() is not writes


def test_a_file_that_the_editor_cannot_read_is_edited_on_the_disk(root: Path) -> None:
    (root / "a").write_bytes(b"caf\xe9 once")
    editor = Editor()
    done(EditFile(), editor, root, path="a", edits=EDIT)
    assert (root / "a").read_bytes() == b"caf\xe9 twice"
    assert editor.written == {}


def test_the_limits_of_a_file_hold_for_the_editors_too(root: Path) -> None:
    (root / "a").write_text("once")
    editor = Editor({root / "a": "once"})
    for tool, arguments in ((WriteFile, {"content": "é" * 3}), (EditFile, {"edits": EDIT})):
        with pytest.raises(ToolArgumentError, match=r"the limit is 4|longer than 4"):
            done(tool(max_file_bytes=4), editor, root, path="a", **arguments)
    with pytest.raises(ToolArgumentError, match="the limit is 5"):
        # 4 characters
        done(EditFile(max_file_bytes=5), editor, root, path="a", edits=[{"old_text": "nce", "new_text": "ééé"}])
    with pytest.raises(ToolArgumentError, match="a lone surrogate"):
        done(WriteFile(), editor, root, path="a", content="\ud83d")
    assert editor.written == {}


@pytest.mark.parametrize("path", ["../secret", "link", "folder/secret"])
@pytest.mark.parametrize("tool", [ReadFile, WriteFile, EditFile])
def test_an_editor_is_never_sent_out_of_the_workspace(root: Path, path: str, tool: type[BaseTool]) -> None:
    outside = root.parent / "secret"
    outside.write_text("once")
    (root / "link").symlink_to(outside)
    (root / "folder").symlink_to(root.parent)
    editor = Editor({outside: "once", root / "link": "once", root / "folder/secret": "once"})
    more = {WriteFile: {"content": "x"}, EditFile: {"edits": EDIT}}.get(tool, {})
    with pytest.raises(ToolArgumentError):
        done(tool(), editor, root, path=path, **more)
    assert (editor.asked, editor.written) == ([], {})


def test_a_read_only_file_is_not_written_by_the_editor(root: Path) -> None:
    (root / "a").write_text("once")
    (root / "a").chmod(0o444)
    editor = Editor({root / "a": "once"})
    for tool, arguments in ((WriteFile, {"content": "x"}), (EditFile, {"edits": EDIT})):
        with pytest.raises(ToolArgumentError, match="a is read-only"):
            done(tool(), editor, root, path="a", **arguments)
    assert editor.written == {}


def test_lists_and_searches_are_those_of_the_disk(root: Path) -> None:
    (root / "a").write_text("saved")
    editor = Editor({root / "a": "not saved", root / "b": "not saved"})
    assert done(ListFiles(), editor, root, path=".") == "a (5 bytes)"
    assert done(SearchFiles(), editor, root, query="saved") == "a\n1: saved"
    assert editor.asked == []
