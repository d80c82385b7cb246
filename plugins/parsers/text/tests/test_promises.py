"""Test what is promised before a component is used: its descriptor, and the limits of its settings."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.config import Config
from jackfield_text.json_values import JsonConfig
from jackfield_text.plugin import parsers
from tests.support.promises import check_limit, promises_of

PROMISES: dict[str, dict[str, Any]] = {
    "ParserSpec json": {
        "extensions": ("json", "jsonl", "ndjson"),
        "media_types": ("application/json", "application/x-ndjson", "application/jsonl"),
        "in_process_bytes": 262144,
    },
    "ParserSpec man": {
        "extensions": (
            "1",
            "2",
            "3",
            "4",
            "5",
            "6",
            "7",
            "8",
            "9",
            "1p",
            "3p",
            "3pm",
            "1ssl",
            "3ssl",
            "5ssl",
            "7ssl",
            "1x",
            "3x",
            "man",
            "mdoc",
        ),
        "media_types": ("text/troff", "application/x-troff-man"),
    },
    "ParserSpec markdown": {
        "extensions": ("md", "markdown", "mdown", "mkd"),
        "media_types": ("text/markdown",),
        "in_process_bytes": 262144,
    },
    "ParserSpec notebook": {"extensions": ("ipynb",), "media_types": ("application/x-ipynb+json",)},
    "ParserSpec text": {
        "extensions": (
            "txt",
            "text",
            "log",
            "rst",
            "py",
            "pyi",
            "js",
            "mjs",
            "ts",
            "tsx",
            "jsx",
            "java",
            "kt",
            "scala",
            "c",
            "h",
            "cc",
            "cpp",
            "hpp",
            "cs",
            "go",
            "rs",
            "rb",
            "php",
            "pl",
            "lua",
            "r",
            "swift",
            "sh",
            "bash",
            "zsh",
            "ps1",
            "bat",
            "sql",
            "css",
            "scss",
            "toml",
            "ini",
            "cfg",
            "conf",
            "properties",
            "yaml",
            "yml",
            "tex",
            "diff",
            "patch",
        ),
        "media_types": ("text/plain",),
        "in_process_bytes": 262144,
    },
}


def test_the_descriptors_promise_these_facts_and_no_others() -> None:
    assert promises_of(parsers()) == PROMISES


@pytest.mark.parametrize(
    ("config", "setting", "last", "beyond"),
    [
        (JsonConfig, "max_bytes", 1, 0),
        (JsonConfig, "max_values", 1, 0),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else str(value),
)
def test_a_setting_takes_its_last_value_and_refuses_the_next(
    config: type[Config], setting: str, last: object, beyond: object
) -> None:
    check_limit(config, setting, last, beyond, {})
