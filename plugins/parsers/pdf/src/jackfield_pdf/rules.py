"""Read the straight lines drawn on a page with PDFium."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from itertools import chain, islice
from struct import Struct
from typing import Any

from jackfield_pdf.calls import address, function

_MOST_OBJECTS = 20_000  # on a page, including those in form objects
_MOST_POINTS = 20_000  # of lines on a page
_DEEPEST = 3  # nesting depth of form objects
_STRAIGHT = 0.5  # points by which a line may deviate sideways

Point = tuple[float, float]
Edge = tuple[Point, Point]
Matrix = tuple[float, float, float, float, float, float]
_MATRIX, _POINT = Struct("6f"), Struct("2f")
_AS_IT_IS: Matrix = (1, 0, 0, 1, 0, 0)


def straight_lines(page: Any) -> list[Edge]:
    """Return the horizontal and vertical lines on a page, including edges of rectangles, or [] for too many."""
    import pypdfium2.raw as pdfium

    paths = _Paths()
    edges = (paths.edges(path, matrix) for path, matrix in _objects(page, pdfium.FPDF_PAGEOBJ_PATH))
    first = list(islice(chain.from_iterable(edges), _MOST_POINTS + 1))
    return [] if len(first) > _MOST_POINTS else list(filter(_is_straight, first))


def shows_a_picture(page: Any) -> bool:
    """Return True if the page contains a picture."""
    import pypdfium2.raw as pdfium

    return any(True for _ in _objects(page, pdfium.FPDF_PAGEOBJ_IMAGE))


def _objects(page: Any, wanted: int) -> Iterator[tuple[int, Matrix]]:
    """Yield the objects of a type on a page and in its form objects, each with the matrix of its form."""
    import pypdfium2.raw as pdfium

    kind_of = function("FPDFPageObj_GetType")
    on_page = function("FPDFPage_CountObjects"), function("FPDFPage_GetObject")
    in_form = function("FPDFFormObj_CountObjects"), function("FPDFFormObj_GetObject")
    parents = [(address(page.raw), on_page, _AS_IT_IS, 0)]
    rest = _MOST_OBJECTS
    while parents:
        parent, (count, get), matrix, depth = parents.pop()
        children = min(count(parent), rest)
        rest -= children
        for place in range(children):
            child = get(parent, place)
            kind = kind_of(child)
            if kind == wanted:
                yield child, matrix
            elif kind == pdfium.FPDF_PAGEOBJ_FORM and depth < _DEEPEST:
                parents.append((child, in_form, _times(_Paths().matrix(child), matrix), depth + 1))


class _Paths:
    """Reads paths. PDFium writes all results into the same buffer."""

    def __init__(self) -> None:
        self._count = function("FPDFPath_CountSegments")
        self._get_segment = function("FPDFPath_GetPathSegment")
        self._get_point = function("FPDFPathSegment_GetPoint")
        self._kind_of = function("FPDFPathSegment_GetType")
        self._is_closed = function("FPDFPathSegment_GetClose")
        self._get_matrix = function("FPDFPageObj_GetMatrix")
        self._numbers = ctypes.create_string_buffer(_MATRIX.size)
        self._first = ctypes.addressof(self._numbers)
        self._second = self._first + _POINT.size // 2

    def edges(self, path: int, matrix: Matrix) -> Iterator[Edge]:
        """Yield the edges of a path, transformed by the matrix of its form."""
        import pypdfium2.raw as pdfium

        matrix = _times(self.matrix(path), matrix)
        begun = last = (0.0, 0.0)
        for place in range(min(self._count(path), _MOST_POINTS)):
            segment = self._get_segment(path, place)
            self._get_point(segment, self._first, self._second)
            x, y = _POINT.unpack_from(self._numbers)
            point = _moved(x, y, matrix)
            kind = self._kind_of(segment)
            if kind == pdfium.FPDF_SEGMENT_MOVETO:
                begun = point
            elif kind == pdfium.FPDF_SEGMENT_LINETO:
                yield last, point
            if self._is_closed(segment):
                yield point, begun
            last = point

    def matrix(self, made: int) -> Matrix:
        """Return the transformation matrix of an object."""
        is_known = self._get_matrix(made, self._first)
        return _MATRIX.unpack(self._numbers) if is_known else _AS_IT_IS


def _times(first: Matrix, then: Matrix) -> Matrix:
    if then == _AS_IT_IS:
        return first
    a, b, c, d, e, f = first
    return (*_turned(a, b, then), *_turned(c, d, then), *_moved(e, f, then))


def _turned(x: float, y: float, matrix: Matrix) -> Point:
    return x * matrix[0] + y * matrix[2], x * matrix[1] + y * matrix[3]


def _moved(x: float, y: float, matrix: Matrix) -> Point:
    a, b, c, d, e, f = matrix
    return x * a + y * c + e, x * b + y * d + f


def _is_straight(edge: Edge) -> bool:
    (x, y), (other_x, other_y) = edge
    is_along_an_axis = abs(x - other_x) <= _STRAIGHT or abs(y - other_y) <= _STRAIGHT
    return is_along_an_axis and math.isfinite(x + y + other_x + other_y)
