from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from jackfield.plugins import PluginHost
from jackfield.settings import Settings
from jackfield_documents import DocumentReader


@pytest.mark.parametrize(
    ("name", "text", "kinds"),
    [
        ("a.txt", "# no heading", ["paragraph"]),
        ("a.MD", "# heading", ["heading"]),
        ("a.json", '{"a": "# no heading"}', ["paragraph"]),
        ("a.py", "# no heading", ["paragraph"]),
        ("app.log.1", "one line", ["paragraph"]),
        ("README", "# no heading", ["paragraph"]),
    ],
)
def test_the_core_finds_the_parser_for_a_file(tmp_path: Path, name: str, text: str, kinds: list[str]) -> None:
    (tmp_path / name).write_text(text)
    host = PluginHost(Settings(allow=frozenset({"jackfield-text"})))
    document = asyncio.run(DocumentReader(host).read(tmp_path / name))
    assert [block.kind for block in document.blocks] == kinds
