"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pytest

from jackfield_testkit.suites import PluginSuite, ToolSuite
from jackfield_testkit.web import WebAnswer, WebServer

FILES = {
    "tea.txt": b"Green tea is brewed at eighty degrees.\n\nBlack tea wants boiling water.",
    "咖啡.md": "# 咖啡\n\n咖啡豆需要研磨。".encode(),
    "broken.pdf": b"no PDF",
    "prices.csv": b"Fruit,Price\napple,1.20\npear,0.80\n",
}


ALLOWED = {"fetch_cfg": {"allow": ["127.0.0.1"]}}


class TestPlugin(PluginSuite):
    dist = "jackfield-doc-parser"


class OfAConversation(ToolSuite):
    """With one more document in the conversation, at a URL, which the first example of each reads: it is kept then."""

    files = FILES
    config: ClassVar = ALLOWED

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def page(cls) -> Iterator[None]:
        """The server of that document."""
        with WebServer() as web:
            cls.urls = [web.put("/salt.txt", WebAnswer(b"Rock salt is mined.", {"content-type": "text/plain"}))]
            yield


class TestSimpleDocParser(OfAConversation):
    component = "jackfield-doc-parser/simple_doc_parser"
    examples: ClassVar = [
        ({"url": "salt.txt"}, "mined"),
        ({"url": "tea.txt"}, "eighty degrees"),
        ({"url": "咖啡.md", "part": 1}, "研磨"),
        ({"url": "*"}, "could not be read: broken.pdf"),
    ]
    failures: ClassVar = [{"url": "no-such.txt"}, {"url": "broken.pdf"}, {"url": "tea.txt", "part": 2}]


class TestPages(OfAConversation):
    component = "jackfield-doc-parser/simple_doc_parser"
    config: ClassVar = {"structured_doc": True, **ALLOWED}
    examples: ClassVar = [
        ({"url": "salt.txt"}, "mined"),
        ({"url": "咖啡.md"}, lambda content: content[0]["content"][1]["text"] == "咖啡豆需要研磨。"),
        ({"url": "*.*"}, lambda content: [entry["url"] for entry in content[:2]] == ["tea.txt", "咖啡.md"]),
    ]
    failures: ClassVar = [{"url": "broken.pdf"}]


class TestDocParser(OfAConversation):
    component = "jackfield-doc-parser/doc_parser"
    config: ClassVar = {"max_ref_token": 20, "chunk_size": 10, "chunk_overlap": 0, **ALLOWED}
    examples: ClassVar = [
        ({"url": "salt.txt"}, "mined"),
        ({"url": "tea.txt"}, lambda content: "eighty" in content["raw"][0]["content"]),
        ({"url": "*.*"}, lambda content: "broken.pdf" in content[-2]["error"]),
    ]
    failures: ClassVar = [{"url": "no-such.txt"}, {"url": "tea.txt", "part": 1000}]


class TestVocabulary(OfAConversation):
    component = "jackfield-doc-parser/extract_doc_vocabulary"
    examples: ClassVar = [
        ({"files": []}, "tea"),
        ({"files": ["咖啡.md"]}, "咖啡豆"),
        ({"files": [], "query": "什么咖啡"}, lambda content: "tea" not in content.split("\n")[0]),
    ]
    failures: ClassVar = [{"files": ["no-such.txt"]}, {"files": ["broken.pdf"]}]


class TestQueryTable(OfAConversation):
    component = "jackfield-doc-parser/query_table"
    examples: ClassVar = [
        ({"url": "prices.csv"}, '"prices"'),
        ({"url": "prices.csv", "sql": 'SELECT SUM("Price") AS total FROM "prices"'}, "| 2.0 |"),
        ({"url": "prices.csv", "sql": 'SELECT * FROM "prices" WHERE "Price" > 1'}, "apple"),
    ]
    failures: ClassVar = [
        {"url": "no-such.csv"},
        {"url": "tea.txt", "sql": "SELECT 1"},
        {"url": "prices.csv", "sql": 'DELETE FROM "prices"'},
    ]
