"""Read the rows of a ruled table. Rules separate cells; where rows have no rules between them, lines of text do."""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise

from jackfield_pdf.grids import Grid
from jackfield_pdf.spans import grouped, merged

_SAME_LINE = 0.45  # in type sizes; superscripts and subscripts are nearer to their line
_GAP = 1.0  # in type sizes, between columns of two or three lines; a space is about 0.3
_NARROW_GAP = 0.4  # between columns of more lines, whose spaces are hardly ever aligned by chance
_FEW_LINES = 4
_SPACE = 0.25  # in sizes of the type
_PADDING = 0.5  # in type sizes, between a rule and text
_MOST_NUMBERS = 0.6  # minimum share of numbers in a column of numbers; the rest are dashes and remarks
_RULED_BANDS = 4  # number of bands from which rules are assumed to separate rows
_MOST_CUT = 0.1  # of the words
_LETTERS = re.compile(r"[^\W\d_]{2}")
_DIGIT = re.compile(r"\d")
_LEADERS = re.compile(r"(?:[.·…]\s?){4,}$")
_WIDE_LETTER = re.compile(r"[\u2e80-\u9fff]")


@dataclass(frozen=True, slots=True)
class Word:
    """A word in a cell. Lengths are in points.

    Attributes:
        text: The word.
        before: The separator from the previous word in the cell: a line break, a space or nothing.
        left, right: The horizontal extent.
        base: The vertical position of the baseline.
        size: The type size.
    """

    text: str
    before: str
    left: float
    right: float
    base: float
    size: float


_Words = Sequence[Word]


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell with words: its first column, the number of columns it spans, and its horizontal extent."""

    column: int
    columns: int
    left: float
    right: float
    words: _Words


@dataclass(frozen=True, slots=True)
class _Band:
    """The cells between two consecutive horizontal rules, except those that extend into another band.

    `heights` are the baselines of the lines in them, from the top.
    """

    cells: Sequence[_Cell]
    heights: Sequence[float]


@dataclass(frozen=True, slots=True)
class _TextColumn:
    """A column of text within a cell. `lines` are indexes into the lines of the band."""

    lines: frozenset[int]
    has_numbers: bool
    is_wrapped: bool


def is_drawing(grid: Grid, words: Mapping[int, _Words], cut: int) -> bool:
    """Return True if the rules form a diagram.

    The rules of a diagram cross many words (`cut` of them), or form cells that are not rectangles.
    """
    if cut > 1 and cut >= _MOST_CUT * sum(map(len, words.values())):
        return True
    places: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for row, cells in enumerate(grid.cells):
        for column, cell in enumerate(cells):
            places[cell].append((row, column))
    return not all(map(_is_rectangle, places.values()))


def table_rows(grid: Grid, words: Mapping[int, _Words]) -> list[list[str]]:
    """Return the cell texts row by row from the top. A merged cell has its text in the first position only."""
    rows_of_cells = list(reversed(grid.cells))
    bands = [_band(grid, rows_of_cells, at, words) for at in range(len(rows_of_cells))]
    are_ruled = _are_rows_ruled(bands)
    heights = [_row_heights(band, are_ruled, is_top=not at) for at, band in enumerate(bands)]
    bounds = _bounds(bands, heights, len(grid.xs) - 1)
    firsts = list(accumulate((len(of_column) + 1 for of_column in bounds), initial=0))
    rows: list[list[str]] = []
    written: set[int] = set()
    for cells, of_band in zip(rows_of_cells, heights, strict=True):
        texts: dict[tuple[int, int], str] = {}
        for column, cell in enumerate(cells):
            if cell not in written:
                written.add(cell)
                spread = _spread(words.get(cell, ()), of_band, () if cells.count(cell) > 1 else bounds[column])
                texts.update(((row, firsts[column] + place), text) for (row, place), text in spread.items())
        rows += [[texts.get((row, at), "") for at in range(firsts[-1])] for row in range(len(of_band) or 1)]
    return rows


def _is_rectangle(places: Sequence[tuple[int, int]]) -> bool:
    rows, columns = zip(*places, strict=True)
    return len(set(rows)) * len(set(columns)) == len(places)


# --- rows ---


def _band(grid: Grid, rows: Sequence[Sequence[int]], at: int, words: Mapping[int, _Words]) -> _Band:
    shared = {*rows[at - 1]} if at else set[int]()
    shared.update(*rows[at + 1 : at + 2])
    columns: defaultdict[int, list[int]] = defaultdict(list)
    for column, cell in enumerate(rows[at]):
        if cell in words and cell not in shared:
            columns[cell].append(column)
    cells = [
        _Cell(places[0], len(places), grid.xs[places[0]], grid.xs[places[-1] + 1], words[cell])
        for cell, places in columns.items()
    ]
    return _Band(cells, _heights(list(chain.from_iterable(cell.words for cell in cells))))


def _heights(words: _Words) -> list[float]:
    """Return the baselines of the lines, from the top."""
    ordered = sorted(words, key=lambda word: -word.base)
    lines = grouped(ordered, lambda line, word: line[0].base - word.base < _SAME_LINE * word.size)
    return [max(line, key=lambda word: len(word.text)).base for line in lines]


def _are_rows_ruled(bands: Sequence[_Band]) -> bool:
    """Return True if most bands are single rows, which suggests that rules separate all rows."""
    counts = [len(band.heights) for band in bands if band.heights]
    return len(counts) >= _RULED_BANDS and 2 * counts.count(1) >= len(counts)


def _row_heights(band: _Band, are_ruled: bool, *, is_top: bool) -> Sequence[float]:
    """Return the baselines of the rows in a band, from the top, or () if the band is a single row.

    Lines at the same height in several columns are separate rows if one of the columns has numbers, or if all columns
    are lists of short texts.
    """
    is_short = len(band.heights) < _FEW_LINES
    if len(band.heights) < 2 or (are_ruled and is_short):
        return ()
    columns = [column for cell in band.cells for column in _text_columns(cell, band.heights)]
    every = _line_counts(columns)
    numbers = _line_counts(column for column in columns if column.has_numbers)
    if sum(every[at] > 1 for at in numbers) > 1:
        return band.heights
    lists = _line_counts(column for column in columns if len(column.lines) > 1 and not column.is_wrapped)
    may_be_lists = not are_ruled and not (is_top and is_short)  # a heading may have two lines
    return band.heights if may_be_lists and all(lists[at] > 1 for at in range(len(band.heights))) else ()


def _line_counts(columns: Iterable[_TextColumn]) -> Counter[int]:
    """Count, for each line, the columns that have text in it."""
    return Counter(chain.from_iterable(column.lines for column in columns))


def _text_columns(cell: _Cell, heights: Sequence[float]) -> list[_TextColumn]:
    bounds = _column_bounds(cell.words)
    columns: defaultdict[int, list[Word]] = defaultdict(list)
    for word in cell.words:
        columns[bisect(bounds, word.left)].append(word)
    edges = pairwise([cell.left, *bounds, cell.right])
    return [_text_column(columns[at], heights, end - start) for at, (start, end) in enumerate(edges)]


def _text_column(words: _Words, heights: Sequence[float], width: float) -> _TextColumn:
    by_line: defaultdict[int, list[Word]] = defaultdict(list)
    for word in words:
        by_line[_nearest(heights, word.base)].append(word)
    lines = [by_line[at] for at in sorted(by_line)]
    texts = [" ".join(word.text for word in line) for line in lines]
    numbers = sum(bool(_DIGIT.search(text)) and not _LETTERS.search(text) for text in texts)
    has_numbers = len(lines) > 1 and numbers >= _MOST_NUMBERS * len(lines)
    full = sum(_is_full(line, after[0], width) for line, after in pairwise(lines))
    is_wrapped = 2 * full >= len(lines) - 1
    return _TextColumn(frozenset(by_line), has_numbers, is_wrapped)


def _is_full(line: _Words, following: Word, width: float) -> bool:
    """Return True if the following word would not have fitted on the line, which suggests that the text was wrapped.

    A line that ends in dot leaders is never full.
    """
    if _LEADERS.search(" ".join(word.text for word in line)):
        return False
    length = max(word.right for word in line) - min(word.left for word in line)
    needed = following.size if _WIDE_LETTER.match(following.text) else following.right - following.left
    return length + _SPACE * following.size + needed > width - 2 * _PADDING * following.size


def _nearest(heights: Sequence[float], base: float) -> int:
    return min(range(len(heights)), key=lambda at: abs(heights[at] - base))


# --- columns ---


def _column_bounds(words: _Words) -> list[float]:
    """Return the centres of the vertical gaps that no line crosses."""
    size = max(word.size for word in words)
    gap = size * (_NARROW_GAP if len(_heights(words)) >= _FEW_LINES else _GAP)
    spans = merged(((word.left, word.right) for word in words), gap=gap)
    return [(end + start) / 2 for (_, end), (start, _) in pairwise(spans)]


def _bounds(bands: Sequence[_Band], heights: Sequence[Sequence[float]], columns: int) -> list[list[float]]:
    """Return, for each ruled column, the positions that divide it further, judged by the bands with several rows."""
    words: defaultdict[int, list[Word]] = defaultdict(list)
    for band, of_band in zip(bands, heights, strict=True):
        for cell in band.cells if of_band else ():
            if cell.columns == 1:
                words[cell.column] += cell.words
    return [_column_bounds(words[column]) if words[column] else [] for column in range(columns)]


def _spread(words: _Words, heights: Sequence[float], bounds: Sequence[float]) -> dict[tuple[int, int], str]:
    """Distribute the text of a cell over its rows and columns. Words close to each other stay together."""
    texts: dict[tuple[int, int], str] = {}
    last: Word | None = None
    place = 0, 0
    for word in words:
        before = place
        row = _nearest(heights, word.base) if heights else 0
        is_near = last is not None and word.before != "\n" and word.left - last.right < _NARROW_GAP * word.size
        column = before[1] if is_near and before[0] == row else bisect(bounds, (word.left + word.right) / 2)
        place = row, column
        separator = word.before if word.before or place == before else " "
        separator = " " if heights and separator == "\n" else separator
        texts[place] = texts[place] + separator + word.text if place in texts else word.text
        last = word
    return texts
