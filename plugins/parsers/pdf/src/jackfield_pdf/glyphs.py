"""Access the characters of a page as PDFium reports them."""

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
"""Left, right, bottom and top, in points."""

_LONGEST_NAME = 64
_EDGES = Struct("4d")
_MATRIX = Struct("6f")


def turned(box: Box, turn: int) -> Box:
    """Rotate a box by `turn` right angles into the reading direction."""
    left, right, foot, top = box
    for _ in range(turn):
        left, right, foot, top = foot, top, -right, -left
    return left, right, foot, top


class Glyphs:
    """Reads the characters of a page by PDFium index, which must be less than `count`, while the text page is open.

    Boxes and heights refer to the reading direction of text rotated by `turn` right angles.

    For speed, PDFium writes all results into the same buffer. An instance may therefore be used by only one thread at a
    time, which applies to PDFium in general.
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
        """Return the indexes of the characters in the text. Glyphs without a character are left out."""
        index_of = function("FPDFText_GetTextIndexFromCharIndex")
        return [place for place in range(self.count) if index_of(self._page, place) >= 0]

    def box(self, place: int, turn: int) -> Box:
        """Return the bounding box of a character."""
        self._get_box(self._page, place, self._left, self._right, self._foot, self._top)
        box: Box = _EDGES.unpack(self._edges)
        return turned(box, turn) if turn else box

    def boxes(self, places: Sequence[int], turn: int) -> list[Box]:
        """Return bounding boxes that cover a run of characters. Most words have a single box."""
        page, get_rect = self._page, self._get_rect
        left, right, foot, top = self._left, self._right, self._foot, self._top
        boxes: list[Box] = [
            _EDGES.unpack(self._edges)
            for index in range(self._count_rects(page, places[0], places[-1] - places[0] + 1))
            if get_rect(page, index, left, top, right, foot)
        ]
        return [turned(box, turn) for box in boxes] if turn else boxes

    def base(self, place: int, turn: int) -> float:
        """Return the vertical position of a character's baseline. Its box starts lower if it has a descender."""
        self._get_origin(self._page, place, self._left, self._foot)
        x, _, y, _ = _EDGES.unpack(self._edges)
        return turned((x, x, y, y), turn)[2]

    def size(self, place: int) -> tuple[float, int]:
        """Return the visible type size and the rotation in right angles.

        The size includes the text matrix, because some programs set all text at size 1 and scale it.
        """
        size = abs(float(self._get_size(self._page, place)))
        if not self._get_matrix(self._page, place, self._matrix):
            return size, 0
        a, b, c, d, *_ = _MATRIX.unpack(self._matrix)
        size *= math.hypot(c, d)
        if not math.isfinite(size):
            return size, 0
        return size, round(2 * math.atan2(b, a) / math.pi) % 4 if b else 0

    def font(self, place: int) -> bytes:
        """Return the font name, or b'' if it is unknown or overlong."""
        length = self._get_font(self._page, place, self._name, _LONGEST_NAME, None)
        return self._name.value if 0 < length <= _LONGEST_NAME else b""
