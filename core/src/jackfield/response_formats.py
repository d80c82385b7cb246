"""Schemas of answers in the form that providers accept."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, object]


def response_format(schema: Schema, *, name: str = "") -> dict[str, object]:
    """A schema as the `response_format` that OpenAI made common; `strict` where the schema can be made so.

    Args:
        schema: Of the whole answer.
        name: What the schema is called; its title if ''.
    """
    title = re.sub(r"[^A-Za-z0-9_-]+", "_", name or str(schema.get("title") or "answer"))[:64] or "answer"
    strict = strictly(schema)
    return {
        "type": "json_schema",
        "json_schema": {
            "name": title,
            "schema": dict(schema) if strict is None else strict,
            "strict": strict is not None,
        },
    }


def strictly(schema: Schema) -> dict[str, object] | None:
    """The schema as strict modes want it: every property required, no other allowed, no default.

    None where that would change which objects fit: objects with free keys, or none of their own.
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
        return list(map(_strict, node))
    if not isinstance(node, Mapping):
        return node
    return _closed({key: _strict_part(key, value) for key, value in node.items() if key != "default"})


def _closed(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema that, if it is an object's, requires all its properties and allows no others."""
    if node.get("type") != "object" and "properties" not in node:
        return node
    is_free = node.get("additionalProperties") not in (None, False) or "patternProperties" in node
    if is_free or not node.get("properties"):
        raise _NotStrictError
    return {**node, "additionalProperties": False, "required": list(node["properties"])}


def _strict_part(key: str, value: object) -> Any:
    if key in ("properties", "$defs", "definitions") and isinstance(value, Mapping):  # here, keys are names
        return {name: _strict(inner) for name, inner in value.items()}
    return value if key in ("enum", "const", "examples") else _strict(value)
