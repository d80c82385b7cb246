"""The characters of a page, as PDFium reports them."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from struct import Struct
from typing import TYPE_CHECKING

from jackfield_pdf.calls import address, function

if TYPE_CHECKING:
    from pypdfium2 import PdfTextPage

Box = tuple[float, float, float, float]
"""Left, right, foot and top, in points."""

_LONGEST_NAME = 64
_EDGES = Struct("4d")
_MATRIX = Struct("6f")


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
        self.text = text_page.get_text_range()
        self.count = text_page.count_chars()
        self._page = address(text_page.raw)
        self._edges = ctypes.create_string_buffer(_EDGES.size)
        first = ctypes.addressof(self._edges)
        self._left, self._right, self._foot, self._top = (first + 8 * edge for edge in range(4))
        self._matrix = ctypes.create_string_buffer(_MATRIX.size)
        self._name = ctypes.create_string_buffer(_LONGEST_NAME)
        self._get_box = function("FPDFText_GetCharBox")
        self._count_rects = function("FPDFText_CountRects")
        self._get_rect = function("FPDFText_GetRect")
        self._get_origin = function("FPDFText_GetCharOrigin")
        self._get_size = function("FPDFText_GetFontSize")
        self._get_matrix = function("FPDFText_GetMatrix")
        self._get_font = function("FPDFText_GetFontInfo")

    def shown(self) -> list[int]:
        """Return the places of the characters that are in the text: a glyph without a letter is not."""
        index_of = function("FPDFText_GetTextIndexFromCharIndex")
        return [place for place in range(self.count) if index_of(self._page, place) >= 0]

    def box(self, place: int, turn: int) -> Box:
        """Return the box around a character."""
        self._get_box(self._page, place, self._left, self._right, self._foot, self._top)
        box: Box = _EDGES.unpack(self._edges)
        return turned(box, turn) if turn else box

    def boxes(self, places: Sequence[int], turn: int) -> list[Box]:
        """Return the boxes around characters that follow each other; most words are in one box."""
        page, get_rect = self._page, self._get_rect
        left, right, foot, top = self._left, self._right, self._foot, self._top
        boxes: list[Box] = [
            _EDGES.unpack(self._edges)
            for index in range(self._count_rects(page, places[0], places[-1] - places[0] + 1))
            if get_rect(page, index, left, top, right, foot)
        ]
        return [turned(box, turn) for box in boxes] if turn else boxes

    def base(self, place: int, turn: int) -> float:
        """Return the height of a character's baseline; its box begins lower if it has a descender."""
        self._get_origin(self._page, place, self._left, self._foot)
        x, _, y, _ = _EDGES.unpack(self._edges)
        return turned((x, x, y, y), turn)[2]

    def size(self, place: int) -> tuple[float, int]:
        """Return the visible size of the type and its rotation: some programs set everything at size 1 and scale it."""
        size = abs(float(self._get_size(self._page, place)))
        if not self._get_matrix(self._page, place, self._matrix):
            return size, 0
        a, b, c, d, *_ = _MATRIX.unpack(self._matrix)
        size *= math.hypot(c, d)
        if not math.isfinite(size):
            return size, 0
        return size, round(2 * math.atan2(b, a) / math.pi) % 4 if b else 0

    def font(self, place: int) -> bytes:
        """Return the name of the font; empty if it is unknown or very long."""
        length = self._get_font(self._page, place, self._name, _LONGEST_NAME, None)
        return self._name.value if 0 < length <= _LONGEST_NAME else b""
