"""JSON that is too long for a model, cut so that it stays JSON: `jackfield.tools.cut_text` comes here for it."""

from __future__ import annotations

import json
from typing import Any

from jackfield.tools import cut_middle

_NOTE_CHARS = 40  # what a note of things left out takes, about
_TRIES = (1.0, 0.75, 0.5, 0.25)  # parts of the limit: notes of a deep value may take more room than they were given


def cut_json(text: str, limit: int) -> str:
    """JSON cut to at most `limit` characters, with notes of what is missing; what only begins like JSON is cut as text.

    Of a list the first elements are kept, of an object all small values.
    """
    try:
        value = json.loads(text)
    except RecursionError:
        return _note_of_all(text)
    except ValueError:
        return cut_middle(text, limit)
    tries = (_dumped(_shortened(value, int(limit * part))) for part in _TRIES)
    return next((cut for cut in tries if len(cut) <= limit), _note_of_all(text))


def _note_of_all(text: str) -> str:
    return _dumped(_left_out(len(text), "characters"))


def _left_out(count: int, what: str) -> str:
    return f"[… {count} {what} left out …]"


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


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
