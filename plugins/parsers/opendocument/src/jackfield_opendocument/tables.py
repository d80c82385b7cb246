"""Read table rows. A file may define a row or cell once and repeat it a million times."""

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
    """A budget of characters for repeated rows and cells.

    Args:
        body: The content of the file. Longer content gets a larger budget.
    """

    def __init__(self, body: Element) -> None:
        self._chars = _ALWAYS_CHARS + _CHARS_PER_ELEMENT * sum(1 for _ in body.iter())

    def repetitions(self, count: int, chars: int = 1) -> int:
        """Return how often to repeat text of a given length: `count` times, or fewer if the budget runs out."""
        extra = max(0, min(count - 1, self._chars // chars))
        self._chars -= extra * chars
        return 1 + extra


def rows_of(
    table: Element, text_of: Callable[[Element], str], spare: Spare, *, fill_merged: bool
) -> Iterator[list[str]]:
    """Yield the cell texts of each non-empty row. Blank cells are kept so that columns stay aligned.

    Args:
        table: The table.
        text_of: Returns the text of a cell.
        spare: The budget for repetitions.
        fill_merged: Repeat the text of a vertically merged cell in each row it covers.
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
    """Yield the rows of a table, including rows in groups but not those of nested tables."""
    for child in table:
        if child.tag == _ROW:
            yield child
        elif child.tag in _GROUPS:
            yield from each_row(child)


def repeats(element: Element, what: str) -> int:
    """Return how often a row or cell is repeated. `what` is `rows` or `columns`."""
    text = element.get(f"{TABLE}number-{what}-repeated", "1")
    return min(int(text), _MOST_REPEATED) if text.isdecimal() and len(text) < 9 else 1


def _from_above(below: dict[int, tuple[str, int]], column: int) -> str:
    text, height = below.pop(column, ("", 0))
    if height > 1:
        below[column] = text, height - 1
    return text
