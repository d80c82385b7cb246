"""JSON as a model reads it, and as it writes it: strictly, or with the slips that jackfield-backend repairs."""

from __future__ import annotations

import json
import math
from typing import NoReturn

from jackfield._lazy import installed

MAX_DEPTH = 100  # of brackets; what reads the values afterwards calls itself for each level, and Python ends at 1000


class TooDeepError(ValueError):
    """JSON that is nested too deeply: a hundred levels are the most."""

    def __init__(self) -> None:
        super().__init__(f"the JSON is nested too deeply: {MAX_DEPTH} levels are the most")


def loads_lenient(text: str) -> object:
    """Parse JSON as models write it: with raw newlines, single quotes, trailing commas, a code fence around it.

    Strict JSON is tried first, so well-formed text costs nothing extra and is never reinterpreted. Otherwise it is
    repaired if the meaning is clear; this takes jackfield-backend, which the backends of services need. See
    `jackfield.jsonmending`.

    Raises:
        ValueError: The text is not JSON and cannot be repaired, or is too long or too deep to try.
    """
    try:
        return loads_strict(text)
    except TooDeepError:
        raise
    except ValueError as error:
        mending = installed("jackfield.jsonmending")
        if mending is None:
            raise ValueError(f"not JSON: {error}") from error
        return mending.mended(text, error)


def loads_strict(text: str) -> object:
    """Parse JSON without any repair; raw control characters in strings are read, NaN and Infinity are not.

    Raises:
        TooDeepError: It has more than a hundred levels of brackets.
        ValueError: The text is not JSON.
    """
    try:
        value = _decode(text)
    except RecursionError:
        raise TooDeepError from None
    # With few brackets, which is usual, nothing is looked at.
    if text.count("[") + text.count("{") > MAX_DEPTH and _is_deeper(value, MAX_DEPTH):
        raise TooDeepError
    return value


def is_json(text: str) -> bool:
    """Whether a text is JSON without any repair, except for raw control characters in strings."""
    try:
        loads_strict(text)
    except ValueError:
        return False
    return True


def dumps(value: object) -> str:
    """JSON as it is shown to a model: one line, other alphabets readable."""
    return json.dumps(value, ensure_ascii=False)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits[:20]} is too large for a number")
    return number


# strict=False lets raw control characters stand in strings: models write newlines into code arguments.
_decode = json.JSONDecoder(strict=False, parse_constant=_no_constant, parse_float=_finite).decode


def _is_deeper(value: object, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    entries = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deeper(entry, levels - 1) for entry in entries)
