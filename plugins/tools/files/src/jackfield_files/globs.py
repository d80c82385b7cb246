"""Compile path patterns to RE2 expressions, which match in linear time."""

from __future__ import annotations

from collections.abc import Callable

import re2

from jackfield.errors import ToolArgumentError

MOST_CHARS = 1000


def matcher(pattern: str) -> Callable[[str], bool]:
    """Compile a pattern, and return a predicate for paths.

    `*` and `?` match within a name, `**/` matches any number of folders, `{a,b}` and `[abc]` are alternatives. A
    pattern without `/` matches names in any folder, and '' matches everything.

    Raises:
        ToolArgumentError: The pattern is too long or has an unclosed bracket.
    """
    if len(pattern) > MOST_CHARS:
        raise ToolArgumentError(f"a pattern can have at most {MOST_CHARS:,} characters")
    anywhere = pattern if "/" in pattern else f"**/{pattern or '*'}"
    options = re2.Options()
    options.log_errors = False
    try:
        expression = re2.compile(_expression(anywhere.removeprefix("./").removeprefix("/")), options)
    except (re2.error, UnicodeEncodeError):
        raise ToolArgumentError(
            f"{pattern!r} is not a valid pattern: use a pattern such as *.py or docs/**/*.md"
        ) from None
    return lambda path: expression.fullmatch(path.encode(errors="replace").decode()) is not None


def _expression(pattern: str) -> str:
    parts: list[str] = []
    place, depth = 0, 0
    while place < len(pattern):
        character = pattern[place]
        if pattern.startswith("**/", place):
            parts.append("(?:[^/]+/)*")
            place += 2
        elif pattern.startswith("**", place):
            parts.append(".*")
            place += 1
        elif character == "[" and (end := pattern.find("]", place + 2)) > 0:
            parts.append(_choice(pattern[place + 1 : end]))
            place = end
        else:
            depth += {"{": 1, "}": -1}.get(character, 0)
            parts.append(_one(character, is_inside=depth > 0))
        place += 1
    return "(?s)" + "".join(parts)


def _choice(inside: str) -> str:
    negated = inside[:1] in ("!", "^")
    escaped = inside[negated:].replace("\\", r"\\").replace("[", r"\[").replace("]", r"\]").replace("^", r"\^")
    return f"[{'^/' if negated else ''}{escaped}]"


def _one(character: str, *, is_inside: bool) -> str:
    simple = {"*": "[^/]*", "?": "[^/]", "{": "(?:", "}": ")"}
    if character == "," and is_inside:
        return "|"
    return simple.get(character) or str(re2.escape(character))
