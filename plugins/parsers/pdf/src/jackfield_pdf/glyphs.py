"""The characters of a page, as PDFium reports them."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pypdfium2 import PdfTextPage

Box = tuple[float, float, float, float]
"""Left, right, foot and top, in points."""

_LONGEST_NAME = 64


def turned(box: Box, turn: int) -> Box:
    """Return a box on a page that is turned by so many right angles."""
    left, right, foot, top = box
    for _ in range(turn):
        left, right, foot, top = foot, top, -right, -left
    return left, right, foot, top


class Glyphs:
    """Reads the characters of a page, by their place in PDFium's count, while its text page is open.

    Boxes and heights are those in the reading direction of text that is turned by `turn` right angles.

    Every answer of PDFium goes into the same memory: new memory for each takes longer than the answer. So only one
    thread may use it at a time, as for all of PDFium. Places must be less than `count`.
    """

    def __init__(self, text_page: PdfTextPage) -> None:
        import pypdfium2.raw as pdfium

        self.text = text_page.get_text_range()
        self.count = text_page.count_chars()
        self._pdfium = pdfium
        self._page = text_page.raw
        self._edges = tuple(ctypes.c_double() for _ in range(4))
        self._matrix = pdfium.FS_MATRIX()
        self._name = ctypes.create_string_buffer(_LONGEST_NAME)
        self._flags = ctypes.c_int()

    def shown(self) -> list[int]:
        """Return the places of the characters that are in the text: a glyph without a letter is not."""
        index_of = self._pdfium.FPDFText_GetTextIndexFromCharIndex
        return [place for place in range(self.count) if index_of(self._page, place) >= 0]

    def box(self, place: int, turn: int) -> Box:
        """Return the box around a character."""
        left, right, foot, top = self._edges
        self._pdfium.FPDFText_GetCharBox(self._page, place, left, right, foot, top)
        box = left.value, right.value, foot.value, top.value
        return turned(box, turn) if turn else box

    def boxes(self, places: Sequence[int], turn: int) -> list[Box]:
        """Return the boxes around characters that follow each other; most words are in one box."""
        left, right, foot, top = self._edges
        count = self._pdfium.FPDFText_CountRects(self._page, places[0], places[-1] - places[0] + 1)
        get_rect = self._pdfium.FPDFText_GetRect
        boxes = [
            (left.value, right.value, foot.value, top.value)
            for index in range(count)
            if get_rect(self._page, index, left, top, right, foot)
        ]
        return [turned(box, turn) for box in boxes] if turn else boxes

    def base(self, place: int, turn: int) -> float:
        """Return the height of a character's baseline; its box begins lower if it has a descender."""
        x, y, *_ = self._edges
        self._pdfium.FPDFText_GetCharOrigin(self._page, place, x, y)
        return turned((x.value, x.value, y.value, y.value), turn)[2]

    def size(self, place: int) -> tuple[float, int]:
        """Return the visible size of the type and its rotation: some programs set everything at size 1 and scale it."""
        matrix = self._matrix
        size = abs(float(self._pdfium.FPDFText_GetFontSize(self._page, place)))
        if not self._pdfium.FPDFText_GetMatrix(self._page, place, matrix):
            return size, 0
        size *= math.hypot(matrix.c, matrix.d)
        if not math.isfinite(size):
            return size, 0
        return size, round(2 * math.atan2(matrix.b, matrix.a) / math.pi) % 4 if matrix.b else 0

    def font(self, place: int) -> bytes:
        """Return the name of the font; empty if it is unknown or very long."""
        length = self._pdfium.FPDFText_GetFontInfo(self._page, place, self._name, _LONGEST_NAME, self._flags)
        return self._name.value if 0 < length <= _LONGEST_NAME else b""
