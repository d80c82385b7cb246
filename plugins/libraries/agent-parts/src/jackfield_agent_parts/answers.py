"""JSON in the answers of models, which like to put it into fences and behind sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jackfield.jsontext import loads_lenient


def object_in(text: str) -> Mapping[str, Any]:
    """Return the JSON object in an answer.

    Raises:
        ValueError: There is none.
    """
    value = _value_in(text, "{", "}")
    if not isinstance(value, Mapping):
        raise ValueError("the model answered without a JSON object")
    return value


def list_in(text: str) -> list[Any]:
    """Return the JSON list in an answer.

    Raises:
        ValueError: There is none.
    """
    value = _value_in(text, "[", "]")
    if not isinstance(value, list):
        raise ValueError("the model answered without a JSON list")
    return value


def _value_in(text: str, opening: str, closing: str) -> Any:
    start, end = text.find(opening), text.rfind(closing)
    if start < 0:
        return None
    try:
        return loads_lenient(text[start : end + 1] if end > start else text[start:])
    except ValueError:
        return None  # whoever asked says what is missing
