"""What is wrong with a descriptor: it comes from anybody, and ends in terminals, in files and in models."""

from __future__ import annotations

import json
import re
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
_TARGET_FIELDS = ("target", "config", "check")


def fault_of(spec: ComponentSpec) -> str:
    """What is wrong with a descriptor, as the end of a sentence, or '' if nothing is."""
    # In this order: what is of the right type can be looked at.
    faults = (check(spec) for check in (_fault_of_types, _fault_of_names, _fault_of_texts, _fault_of_schema))
    return next(filter(None, faults), "")


def _fault_of_types(spec: ComponentSpec) -> str:
    hints = get_type_hints(type(spec))
    for entry in fields(spec):
        value = getattr(spec, entry.name)
        if not fits(value, hints[entry.name]):
            return f"{entry.name!r} must be {entry.type}, not {type(value).__name__}"
        if type(value) in (int, float) and not (value > 0 or value == entry.default):
            return f"{entry.name!r} must be more than 0, not {value}"
    return ""


def _fault_of_names(spec: ComponentSpec) -> str:
    if not _NAME.fullmatch(spec.name):
        return f"{spec.name[:80]!r} is not a valid name: use at most 64 letters, digits, '_', '-' and '.'"
    for name in _TARGET_FIELDS:
        value = getattr(spec, name)
        if not _TARGET.fullmatch(value) and (value or (name == "target" and not getattr(spec, "tools", ()))):
            return f"{name!r} must be 'module:name', not {value[:80]!r}"
    if spec.required_by and not spec.config:
        return "'required_by' is about settings, but 'config' does not name their class"
    for variable in spec.secrets:
        if not _VARIABLE.fullmatch(variable):
            return f"the secret {variable[:80]!r} is not a valid name of an environment variable"
    return ""


def _fault_of_texts(spec: ComponentSpec) -> str:
    if len(spec.summary) > MAX_SUMMARY_CHARS:
        return f"'summary' has {len(spec.summary)} characters; at most {MAX_SUMMARY_CHARS} fit in a line"
    description = getattr(spec, "description", "")
    texts = {"description": description} if isinstance(description, str) else dict(description)
    if not texts:
        return "'description' has no text in any language"
    shown = {"summary": spec.summary, **{f"host {host[:80]!r}": host for host in spec.network}, **texts}
    for what, text in shown.items():
        if len(text) > MAX_TEXT_CHARS:
            return f"{what} has {len(text)} characters; the limit is {MAX_TEXT_CHARS}"
        if not all(char.isprintable() or char in "\n\t" for char in text):
            return f"{what} contains a character that cannot be shown, such as an escape sequence"
    return ""


def _fault_of_schema(spec: ComponentSpec) -> str:
    parameters = getattr(spec, "parameters", None)
    if parameters is None:
        return ""
    try:
        size = len(json.dumps(dict(parameters)))
    except (TypeError, ValueError, RecursionError) as error:
        return f"'parameters' cannot be written as JSON: {error}"
    if size > MAX_SCHEMA_BYTES:
        return f"'parameters' is {size} bytes of JSON; no model takes more than {MAX_SCHEMA_BYTES}"
    return ""
