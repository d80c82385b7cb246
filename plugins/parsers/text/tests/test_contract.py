"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

import json
from typing import ClassVar

import nbformat
from nbformat import v3, v4

from jackfield_testkit.suites import ParserSuite, PluginSuite

MARKDOWN = """# Tea

Green tea is *brewed* with hot water.

- one
- two

## Sorts

| name | water |
|---|---|
| black | boiling |

```python
print("tea")
```
"""


def notebook(*cells: object) -> bytes:
    return nbformat.writes(v4.new_notebook(cells=list(cells))).encode()


def old_notebook(*cells: object) -> bytes:
    return json.dumps(v3.new_notebook(worksheets=[v3.new_worksheet(cells=list(cells))])).encode()


class TestPlugin(PluginSuite):
    dist = "jackfield-text"


class TestText(ParserSuite):
    component = "jackfield-text/text"
    samples: ClassVar = {
        "letter.txt": (b"Dear Ada,\n\nthe tea is ready.\n\fPage two.\n", ("Dear Ada", "the tea is ready.", "Page two")),
        "umlaut.log": ("Grüße aus Köln, schöne Straße, über Flüsse\n".encode("latin-1"), "Grüße"),
        "中文.txt": ("数据分析是一门学问。\n\n第二段文字。".encode("gb18030"), "数据分析"),
        "marked.text": ("Hello, world\n".encode("utf-16"), "Hello, world"),
        "code.py": (b"def main():\n    return 42\n", "return 42"),
    }
    unreadable: ClassVar = {"picture.txt": bytes(range(256)) * 8, "white.txt": b" \n\t\n "}

    @staticmethod
    def make_file(count: int) -> bytes:
        return b"A paragraph of some words, as long as the others.\n\n" * (40 * count)


class TestMarkdown(ParserSuite):
    component = "jackfield-text/markdown"
    samples: ClassVar = {
        "tea.md": (MARKDOWN.encode(), "Green tea is"),
        "short.markdown": ("# 标题\n\n正文。".encode(), ("标题", "正文")),
    }
    unreadable: ClassVar = {"picture.md": bytes(range(256)) * 8}

    @staticmethod
    def make_file(count: int) -> bytes:
        return (MARKDOWN * (4 * count)).encode()


class TestJson(ParserSuite):
    component = "jackfield-text/json"
    samples: ClassVar = {
        "users.json": (json.dumps({"users": [{"name": "Ada"}, {"name": "Bo", "tags": ["x", None]}]}).encode(), "Ada"),
        "lines.jsonl": (b'{"a": 1}\n{"a": "two"}\n', ("1", "two")),
        "lines.ndjson": (b"[1, 2]\n[3]\n", "3"),
    }
    hostile: ClassVar = {
        "path.json": b'{"' + b"k" * 200_000 + b'":[' + b"1," * 100_000 + b"1]}",
        "levels.json": b"[" * 900 + b"1," * 200_000 + b"1" + b"]" * 900,
    }
    unreadable: ClassVar = {"cut.json": b'{"a": ', "text.json": b"just words", "deep.json": b"[" * 100_000}

    @staticmethod
    def make_file(count: int) -> bytes:
        return json.dumps([{"name": "Ada", "age": 36}] * (40 * count)).encode()


class TestNotebook(ParserSuite):
    component = "jackfield-text/notebook"
    samples: ClassVar = {
        "tea.ipynb": (
            notebook(
                v4.new_markdown_cell("# Tea\n\nGreen tea."),
                v4.new_code_cell("print(2 + 2)", outputs=[v4.new_output("stream", text="4\n")]),
            ),
            ("Tea", "Green tea.", "print(2 + 2)", "4"),
        ),
        "旧.ipynb": (
            old_notebook(
                v3.new_heading_cell("标题", level=2),
                v3.new_code_cell("1 + 1", outputs=[v3.new_output("pyout", output_text="2", prompt_number=1)]),
            ),
            ("标题", "1 + 1", "2"),
        ),
    }
    unreadable: ClassVar = {
        "cut.ipynb": b'{"cells": [',
        "list.ipynb": b"[]",
        "other.ipynb": b'{"a": 1}',
        "empty.ipynb": notebook(),
        "white.ipynb": notebook(v4.new_code_cell("\n ")),
        "deep.ipynb": b'{"cells":' + b"[" * 100_000,
        "wrong.ipynb": b'{"cells": [1, {"cell_type": "code", "source": [{}]}]}',
    }
    hostile: ClassVar = {
        "levels.ipynb": b'{"cells":' * 50_000,
        "cells.ipynb": b'{"cells": [' + b'{"cell_type":"markdown","source":"- "},' * 10_000 + b"1]}",
        "quotes.ipynb": notebook(v4.new_markdown_cell("> " * 40_000)),
        "escapes.ipynb": notebook(
            v4.new_code_cell("", outputs=[v4.new_output("stream", text="\x1b[" + "1;" * 100_000)])
        ),
    }

    @staticmethod
    def make_file(count: int) -> bytes:
        cells = ((v4.new_markdown_cell("A paragraph of words."), v4.new_code_cell("x = 1")) for _ in range(20 * count))
        return notebook(*(cell for pair in cells for cell in pair))


MAN = rb""".TH TEA 1 2026-01-01
.SH NAME
tea \\- brew tea
.SH OPTIONS
.TP
\\fB\\-h\\fR, \\fB\\-\\-hot\\fR
Boil the water.
"""


class TestMan(ParserSuite):
    component = "jackfield-text/man"
    samples: ClassVar = {
        "tea.1": (MAN.replace(b"\\\\", b"\\"), ("NAME", "tea - brew tea", "OPTIONS", "- -h, --hot: Boil the water.")),
        "茶.mdoc": (".Dd today\n.Dt TEA 1\n.Sh 名称\n.Nm tea\n.Nd 泡茶\n".encode(), ("名称", "tea", "泡茶")),
        "app.log.2": (b"one\n\ntwo\n", ("one", "two")),
    }
    unreadable: ClassVar = {"picture.1": bytes(range(256)) * 8, "white.1": b" \n\t\n "}
    hostile: ClassVar = {
        "macros.1": b".SH A\n" + b".if n .if n .if n .B x\n" * 10_000,
        "conditions.1": b".SH A\n" + b".if n " * 40_000 + b".B x\n",
        "escapes.1": b".SH A\n" + b"\\[" * 100_000 + b"\n" + b"\\h'" * 60_000,
        "quotes.1": b".SH A\n.B " + b'"' * 200_000,
        "words.1": b".Sh A\n.Op " + b"Op " * 60_000,
        "spaces.1": b".SH A\n." + b" " * 200_000 + b"\n.B " + b"\\ " * 80_000,
    }

    @staticmethod
    def make_file(count: int) -> bytes:
        return b".SH NAME\n" + b"A paragraph of some words.\n.PP\n" * (40 * count)
