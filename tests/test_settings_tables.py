"""The tables of settings in the READMEs name settings that exist, with their defaults."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_core import PydanticUndefined

from jackfield.plugins import ComponentSpec, Config, hook
from jackfield_testkit.installed import plain_host

ROOT = Path(__file__).parent.parent
# The defaults of backends depend on the server.
READMES = sorted(path for path in ROOT.glob("plugins/*/*/README.md") if path.parent.parent.name != "llms")
_HEAD = re.compile(r"^\| setting[^|]*\| default \|.*$", re.MULTILINE)
_ROW = re.compile(r"^\| `(?P<name>\w+)` \| (?P<default>[^|]*) \|", re.MULTILINE)
_NONE = object()


def stated_defaults(text: str) -> Iterator[tuple[str, object]]:
    """Yield the settings of a README's tables whose default is a number, a flag or a name."""
    for head in _HEAD.finditer(text):
        table = text[head.end() :].partition("\n\n")[0]
        for row in _ROW.finditer(table):
            yield row["name"], _value(row["default"].strip())


def _value(cell: str) -> object:
    text = cell.strip("`")
    if re.fullmatch(r"[\d,. ]+", text):
        text = re.sub("[, ]", "", text)
    if text in ("true", "false"):
        return text == "true"
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text if re.fullmatch(r"`[a-z][a-z_0-9]*`", cell) else _NONE


def configs_of(folder: Path) -> list[type[Config]]:
    host = plain_host()
    rows = [
        row for row in host.catalog.rows if row.distribution == f"jackfield-{folder.name}" and row.kind in hook.KINDS
    ]
    specs = [(row, host.spec_of(row, ComponentSpec)) for row in rows]
    return [host.load_target(row, spec.config) for row, spec in specs if spec.config]


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.parent.name)
def test_a_readme_states_the_true_defaults(readme: Path) -> None:
    stated = list(stated_defaults(readme.read_text(encoding="utf-8")))
    if not stated:
        pytest.skip("it has no table of settings")
    fields: dict[str, list[Any]] = {}
    for config in configs_of(readme.parent):
        for name, field in config.model_fields.items():
            default = field.get_default(call_default_factory=True)
            fields.setdefault(name, []).append(list(default) if isinstance(default, tuple) else default)
    wrong = {
        name: (default, fields[name])
        for name, default in stated
        if name in fields
        and default is not _NONE
        and not any(value in (None, PydanticUndefined) for value in fields[name])
        if default not in fields[name]
    }
    assert wrong == {}
