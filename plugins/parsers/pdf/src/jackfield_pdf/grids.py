"""Turn the lines drawn on a page into ruled tables."""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, product, starmap
from operator import attrgetter

from jackfield_pdf.spans import grouped, merged

_NEAR = 3.0  # points; a rule drawn as a thin rectangle has two edges, and corners do not quite meet
_LONG = 4.0  # points; shorter is a tick or the end of a thick rule
_MOST_CROSSINGS = 100_000  # that are examined: a map has thousands of lines, but a table does not
_MOST_CELLS = 20_000


@dataclass(frozen=True, slots=True)
class Rule:
    """A straight horizontal or vertical line: its position on the perpendicular axis, and its extent along its own."""

    at: float
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Grid:
    """The cells of a table.

    Attributes:
        xs: The column boundaries, from the left.
        ys: The row boundaries, from the bottom.
        cells: The cell number of each grid square, row by row from the bottom. The squares of a merged cell share one.
    """

    xs: tuple[float, ...]
    ys: tuple[float, ...]
    cells: tuple[tuple[int, ...], ...]

    def meets(self, left: float, right: float, foot: float, top: float) -> bool:
        """Return True if a box overlaps the table."""
        return left < self.xs[-1] and right > self.xs[0] and foot < self.ys[-1] and top > self.ys[0]

    def cell_at(self, x: float, y: float) -> int | None:
        """Return the cell at a point, or None if the point is outside the table."""
        column, row = bisect(self.xs, x) - 1, bisect(self.ys, y) - 1
        inside = 0 <= column < len(self.xs) - 1 and 0 <= row < len(self.ys) - 1
        return self.cells[row][column] if inside else None

    def cell_around(self, left: float, right: float, foot: float, top: float) -> int | None:
        """Return the cell of the grid square that contains a whole box, or None if no single square does."""
        column, row = bisect(self.xs, left), bisect(self.ys, foot)
        inside = 0 < column < len(self.xs) and 0 < row < len(self.ys)
        return self.cells[row - 1][column - 1] if inside and right < self.xs[column] and top < self.ys[row] else None


def grids_of(across: Sequence[Rule], down: Sequence[Rule]) -> list[Grid]:
    """Return the tables formed by horizontal and vertical rules, with at least two rows and two columns each."""
    if not across or not down:
        return []
    across, down = _joined(across), _joined(down)
    if not 0 < len(across) * len(down) <= _MOST_CROSSINGS:
        return []
    return list(filter(None, starmap(_grid, _connected(across, down))))


def _joined(rules: Iterable[Rule]) -> list[Rule]:
    """Merge rules that overlap or continue each other."""
    groups = grouped(sorted(rules, key=attrgetter("at")), lambda group, rule: rule.at - group[0].at <= _NEAR)
    return [rule for group in groups for rule in _in_a_line(group) if rule.end - rule.start >= _LONG]


def _in_a_line(rules: Sequence[Rule]) -> Iterator[Rule]:
    for start, end in merged(((rule.start, rule.end) for rule in rules), gap=_NEAR):
        yield Rule(rules[0].at, start, end)


def _connected(across: Sequence[Rule], down: Sequence[Rule]) -> list[tuple[list[Rule], list[Rule]]]:
    """Group rules that are connected by crossings, one group per table, from the top."""
    crossing = [_crossed(rule, across) for rule in down]
    group_of = _groups(len(across), crossing)
    tables: dict[int, tuple[list[Rule], list[Rule]]] = defaultdict(lambda: ([], []))
    for rule, group in zip(across, group_of, strict=True):
        tables[group][0].append(rule)
    for rule, places in zip(down, crossing, strict=True):
        for place in places[:1]:
            tables[group_of[place]][1].append(rule)
    return sorted(tables.values(), key=lambda rules: -rules[0][-1].at)


def _crossed(down: Rule, across: Sequence[Rule]) -> list[int]:
    return [place for place, rule in enumerate(across) if _cross(rule, down)]


def _groups(count: int, linked: Iterable[Sequence[int]]) -> list[int]:
    """Return, for each of `count` items, the lowest item it is linked to directly or indirectly."""
    group_of = list(range(count))
    for places in linked:
        old = set(map(group_of.__getitem__, places))
        if len(old) > 1:
            group_of = [min(old) if group in old else group for group in group_of]
    return group_of


def _cross(across: Rule, down: Rule) -> bool:
    return across.start - _NEAR <= down.at <= across.end + _NEAR and down.start - _NEAR <= across.at <= down.end + _NEAR


def _grid(across: Sequence[Rule], down: Sequence[Rule]) -> Grid | None:
    """Return the table formed by rules, or None if it has fewer than two rows or columns, or fewer than four cells."""
    if not down:
        return None
    xs, ys = _places(down, across), _places(across, down)
    if min(len(xs), len(ys)) < 3 or (len(xs) - 1) * (len(ys) - 1) > _MOST_CELLS:
        return None
    cells = _merged(_walls(xs, down, ys), _walls(ys, across, xs))
    return Grid(xs, ys, tuple(map(tuple, cells))) if len(set(chain.from_iterable(cells))) >= 4 else None


def _walls(places: Sequence[float], rules: Sequence[Rule], across: Sequence[float]) -> list[list[bool]]:
    """Return, for each boundary position, where rules separate cells. The first boundary is the edge of the table."""
    outer = [True] * (len(across) - 1)
    return [outer, *(_covered(place, rules, across) for place in places[1:])]


def _merged(between_columns: Sequence[Sequence[bool]], between_rows: Sequence[Sequence[bool]]) -> list[list[int]]:
    """Number the cells. A square belongs to the cell beside or below it unless a rule separates them."""
    columns, rows = len(between_columns) - 1, len(between_rows) - 1
    cells = [list(range(row * columns, (row + 1) * columns)) for row in range(rows)]
    for row, column in product(range(rows), range(columns)):
        if not between_columns[column][row]:
            cells[row][column] = cells[row][column - 1]
        elif not between_rows[row][column]:
            cells[row][column] = cells[row - 1][column]
    return cells


def _places(lines: Sequence[Rule], crossing: Sequence[Rule]) -> tuple[float, ...]:
    """Return the boundaries of cells: the rules, plus the ends of crossing rules on sides where the table is open."""
    inner = {rule.at for rule in lines}
    ends = min(rule.start for rule in crossing), max(rule.end for rule in crossing)
    first, last = min(inner) - 2 * _NEAR, max(inner) + 2 * _NEAR
    return tuple(sorted(inner.union(end for end in ends if not first <= end <= last)))


def _covered(at: float, rules: Sequence[Rule], places: Sequence[float]) -> list[bool]:
    """Return, for each interval between `places`, whether a rule at position `at` covers it."""
    here = [rule for rule in rules if abs(rule.at - at) <= _NEAR]
    return [any(rule.start <= (one + other) / 2 <= rule.end for rule in here) for one, other in pairwise(places)]
