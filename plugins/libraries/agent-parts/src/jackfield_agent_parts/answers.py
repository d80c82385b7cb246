"""Extract JSON from model answers, which often wrap it in code fences or prose."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from jackfield.jsontext import loads_lenient


def object_in(text: str) -> Mapping[str, Any]:
    """Return the JSON object in an answer.

    Raises:
        ValueError: The answer contains no JSON object.
    """
    value = _value_in(text, "{", "}")
    if not isinstance(value, Mapping):
        raise ValueError("the model's response contains no JSON object")
    return value


def list_in(text: str) -> list[Any]:
    """Return the JSON list in an answer.

    Raises:
        ValueError: The answer contains no JSON list.
    """
    value = _value_in(text, "[", "]")
    if not isinstance(value, list):
        raise ValueError("the model's response contains no JSON list")
    return value


def _value_in(text: str, opening: str, closing: str) -> Any:
    start, end = text.find(opening), text.rfind(closing)
    if start < 0:
        return None
    # In a truncated answer, the last bracket may be inside a string, or close an inner value.
    for candidate in (text[start:], text[start : end + 1]):
        with suppress(ValueError):  # the caller says what is missing
            return loads_lenient(candidate)
    return None
