"""The straight lines that are drawn on a page, read with PDFium."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from itertools import chain, islice, starmap
from typing import Any

_MOST_OBJECTS = 20_000  # on a page, those in forms included
_MOST_POINTS = 20_000  # of lines on a page
_DEEPEST = 3  # forms in forms
_STRAIGHT = 0.5  # points that a line may go sideways

Point = tuple[float, float]
Edge = tuple[Point, Point]
Matrix = tuple[float, float, float, float, float, float]
_AS_IT_IS: Matrix = (1, 0, 0, 1, 0, 0)


def straight_lines(page: Any) -> list[Edge]:
    """Return the lines that a page draws along an axis, with edges of rectangles; [] if there are very many."""
    import pypdfium2.raw as pdfium

    paths = _objects(page, pdfium.FPDF_PAGEOBJ_PATH)
    edges = list(islice(chain.from_iterable(starmap(_edges, paths)), _MOST_POINTS + 1))
    return [] if len(edges) > _MOST_POINTS else list(filter(_is_straight, edges))


def shows_a_picture(page: Any) -> bool:
    """Return True if a page has a picture."""
    import pypdfium2.raw as pdfium

    return any(True for _ in _objects(page, pdfium.FPDF_PAGEOBJ_IMAGE))


def _objects(page: Any, kind: int) -> Iterator[tuple[Any, Matrix]]:
    """Yield the objects of a kind on a page and in its forms, each with the matrix of its form."""
    objects = islice(_all_objects(page), _MOST_OBJECTS)
    return ((made, matrix) for made, of_kind, matrix in objects if of_kind == kind)


def _all_objects(page: Any) -> Iterator[tuple[Any, int, Matrix]]:
    """Yield all objects, also the forms."""
    import pypdfium2.raw as pdfium

    parents = [(page.raw, pdfium.FPDFPage_CountObjects, pdfium.FPDFPage_GetObject, _AS_IT_IS, 0)]
    kind_of = pdfium.FPDFPageObj_GetType
    while parents:
        parent, count, get, matrix, depth = parents.pop()
        for place in range(min(count(parent), _MOST_OBJECTS)):
            child = get(parent, place)
            kind = kind_of(child)
            yield child, kind, matrix
            if kind == pdfium.FPDF_PAGEOBJ_FORM and depth < _DEEPEST:
                inner = _times(_matrix(child), matrix)
                parents.append((child, pdfium.FPDFFormObj_CountObjects, pdfium.FPDFFormObj_GetObject, inner, depth + 1))


def _edges(path: Any, matrix: Matrix) -> Iterator[Edge]:
    import pypdfium2.raw as pdfium

    matrix = _times(_matrix(path), matrix)
    x, y = ctypes.c_float(), ctypes.c_float()
    begun = last = (0.0, 0.0)
    for place in range(min(pdfium.FPDFPath_CountSegments(path), _MOST_POINTS)):
        segment = pdfium.FPDFPath_GetPathSegment(path, place)
        pdfium.FPDFPathSegment_GetPoint(segment, x, y)
        point = _moved(x.value, y.value, matrix)
        kind = pdfium.FPDFPathSegment_GetType(segment)
        if kind == pdfium.FPDF_SEGMENT_MOVETO:
            begun = point
        elif kind == pdfium.FPDF_SEGMENT_LINETO:
            yield last, point
        if pdfium.FPDFPathSegment_GetClose(segment):
            yield point, begun
        last = point


def _matrix(made: Any) -> Matrix:
    import pypdfium2.raw as pdfium

    found = pdfium.FS_MATRIX()
    if not pdfium.FPDFPageObj_GetMatrix(made, found):
        return _AS_IT_IS
    return (found.a, found.b, found.c, found.d, found.e, found.f)


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
