"""Print tables and JSON without control characters."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, TextIO

from jackfield.cli._terminal import escape_line


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under a heading, in aligned columns."""
    if not rows:
        return
    table = [[escape_line(cell) for cell in row] for row in (columns, *rows)]
    widths = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    # One write: on an unbuffered stream, each line would be two.
    sys.stdout.write("\n".join([*lines, ""]))


def print_json(value: Any) -> None:
    """Print a value as JSON. Terminals get ASCII, because they obey some characters that JSON does not escape."""
    import json  # not for tables

    print(json.dumps(value, indent=2, ensure_ascii=needs_ascii(sys.stdout)))


def needs_ascii(stream: TextIO) -> bool:
    """Return True if JSON must be ASCII there: on terminals and streams that are not UTF-8."""
    return stream.isatty() or (stream.encoding or "").lower().replace("-", "") != "utf8"
