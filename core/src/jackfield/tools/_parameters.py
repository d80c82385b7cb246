"""Parameters of a tool as a list, as tools for Qwen-Agent have them; they become JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jackfield.errors import ConfigError

_TYPES = {name: name for name in ("string", "integer", "number", "boolean", "array", "object", "null")}
_TYPES |= {"str": "string", "text": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array"}
_TYPES |= {"dict": "object"}


def schema_of_list(name: str, parameters: Sequence[object]) -> dict[str, Any]:
    """The JSON Schema of an object with these parameters: dicts with `name`, `type`, `description` and `required`.

    `required` is true or false (false if it is missing), and everything else is JSON Schema of the argument. A type
    that JSON Schema does not know is ignored.

    Args:
        name: The name of the tool, for errors.
        parameters: The list.

    Raises:
        ConfigError: An entry is something else.
    """
    named = [_named(entry, name) for entry in parameters]
    return {
        "type": "object",
        "properties": {own: _schema_of(entry) for own, entry in named},
        "required": [own for own, entry in named if entry.get("required") is True],
    }


def _named(entry: object, tool: str) -> tuple[str, Mapping[str, Any]]:
    if isinstance(entry, Mapping) and isinstance(name := entry.get("name"), str):
        return name, entry
    raise ConfigError(
        f"the parameters of tool {tool!r}, given as a list, must be dicts with 'name', 'type', 'description' "
        f"and 'required'"
    )


def _schema_of(entry: Mapping[str, Any]) -> dict[str, Any]:
    schema = {key: value for key, value in entry.items() if key not in ("name", "required", "type")}
    known = _TYPES.get(str(entry.get("type", "")).lower())
    return {"type": known, **schema} if known else schema
