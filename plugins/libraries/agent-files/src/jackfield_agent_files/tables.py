"""Parse untrusted YAML, TOML and JSON safely: limited depth, no YAML aliases, no NUL and no lone surrogates.

All YAML in Jackfield is parsed by this module.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml

from jackfield.errors import ConfigError

Form = Literal["yaml", "toml", "json"]

FORMS: dict[str, Form] = {".yaml": "yaml", ".yml": "yaml", ".toml": "toml", ".json": "json"}
"""The format for each lowercase file extension."""

MAX_DEPTH = 64
# The C parser takes a tenth of the time; it is missing if PyYAML was built without libyaml.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse_table(text: str, form: Form, *, max_depth: int = MAX_DEPTH) -> object:
    """Parse a text and validate the result before returning it.

    Args:
        text: The file's whole text.
        form: The text's format.
        max_depth: The deepest allowed nesting of lists and tables.

    Raises:
        ValueError: The text is malformed, has a YAML alias or a duplicate key, is nested too deeply, or contains a NUL
            or a lone surrogate. The message quotes no values, which may be secrets.
    """
    try:
        value = _PARSERS[form](text, max_depth)
        _check_value(value, max_depth)
    except RecursionError:
        raise ValueError(f"nested more than {max_depth} levels deep") from None
    return value


def read_text(path: Path, *, max_bytes: int, what: str = "a configuration file") -> str:
    """Read a settings file.

    Raises:
        ConfigError: The file cannot be read, is not a regular file, is larger than `max_bytes`, or is not UTF-8.
    """
    try:
        # Non-blocking, because a pipe without a writer would block forever.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as file:
            is_regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
            raw = file.read(max_bytes + 1) if is_regular else b""
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:  # a name with a NUL or a lone surrogate
        raise ConfigError(f"{str(path)!r} is not a file name") from error
    if not is_regular:
        raise ConfigError(f"{path} cannot be read: not a regular file")
    if len(raw) > max_bytes:
        raise ConfigError(f"{path} exceeds the {max_bytes >> 20} MiB limit for {what}")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        # Without the cause, which carries the whole text, keys included.
        raise ConfigError(f"{path} is not UTF-8 text: {error.reason}, at byte {error.start}") from None


# --- YAML -------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Open:
    """A list or table whose end has not been parsed yet."""

    is_table: bool
    keys: set[str] = field(default_factory=set)
    wants_key: bool = True


def _parse_yaml(text: str, max_depth: int) -> object:
    try:
        # The events first: nested aliases let a short text become a value of any size.
        _check_events(yaml.parse(text, Loader=_Loader), max_depth)
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - it is the safe one
    except yaml.YAMLError as error:
        tabs = "; indent YAML with spaces, not tabs" if _begins_with_tab(text, error) else ""
        raise ValueError(f"not valid YAML: {_place_of(error)}{tabs}") from None  # its own message quotes the line


def _check_events(events: Iterable[yaml.Event], max_depth: int) -> None:
    opened: list[_Open] = []
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            raise ValueError(f"aliases (*name) are not allowed{_line(event)}: repeat the value instead")
        if isinstance(event, yaml.CollectionEndEvent):
            opened.pop()
        elif isinstance(event, yaml.NodeEvent):
            _note_key(event, opened)
            if isinstance(event, yaml.CollectionStartEvent):
                opened.append(_Open(isinstance(event, yaml.MappingStartEvent)))
        if len(opened) > max_depth:
            raise ValueError(f"nested more than {max_depth} levels deep{_line(event)}")


def _note_key(event: yaml.NodeEvent, opened: list[_Open]) -> None:
    if not opened or not opened[-1].is_table:
        return
    table = opened[-1]
    if table.wants_key and isinstance(event, yaml.ScalarEvent):
        if event.value in table.keys:
            raise ValueError(f"duplicate key {event.value[:40]!r}{_line(event)}")
        table.keys.add(event.value)
    table.wants_key = not table.wants_key


def _line(event: yaml.Event) -> str:
    return f", line {event.start_mark.line + 1}" if event.start_mark else ""


def _begins_with_tab(text: str, error: Any) -> bool:
    """Return True if the line an error points to, or the line before, has a tab in its indentation."""
    mark = getattr(error, "problem_mark", None)
    lines = text.split("\n")[max(0, mark.line - 1) : mark.line + 1] if mark else []
    return any("\t" in line[: len(line) - len(line.lstrip())] for line in lines)


def _place_of(error: Any) -> str:
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None) or "cannot be parsed"
    return f"{problem}, line {mark.line + 1}, column {mark.column + 1}" if mark else str(problem)


# --- TOML and JSON ----------------------------------------------------------------------------------------------------


def _parse_toml(text: str, _: int) -> object:
    import tomllib

    return tomllib.loads(text)


def _parse_json(text: str, _: int) -> object:
    return json.loads(text, object_pairs_hook=_table_without_repetition, parse_constant=_refuse_constant)


def _table_without_repetition(pairs: list[tuple[str, object]]) -> dict[str, object]:
    table: dict[str, object] = {}
    for key, value in pairs:
        if key in table:
            raise ValueError(f"duplicate key {key[:40]!r}")
        table[key] = value
    return table


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not a valid JSON number")


_PARSERS = {"yaml": _parse_yaml, "toml": _parse_toml, "json": _parse_json}


# --- values -----------------------------------------------------------------------------------------------------------


def _check_value(value: object, max_depth: int) -> None:
    """Check nesting depth and strings iteratively, so that no value can exhaust the stack."""
    waiting: list[tuple[str, int, object]] = [("", 0, value)]
    while waiting:
        place, depth, one = waiting.pop()
        if isinstance(one, str):
            _check_text(place, one)
            continue
        if isinstance(one, dict | list) and depth >= max_depth:
            raise ValueError(f"nested more than {max_depth} levels deep")
        waiting += ((key, depth + 1, inner) for key, inner in _parts_of(place, one))


def _parts_of(place: str, value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield "a key", key
            yield (f"{place}.{key}" if place else str(key)), inner
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield f"{place}.{number}" if place else str(number), inner


def _check_text(place: str, text: str) -> None:
    if text.isascii() and "\0" not in text:
        return
    shown = ascii(place)[1:-1][-120:] or "the text"
    if "\0" in text:
        raise ValueError(f"{shown} contains a NUL character: remove it")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{shown} contains a lone surrogate: fix its encoding") from None
