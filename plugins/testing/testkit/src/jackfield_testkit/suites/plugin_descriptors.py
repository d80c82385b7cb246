"""Find faults in a descriptor's names, texts, types and size."""

from __future__ import annotations

import difflib
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from jackfield.plugins import ComponentSpec, ToolSpec, hook
from jackfield.tools import check_tool_name, check_tool_schema

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
EFFECTS = {"network", "files", "processes"}
MAX_BYTES = 64 * 1024  # of a descriptor as JSON, most of which a model reads
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_TARGET = re.compile(r"[A-Za-z_][\w.]*:\w+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_BYTES = "bytes:"


def faults_of(spec: ComponentSpec) -> list[str]:
    """Return the faults of a descriptor, each as a sentence."""
    questions = (_names, _addresses, _requirements, _unknown_keywords, _texts, _shape)
    faults = [fault for ask in questions for fault in ask(spec)]
    return [*faults, *_tool(spec)] if isinstance(spec, ToolSpec) and not faults else faults


def _names(spec: ComponentSpec) -> Iterator[str]:
    if not NAME.fullmatch(spec.name):
        yield f"{spec.name!r:.80} is not a valid name: use 1 to 64 of a-z, 0-9, _ and -, and do not start with - or _"
    for name in itertools.filterfalse(_VARIABLE.fullmatch, spec.secrets):
        yield f"{name!r} is not a valid environment variable name"
    for word in set(spec.effects) - EFFECTS:
        yield f"{word!r} is not a valid effect: use {', '.join(sorted(EFFECTS))}"


def _unknown_keywords(spec: ComponentSpec) -> Iterator[str]:
    known = [field.name for field in fields(spec)]
    for key in spec.extra:
        near = difflib.get_close_matches(key, known, n=1)
        # A keyword without a near match may belong to a newer core.
        if near:
            yield f"unknown field {key!r}; did you mean {near[0]!r}?"


def _addresses(spec: ComponentSpec) -> Iterator[str]:
    """Yield faults in a descriptor's addresses."""
    named = {"target": spec.target, "config": spec.config, "check": spec.check}
    needed = "" if getattr(spec, "tools", ()) else "target"  # a toolset may name them instead
    for what, target in named.items():
        if (target or what == needed) and not _TARGET.fullmatch(target):
            yield f"{what} must be in the form module:name, got {target!r}"


def _requirements(spec: ComponentSpec) -> Iterator[str]:
    """Yield faults in a descriptor's requirements."""
    for address in (*spec.requires, *_required_by(spec)):
        kind, _, name = address.partition(".")
        if kind not in hook.KINDS or not NAME.fullmatch(name):
            yield f"required components must be in the form kind.name, got {address!r}"


def _required_by(spec: ComponentSpec) -> Iterator[str]:
    for required in spec.required_by.values():
        if isinstance(required, Mapping):
            yield from itertools.chain.from_iterable(required.values())
        elif isinstance(required, str):
            yield f"{required}.any"
        else:
            yield from required


def _texts(spec: ComponentSpec) -> Iterator[str]:
    if "\n" in spec.summary:
        yield "the summary must be a single line"
    for place, text in _strings(_plain(spec)):
        if _CONTROL.search(text):
            yield f"{place} must not contain control characters: {text!r:.80}"


def _strings(value: object, place: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for key, entry in value.items():
            yield from _strings([key, entry], place or str(key))
    elif isinstance(value, list):
        for entry in value:
            yield from _strings(entry, place)


def _shape(spec: ComponentSpec) -> Iterator[str]:
    """Yield faults in a descriptor's JSON form: a lossy round trip, or excessive size."""
    try:
        written = json.dumps(_plain(spec), allow_nan=False)
    except (TypeError, ValueError) as error:
        yield f"the descriptor must be JSON-serializable: {error}"
        return
    if len(written) > MAX_BYTES:
        yield f"the descriptor is {len(written)} bytes of JSON; the limit is {MAX_BYTES}"
    read = json.loads(written)
    for field in fields(spec):
        value, back = getattr(spec, field.name), _restored(read[field.name], str(field.type))
        # Read-only mappings are as good as dicts.
        if back != value or not (type(back) is type(value) or isinstance(value, Mapping)):
            yield f"{field.name}={value!r:.80} becomes {back!r:.80} after a round trip through JSON"


def _plain(spec: ComponentSpec) -> dict[str, object]:
    return {field.name: _json(getattr(spec, field.name)) for field in fields(spec)}


def _json(value: object) -> object:
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple):
        return [_json(entry) for entry in value]
    if isinstance(value, bytes):
        return _BYTES + value.decode("latin-1").encode("unicode_escape").decode()
    return dict(value) if isinstance(value, Mapping) else value


def _restored(value: Any, annotation: str) -> object:
    if annotation.startswith("frozenset"):
        return frozenset(value)
    if not annotation.startswith("tuple"):
        return value
    if "bytes" in annotation:
        return tuple(text.removeprefix(_BYTES).encode().decode("unicode_escape").encode("latin-1") for text in value)
    return tuple(value)


def _tool(spec: ToolSpec) -> Iterator[str]:
    try:
        check_tool_name(spec.name)
        check_tool_schema(spec.name, spec.parameters)
    except ValueError as error:
        yield str(error)
    texts = [spec.description] if isinstance(spec.description, str) else list(spec.description.values())
    if not texts or "" in map(str.strip, texts):
        yield "the tool has no description, or an empty one"
