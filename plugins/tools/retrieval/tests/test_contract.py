"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pytest

from jackfield_testkit.suites import PluginSuite, ToolSuite
from jackfield_testkit.web import WebAnswer, WebServer


class TestPlugin(PluginSuite):
    dist = "jackfield-retrieval"


class TestRetrieval(ToolSuite):
    component = "jackfield-retrieval/retrieval"
    config: ClassVar = {"fetch_cfg": {"allow": ["127.0.0.1"]}}
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

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def page(cls) -> Iterator[None]:
        """A server with one more document of the conversation."""
        with WebServer() as web:
            cls.urls = [web.put("/salt.txt", WebAnswer(b"Rock salt is mined.", {"content-type": "text/plain"}))]
            yield
