"""Convert a tool's list of parameters, as in Qwen-Agent, to JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jackfield.errors import ConfigError

_TYPES = {name: name for name in ("string", "integer", "number", "boolean", "array", "object", "null")}
_TYPES |= {"str": "string", "text": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array"}
_TYPES |= {"dict": "object"}


def schema_of_list(tool_name: str, parameters: Sequence[object]) -> dict[str, Any]:
    """Return the JSON Schema of an object with these parameters: dicts with `name`, `type`, `description`, `required`.

    `required` is true or false (the default). All other keys are JSON Schema of the argument. Types that JSON Schema
    does not have are ignored.

    Args:
        tool_name: The name of the tool, for errors.
        parameters: The list.

    Raises:
        ConfigError: An entry is not such a dict.
    """
    properties: dict[str, Any] = {}
    required: list[str] = []
    for entry in parameters:
        if not isinstance(entry, Mapping) or not isinstance(name := entry.get("name"), str):
            raise ConfigError(
                f"the parameters of tool {tool_name!r}, given as a list, must be dicts with 'name', 'type', "
                f"'description' and 'required'"
            )
        schema = {key: value for key, value in entry.items() if key not in ("name", "required", "type")}
        known_type = _TYPES.get(str(entry.get("type", "")).lower())
        properties[name] = {"type": known_type, **schema} if known_type else schema
        if entry.get("required") is True:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required}
