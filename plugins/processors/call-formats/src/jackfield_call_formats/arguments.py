"""Convert call arguments to JSON text, however the model wrote them.

These functions are pure and accept any text without raising.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from jackfield.jsontext import dumps, loads_lenient
from jackfield.messages import FunctionCall

JSON = json.JSONDecoder(strict=False)  # models write raw newlines into strings
_SURROGATE = re.compile("[\ud800-\udfff]")
_FENCE = re.compile(r"(`{3,})[^`\n]*\n(?:.*?\n)??[ \t]{0,3}\1`*", re.DOTALL)


def as_text(arguments: object) -> str:
    """Serialize arguments as JSON text that can be sent to a server. Strings are returned unchanged."""
    if arguments is None or arguments == "":
        return "{}"
    if isinstance(arguments, str):
        return arguments
    text = dumps(arguments)
    # A lone surrogate can be escaped in JSON, but not sent as UTF-8.
    return json.dumps(arguments) if _SURROGATE.search(text) else text


def object_of(call: FunctionCall) -> dict[str, object] | None:
    """Parse the arguments of a past call, or return None if they are not a JSON object."""
    if not call.arguments.strip():
        return {}
    try:
        value = json.loads(call.arguments, strict=False)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def repair_json(text: str) -> object:
    """Parse JSON as models write it, or return None if that fails."""
    try:
        return loads_lenient(text)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Written:
    """Arguments split from the text that follows them.

    Attributes:
        arguments: JSON text, or the model's own text if it is not JSON.
        rest: The text after the arguments.
        is_whole: True if the arguments mark their own end, so nothing can be missing.
    """

    arguments: str
    rest: str
    is_whole: bool


def split_arguments(text: str) -> Written:
    """Split text into the arguments it starts with and the rest."""
    text = text.strip()
    if text.startswith("```"):
        return _split_fenced(text)
    if text.startswith(("{", '"')):
        return _split_json(text)
    return Written(text or "{}", "", is_whole=False)


def _split_json(text: str) -> Written:
    try:
        value, end = JSON.raw_decode(text)
    except (ValueError, RecursionError):
        return _split_broken(text)
    if isinstance(value, str):
        return Written(value if value.strip() else "{}", text[end:], is_whole=True)
    # An extra brace is a mistake, but words after the arguments are part of the answer.
    rest = text[end:]
    return Written(as_text(value), "" if not rest.strip(" \n}") else rest, is_whole=True)


def _split_broken(text: str) -> Written:
    last = text.rfind("}") + 1
    value = repair_json(text[:last] if last else text)
    if not isinstance(value, dict):
        return Written(text, "", is_whole=False)
    return Written(as_text(value), text[last:] if last else "", is_whole=False)


def _split_fenced(text: str) -> Written:
    fence = _FENCE.match(text)
    if fence is None:
        return Written(text, "", is_whole=False)
    value = repair_json(fence[0])
    return Written(as_text(value) if isinstance(value, dict) else fence[0], text[fence.end() :], is_whole=True)
