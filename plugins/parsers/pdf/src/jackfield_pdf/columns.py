"""Two columns of text whose lines a file has side by side, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jackfield_pdf.spans import grouped
from jackfield_pdf.typeset import Line, Part

_ROWS = 4  # on fewer, it may be a table
_LONGEST = 300  # lines of one column; each is compared with all above it
_WIDE = 10.0  # in sizes of the type; the columns of a table are often narrower
_FULL = 0.8  # of the width of the column, which most lines of text have, and cells do not
_MOST = 0.7
_STEP = 1.5  # in sizes of the type; rows of a table are farther apart


def in_columns(lines: Sequence[Line]) -> list[Line]:
    """Split the lines that cross two columns of text, and return all lines, the left column first."""
    if sum(len(line.parts) == 2 for line in lines) < _ROWS:
        return list(lines)
    ordered: list[Line] = []
    for run in grouped(lines, _continues):
        ordered += _apart(run) or run
    return ordered


def _continues(run: Sequence[Line], line: Line) -> bool:
    """Return True if a line is below others, in the same two columns."""
    before = run[-1]
    has_place = before.size > 0 and len(run) < _LONGEST
    if not has_place or not 0 < before.last - line.first <= _STEP * line.size:
        return False
    gutter = _gutter([*run, line])
    return gutter is not None and gutter[0] < gutter[1]


def _gutter(run: Sequence[Line]) -> tuple[float, float] | None:
    """Return the end of the left column and the start of the right one; None without two columns."""
    pairs = _pairs(run)
    if set(map(len, pairs)) != {2}:
        return None
    ones, others = zip(*pairs, strict=True)
    left, right = max(one.right for one in ones), min(other.left for other in others)
    return (left, right) if all(_is_beside(line, left, right) for line in run) else None


def _pairs(run: Sequence[Line]) -> list[tuple[Part, ...]]:
    """Return the parts of the lines that have parts."""
    return [line.parts for line in run if line.parts]


def _is_beside(line: Line, left: float, right: float) -> bool:
    """Return True if a line leaves the space between two columns free."""
    return bool(line.parts) or line.right < right or line.left > left


def _apart(run: Sequence[Line]) -> list[Line]:
    """Return the lines of the left column, then those of the right one; [] without two columns of text."""
    pairs, gutter = _pairs(run), _gutter(run)
    if gutter is None or len(pairs) < _ROWS:
        return []
    if not all(_is_text(side, run[0].size) for side in zip(*pairs, strict=True)):
        return []
    return _column(run, 0, gutter[1]) + _column(run, 1, gutter[1])


def _column(run: Sequence[Line], side: int, begins: float) -> list[Line]:
    """Return the lines of the left (0) or the right (1) column; a line without parts is in the column where it ends."""
    return [
        _of(line, line.parts[side]) if line.parts else line
        for line in run
        if line.parts or (line.right >= begins) == bool(side)
    ]


def _is_text(column: Sequence[Part], size: float) -> bool:
    """Return True if lines fill their column, as text does."""
    widths = [part.right - part.left for part in column]
    widest = max(widths)
    return widest >= _WIDE * size and sum(width >= _FULL * widest for width in widths) >= _MOST * len(widths)


def _of(line: Line, part: Part) -> Line:
    return replace(line, text=part.text, left=part.left, right=part.right, parts=())
