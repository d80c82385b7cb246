"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from typing import ClassVar

from jackfield_testkit.suites import PluginSuite, ToolSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-retrieval"


class TestRetrieval(ToolSuite):
    component = "jackfield-retrieval/retrieval"
    files: ClassVar = {
        "tea.txt": b"Green tea is brewed at eighty degrees.\n\nBlack tea wants boiling water.",
        "咖啡.md": "# 咖啡\n\n咖啡豆需要研磨。".encode(),
        "broken.pdf": b"no PDF",
    }
    examples: ClassVar = [
        ({"query": "How hot is green tea brewed?"}, "eighty degrees"),
        ({"query": "咖啡豆", "files": ["咖啡.md"]}, "研磨"),
        ({"query": "tea", "files": ["tea.txt"]}, lambda content: "咖啡" not in content),
    ]
    failures: ClassVar = [{"query": "tea", "files": ["no-such.txt"]}, {"query": "tea", "files": ["broken.pdf"]}]
