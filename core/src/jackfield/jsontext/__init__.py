"""Parse JSON written by models, strictly or with repairs, and write JSON for models."""

from __future__ import annotations

import json

from jackfield.jsontext._strict import MAX_DEPTH, TooDeepError, loads_strict

__all__ = ["MAX_DEPTH", "TooDeepError", "dumps", "is_json", "loads_lenient", "loads_strict"]


def loads_lenient(text: str) -> object:
    """Parse JSON written by a model, which may have raw newlines, single quotes, trailing commas or a code fence.

    Strict parsing is tried first, so well-formed text costs nothing extra and is never reinterpreted. Other text is
    repaired if its meaning is unambiguous.

    Raises:
        ValueError: The text is not JSON and cannot be repaired, or it is too long or too deeply nested to try.
    """
    try:
        return loads_strict(text)
    except TooDeepError:
        raise
    except ValueError as error:
        from jackfield.jsontext._mending import mend

        return mend(text, error)


def is_json(text: str) -> bool:
    """Return True if the text is valid JSON without repairs. Raw control characters in strings are allowed."""
    try:
        loads_strict(text)
    except ValueError:
        return False
    return True


def dumps(value: object) -> str:
    """Serialise a value as one line of JSON for models. Non-ASCII characters are not escaped."""
    return json.dumps(value, ensure_ascii=False)
