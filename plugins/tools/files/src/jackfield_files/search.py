"""Search text for lines. RE2 never backtracks, so every expression takes linear time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import re2

from jackfield.errors import ToolArgumentError

MOST_QUERY = 1000
_AROUND = 300  # bytes of a line that are shown before and after a match


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a search result.

    Attributes:
        number: The line number, counted from 1.
        text: The line's text, shortened if it is long.
        matches: True for a matching line, False for context.
    """

    number: int
    text: str
    matches: bool


def compile_expression(query: str, *, is_regex: bool, ignores_case: bool) -> Any:
    """Compile a query to an expression that matches within a single line.

    Raises:
        ToolArgumentError: The query is empty, too long, or not a valid regular expression; the message says why.
    """
    _check(query)
    options = re2.Options()
    options.never_nl = True
    options.literal = not is_regex
    options.case_sensitive = not ignores_case
    options.log_errors = False
    try:
        return re2.compile((f"(?m){query}" if is_regex else query).encode(), options)
    except UnicodeEncodeError:
        raise ToolArgumentError("the query contains a lone surrogate: pass the complete character") from None
    except re2.error as error:
        reason = str(error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else error)
        raise ToolArgumentError(
            f"not a valid regular expression: {reason}. Look-around and backreferences are not supported (RE2)"
        ) from None


def _check(query: str) -> None:
    if not query or len(query) > MOST_QUERY:
        raise ToolArgumentError(f"a query must have 1 to {MOST_QUERY:,} characters, got {len(query):,}")
    if "\n" in query:
        raise ToolArgumentError("searches match one line at a time: the query must be a single line")


def lines_with(expression: Any, data: bytes, *, context: int, most: int) -> list[Line]:
    """Return up to `most` matching lines of a UTF-8 text with their context, in order."""
    lines: dict[int, Line] = {}
    for number, start, match in _matches(expression, data, most):
        for line in _around(data, number, start, context):
            lines.setdefault(line.number, line)
        lines[number] = Line(number, _shown(data, start, match), matches=True)
    return [lines[number] for number in sorted(lines)]


def _matches(expression: Any, data: bytes, most: int) -> Iterator[tuple[int, int, int]]:
    """Yield, for each matching line, its number, its start offset and the offset of its first match."""
    start, number, counted = 0, 1, 0
    for _ in range(most):
        match = expression.search(data, start)
        if match is None or (match.start() == len(data) and data[-1:] in (b"\n", b"")):
            return  # there is no line after the last line break
        start = data.rfind(b"\n", 0, match.start()) + 1
        number += data.count(b"\n", counted, start)
        counted = start
        yield number, start, match.start()
        start = data.find(b"\n", match.start()) + 1
        if not start:
            return


def _around(data: bytes, number: int, start: int, context: int) -> Iterator[Line]:
    before = start
    for distance in range(1, context + 1):
        if not before:
            break
        before = data.rfind(b"\n", 0, before - 1) + 1
        yield Line(number - distance, _shown(data, before, before), matches=False)
    after = start
    for distance in range(1, context + 1):
        after = data.find(b"\n", after) + 1
        if not 0 < after < len(data):
            break
        yield Line(number + distance, _shown(data, after, after), matches=False)


def _shown(data: bytes, start: int, match: int) -> str:
    """Return the line at an offset. Long lines are reduced to the text around the match."""
    end = data.find(b"\n", match)
    end = len(data) if end < 0 else end
    first, last = max(start, match - _AROUND), min(end, match + _AROUND)
    text = data[first:last].decode(errors="replace").rstrip("\r")
    return f"{'…' if first > start else ''}{text}{'…' if last < end else ''}"
