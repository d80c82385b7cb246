"""How commands print: tables and JSON, without control characters."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, TextIO

from jackfield.cli._terminal import printable


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under a heading, columns aligned, the last one as long as it is."""
    if not rows:
        return
    shown = [list(map(printable, column)) for column in zip(columns, *rows, strict=True)]
    padded = []
    for column in shown:
        width = max(map(len, column))
        padded.append([cell.ljust(width) for cell in column])
    # Written at once: where nothing is buffered, each line would be two writes.
    sys.stdout.write("".join(f"{'  '.join(row).rstrip()}\n" for row in zip(*padded, strict=True)))


def print_json(value: Any) -> None:
    """Print a value as JSON; for a terminal, which obeys some characters that JSON leaves as they are, in ASCII."""
    import json  # not for tables

    print(json.dumps(value, indent=2, ensure_ascii=in_ascii(sys.stdout)))


def in_ascii(stream: TextIO) -> bool:
    """Whether JSON goes there in ASCII: to a terminal, and to what has no UTF-8."""
    return stream.isatty() or (stream.encoding or "").lower().replace("-", "") != "utf8"
