"""Parse an answer's schema from the command line: a file, JSON, or the short form `name str, age int`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from jackfield.answers import Form
from jackfield.errors import ConfigError
from jackfield.suggestions import suggest

_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
_FIELD = re.compile(r"([^\W\d][\w-]*)(?:\s+(\w+)(\[\])?)?(?:\s*:\s*(.+))?", re.DOTALL)


def read_schema(text: str) -> Form[Any]:
    """Return the output format described by `--schema`.

    Args:
        text: The path of a JSON Schema, a JSON Schema, or fields such as `name str, tags str[], age int: in years`.
            Fields are separated by commas, or by line breaks if there are several lines. Brackets denote a list of
            objects: `[name str, age int]`.

    Raises:
        ConfigError: The text is none of these, or the schema is invalid.
    """
    text = text.strip()
    if text.startswith("{"):
        return Form(_parse(text, "--schema"))
    path = Path(text).expanduser()
    if _is_file(path) or path.suffix == ".json":
        return Form(_parse(_read(path), str(path)))
    if text.startswith("[") and text.endswith("]"):
        return Form({"type": "array", "items": _object_of(text[1:-1])})
    return Form(_object_of(text))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # too long for a file name
        return False


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise ConfigError(f"the schema {path} cannot be read: {reason}") from error


def _parse(text: str, where: str) -> dict[str, Any]:
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where} is not valid JSON: {error}") from error
    if not isinstance(schema, dict):
        raise ConfigError(f"{where} must be a JSON object, such as {{'type': 'object', 'properties': …}}")
    return schema


def _object_of(text: str) -> dict[str, Any]:
    """Return an object schema in which all of these fields are required."""
    text = text.strip()
    parts = text.splitlines() if "\n" in text else text.split(",")
    properties: dict[str, Any] = {}
    for part in parts:
        if part.strip(" ,"):
            name, schema = _field(part.strip(" ,"))
            if name in properties:
                raise ConfigError(f"--schema: duplicate field {name!r}")
            properties[name] = schema
    if not properties:
        raise ConfigError("--schema is empty: pass a file, a JSON Schema, or fields such as 'name str, age int'")
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _field(text: str) -> tuple[str, dict[str, Any]]:
    field = _FIELD.fullmatch(text)
    if field is None:
        raise ConfigError(f"--schema: {text!r} is not a field: use a name and a type, such as 'age int'")
    name, type_name, is_list, description = field.groups()
    if type_name is not None and type_name not in _TYPES:
        raise ConfigError(f"--schema: the field {name!r} has an unknown type {type_name!r}{suggest(type_name, _TYPES)}")
    schema: dict[str, Any] = {"type": _TYPES[type_name or "str"]}
    if is_list:
        schema = {"type": "array", "items": schema}
    if description:
        schema["description"] = description.strip()
    return name, schema
