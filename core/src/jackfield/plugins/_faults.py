"""Validate descriptors, which come from third parties and are shown to users and models."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import get_type_hints

from jackfield._fitting import fits
from jackfield.descriptors import ComponentSpec

MAX_SCHEMA_BYTES = 64 << 10
MAX_TEXT_CHARS = 16 << 10
MAX_SUMMARY_CHARS = 500
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_TARGET = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_LAYOUT = str.maketrans("\n\t", "  ")
_SCHEMA_TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")
_ANY_OF_TYPES = f"use {', '.join(_SCHEMA_TYPES)}"


def fault_of(spec: ComponentSpec) -> str:
    """Return the first fault in a descriptor, phrased as the end of a sentence, or '' if there is none."""
    for check in _CHECKS:
        for fault in check(spec):
            return fault
    return ""


def _faults_of_types(spec: ComponentSpec) -> Iterator[str]:
    hints = get_type_hints(type(spec))
    for field in fields(spec):
        value = getattr(spec, field.name)
        if not fits(value, hints[field.name]):
            yield f"{field.name!r} must be {field.type}, got {type(value).__name__}"
        if type(value) in (int, float) and not (value > 0 or value == field.default):
            yield f"{field.name!r} must be greater than 0, got {value}"


def _faults_of_names(spec: ComponentSpec) -> Iterator[str]:
    if not _NAME.fullmatch(spec.name):
        yield f"{spec.name[:80]!r} is not a valid name: use at most 64 letters, digits, '_', '-' and '.'"
    for variable in spec.secrets:
        if not _VARIABLE.fullmatch(variable):
            yield f"the secret {variable[:80]!r} is not a valid environment variable name"


def _faults_of_targets(spec: ComponentSpec) -> Iterator[str]:
    needs_target = not getattr(spec, "tools", ())  # a toolset may name its tools instead
    for name in ("target", "config", "check"):
        value = getattr(spec, name)
        if (value or (name == "target" and needs_target)) and not _TARGET.fullmatch(value):
            yield f"{name!r} must be 'module:name', got {value[:80]!r}"
    if spec.required_by and not spec.config:
        yield "'required_by' needs settings, but 'config' does not specify a settings class"


def _faults_of_texts(spec: ComponentSpec) -> Iterator[str]:
    if len(spec.summary) > MAX_SUMMARY_CHARS:
        yield f"'summary' is {len(spec.summary)} characters long; the limit is {MAX_SUMMARY_CHARS}"
    description = getattr(spec, "description", "")
    if description == {}:
        yield "'description' is empty"
    texts = {"description": description} if isinstance(description, str) else description
    hosts = {f"host {host[:80]!r}": host for host in spec.network}
    for label, text in {"summary": spec.summary, **hosts, **texts}.items():
        if len(text) > MAX_TEXT_CHARS:
            yield f"{label} is {len(text)} characters long; the limit is {MAX_TEXT_CHARS}"
        if not text.translate(_LAYOUT).isprintable():
            yield f"{label} contains a non-printable character, such as an escape sequence"


def _faults_of_schema(spec: ComponentSpec) -> Iterator[str]:
    parameters = getattr(spec, "parameters", None)
    if parameters is None:
        return
    try:
        size = len(json.dumps(dict(parameters)))
    except (TypeError, ValueError, RecursionError) as error:
        yield f"'parameters' must be JSON-serializable: {error}"
    else:
        if size > MAX_SCHEMA_BYTES:
            yield f"'parameters' is {size} bytes of JSON; the limit is {MAX_SCHEMA_BYTES}"
        yield from _faults_of_schema_types(parameters)


def _faults_of_schema_types(parameters: Mapping[str, object]) -> Iterator[str]:
    """Check types without importing `jsonschema`, which is slow to import. `doctor --deep` checks the rest."""
    from jackfield.jsonschemas import schemas_in

    if parameters.get("type") != "object":
        yield f"'parameters' must be a JSON Schema of type 'object', got {parameters.get('type')!r:.80}"
    try:
        words = [word for schema in schemas_in(parameters) for word in _listed(schema.get("type", ()))]
    except RecursionError:
        yield "'parameters' is nested too deeply: use $defs and $ref to flatten the schema"
        return
    for word in words:
        if word not in _SCHEMA_TYPES:
            yield f"'parameters' uses type {word!r:.80}, which JSON Schema does not define: {_ANY_OF_TYPES}"


def _listed(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else [value]


# Types come first: the other checks rely on them.
_CHECKS = (_faults_of_types, _faults_of_names, _faults_of_targets, _faults_of_texts, _faults_of_schema)
