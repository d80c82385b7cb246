"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

from jackfield_testkit.suites import PluginSuite, ToolsetSuite, ToolSuite
from jackfield_testkit.suites.tool import Bench

TEXT = "# Tides\n\nHigh water comes twice a day.\n"


class TestPlugin(PluginSuite):
    dist = "jackfield-files"


class _WithFiles(ToolSuite):
    @pytest.fixture(autouse=True)
    @classmethod
    def written(cls, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        """Files to work on, as they were; outside of a run, too."""
        monkeypatch.setenv("JACKFIELD_WORKSPACE", str(bench.workspace.root))
        notes = Path(bench.workspace.root, "notes")
        notes.mkdir(parents=True, exist_ok=True)
        (notes / "tides.md").write_text(TEXT)
        (notes / "潮汐.md").write_text("一天两次")
        (notes / "binary.dat").write_bytes(b"\0\1\2")


class TestReadFile(_WithFiles):
    component = "jackfield-files/read_file"
    examples: ClassVar = [
        ({"path": "notes/tides.md"}, "1\t# Tides\n2\t\n3\tHigh water comes twice a day."),
        ({"path": "notes/潮汐.md", "start_line": 1, "end_line": 1}, "1\t一天两次"),
    ]
    failures: ClassVar = [
        {"path": "notes/tide.md"},
        {"path": "notes"},
        {"path": "notes/binary.dat"},
        {"path": "../canary.txt"},
        {"path": "notes/tides.md", "start_line": 9},
    ]


class TestWriteFile(_WithFiles):
    component = "jackfield-files/write_file"
    examples: ClassVar = [
        ({"path": "new/a.txt", "content": "one\ntwo\n"}, "new/a.txt: 2 lines, 8 bytes."),
        ({"path": "潮汐.md", "content": "一天两次"}, "潮汐.md: 1 line, 12 bytes."),
    ]
    failures: ClassVar = [
        {"path": "notes", "content": "x"},
        {"path": "../x", "content": "x"},
        {"path": "notes/tides.md/x", "content": "x"},
    ]


class TestEditFile(_WithFiles):
    component = "jackfield-files/edit_file"
    # The same edit can be made again and again, as the suite does.
    examples: ClassVar = [
        (
            {"path": "notes/tides.md", "edits": [{"old_text": "twice a day", "new_text": "twice a day"}]},
            "Edited notes/tides.md: 1 replacement, at line 3.",
        ),
    ]
    failures: ClassVar = [
        {"path": "notes/tides.md", "edits": [{"old_text": "thrice", "new_text": "twice"}]},
        {"path": "notes/tides.md", "edits": [{"old_text": "i", "new_text": "j"}]},
        {"path": "notes/binary.dat", "edits": [{"old_text": "a", "new_text": "b"}]},
        {"path": "gone.md", "edits": [{"old_text": "a", "new_text": "b"}]},
    ]


class TestListFiles(_WithFiles):
    component = "jackfield-files/list_files"
    examples: ClassVar = [
        ({"path": "."}, f"notes/\nnotes/binary.dat (3 bytes)\nnotes/tides.md ({len(TEXT)} bytes)"),
        ({"pattern": "*.md", "path": "notes"}, "notes/潮汐.md (12 bytes)"),
    ]
    failures: ClassVar = [{"path": "gone"}, {"path": "notes/tides.md"}, {"path": ".."}]


class TestSearchFiles(_WithFiles):
    component = "jackfield-files/search_files"
    examples: ClassVar = [
        ({"query": "twice"}, "notes/tides.md\n3: High water comes twice a day."),
        ({"query": "HIGH.*DAY", "regex": True, "ignore_case": True, "context": 1}, "2- \n3: High water"),
    ]
    failures: ClassVar = [{"query": "(", "regex": True}, {"query": "x", "path": "gone"}, {"query": "a\nb"}]


class TestFiles(ToolsetSuite):
    component = "jackfield-files/files"
    tools = ("read_file", "write_file", "edit_file", "list_files", "search_files")
