"""Apply exact-match replacements to a text."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from jackfield.errors import ToolArgumentError

_MOST_LINES = 5000  # lines to compare when a text is not found
_LINE_CHARS = 200
_MOST_SHOWN = 3
_MOST_PLACES = 5


@dataclass(frozen=True, slots=True)
class Edit:
    """A replacement.

    Attributes:
        old: The text to replace, not empty. It must occur exactly once, unless `everywhere` is set.
        new: The replacement.
        everywhere: Replace every occurrence.
    """

    old: str
    new: str
    everywhere: bool = False


@dataclass(frozen=True, slots=True)
class Replaced:
    """The effect of an edit.

    Attributes:
        count: The number of replacements.
        lines: The line numbers, counted from 1, where the first replacements began.
    """

    count: int
    lines: list[int]


def apply_edits(text: str, edits: Sequence[Edit], *, most_chars: int) -> tuple[str, list[Replaced]]:
    """Apply the edits in order, each to the result of the previous one.

    If every line of the text ends in CRLF, line breaks in the edits are converted to CRLF.

    Args:
        text: The text to edit.
        edits: The replacements.
        most_chars: The maximum length of the new text.

    Returns:
        The new text, and the effect of each edit.

    Raises:
        ToolArgumentError: The text to replace is missing or ambiguous, or the new text would be too long. The message
            names the lines of the matches, or similar lines.
    """
    if "\r\n" in text and text.count("\r\n") == text.count("\n"):
        edits = [replace(edit, old=_with_crlf(edit.old), new=_with_crlf(edit.new)) for edit in edits]
    done = []
    for number, edit in enumerate(edits, start=1):
        label = f"edit {number}: " if len(edits) > 1 else ""
        text, replaced = _after(text, edit, label, most_chars)
        done.append(replaced)
    return text, done


def _after(text: str, edit: Edit, label: str, most_chars: int) -> tuple[str, Replaced]:
    starts = _first_starts(text, edit.old, overlapping=not edit.everywhere)
    if not starts:
        raise ToolArgumentError(f"{label}old_text does not occur in the file{_near(text, edit.old)}")
    if len(starts) > 1 and not edit.everywhere:
        raise ToolArgumentError(
            f"{label}old_text occurs more than once, on lines {_list_lines(_lines(text, starts))}: add "
            "surrounding lines to make it unique, or set replace_all"
        )
    count = text.count(edit.old) if edit.everywhere else 1
    if len(text) + count * (len(edit.new) - len(edit.old)) > most_chars:
        raise ToolArgumentError(f"{label}the file would be longer than {most_chars:,} characters")
    return text.replace(edit.old, edit.new), Replaced(count, _lines(text, starts[:_MOST_PLACES]))


def _with_crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _first_starts(text: str, old: str, *, overlapping: bool) -> list[int]:
    """Return the first positions of a text. With `overlapping`, `aa` is found twice in `aaa`."""
    starts: list[int] = []
    start = text.find(old)
    while start >= 0 and len(starts) <= _MOST_PLACES:
        starts.append(start)
        start = text.find(old, start + (1 if overlapping else len(old)))
    return starts


def _lines(text: str, starts: Sequence[int]) -> list[int]:
    """Return the line numbers of sorted positions."""
    lines, line, seen = [], 1, 0
    for start in starts:
        line += text.count("\n", seen, start)
        seen = start
        lines.append(line)
    return lines


def _list_lines(lines: Sequence[int]) -> str:
    shown = ", ".join(str(line) for line in lines[:_MOST_PLACES])
    return f"{shown}, …" if len(lines) > _MOST_PLACES else shown


def _near(text: str, old: str) -> str:
    """Describe the lines most similar to a missing text, with preference for lines that differ only in outer spaces."""
    searched_lines = _bare(old.split("\n"))
    if not any(searched_lines):
        return ""
    lines = _bare(text.split("\n", _MOST_LINES)[:_MOST_LINES])
    start = _find_lines(searched_lines, lines)
    if start:
        return f"; the same text with different whitespace occurs at line {start}: read those lines again"
    first_line = [line for line in searched_lines if line][0]  # noqa: RUF015
    close = difflib.get_close_matches(first_line, dict.fromkeys(lines), n=_MOST_SHOWN)
    if not close:
        return ": read it again"
    similar = "\n".join(f"{lines.index(line) + 1}\t{line}" for line in close)
    return f". The most similar lines (without indentation):\n{similar}"


def _bare(lines: Sequence[str]) -> list[str]:
    return [line.strip()[:_LINE_CHARS] for line in lines]


def _find_lines(searched_lines: Sequence[str], lines: Sequence[str]) -> int:
    """Return the line number, counted from 1, where a sequence of lines begins, or 0 if it does not occur."""
    for start, line in enumerate(lines):
        if line == searched_lines[0] and lines[start : start + len(searched_lines)] == searched_lines:
            return start + 1
    return 0
