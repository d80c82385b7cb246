from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from jackfield.errors import ConfigError
from jackfield.plugins import PluginHost
from jackfield.settings import Settings
from jackfield_documents import DocumentReader
from jackfield_text.json_values import JsonParser
from jackfield_text.plugin import parsers


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


def test_files_are_recognised_by_each_media_type() -> None:
    assert {spec.name: set(spec.media_types) for spec in parsers()} == {
        "text": {"text/plain"},
        "markdown": {"text/markdown"},
        "json": {"application/json", "application/x-ndjson", "application/jsonl"},
        "notebook": {"application/x-ipynb+json"},
        "man": {"text/troff", "application/x-troff-man"},
    }


@pytest.mark.parametrize("setting", ["max_bytes", "max_values"])
def test_a_limit_is_at_least_one(setting: str) -> None:
    assert getattr(JsonParser({setting: 1}).config, setting) == 1
    with pytest.raises(ConfigError, match=setting):
        JsonParser({setting: 0})


def test_files_are_recognised_by_each_of_these_extensions() -> None:
    assert {spec.name: " ".join(spec.extensions) for spec in parsers()} == {
        "text": (
            "txt text log rst py pyi js mjs ts tsx jsx java kt scala c h cc cpp hpp cs go rs rb php pl "
            "lua r swift sh bash zsh ps1 bat sql css scss toml ini cfg conf properties yaml yml tex "
            "diff patch"
        ),
        "markdown": "md markdown mdown mkd",
        "json": "json jsonl ndjson",
        "notebook": "ipynb",
        "man": "1 2 3 4 5 6 7 8 9 1p 3p 3pm 1ssl 3ssl 5ssl 7ssl 1x 3x man mdoc",
    }
