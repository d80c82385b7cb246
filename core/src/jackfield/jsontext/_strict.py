"""Parse JSON strictly, with a depth limit."""

from __future__ import annotations

import json
import math
from typing import NoReturn

MAX_DEPTH = 100  # of brackets; readers of the values recurse once per level, and Python stops at 1000


class TooDeepError(ValueError):
    """The JSON is nested more than a hundred levels deep."""

    def __init__(self) -> None:
        super().__init__(f"the JSON is nested too deeply: the limit is {MAX_DEPTH} levels")


def loads_strict(text: str) -> object:
    """Parse JSON without repairs. Raw control characters in strings are accepted, but NaN and Infinity are not.

    Raises:
        TooDeepError: The text has more than a hundred levels of brackets.
        ValueError: The text is not JSON.
    """
    try:
        value = _decode(text)
    except RecursionError:
        raise TooDeepError from None
    # Most texts have few brackets, so no value needs a visit.
    if text.count("[") + text.count("{") > MAX_DEPTH and _is_deeper(value, MAX_DEPTH):
        raise TooDeepError
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a valid JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"the number {digits[:20]} is too large")
    return number


# strict=False allows raw control characters in strings, because models write newlines into code arguments.
_decode = json.JSONDecoder(strict=False, parse_constant=_no_constant, parse_float=_finite).decode


def _is_deeper(value: object, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    entries = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deeper(entry, levels - 1) for entry in entries)
