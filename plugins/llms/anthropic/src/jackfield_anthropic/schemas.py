"""Convert JSON Schemas to the subset that the Messages protocol enforces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jackfield.jsontext import dumps
from jackfield_http import Wire

Schema = Mapping[str, Any]

_KEPT = ("enum", "const", "description", "title", "required")
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"})
_COMBINED = {"anyOf": "anyOf", "oneOf": "anyOf", "allOf": "allOf"}
_DEFINITIONS = ("$defs", "definitions")
_HANDLED = {*_KEPT, *_COMBINED, *_DEFINITIONS, "type", "$ref", "format", "minItems", "properties", "items"}
_IGNORED = {"additionalProperties", "default", "examples", "$schema", "$id"}


class _UnenforceableError(Exception):
    """The protocol has no equivalent for part of a schema."""


def enforceable_schema(schema: Schema) -> Wire | None:
    """Convert a schema to one that the protocol enforces.

    Unsupported constraints, such as `minimum`, are moved to the description, where the model reads them. The caller
    must still validate the answer.

    Returns:
        The converted schema, or None if the schema is recursive or allows arbitrary keys, values of any type, or
        tuples.

    Source: the provider's page on structured outputs, as of November 2026.
    """
    definitions = {name: inner for key in _DEFINITIONS for name, inner in (schema.get(key) or {}).items()}
    try:
        fitted = {"$defs": {name: _fit(inner) for name, inner in definitions.items()}} if definitions else {}
        fitted |= _fit(schema)
        _refuse_recursion(fitted, fitted.get("$defs", {}), ())
    except _UnenforceableError:
        return None
    return fitted


def _fit(schema: object) -> Wire:
    if not isinstance(schema, Mapping):  # `true` allows any value
        raise _UnenforceableError
    if "$ref" in schema:
        # Keys next to a reference are not allowed.
        return {"$ref": f"#/$defs/{str(schema['$ref']).rpartition('/')[2]}"}
    fitted: Wire = {key: schema[key] for key in _KEPT if key in schema}
    for key, own_key in _COMBINED.items():
        if key in schema:
            fitted[own_key] = [_fit(inner) for inner in schema[key]]
    kind = schema.get("type")
    if isinstance(kind, list):
        rest = {key: value for key, value in schema.items() if key not in ("type", "title", "description")}
        fitted = {key: fitted[key] for key in ("title", "description") if key in fitted}
        return {**fitted, "anyOf": [_fit(_only_for(one, rest)) for one in kind]}
    if kind is None and not {"enum", "const", "anyOf", "allOf"} & set(fitted):
        raise _UnenforceableError
    if kind is not None:
        fitted["type"] = kind
    if kind == "object":
        fitted |= _fit_object(schema)
    if kind == "array":
        fitted["items"] = _fit(schema.get("items"))
    return _with_notes(fitted, schema)


def _only_for(kind: str, schema: Schema) -> Schema:
    """Narrow a schema with several types to one of them, dropping the keys that belong to the others."""
    keys = {"object": ("properties", "required", "additionalProperties"), "array": ("items", "minItems", "maxItems")}
    others = [key for other, names in keys.items() if other != kind for key in names]
    enum = {}
    if "enum" in schema:
        enum = {"enum": [value for value in schema["enum"] if (value is None) == (kind == "null")]}
    return {**{key: value for key, value in schema.items() if key not in others}, **enum, "type": kind}


def _fit_object(schema: Schema) -> Wire:
    properties = schema.get("properties") or {}
    has_free_keys = schema.get("additionalProperties", not properties) is not False
    if "additionalProperties" not in schema and properties:
        has_free_keys = False  # most schemas omit it, but mean only the named keys
    if has_free_keys or "patternProperties" in schema:
        raise _UnenforceableError
    return {
        "properties": {name: _fit(inner) for name, inner in properties.items()},
        "additionalProperties": False,
    }


def _with_notes(fitted: Wire, schema: Schema) -> Wire:
    """Copy supported values of `format` and `minItems`, and add all other constraints to the description."""
    notes = [key for key in schema if key not in _HANDLED and key not in _IGNORED]
    for key, is_supported in (
        ("format", schema.get("format") in _FORMATS and schema.get("type") == "string"),
        ("minItems", schema.get("minItems") in (0, 1)),
    ):
        if key in schema and is_supported:
            fitted[key] = schema[key]
        elif key in schema:
            notes.append(key)
    if notes:
        note = ", ".join(f"{key}: {dumps(schema[key])}" for key in notes)
        fitted["description"] = f"{fitted['description']} ({note})" if fitted.get("description") else note
    return fitted


def _refuse_recursion(schema: Schema, definitions: Schema, inside: tuple[str, ...]) -> None:
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        if name in inside or name not in definitions:
            raise _UnenforceableError
        _refuse_recursion(definitions[name], definitions, (*inside, name))
        return
    parts = [*schema.get("properties", {}).values(), *schema.get("anyOf", ()), *schema.get("allOf", ())]
    if "items" in schema:
        parts.append(schema["items"])
    for part in parts:
        _refuse_recursion(part, definitions, inside)
