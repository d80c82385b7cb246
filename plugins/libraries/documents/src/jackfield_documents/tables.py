"""Tables as Markdown, which models read well and chunks can be cut from row by row."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence


def pipe_table(rows: Iterable[Sequence[str]]) -> str:
    """A GitHub table, of which the first row is the header; '' if no cell has text.

    Columns and rows without any text are left out. Pipes are escaped, line ends become `<br>`, and what lacks at the
    end of a row stays away, as the format allows: a table is never much longer than its texts.
    """
    filled = list(filter(any, ([_cell(text) for text in row] for row in rows)))
    used = _columns_with_text(filled)
    if not used:
        return ""
    header, *rest = filled if len(used) == max(map(len, filled)) else [_only(row, used) for row in filled]
    header += [""] * (len(used) - len(header))
    return "\n".join([_line(header), "|" + "---|" * len(used), *map(_line, rest)])


def _columns_with_text(rows: Sequence[Sequence[str]]) -> list[int]:
    return sorted({place for row in rows for place, text in enumerate(row) if text})


def _cell(text: str) -> str:
    if text.isalnum():  # most are, and need nothing
        return text
    text = text.strip()
    if "\n" in text or "\r" in text:
        text = "<br>".join(line for line in map(str.strip, text.splitlines()) if line)
    return text.replace("|", "\\|") if "|" in text else text


def _only(row: Sequence[str], places: Sequence[int]) -> list[str]:
    # Without what lies beyond its end: a short row beside a header of thousands of columns costs as much as it holds.
    return [row[place] for place in places[: bisect_left(places, len(row))]]


def _line(row: Sequence[str]) -> str:
    return "| " + " | ".join(row) + " |"
