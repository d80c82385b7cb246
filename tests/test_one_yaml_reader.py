"""YAML is parsed in one place, which refuses aliases, repeated keys and depth."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
READER = ROOT / "plugins/libraries/agent-files/src/jackfield_agent_files/tables.py"
SOURCES = sorted(
    path
    for folder in ("core/src", "plugins")
    for path in (ROOT / folder).rglob("src/**/*.py" if folder == "plugins" else "*.py")
)
YAML = {"yaml", "ruamel", "ruyaml", "oyaml", "strictyaml"}


def yaml_imports(source: str) -> set[str]:
    """The YAML libraries that a module imports, at its top or inside of a function, by statement or by name."""
    names: set[str] = set()
    if not any(library in source for library in YAML):  # as in most modules, which take seconds to parse
        return names
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=aliases):
                names |= {alias.name.partition(".")[0] for alias in aliases}
            case ast.ImportFrom(module=str(module), level=0):
                names.add(module.partition(".")[0])
            case ast.Call(args=[ast.Constant(value=str(name)), *_]):  # import_module("yaml")
                names.add(name.partition(".")[0])
    return names & YAML


@pytest.mark.parametrize(
    "source", ["import yaml", "def f():\n from yaml import safe_load", "import_module('ruamel.yaml')"]
)
def test_an_import_is_seen_wherever_it_is(source: str) -> None:
    assert yaml_imports(source)


def test_nothing_else_parses_yaml() -> None:
    assert len(SOURCES) > 300
    readers = {path for path in SOURCES if yaml_imports(path.read_text(encoding="utf-8"))}
    assert readers == {READER}
