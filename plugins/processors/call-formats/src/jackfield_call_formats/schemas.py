"""Schemas of the offered functions: convert them to JSON, and look up argument types."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from jackfield.request import FunctionSchema

Types = frozenset[str]
"""The JSON types that a value may have, or none if the schema does not specify any."""


def schema_json(schema: Mapping[str, object]) -> str:
    """Serialize a schema as one line of JSON. Any kind of mapping is accepted."""
    return json.dumps(schema, ensure_ascii=False, default=_as_dict)


def _as_dict(value: object) -> dict[str, object]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a function schema can only contain JSON values, got {type(value).__name__}")


def properties_of(function: FunctionSchema) -> Mapping[str, object]:
    """Return the schema of each argument of a function."""
    properties = (function.get("parameters") or {}).get("properties") or {}
    return properties if isinstance(properties, Mapping) else {}


def argument_types(name: str, functions: Sequence[FunctionSchema]) -> dict[str, Types]:
    """Return the JSON types that the schema allows for each argument."""
    for function in functions:
        if function.get("name") == name:
            return {str(key): frozenset(_types_in(schema)) for key, schema in properties_of(function).items()}
    return {}


def _types_in(schema: object) -> list[str]:
    if not isinstance(schema, Mapping):
        return []
    declared = schema.get("type", [])
    types = [declared] if isinstance(declared, str) else [str(entry) for entry in declared]
    options = (*schema.get("anyOf", ()), *schema.get("oneOf", ()))
    return [*(types or _types_of_values(schema)), *chain.from_iterable(map(_types_in, options))]


def _types_of_values(schema: Mapping[str, Any]) -> list[str]:
    """Return `string` as the type if all allowed values are strings."""
    values = [*schema.get("enum", ()), *([schema["const"]] if "const" in schema else [])]
    return ["string"] if values and all(isinstance(value, str) for value in values) else []
