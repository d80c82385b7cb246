"""Truncate text that is too long for a model, keeping JSON valid."""

from __future__ import annotations

import json
from typing import Any

_NOTE_CHARS = 40  # approximate length of a note about omitted parts
# Notes inside a deeply nested value can push the result over its limit. It is then cut to the next smaller share.
_SHARES = (1.0, 0.75, 0.5, 0.25)
_QUOTES, _BRACKETS, _COMMA, _COLON = len('""'), len("[]"), len(", "), len(": ")


def cut_text(text: str, limit: int) -> str:
    """Truncate text to about `limit` characters, with notes about the missing parts.

    JSON stays valid: lists keep their first elements, and objects keep all their small values. Other text is truncated
    with `cut_middle`.
    """
    if len(text) <= limit:
        return text
    return _cut_json(text, limit) if text.lstrip()[:1] in ("{", "[") else cut_middle(text, limit)


def cut_middle(text: str, limit: int) -> str:
    """Truncate text to about `limit` characters by replacing the middle with a note that says how much is missing.

    If the lines are short enough, the cuts fall between lines.
    """
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    start = len(text) - (limit - head)
    # Prefer a line break nearby.
    head = text.rfind("\n", head - head // 4, head) + 1 or head
    start = text.find("\n", start, start + (len(text) - start) // 4) + 1 or start
    return "\n".join((text[:head].removesuffix("\n"), _note(start - head, "characters"), text[start:]))


def _cut_json(text: str, limit: int) -> str:
    """Truncate JSON to at most `limit` characters.

    Text that only looks like JSON at the start is truncated as plain text.
    """
    note = _dump(_note(len(text), "characters"))
    try:
        value = json.loads(text)
    except RecursionError:
        return note
    except ValueError:
        return cut_middle(text, limit)
    for share in _SHARES:
        cut = _dump(_shorten(value, int(limit * share)))
        if len(cut) <= limit:
            return cut
    return note


def _note(count: int, what: str) -> str:
    return f"[… {count} {what} omitted …]"


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _shorten(value: Any, room: int) -> Any:
    """Return a shortened value whose JSON has about `room` characters."""
    match value:
        case str():
            return cut_middle(value, max(0, room - _NOTE_CHARS)) if len(value) + _QUOTES > room else value
        case list():
            return _shorten_list(value, room)
        case dict():
            return _shorten_object(value, room)
    return value


def _shorten_list(items: list[Any], room: int) -> list[Any]:
    kept: list[Any] = []
    room -= _BRACKETS
    for item in items:
        size = len(_dump(item)) + _COMMA
        if size > room - (_NOTE_CHARS if len(kept) + 1 < len(items) else 0):
            break
        kept.append(item)
        room -= size
    rest = items[len(kept) :]
    if rest and not kept and isinstance(rest[0], dict | list | str):  # part of the element says more than a note
        kept.append(_shorten(rest[0], room - _NOTE_CHARS))
        rest = rest[1:]
    return [*kept, _note(len(rest), "elements")] if rest else kept


def _shorten_object(entries: dict[str, Any], room: int) -> dict[str, Any]:
    """Keep small values, and shorten each large value to an equal share of the remaining room."""
    sizes = {key: len(_dump(key)) + _COLON + len(_dump(value)) + _COMMA for key, value in entries.items()}
    room -= _BRACKETS + _NOTE_CHARS
    kept: dict[str, Any] = {}
    for number, key in enumerate(sorted(sizes, key=sizes.__getitem__)):
        share = room // (len(sizes) - number)
        if sizes[key] <= share:
            kept[key] = entries[key]
        elif share > len(key) + 2 * _NOTE_CHARS and isinstance(entries[key], dict | list | str):
            kept[key] = _shorten(entries[key], share - (_QUOTES + len(key) + _COLON + _COMMA))
        else:
            continue
        room -= min(share, sizes[key])
    ordered = {key: kept[key] for key in entries if key in kept}
    missing = len(entries) - len(kept)
    return {**ordered, "…": _note(missing, "entries")} if missing else ordered
