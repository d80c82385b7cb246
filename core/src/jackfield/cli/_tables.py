"""Print tables and JSON without control characters."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, TextIO

from jackfield.cli._terminal import escape_line
from jackfield.cli._wrapping import width_of, wrap_line

_GAP = "  "
_LAST_COLUMN = 20  # a narrower last column is hard to read


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows in aligned columns below a heading.

    On a narrow terminal, the last column is wrapped. If there is no room for that column, entire rows are wrapped.
    """
    if not rows:
        return
    table = [
        # Check a whole row at once, because it is nearly always plain.
        row if _is_plain("".join(row)) else [escape_line(cell) for cell in row]
        for row in (columns, *rows)
    ]
    lines = layout_table(table, terminal_columns(sys.stdout))
    # Write once. On an unbuffered stream, each line would take two writes.
    sys.stdout.write("\n".join([*lines, ""]))


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


def terminal_columns(stream: TextIO) -> int:
    """Return a terminal's width. For other streams, return 0, which means that lines are not wrapped."""
    if not stream.isatty():
        return 0
    import shutil  # only needed for terminals

    return shutil.get_terminal_size().columns


def layout_table(table: Sequence[Sequence[str]], columns: int) -> list[str]:
    """Return a table's lines, which are at most `columns` wide unless `columns` is 0.

    The text must already be escaped.
    """
    is_ascii = all("".join(row).isascii() for row in table)  # the usual case: width is length
    widths = [max(map(len if is_ascii else width_of, column)) for column in zip(*table, strict=True)]
    left = sum(widths[:-1]) + len(_GAP) * (len(widths) - 1)
    if columns and left + widths[-1] > columns and left + _LAST_COLUMN > columns:
        return [line for row in table for line in _wrap_row(row, columns)]
    if is_ascii and not columns:
        line_format = _GAP.join(f"{{:{width}}}" for width in widths)
        return [line_format.format(*row).rstrip() for row in table]
    lines: list[str] = []
    for row in table:
        cells = [cell + " " * (width - width_of(cell)) for cell, width in zip(row[:-1], widths, strict=False)]
        last = wrap_line(row[-1], columns - left) if columns else [row[-1]]
        lines.append(_GAP.join([*cells, last[0]]).rstrip())
        lines += [" " * left + line for line in last[1:]]
    return lines


def _wrap_row(row: Sequence[str], columns: int) -> list[str]:
    """Return the lines of a row. As many complete cells as fit are placed side by side."""
    lines = [""]
    for cell in row:
        if not cell:
            continue
        line = f"{lines[-1]}{_GAP}{cell}" if lines[-1].strip() else lines[-1] + cell
        if width_of(line) <= columns:
            lines[-1] = line
        else:
            lines += wrap_line(cell if not lines[-1] else _GAP + cell, columns, indent=_GAP)
    return [line for line in lines if line]


def print_json(value: Any) -> None:
    """Print a value as JSON. Terminals get ASCII, because JSON leaves some control characters unescaped."""
    import json  # not needed for tables

    print(json.dumps(value, indent=2, ensure_ascii=needs_ascii(sys.stdout)))


def needs_ascii(stream: TextIO) -> bool:
    """Return True if JSON for this stream must be ASCII, because it is a terminal or not UTF-8."""
    return stream.isatty() or (stream.encoding or "").lower().replace("-", "") != "utf8"
