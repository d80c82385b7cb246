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
    table = [[*map(printable, row)] for row in (columns, *rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    # Written at once: where nothing is buffered, each line would be two writes.
    sys.stdout.write("".join(f"{'  '.join(map(str.ljust, row, widths)).rstrip()}\n" for row in table))


def print_json(value: Any) -> None:
    """Print a value as JSON; for a terminal, which obeys some characters that JSON leaves as they are, in ASCII."""
    import json  # not for tables

    print(json.dumps(value, indent=2, ensure_ascii=in_ascii(sys.stdout)))


def in_ascii(stream: TextIO) -> bool:
    """Whether JSON goes there in ASCII: to a terminal, and to what has no UTF-8."""
    return stream.isatty() or (stream.encoding or "").lower().replace("-", "") != "utf8"
