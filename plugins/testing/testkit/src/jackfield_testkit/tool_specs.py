"""Write the descriptors of tools into a light module, so that describing them imports nothing heavy.

    python -m jackfield_testkit.tool_specs PACKAGE            writes
    python -m jackfield_testkit.tool_specs PACKAGE --check    compares; 1 if something has to be written

A tool that is a function with `@tool` has its name, texts, schema and flags in the function. In `PACKAGE.plugin`, each
`ToolSpec.of(target="…")`, and each `ToolSpec(…)` that does not say the same as its function, is replaced with the
literal descriptor. Attributes that a function does not have (`secrets`, `network`, `requires`, `check`) stay unchanged.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.util
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from jackfield.plugins import ToolSpec
from jackfield.tools import BaseTool, FunctionTool
from jackfield_manage.judging.source import Constants, UnknownValueError

KEPT = ("secrets", "network", "requires", "check")
"""Attributes that only the light module defines."""

_WIDTH = 120


class Written(NamedTuple):
    """A descriptor in a light module.

    Attributes:
        target: The descriptor's target.
        call: The call that creates the descriptor.
        text: The source that the call should have.
        is_stale: True if the source differs.
    """

    target: str
    call: ast.Call
    text: str
    is_stale: bool


def differences(spec: ToolSpec, tool: BaseTool) -> dict[str, tuple[Any, Any]]:
    """Return the fields in which a descriptor differs from its function, with both values. Other tools have none."""
    if not isinstance(tool, FunctionTool):
        return {}
    said = ToolSpec.of(tool)
    pairs = {name: (getattr(spec, name), getattr(said, name)) for name in _derived()}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def tool_specs(path: Path) -> list[Written]:
    """Return the descriptors of function tools in a file, in order.

    Raises:
        ValueError: A target is missing, or is computed and cannot be determined without running the file.
    """
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source, filename=str(path))
    constants = Constants(tree)
    found = (_written(call, source, constants, is_of=is_of) for call, is_of in _calls(tree))
    return [one for one in found if one is not None]


def refreshed(path: Path) -> str:
    """Return the file's text with every descriptor updated from its function."""
    lines = path.read_text(encoding="utf-8").encode().splitlines(keepends=True)
    for one in reversed(tool_specs(path)):  # from the end, so that earlier positions stay valid
        if one.is_stale:
            first, last = one.call.lineno - 1, (one.call.end_lineno or 0) - 1
            before, after = lines[first][: one.call.col_offset], lines[last][one.call.end_col_offset :]
            lines[first : last + 1] = [before + one.text.encode() + after]
    return b"".join(lines).decode()


def main(arguments: Sequence[str]) -> int:
    """Write or compare the descriptors, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m jackfield_testkit.tool_specs", description=__doc__)
    parser.add_argument("package", help="package or its light module")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit with 1 if the descriptors are out of date"
    )
    options = parser.parse_args(arguments)
    path = _light_module(options.package)
    stale = [one.target for one in tool_specs(path) if one.is_stale]
    if not stale:
        return 0
    if options.check:
        sys.stderr.write(f"{path}: the descriptors of these functions are out of date: {', '.join(stale)}\n")
        return 1
    path.write_text(refreshed(path), encoding="utf-8")
    sys.stdout.write(f"{path}: {', '.join(stale)}\n")
    return 0


def _light_module(package: str) -> Path:
    with suppress(ModuleNotFoundError):
        found = importlib.util.find_spec(package)
        if found is not None and found.submodule_search_locations is not None:
            found = importlib.util.find_spec(f"{package}.plugin")
        if found is not None and found.origin:
            return Path(found.origin)
    raise SystemExit(f"no module {package!r} with a plugin: install the package in editable mode first")


def _calls(tree: ast.Module) -> Iterator[tuple[ast.Call, bool]]:
    """Yield the calls that create tool descriptors, each with True if it is `ToolSpec.of`."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Name("ToolSpec")):
                yield node, False
            case ast.Call(ast.Attribute(ast.Name("ToolSpec"), "of")):
                yield node, True


def _written(call: ast.Call, source: str, constants: Constants, *, is_of: bool) -> Written | None:
    """Return the current and intended source of a call, or None if its target is not a function tool."""
    given = dict(zip(["target"] if is_of else [], call.args, strict=False))
    given |= {keyword.arg or "**": keyword.value for keyword in call.keywords}
    target = _target(given, constants, call.lineno)
    if not isinstance(_loaded(target, call.lineno), FunctionTool):
        if is_of:
            raise ValueError(f"line {call.lineno}: {target} is not a function decorated with @tool")
        return None
    wanted = _said(ToolSpec.of(target))
    kept = {name: ast.get_source_segment(source, given[name]) or "" for name in KEPT if name in given}
    is_stale = is_of or not _says(given, wanted, constants)
    line = source.splitlines()[call.lineno - 1]
    return Written(target, call, _text_of(wanted, kept, len(line) - len(line.lstrip())), is_stale)


def _target(given: Mapping[str, ast.expr], constants: Constants, line: int) -> str:
    try:
        return str(constants.value_of(given["target"]))
    except (UnknownValueError, KeyError):
        raise ValueError(f"line {line}: target='module:name' of the ToolSpec must be a string literal") from None


def _loaded(target: str, line: int) -> object:
    module, _, name = target.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"line {line}: cannot import {target}: {error}") from error


def _derived() -> list[str]:
    """Return the names of fields that are derived from a function."""
    return [one.name for one in fields(ToolSpec) if one.name not in (*KEPT, "target", "config", "extra")]


def _said(spec: ToolSpec) -> dict[str, object]:
    """Return the descriptor's fields that differ from the default and so must be written."""
    defaults = {one.name: one.default for one in fields(ToolSpec)}  # fields without a default are always written
    values = {name: getattr(spec, name) for name in ("name", "target", *_derived())}
    return {name: value for name, value in values.items() if value != defaults[name]}


def _says(given: Mapping[str, ast.expr], wanted: Mapping[str, object], constants: Constants) -> bool:
    """Return True if a call has exactly these values, apart from fields that are preserved."""
    if set(given) - set(KEPT) != set(wanted):
        return False
    try:
        return all(constants.value_of(given[name]) == value for name, value in wanted.items())
    except UnknownValueError:
        return False


# --- source text, as ruff and black would have it ---


def _text_of(wanted: Mapping[str, object], kept: Mapping[str, str], indent: int) -> str:
    inner = " " * (indent + 4)
    lines = [f"{inner}{name}={_literal(value, indent + 4, len(name) + 1)},\n" for name, value in wanted.items()]
    lines += [f"{inner}{name}={text},\n" for name, text in kept.items()]
    return f"ToolSpec(\n{''.join(lines)}{' ' * indent})"


def _literal(value: object, indent: int, taken: int) -> str:
    """Format a value as source code. `taken` is the number of columns already used after the indentation."""
    flat = _flat(value)
    if indent + taken + len(flat) + 1 <= _WIDTH:
        return flat
    inner = " " * (indent + 4)
    match value:
        case str():
            brackets, lines = "()", [_quoted(part) for part in _parts(value, indent + 4)]
        case Mapping():
            brackets, lines = "{}", [f"{_entry(key, one, indent + 4)}," for key, one in value.items()]
        case list() | tuple():
            brackets = "[]" if isinstance(value, list) else "()"
            lines = [f"{_literal(one, indent + 4, 0)}," for one in value]
        case _:
            return flat
    body = "".join(f"{inner}{line}\n" for line in lines)
    return f"{brackets[0]}\n{body}{' ' * indent}{brackets[1]}"


def _entry(key: str, value: object, indent: int) -> str:
    before = f"{_quoted(key)}: "
    return before + _literal(value, indent, len(before))


def _flat(value: object) -> str:
    match value:
        case str():
            return _quoted(value)
        case Mapping():
            return "{" + ", ".join(f"{_quoted(key)}: {_flat(one)}" for key, one in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_flat, value)) + "]"
        case frozenset():
            return "frozenset({" + ", ".join(map(_flat, sorted(value))) + "})"
    return repr(value)


def _quoted(text: str) -> str:
    shown = repr(text)
    if shown[0] == '"' or '"' in text:
        return shown
    return f'"{shown[1:-1]}"'


def _parts(text: str, indent: int) -> Iterator[str]:
    """Split a text into pieces that each fit on one line, after spaces if possible."""
    room = max(20, _WIDTH - indent)
    while len(_quoted(text)) > room:
        cut = room - 2
        while len(_quoted(text[:cut])) > room:
            cut -= 1
        cut = text.rfind(" ", 1, cut) + 1 or cut
        yield text[:cut]
        text = text[cut:]
    yield text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
