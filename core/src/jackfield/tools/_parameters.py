"""Convert Qwen-Agent's parameter lists to JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jackfield.errors import ConfigError

_TYPES = {name: name for name in ("string", "integer", "number", "boolean", "array", "object", "null")}
_TYPES |= {"str": "string", "text": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array"}
_TYPES |= {"dict": "object"}


def schema_of_list(tool_name: str, parameters: Sequence[object]) -> dict[str, Any]:
    """Convert a list of parameters to the JSON Schema of an object.

    Each parameter is a dict with `name`, `type`, `description` and `required` (a boolean, False by default). All other
    keys are part of the argument's JSON Schema. Types that JSON Schema does not define are ignored.

    Args:
        tool_name: The tool's name, for error messages.
        parameters: The list.

    Raises:
        ConfigError: An entry is not a dict in this format.
    """
    properties: dict[str, Any] = {}
    required: list[str] = []
    for entry in parameters:
        if not isinstance(entry, Mapping) or not isinstance(name := entry.get("name"), str):
            raise ConfigError(
                f"the parameters of tool {tool_name!r}, if passed as a list, must be dicts with 'name', 'type', "
                f"'description' and 'required'"
            )
        schema = {key: value for key, value in entry.items() if key not in ("name", "required", "type")}
        known_type = _TYPES.get(str(entry.get("type", "")).lower())
        properties[name] = {"type": known_type, **schema} if known_type else schema
        if entry.get("required") is True:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required}
