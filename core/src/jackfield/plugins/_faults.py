"""What is wrong with a descriptor: it comes from anybody, and ends in terminals, in files and in models."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import fields
from itertools import chain
from typing import get_type_hints

from jackfield._fitting import fits
from jackfield.descriptors import ComponentSpec

MAX_SCHEMA_BYTES = 64 << 10
MAX_TEXT_CHARS = 16 << 10
MAX_SUMMARY_CHARS = 500
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_TARGET = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_LAID_OUT = str.maketrans("\n\t", "  ")


def fault_of(spec: ComponentSpec) -> str:
    """What is wrong with a descriptor, as the end of a sentence, or '' if nothing is."""
    return next(chain.from_iterable(check(spec) for check in _CHECKS), "")


def _of_types(spec: ComponentSpec) -> Iterator[str]:
    hints = get_type_hints(type(spec))
    for entry in fields(spec):
        value = getattr(spec, entry.name)
        if not fits(value, hints[entry.name]):
            yield f"{entry.name!r} must be {entry.type}, not {type(value).__name__}"
        if type(value) in (int, float) and not (value > 0 or value == entry.default):
            yield f"{entry.name!r} must be more than 0, not {value}"


def _of_names(spec: ComponentSpec) -> Iterator[str]:
    if not _NAME.fullmatch(spec.name):
        yield f"{spec.name[:80]!r} is not a valid name: use at most 64 letters, digits, '_', '-' and '.'"
    for variable in spec.secrets:
        if not _VARIABLE.fullmatch(variable):
            yield f"the secret {variable[:80]!r} is not a valid name of an environment variable"


def _of_targets(spec: ComponentSpec) -> Iterator[str]:
    needed = () if getattr(spec, "tools", ()) else ("target",)  # a set may name its tools instead
    for name in ("target", "config", "check"):
        value = getattr(spec, name)
        if (value or name in needed) and not _TARGET.fullmatch(value):
            yield f"{name!r} must be 'module:name', not {value[:80]!r}"
    if spec.required_by and not spec.config:
        yield "'required_by' is about settings, but 'config' does not name their class"


def _of_texts(spec: ComponentSpec) -> Iterator[str]:
    if len(spec.summary) > MAX_SUMMARY_CHARS:
        yield f"'summary' has {len(spec.summary)} characters; at most {MAX_SUMMARY_CHARS} fit in a line"
    description = getattr(spec, "description", "")
    if description == {}:
        yield "'description' has no text in any language"
    texts = {"description": description} if isinstance(description, str) else description
    hosts = {f"host {host[:80]!r}": host for host in spec.network}
    for what, text in {"summary": spec.summary, **hosts, **texts}.items():
        if len(text) > MAX_TEXT_CHARS:
            yield f"{what} has {len(text)} characters; the limit is {MAX_TEXT_CHARS}"
        if not text.translate(_LAID_OUT).isprintable():
            yield f"{what} contains a character that cannot be shown, such as an escape sequence"


def _of_schema(spec: ComponentSpec) -> Iterator[str]:
    try:
        size = len(json.dumps(dict(getattr(spec, "parameters", {}))))
    except (TypeError, ValueError, RecursionError) as error:
        yield f"'parameters' cannot be written as JSON: {error}"
    else:
        if size > MAX_SCHEMA_BYTES:
            yield f"'parameters' is {size} bytes of JSON; no model takes more than {MAX_SCHEMA_BYTES}"


# In this order: what is of the right type can be looked at.
_CHECKS = (_of_types, _of_names, _of_targets, _of_texts, _of_schema)
