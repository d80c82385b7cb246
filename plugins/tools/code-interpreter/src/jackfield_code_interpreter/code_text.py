"""Find the code in a model's text: plain, as JSON, or in a Markdown fence."""

from __future__ import annotations

import ast
import re
import warnings

from jackfield.jsontext import loads_lenient

_OPENING = re.compile(r"(`{3,})[^`\n]*\n")
_MAGIC = re.compile(r"^[ \t]*[%!].*$", re.MULTILINE)  # a line for IPython


def code_of(text: str) -> str:
    """Return the code in a text: the `code` of a JSON object, else the first fenced block, else the whole text.

    Fences in the strings of a whole program are a part of it. A fence closes at a line that begins with as many
    backticks as opened it, so backticks inside a line of code cut nothing off. A fence that never closes does not
    count.
    """
    from_json = _code_in_json(text)
    if from_json is not None:
        return without_fence(from_json)
    block = without_fence(text)
    return block if block is text else _code_in_json(block) or block


def without_fence(code: str) -> str:
    """Return code without the Markdown fence around it, and without the words around the fence."""
    if "```" not in code or _is_python(code):
        return code
    block = first_block(code)
    return code if block is None else block


def _is_python(text: str) -> bool:
    """Return True if a text is a whole program with no backtick outside of strings and comments."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about an odd escape; the code's output shows it
            ast.parse(_MAGIC.sub("", text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def is_utf8(text: str) -> bool:
    """Return True if a text can be encoded. JSON may contain a lone surrogate, but a file cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def first_block(text: str) -> str | None:
    """Return the first fenced block with its last newline; None if there is no block."""
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
