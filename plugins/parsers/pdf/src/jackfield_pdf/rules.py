"""The straight lines that are drawn on a page, read with PDFium."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from typing import Any

_MOST_OBJECTS = 20_000  # on a page, those in forms included
_MOST_POINTS = 20_000  # of lines on a page
_DEEPEST = 3  # forms in forms
_STRAIGHT = 0.5  # points that a line may go sideways

Point = tuple[float, float]
Matrix = tuple[float, float, float, float, float, float]
_AS_IT_IS: Matrix = (1, 0, 0, 1, 0, 0)


def straight_lines(page: Any) -> list[tuple[Point, Point]]:
    """The lines along an axis that a page draws, edges of rectangles among them; [] where there are very many."""
    points = 0
    lines: list[tuple[Point, Point]] = []
    for path, matrix in _paths(page):
        for one, other in _edges(path, matrix):
            points += 1
            if points > _MOST_POINTS:
                return []
            if abs(one[0] - other[0]) <= _STRAIGHT or abs(one[1] - other[1]) <= _STRAIGHT:
                lines.append((one, other))
    return lines


def shows_a_picture(page: Any) -> bool:
    """Whether there is a picture on a page."""
    import pypdfium2.raw as pdfium

    return any(kind == pdfium.FPDF_PAGEOBJ_IMAGE for _, kind, _ in _objects(page))


def _paths(page: Any) -> Iterator[tuple[Any, Matrix]]:
    import pypdfium2.raw as pdfium

    return ((made, matrix) for made, kind, matrix in _objects(page) if kind == pdfium.FPDF_PAGEOBJ_PATH)


def _objects(page: Any) -> Iterator[tuple[Any, int, Matrix]]:
    """The objects of a page, those in forms included, each with its kind and the matrix of its form."""
    import pypdfium2.raw as pdfium

    form = pdfium.FPDF_PAGEOBJ_FORM
    seen = 0
    parents = [(page, pdfium.FPDFPage_CountObjects, pdfium.FPDFPage_GetObject, _AS_IT_IS, 0)]
    while parents:
        parent, count, get, matrix, depth = parents.pop()
        for place in range(min(count(parent), _MOST_OBJECTS)):
            seen += 1
            if seen > _MOST_OBJECTS:
                return
            child = get(parent, place)
            kind = pdfium.FPDFPageObj_GetType(child)
            if kind != form:
                yield child, kind, matrix
            elif depth < _DEEPEST:
                inner = _times(_matrix(child), matrix)
                parents.append((child, pdfium.FPDFFormObj_CountObjects, pdfium.FPDFFormObj_GetObject, inner, depth + 1))


def _edges(path: Any, matrix: Matrix) -> Iterator[tuple[Point, Point]]:
    import pypdfium2.raw as pdfium

    matrix = _times(_matrix(path), matrix)
    x, y = ctypes.c_float(), ctypes.c_float()
    begun = last = (0.0, 0.0)
    for place in range(min(pdfium.FPDFPath_CountSegments(path), _MOST_POINTS)):
        segment = pdfium.FPDFPath_GetPathSegment(path, place)
        pdfium.FPDFPathSegment_GetPoint(segment, x, y)
        point = _moved((x.value, y.value), matrix)
        kind = pdfium.FPDFPathSegment_GetType(segment)
        if kind == pdfium.FPDF_SEGMENT_MOVETO:
            begun = point
        elif kind == pdfium.FPDF_SEGMENT_LINETO and _is_finite(last, point):
            yield last, point
        if pdfium.FPDFPathSegment_GetClose(segment) and _is_finite(begun, point):
            yield point, begun
        last = point


def _matrix(made: Any) -> Matrix:
    import pypdfium2.raw as pdfium

    found = pdfium.FS_MATRIX()
    if not pdfium.FPDFPageObj_GetMatrix(made, found):
        return _AS_IT_IS
    return (found.a, found.b, found.c, found.d, found.e, found.f)


def _times(first: Matrix, then: Matrix) -> Matrix:
    a, b, c, d, e, f = first
    return (*_turned(a, b, then), *_turned(c, d, then), *_moved((e, f), then))


def _turned(x: float, y: float, matrix: Matrix) -> Point:
    return x * matrix[0] + y * matrix[2], x * matrix[1] + y * matrix[3]


def _moved(point: Point, matrix: Matrix) -> Point:
    x, y = _turned(*point, matrix)
    return x + matrix[4], y + matrix[5]


def _is_finite(*points: Point) -> bool:
    return all(math.isfinite(place) for point in points for place in point)
