"""Find the code in what a model wrote: plain, as JSON, or in a Markdown fence."""

from __future__ import annotations

import ast
import re
import warnings

from jackfield.jsontext import loads_lenient

_OPENING = re.compile(r"(`{3,})[^`\n]*\n")
_MAGIC = re.compile(r"^[ \t]*[%!].*$", re.MULTILINE)  # a line for IPython


def code_of(text: str) -> str:
    """The code in a text: the `code` of a JSON object, else the first fenced block, else the whole text.

    Fences in the strings of a whole program are a part of it. A fence closes where a line begins with as many backticks
    as opened it, so that backticks inside a line of code cut nothing off. A fence that never closes does not count.
    """
    from_json = _code_in_json(text)
    if from_json is not None:
        return without_fence(from_json)
    block = without_fence(text)
    return block if block is text else _code_in_json(block) or block


def without_fence(code: str) -> str:
    """Code without the Markdown fence around it, and without the words around that, if there is one."""
    if "```" not in code or _is_python(code):
        return code
    block = first_block(code)
    return code if block is None else block


def _is_python(text: str) -> bool:
    """Whether a text is a whole program as it stands: outside of strings and comments, that has no backtick."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of an odd escape: whoever runs the code is told
            ast.parse(_MAGIC.sub("", text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def is_utf8(text: str) -> bool:
    """Whether a text can be sent and stored: JSON can contain half of a character, but a file cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def first_block(text: str) -> str | None:
    """What stands in the first fenced block, its last newline included; None if there is no such block."""
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
        return None  # a set or a dict of Python, then: it is code itself
    code = value.get("code") if isinstance(value, dict) else None
    return code if isinstance(code, str) else None
