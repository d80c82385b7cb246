"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from jackfield_testkit.suites import ParserSuite, PluginSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-epub"


class TestEpub(ParserSuite):
    component = "jackfield-epub/epub"

    @pytest.fixture(autouse=True)
    def _give(self, book: Any) -> None:
        self.samples, self.unreadable, self.hostile = made(book)


@cache
def made(book: Any) -> tuple[Any, Any, Any]:
    samples = {
        "tea.epub": (book(), "Green tea."),
        "中文.epub": (book({"一.xhtml": "<h1>标题</h1><p>数据分析</p>"}), ("标题", "数据分析")),
    }
    locked = '<encryption><enc:CipherReference xmlns:enc="e" URI="OEBPS/one.xhtml"/></encryption>'
    unreadable = {
        "text.epub": b"just a text",
        "old.epub": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504),
        "letter.epub": samples["tea.epub"][0].replace(b"META-INF/container.xml", b"META-INF/containes.xml"),
        "empty.epub": book({}),
        "pictures.epub": book({"one.xhtml": "<img src='a.png'/>"}),
        "locked.epub": book(**{"META-INF/encryption.xml": locked}),
        "gone.epub": samples["tea.epub"][0].replace(b"OEBPS/one.xhtml", b"OEBPS/two.xhtml"),
    }
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    laughing = f'<!DOCTYPE html [<!ENTITY e0 "ha">{entities}]><html><body><p>&e11;</p></body></html>'
    chapter = '<item id="a" href="one.xhtml" media-type="text/html"/><itemref idref="a"/>'
    hostile = {
        "bomb.epub": book({"one.xhtml": "<p>" + " " * 24 * 2**20 + "</p>"}),
        "one chapter.epub": book({"one.xhtml": "<p>x</p>" * 1000}, manifest='<itemref idref="one.xhtml"/>' * 100_000),
        "laughing.epub": book({}, manifest=chapter, **{"OEBPS/one.xhtml": laughing}),
        "deep.epub": book({"one.xhtml": "<div>" * 200_000}),
    }
    return samples, unreadable, hostile
