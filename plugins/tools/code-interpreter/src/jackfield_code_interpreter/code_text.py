"""Extract code from a model's text, where it may be bare, wrapped in JSON or in a Markdown fence."""

from __future__ import annotations

import ast
import re
import warnings

from jackfield.jsontext import loads_lenient

_OPENING = re.compile(r"(`{3,})[^`\n]*\n")
_MAGIC = re.compile(r"^[ \t]*[%!].*$", re.MULTILINE)  # a line for IPython


def code_of(text: str) -> str:
    """Return the code in a text: the `code` of a JSON object, else the first fenced block, else the whole text.

    If the whole text is a valid program, fences inside its strings are left alone. A fence closes at a line that begins
    with at least as many backticks as the opening line, so backticks in the middle of a line do not cut the code short.
    An unclosed fence is ignored.
    """
    from_json = _code_in_json(text)
    if from_json is not None:
        return without_fence(from_json)
    block = without_fence(text)
    return block if block is text else _code_in_json(block) or block


def without_fence(code: str) -> str:
    """Strip the Markdown fence around code, along with any text before and after the fence."""
    if "```" not in code or _is_python(code):
        return code
    block = first_block(code)
    return code if block is None else block


def _is_python(text: str) -> bool:
    """Return True if the text parses as Python, so backticks can occur only in strings and comments."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about an odd escape; the code's output shows it
            ast.parse(_MAGIC.sub("", text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def is_utf8(text: str) -> bool:
    """Return True if a text can be encoded as UTF-8.

    JSON may contain a lone surrogate, which cannot be written to a file.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def first_block(text: str) -> str | None:
    """Return the first fenced block, including its last newline, or None if there is no block."""
    for opening in _OPENING.finditer(text):
        closing = re.compile(rf"^ {{0,3}}{opening[1]}", re.MULTILINE).search(text, opening.end())
        if closing:
            return text[opening.end() : closing.start()]
    return None


def _code_in_json(text: str) -> str | None:
    if not text.lstrip().startswith("{") or "code" not in text:
        return None
    try:
        value = loads_lenient(text)
    except ValueError:
        return None  # then it is a Python set or dict, and so code
    code = value.get("code") if isinstance(value, dict) else None
    return code if isinstance(code, str) else None
