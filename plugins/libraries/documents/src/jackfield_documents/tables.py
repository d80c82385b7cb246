"""Format tables as Markdown, which models read well and chunking can split by row."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence


def pipe_table(rows: Iterable[Sequence[str]]) -> str:
    """Format rows as a GitHub table with the first row as header, or return '' if all cells are empty.

    Empty rows and columns are dropped, pipes are escaped, and line endings become `<br>`. Short rows are valid and are
    not padded, so a table is never much longer than its text.
    """
    filled = []
    for row in rows:
        cells = [_escape_cell(text) for text in row]
        if any(cells):
            filled.append(cells)
    columns = sorted({column for row in filled for column, text in enumerate(row) if text})
    if not columns:
        return ""
    if len(columns) < max(len(row) for row in filled):
        # Bisecting keeps short rows cheap, even below a header of thousands of columns.
        filled = [[row[column] for column in columns[: bisect_left(columns, len(row))]] for row in filled]
    header, *rest = filled
    header += [""] * (len(columns) - len(header))
    lines = ["| " + " | ".join(row) + " |" for row in (header, *rest)]
    lines.insert(1, "|" + "---|" * len(columns))
    return "\n".join(lines)


def _escape_cell(text: str) -> str:
    if text.isalnum():  # most are, and need no change
        return text
    text = text.strip()
    if "\n" in text or "\r" in text:
        lines = (line.strip() for line in text.splitlines())
        text = "<br>".join(line for line in lines if line)
    return text.replace("|", "\\|") if "|" in text else text
