"""Cut what is too long for a model where it does the least harm: JSON stays JSON, other text is cut between lines."""

from __future__ import annotations

import json
from typing import Any

_NOTE_CHARS = 40  # what a note of things left out takes, about
_TRIES = (1.0, 0.75, 0.5, 0.25)  # parts of the limit: notes of a deep value may take more room than they were given


def cut_text(text: str, limit: int) -> str:
    """A text cut to about `limit` characters, with notes of what is missing.

    JSON stays JSON: of a list the first elements are kept, of an object all small values. Of other text, both ends are
    kept, as whole lines where these are short enough.
    """
    if len(text) <= limit:
        return text
    if text.lstrip()[:1] in ("{", "["):
        try:
            return _cut_json(json.loads(text), len(text), limit)
        except RecursionError:
            return _dumped(_left_out(len(text), "characters"))
        except ValueError:
            pass  # it only begins like JSON
    return cut_middle(text, limit)


def cut_middle(text: str, limit: int) -> str:
    """A text cut to about `limit` characters, both ends kept, with a note of how much is missing."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    start = len(text) - (limit - head)
    # At the end of a line, if there is one near.
    head = text.rfind("\n", head - head // 4, head) + 1 or head
    start = text.find("\n", start, start + (len(text) - start) // 4) + 1 or start
    return f"{text[:head].removesuffix(chr(10))}\n{_left_out(start - head, 'characters')}\n{text[start:]}"


def _left_out(count: int, what: str) -> str:
    return f"[… {count} {what} left out …]"


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _cut_json(value: Any, chars: int, limit: int) -> str:
    for part in _TRIES:
        shortened = _dumped(_shortened(value, int(limit * part)))
        if len(shortened) <= limit:
            return shortened
    return _dumped(_left_out(chars, "characters"))


def _shortened(value: Any, room: int) -> Any:
    """A value whose JSON has about `room` characters."""
    if isinstance(value, str):
        return cut_middle(value, max(0, room - _NOTE_CHARS)) if len(value) + 2 > room else value
    if isinstance(value, list):
        return _shortened_list(value, room)
    return _shortened_object(value, room) if isinstance(value, dict) else value


def _shortened_list(items: list[Any], room: int) -> list[Any]:
    kept: list[Any] = []
    room -= 2
    for item in items:
        size = len(_dumped(item)) + 2
        if size > room - (_NOTE_CHARS if len(kept) + 1 < len(items) else 0):
            break
        kept.append(item)
        room -= size
    left = items[len(kept) :]
    if left and not kept and isinstance(left[0], dict | list | str):  # half of the first says more than nothing
        kept.append(_shortened(left[0], room - _NOTE_CHARS))
        left = left[1:]
    return [*kept, _left_out(len(left), "elements")] if left else kept


def _shortened_object(entries: dict[str, Any], room: int) -> dict[str, Any]:
    """The small values as they are, and the large ones cut to what room is left for each."""
    sizes = {key: len(_dumped(key)) + len(_dumped(value)) + 4 for key, value in entries.items()}
    room -= 2 + _NOTE_CHARS
    fitting: dict[str, Any] = {}
    for number, key in enumerate(sorted(sizes, key=sizes.__getitem__)):
        share = room // (len(sizes) - number)
        if sizes[key] <= share:
            fitting[key] = entries[key]
        elif share > len(key) + 2 * _NOTE_CHARS and isinstance(entries[key], dict | list | str):
            fitting[key] = _shortened(entries[key], share - len(key) - 6)
        else:
            continue
        room -= min(share, sizes[key])
    missing = len(entries) - len(fitting)
    ordered = {key: fitting[key] for key in entries if key in fitting}
    return {**ordered, "…": _left_out(missing, "entries")} if missing else ordered
