"""Reorder text that a file stores line by line across two columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jackfield_pdf.spans import grouped
from jackfield_pdf.typeset import Line, Part

_ROWS = 4  # on fewer, it may be a table
_LONGEST = 300  # lines of one column; each is compared with all above it
_WIDE = 10.0  # in type sizes; table columns are often narrower
_FULL = 0.8  # of the column width, which most lines of text reach, unlike cells
_MOST = 0.7
_STEP = 1.5  # in type sizes; table rows are farther apart


def in_columns(lines: Sequence[Line]) -> list[Line]:
    """Split lines that cross two columns, and return all lines with the left column before the right one."""
    if sum(len(line.parts) == 2 for line in lines) < _ROWS:
        return list(lines)
    ordered: list[Line] = []
    for run in grouped(lines, _continues):
        ordered += _apart(run) or run
    return ordered


def _continues(run: Sequence[Line], line: Line) -> bool:
    """Return True if a line is directly below a run of lines and has the same two columns."""
    before = run[-1]
    has_place = before.size > 0 and len(run) < _LONGEST
    if not has_place or not 0 < before.last - line.first <= _STEP * line.size:
        return False
    gutter = _gutter([*run, line])
    return gutter is not None and gutter[0] < gutter[1]


def _gutter(run: Sequence[Line]) -> tuple[float, float] | None:
    """Return the end of the left column and the start of the right one, or None if there are not two columns."""
    pairs = _pairs(run)
    if set(map(len, pairs)) != {2}:
        return None
    ones, others = zip(*pairs, strict=True)
    left, right = max(one.right for one in ones), min(other.left for other in others)
    return (left, right) if all(_is_beside(line, left, right) for line in run) else None


def _pairs(run: Sequence[Line]) -> list[tuple[Part, ...]]:
    """Return the parts of each line that has any."""
    return [line.parts for line in run if line.parts]


def _is_beside(line: Line, left: float, right: float) -> bool:
    """Return True if a line does not cross the space between two columns."""
    return bool(line.parts) or line.right < right or line.left > left


def _apart(run: Sequence[Line]) -> list[Line]:
    """Return the lines of the left column, then those of the right one, or [] if there are not two columns of text."""
    pairs, gutter = _pairs(run), _gutter(run)
    if gutter is None or len(pairs) < _ROWS:
        return []
    if not all(_is_text(side, run[0].size) for side in zip(*pairs, strict=True)):
        return []
    return _column(run, 0, gutter[1]) + _column(run, 1, gutter[1])


def _column(run: Sequence[Line], side: int, begins: float) -> list[Line]:
    """Return the lines of the left (0) or right (1) column. A line without parts is in the column in which it ends."""
    return [
        _of(line, line.parts[side]) if line.parts else line
        for line in run
        if line.parts or (line.right >= begins) == bool(side)
    ]


def _is_text(column: Sequence[Part], size: float) -> bool:
    """Return True if most lines fill their column, which is typical of running text."""
    widths = [part.right - part.left for part in column]
    widest = max(widths)
    return widest >= _WIDE * size and sum(width >= _FULL * widest for width in widths) >= _MOST * len(widths)


def _of(line: Line, part: Part) -> Line:
    return replace(line, text=part.text, left=part.left, right=part.right, parts=())
