"""Convert output schemas to the formats that providers accept."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, object]


def response_format(schema: Schema, *, name: str = "") -> dict[str, object]:
    """Return a schema as OpenAI's `response_format`, with `strict` if the schema allows it.

    Args:
        schema: The schema of the entire answer.
        name: A name for the schema. Defaults to its title.
    """
    title = re.sub(r"[^A-Za-z0-9_-]+", "_", name or str(schema.get("title") or "answer"))[:64] or "answer"
    strict = strict_schema(schema)
    return {
        "type": "json_schema",
        "json_schema": {
            "name": title,
            "schema": dict(schema) if strict is None else strict,
            "strict": strict is not None,
        },
    }


def strict_schema(schema: Schema) -> dict[str, object] | None:
    """Convert a schema to strict mode: all properties required, no additional properties, no defaults.

    Returns:
        The strict schema, or None if strict mode would change which objects are valid. Objects with arbitrary keys and
        objects without any keys are affected.
    """
    try:
        strict = _strict(dict(schema))
    except _NotStrictError:
        return None
    return strict if strict.get("type") == "object" else None


class _NotStrictError(Exception):
    pass


def _strict(node: object) -> Any:
    if isinstance(node, list):
        return [_strict(entry) for entry in node]
    if not isinstance(node, Mapping):
        return node
    strict = {key: _strict_entry(key, value) for key, value in node.items() if key != "default"}
    if strict.get("type") != "object" and "properties" not in strict:
        return strict
    has_free_keys = strict.get("additionalProperties") not in (None, False) or "patternProperties" in strict
    if has_free_keys or not strict.get("properties"):
        raise _NotStrictError
    return {**strict, "additionalProperties": False, "required": list(strict["properties"])}


def _strict_entry(key: str, value: object) -> Any:
    if key in ("properties", "$defs", "definitions") and isinstance(value, Mapping):  # their keys are names
        return {name: _strict(inner) for name, inner in value.items()}
    return value if key in ("enum", "const", "examples") else _strict(value)
