"""Read JSON that a model wrote, which is often not quite JSON."""

from __future__ import annotations

import json
import re
from itertools import accumulate
from typing import Any

MAX_REPAIR_CHARS = 200_000  # a longer text is not a slip of the pen
_MAX_REPAIR_WORK = 2_000_000  # the repairer looks from each open bracket to the end: characters times depth, under 1 s


def loads_lenient(text: str) -> Any:
    """Parse JSON as models write it: with raw newlines, single quotes, trailing commas, a code fence around it.

    Strict JSON is tried first, so well-formed text costs nothing extra and is never reinterpreted.

    Raises:
        ValueError: The text is no JSON and cannot be mended, or is too long or too deep to try.
    """
    unfenced = _without_fence(text)
    try:
        # strict=False lets raw control characters stand in strings: models write newlines into code arguments.
        return json.loads(unfenced, strict=False)
    except ValueError as error:
        first_error = error
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    # The repairer makes strings of plain words: only what means to be JSON gets there.
    if not unfenced.lstrip().startswith(("{", "[")) or _is_too_much(unfenced):
        raise ValueError(f"not JSON: {first_error}") from first_error
    from json_repair import repair_json

    try:
        repaired = repair_json(unfenced, return_objects=True, skip_json_loads=True)
    except (RecursionError, ValueError):
        raise ValueError(f"not JSON, and not to be mended: {first_error}") from first_error
    if not isinstance(repaired, dict | list):
        raise ValueError(f"not JSON: {first_error}") from first_error
    return repaired


def is_json(text: str) -> bool:
    """Whether a text is JSON without any mending, but for raw control characters in strings."""
    try:
        json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return False
    return True


def _is_too_much(text: str) -> bool:
    return len(text) > MAX_REPAIR_CHARS or len(text) * _depth(text) > _MAX_REPAIR_WORK


def _depth(text: str) -> int:
    """How many brackets are open at once at most; those in strings count, too."""
    steps = (1 if bracket in "[{" else -1 for bracket in re.findall(r"[\[\]{}]", text))
    return max(accumulate(steps), default=0)


def dumps(value: Any) -> str:
    """JSON as it is shown to a model: one line, other alphabets readable."""
    return json.dumps(value, ensure_ascii=False)


def _without_fence(text: str) -> str:
    """Take a Markdown code fence off, if the whole text stands in one."""
    body = text.strip()
    if not (body.startswith("```") and body.endswith("```") and len(body) >= 6):
        return text
    body = body[3:-3]
    head, newline, rest = body.partition("\n")
    # The rest of the opening line is a language name, unless it is the JSON itself.
    names_a_language = newline and head.strip().isalnum()
    return rest if names_a_language or not head.strip() else body
