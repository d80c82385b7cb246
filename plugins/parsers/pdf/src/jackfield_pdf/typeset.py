"""Read the lines of a page: their text, as PDFium provides it, and their positions."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, chain, groupby, pairwise, starmap
from typing import TYPE_CHECKING

from jackfield_pdf.cells import Word, is_drawing, table_rows
from jackfield_pdf.glyphs import Box, Glyphs, turned
from jackfield_pdf.grids import Grid, Rule, grids_of
from jackfield_pdf.rules import straight_lines
from jackfield_pdf.spans import grouped

if TYPE_CHECKING:
    from pypdfium2 import PdfPage

HYPHEN = "\ufffe"
"""The character with which PDFium joins two lines at a hyphen."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_BEYOND_UCS2 = re.compile(r"[\U00010000-\U0010ffff]")
_INK = re.compile(r"\S")
_WORD = re.compile(r"\S+")
_BOLD = re.compile(rb"bold|black|heavy|demi|cmbx|-B[dI]?$", re.IGNORECASE)
_MONO = re.compile(rb"mono|courier|consol|typewriter|cmtt|menlo|fixed", re.IGNORECASE)
_MOST_NAMED = 200  # characters; the type of longer lines is not significant
_MARK = re.compile(r"\s*(?:[^\w\s]{1,2}|\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,5})[.)]?|\d+(?:\.\d+)+\.?)\s")
_TABLE_GAP = 1.0  # in type sizes; spaces between words are narrower, even in justified text
_FARTHEST = 1e6  # points; text beyond that, or at NaN, is treated as having no position
_LONGEST_CELL = 4000  # characters; a frame around whole columns of text is not a table
_RULE_GAP = 0.1  # in type sizes; characters of a word are nearer to each other
_MOST_ROUNDS = 5  # rounds of looking for tables among nested frames; a page that needs more is treated as having none


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a line, bounded by wide gaps."""

    text: str
    left: float
    right: float


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text, several lines joined by hyphens, or a table. Positions are in points from the bottom left.

    Attributes:
        text: The text, with `HYPHEN` where a hyphen ended a line. For a table, the cells, one per line.
        left: The left end of the first line.
        right: The right end of the last line.
        first, last: The baselines of the first and last line.
        size: The type size, or 0 if the position is unknown.
        is_bold, is_mono: True if the beginning, middle and end are bold or monospaced, respectively.
        parts: The parts of a line that wide gaps divide, as in a table row.
        table: The rows of a ruled table. Line breaks within cells are preserved.
    """

    text: str
    left: float = 0.0
    right: float = 0.0
    first: float = 0.0
    last: float = 0.0
    size: float = 0.0
    is_bold: bool = False
    is_mono: bool = False
    parts: tuple[Part, ...] = ()
    table: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class _Measured:
    """A line as reported by PDFium.

    Attributes:
        text: The text.
        places: The PDFium index of each character, or () if unknown.
        boxes: The bounding boxes of the words.
        base: The baselines at the start and end.
        size: The type size.
        turn: The rotation in right angles.
    """

    text: str
    places: Sequence[int]
    boxes: tuple[Box, ...] = ()
    base: tuple[float, float] = (0.0, 0.0)
    size: float = 0.0
    turn: int = 0


def lines_of(page: PdfPage, glyphs: Glyphs) -> list[Line]:
    """Return the lines of a page in file order. A ruled table counts as one line."""
    measured = _upright([_measured(glyphs, text, places) for text, places in _texts(glyphs)])
    # Lines that are merely below each other form no table, so drawings are not examined on most pages.
    grids = _grids(page, measured[0].turn) if _may_have_a_table(measured) else []
    if not grids:
        return [_line(glyphs, line) for line in measured]
    return list(_with_tables(glyphs, measured, grids))


# --- text and places ---


def _texts(glyphs: Glyphs) -> Iterator[tuple[str, Sequence[int]]]:
    """Yield each non-blank line with the PDFium indexes of its characters, or () if these are unknown."""
    places = _places(glyphs)
    start = 0
    for line in glyphs.text.split("\r\n"):
        text = line if line.isprintable() else _CONTROL.sub(" ", line)
        if text.strip():
            yield text, places[start : start + len(line)]
        start += len(line) + 2


def _places(glyphs: Glyphs) -> Sequence[int]:
    """Return the PDFium index of each character in the text, or () if PDFium's count does not add up."""
    if len(glyphs.text) == glyphs.count and not _BEYOND_UCS2.search(glyphs.text):
        return range(glyphs.count)
    # Characters without a meaning are counted but not in the text, and those beyond the BMP are counted twice.
    shown = glyphs.shown()
    *units, end = accumulate(map(_units, glyphs.text), initial=0)
    return list(map(shown.__getitem__, units)) if end == len(shown) else ()


def _units(character: str) -> int:
    return 1 + (character > "\uffff")


def _measured(glyphs: Glyphs, text: str, places: Sequence[int]) -> _Measured:
    if not places:
        return _Measured(text, ())
    size, turn = glyphs.size(places[_middle(text)])
    # Code and raised numbers in the middle of a line are often smaller than the line.
    size = max(size, glyphs.size(places[len(text.rstrip()) - 1])[0])
    boxes = tuple(glyphs.boxes(places, turn))
    first = glyphs.base(places[0], turn)
    base = first, glyphs.base(places[-1], turn) if HYPHEN in text else first
    is_known = boxes and _are_near(*base, size, *chain.from_iterable(boxes))
    return _Measured(text, places, boxes, base, size, turn) if is_known else _Measured(text, ())


def _are_near(*places: float) -> bool:
    """Return True if the positions are finite and plausible for a page."""
    return math.hypot(*places) < _FARTHEST


def _middle(text: str) -> int:
    """Return the index of a visible character near the middle.

    A bullet at the start may have another size, and a space inserted by PDFium has none.
    """
    start = len(text) // 2
    if not text[start].isspace():
        return start
    found = _INK.search(text, start) or _INK.search(text)
    return found.start() if found else start


def _upright(lines: list[_Measured]) -> list[_Measured]:
    """Drop the positions of lines that deviate from the main reading direction."""
    turns = Counter(line.turn for line in lines if line.boxes)
    if not any(turns):
        return lines
    usual = turns.most_common(1)[0][0]
    return [line if line.turn == usual else _Measured(line.text, (), turn=usual) for line in lines]


def _line(glyphs: Glyphs, line: _Measured) -> Line:
    if not line.boxes:
        return Line(line.text)
    is_bold, is_mono = _style(glyphs, line)
    wide = HYPHEN not in line.text and _is_row(line)
    return Line(
        line.text,
        left=min(line.boxes[0][0], line.boxes[-1][0]),  # the first word may be the last on the right
        right=max(line.boxes[0][1], line.boxes[-1][1]),
        first=line.base[0],
        last=line.base[1],
        size=line.size,
        is_bold=is_bold,
        is_mono=is_mono,
        parts=tuple(_parts(glyphs, line)) if wide else (),
    )


def _style(glyphs: Glyphs, line: _Measured) -> tuple[bool, bool]:
    """Return if a line is bold and if it is monospaced.

    Only the font names are examined, because other indications are unreliable.
    """
    if len(line.text) > _MOST_NAMED:
        return False, False
    first = _style_of(glyphs.font(line.places[0]))
    if not any(first):
        return first
    others = [_style_of(glyphs.font(line.places[at])) for at in (_middle(line.text), len(line.text.rstrip()) - 1)]
    bold, mono = zip(first, *others, strict=True)
    return all(bold), all(mono)


@lru_cache(maxsize=64)
def _style_of(font: bytes) -> tuple[bool, bool]:
    return _BOLD.search(font) is not None, _MONO.search(font) is not None


# --- tables ---


def _is_row(line: _Measured) -> bool:
    gap = _TABLE_GAP * line.size
    wide = [place for place, (before, after) in enumerate(pairwise(line.boxes)) if after[0] - before[1] > gap]
    # A bullet or number is also set apart from its item.
    return bool(wide) and not (wide == [0] and _MARK.match(line.text) is not None)


def _parts(glyphs: Glyphs, line: _Measured) -> Iterator[Part]:
    """Split a line at its wide gaps."""
    words = list(_WORD.finditer(line.text))
    lefts = [_char_box(glyphs, line, word.start())[0] for word in words]
    rights = [_char_box(glyphs, line, word.end() - 1)[1] for word in words]
    gap = _TABLE_GAP * line.size
    for near in grouped(range(len(words)), lambda _, place: lefts[place] - rights[place - 1] <= gap):
        first, end = near[0], near[-1] + 1
        text = line.text[words[first].start() : words[end - 1].end()]
        yield Part(text, min(lefts[first:end]), max(rights[first:end]))


def _char_box(glyphs: Glyphs, line: _Measured, place: int) -> Box:
    return glyphs.box(line.places[place], line.turn)


def _may_have_a_table(lines: Sequence[_Measured]) -> bool:
    """Return True if any texts are side by side."""
    placed = [line for line in lines if line.boxes]
    return any(starmap(_is_beside, pairwise(placed))) or any(map(_has_gap, placed))


def _is_beside(before: _Measured, line: _Measured) -> bool:
    return line.base[0] > before.base[1] - before.size / 2


def _has_gap(line: _Measured) -> bool:
    gap = line.size / 2
    return any(right[0] - left[1] > gap for left, right in pairwise(line.boxes))


def _grids(page: PdfPage, turn: int) -> list[Grid]:
    """Return the ruled tables on a page, smallest first, because a table may be nested in a cell of another."""
    across, down = [], []
    for (x, y), (other_x, other_y) in straight_lines(page):
        box = min(x, other_x), max(x, other_x), min(y, other_y), max(y, other_y)
        if not _are_near(*box):
            continue
        left, right, foot, top = turned(box, turn) if turn else box
        if right - left > top - foot:
            across.append(Rule((foot + top) / 2, left, right))
        else:
            down.append(Rule((left + right) / 2, foot, top))
    return sorted(grids_of(across, down), key=lambda grid: (grid.xs[-1] - grid.xs[0]) * (grid.ys[-1] - grid.ys[0]))


_Place = tuple[int | None, int]  # a grid, and a cell of it
_OUTSIDE: _Place = None, 0


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a line that lies within a single table cell, or outside of all tables.

    `cut` is the number of words that a rule crosses.
    """

    text: str
    grid: int | None
    cell: int
    first: int
    end: int
    words: tuple[Word, ...] = ()
    cut: int = 0


def _with_tables(glyphs: Glyphs, lines: Sequence[_Measured], grids: Sequence[Grid]) -> Iterator[Line]:
    grids, pieces, tables = _tables(glyphs, lines, grids)
    for line, of_line in zip(lines, pieces, strict=True):
        if tables.keys().isdisjoint(piece.grid for piece in of_line):
            yield _line(glyphs, line)
        else:
            yield from _in_pieces(glyphs, line, of_line, tables)


def _in_pieces(
    glyphs: Glyphs, line: _Measured, pieces: Iterable[_Piece], tables: dict[int | None, list[Line]]
) -> Iterator[Line]:
    """Yield lines outside of tables, and each table at its first piece, after which it is cleared in `tables`."""
    for piece in pieces:
        if piece.grid in tables:
            yield from tables[piece.grid]
            tables[piece.grid] = []
        else:
            yield _beside(glyphs, line, piece)


def _tables(
    glyphs: Glyphs, lines: Sequence[_Measured], grids: Sequence[Grid]
) -> tuple[Sequence[Grid], list[list[_Piece]], dict[int | None, list[Line]]]:
    """Return the grids that are tables, the pieces of each line, and the tables by grid number.

    Text in a drawing belongs to the surrounding table, if there is one.
    """
    for _ in range(_MOST_ROUNDS):
        pieces = [list(_pieces(glyphs, line, grids)) for line in lines]
        in_grids: defaultdict[int, list[_Piece]] = defaultdict(list)
        for piece in chain.from_iterable(pieces):
            if piece.grid is not None:
                in_grids[piece.grid].append(piece)
        tables = {number: _table(grids[number], of_grid) for number, of_grid in in_grids.items()}
        if all(tables.values()):
            return grids, pieces, {number: [table] for number, table in tables.items() if table}
        grids = [grids[number] for number, table in sorted(tables.items()) if table]
    return [], [[] for _ in lines], {}


def _pieces(glyphs: Glyphs, line: _Measured, grids: Sequence[Grid]) -> Iterator[_Piece]:
    """Split a line by table cells, dropping the spaces in between."""
    near = [(number, grid) for number, grid in enumerate(grids) if any(grid.meets(*box) for box in line.boxes)]
    if not near:
        yield _Piece(line.text, None, 0, 0, len(line.text))
        return
    fragments = [fragment for word in _WORD.finditer(line.text) for fragment in _fragments(glyphs, line, word, near)]
    for (grid, cell), group in groupby(fragments, key=lambda fragment: (fragment.grid, fragment.cell)):
        of_cell = list(group)
        first, end = of_cell[0].first, of_cell[-1].end
        words = [word for fragment in of_cell for word in fragment.words]
        words[0] = replace(words[0], before="\n")
        cut = sum(fragment.cut for fragment in of_cell)
        yield _Piece(line.text[first:end], grid, cell, first, end, tuple(words), cut)


def _fragments(
    glyphs: Glyphs, line: _Measured, word: re.Match[str], grids: Sequence[tuple[int, Grid]]
) -> Iterator[_Piece]:
    """Yield a word as a whole, or in parts if rules divide it."""
    boxes = glyphs.boxes(line.places[word.start() : word.end()], line.turn)
    place = _cell_around(boxes[0], grids) if len(boxes) == 1 else None
    if place:
        yield _fragment(glyphs, line, word.span(), boxes, place)
    else:
        yield from _divided(glyphs, line, word, grids)


def _divided(
    glyphs: Glyphs, line: _Measured, word: re.Match[str], grids: Sequence[tuple[int, Grid]]
) -> Iterator[_Piece]:
    """Split a word where a rule runs between two characters. A rule across a character does not split the word."""
    boxes = [_char_box(glyphs, line, place) for place in range(word.start(), word.end())]
    cells = [_cell_at(box, grids) for box in boxes]
    changes = [at for at in range(1, len(cells)) if cells[at] != cells[at - 1]]
    starts = [at for at in changes if word[0][at - 1] == HYPHEN or _is_apart(boxes[at - 1], boxes[at], line.size)]
    cut = int(len(starts) < len(changes))
    for first, end in pairwise([0, *starts, len(cells)]):
        [(place, _)] = Counter(cells[first:end]).most_common(1)
        span = word.start() + first, word.start() + end
        yield _fragment(glyphs, line, span, boxes[first:end], place, cut=cut)


def _fragment(
    glyphs: Glyphs, line: _Measured, span: tuple[int, int], boxes: Sequence[Box], place: _Place, *, cut: int = 0
) -> _Piece:
    """Return a piece with a word, or a part of a word, whose characters have these boxes."""
    start, end = span
    text = line.text[start:end]
    before = "" if line.text[start - 1 : start].strip() else " "
    base = glyphs.base(line.places[start], line.turn)
    word = Word(text, before, min(box[0] for box in boxes), max(box[1] for box in boxes), base, line.size)
    return _Piece(text, *place, start, end, (word,), cut)


def _is_apart(before: Box, box: Box, size: float) -> bool:
    """Return True if there is room for a rule between two characters, or if they are on different lines."""
    return box[0] - before[1] > _RULE_GAP * size or before[0] - box[1] > _RULE_GAP * size


def _cell_around(box: Box, grids: Sequence[tuple[int, Grid]]) -> _Place | None:
    """Return the cell that contains a whole box, or None if a rule may cross the box."""
    for number, grid in grids:
        if grid.meets(*box):
            cell = grid.cell_around(*box)
            return None if cell is None else (number, cell)
    return _OUTSIDE


def _cell_at(box: Box, grids: Sequence[tuple[int, Grid]]) -> _Place:
    x, y = (box[0] + box[1]) / 2, (box[2] + box[3]) / 2
    for number, grid in grids:
        cell = grid.cell_at(x, y)
        if cell is not None:
            return number, cell
    return _OUTSIDE


def _table(grid: Grid, pieces: Sequence[_Piece]) -> Line | None:
    """Return a table as a line, or None if the rules form a diagram, mere frames or an empty form instead."""
    words: defaultdict[int, list[Word]] = defaultdict(list)
    for piece in pieces:
        words[piece.cell] += piece.words
    is_sparse = 4 * len(words) < len(set(chain.from_iterable(grid.cells)))
    if is_sparse or is_drawing(grid, words, sum(piece.cut for piece in pieces)):
        return None
    rows = table_rows(grid, words)
    if not _is_filled(rows) or max(map(len, chain.from_iterable(rows))) > _LONGEST_CELL:
        return None
    return Line(
        "\n".join(piece.text for piece in pieces),
        left=grid.xs[0],
        right=grid.xs[-1],
        first=grid.ys[-1],
        last=grid.ys[0],
        table=tuple(map(tuple, rows)),
    )


def _is_filled(rows: Sequence[Sequence[str]]) -> bool:
    """Return True if several rows and columns have text, and most rows have text in more than one column."""
    counts = [sum(map(bool, row)) for row in rows if any(row)]
    columns = zip(*rows, strict=True)
    return len(counts) > 1 and sum(map(any, columns)) > 1 and 2 * sum(count > 1 for count in counts) >= len(counts)


def _beside(glyphs: Glyphs, line: _Measured, piece: _Piece) -> Line:
    """Return a part of a line that is outside of all tables."""
    left = _char_box(glyphs, line, piece.first)[0]
    right = _char_box(glyphs, line, piece.end - 1)[1]
    return Line(piece.text, left=left, right=right, first=line.base[0], last=line.base[1], size=line.size)
