"""The rows of tables, whose cells and rows a file may state once and repeat a million times."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jackfield_markup import Element
from jackfield_opendocument.names import TABLE
from jackfield_opendocument.styles import number

_ROW, _CELL, _COVERED = TABLE + "table-row", TABLE + "table-cell", TABLE + "covered-table-cell"
_GROUPS = (TABLE + "table-header-rows", TABLE + "table-rows", TABLE + "table-row-group")
_ALWAYS_CHARS = 2**20
_CHARS_PER_ELEMENT = 100
_MOST_REPEATED = 1_048_576


class Spare:
    """The number of characters that repetitions in a file may still add.

    Args:
        body: The content of the file; the longer it is, the more may be repeated.
    """

    def __init__(self, body: Element) -> None:
        self._chars = _ALWAYS_CHARS + _CHARS_PER_ELEMENT * sum(1 for _ in body.iter())

    def repetitions(self, count: int, chars: int = 1) -> int:
        """Return how often something of a length is repeated: `count` times, or fewer if too little is left."""
        extra = max(0, min(count - 1, self._chars // chars))
        self._chars -= extra * chars
        return 1 + extra


def rows_of(
    table: Element, text_of: Callable[[Element], str], spare: Spare, *, fill_merged: bool
) -> Iterator[list[str]]:
    """Yield the texts of the rows that have any. Columns keep their places.

    Args:
        table: The table.
        text_of: Returns the text of a cell.
        spare: Limits what is repeated.
        fill_merged: Repeat the text of a cell in the rows below that it covers.
    """
    below: dict[int, tuple[str, int]] = {}
    for row in each_row(table):
        texts: list[str] = []
        blanks = 0
        for cell in row.iterchildren(_CELL, _COVERED):
            column = len(texts) + blanks
            if cell.tag == _COVERED:
                text = _from_above(below, column)
            else:
                text = text_of(cell).strip()
                height = number(cell.get(TABLE + "number-rows-spanned"))
                if fill_merged and text and height > 1:
                    below[column] = text, height - 1
            count = repeats(cell, "columns")
            if not text:
                blanks += count
                continue
            texts += [""] * spare.repetitions(blanks) if blanks else []
            texts += [text] * spare.repetitions(count, len(text) + 1)
            blanks = 0
        if texts:
            for _ in range(spare.repetitions(repeats(row, "rows"), sum(map(len, texts)) + len(texts))):
                yield texts


def each_row(table: Element) -> Iterator[Element]:
    """Yield the rows of a table, those in groups included, without those of tables in its cells."""
    for child in table:
        if child.tag == _ROW:
            yield child
        elif child.tag in _GROUPS:
            yield from each_row(child)


def repeats(element: Element, what: str) -> int:
    """Return the number of times that a row or a cell is repeated."""
    text = element.get(f"{TABLE}number-{what}-repeated", "1")
    return min(int(text), _MOST_REPEATED) if text.isdecimal() and len(text) < 9 else 1


def _from_above(below: dict[int, tuple[str, int]], column: int) -> str:
    text, height = below.pop(column, ("", 0))
    if height > 1:
        below[column] = text, height - 1
    return text
