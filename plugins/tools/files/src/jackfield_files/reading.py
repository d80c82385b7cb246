"""Read a range of lines from a text of any size, within limits."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from dataclasses import dataclass

from jackfield_files.texts import BOM

_PIECE = 65536  # characters of a line that are read at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits for reading lines.

    Attributes:
        scan_chars: Characters to read from the file.
        lines: Lines in the result.
        chars: Characters in the result.
        line_chars: Characters per line.
        until: The deadline, in seconds of the monotonic clock.
    """

    scan_chars: int
    lines: int
    chars: int
    line_chars: int
    until: float


@dataclass(frozen=True, slots=True)
class Part:
    """A range of lines.

    Attributes:
        lines: The lines without line breaks. Long lines are shortened.
        seen: The number of lines read from the start of the text, including skipped ones.
        is_end: True if the text ends after these lines.
        is_given_up: True if reading stopped early because a limit on the file or the time was reached.
    """

    lines: list[str]
    seen: int
    is_end: bool
    is_given_up: bool = False


def part_of(stream: io.BufferedReader, encoding: str, *, first: int, last: int | None, bounds: Bounds) -> Part:
    """Return lines `first` to `last`, counted from 1, within the limits, but at least one if possible.

    Undecodable bytes appear as `\\xNN`.
    """
    wrapper = io.TextIOWrapper(stream, encoding, errors="backslashreplace", newline="\n")
    lines: list[str] = []
    number, used, scanned = 0, 0, 0
    try:
        for text, length in _lines(wrapper, bounds):
            number += 1
            scanned += length
            if number >= first:
                line = text.removesuffix("\n").removesuffix("\r")
                if len(line) > bounds.line_chars:
                    line = f"{line[: bounds.line_chars]}[… {length - bounds.line_chars:,} more characters]"
                used += len(line) + 1
                if lines and used > bounds.chars:
                    return Part(lines, number - 1, is_end=False)
                lines.append(line)
            if number == last or len(lines) == bounds.lines:
                return Part(lines, number, is_end=not wrapper.read(1))
            if scanned >= bounds.scan_chars or time.monotonic() > bounds.until:
                return Part(lines, number, is_end=False, is_given_up=True)
        return Part(lines, number, is_end=True)
    finally:
        wrapper.detach()


def _lines(wrapper: io.TextIOWrapper, bounds: Bounds) -> Iterator[tuple[str, int]]:
    """Yield the beginning of each line, and the number of characters read from it."""
    is_first = True
    while piece := wrapper.readline(_PIECE):
        text, length = piece.removeprefix(BOM) if is_first else piece, len(piece)
        is_first = False
        line = text[: bounds.line_chars + 2]
        while not piece.endswith("\n") and length < bounds.scan_chars and (piece := wrapper.readline(_PIECE)):
            length += len(piece)
            if len(line) < bounds.line_chars + 2:
                line += piece[: bounds.line_chars + 2 - len(line)]
        yield line, length
