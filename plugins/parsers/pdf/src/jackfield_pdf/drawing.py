"""Render pages as images, and mark the lines of a passage."""

from __future__ import annotations

import ctypes
import struct
import unicodedata
import zlib
from collections.abc import Sequence
from contextlib import closing
from difflib import SequenceMatcher
from typing import Any, TypeAlias

from jackfield.errors import DocParserError
from jackfield.retrieval import PageImage
from jackfield_pdf.pages import PDFIUM

Box: TypeAlias = tuple[float, float, float, float]
"""Left, top, right and bottom as fractions of the page size."""

_WIDTH, _MOST_HEIGHT = 1200, 4000
_MOST_PIXELS = 2_000_000
_PAGES_AHEAD = 2  # a passage may begin at the end of its page
_MOST_CHARS = 20_000  # of a page or a passage that are compared
_LEAST_RUN = 16  # shorter runs of equal letters occur in any text
_MOST_RUNS = 16
_MOST_BOXES = 400


def draw_page(document: Any, number: int, passage: str, source: str) -> PageImage:
    """Render page `number`, or one of the next two pages if it shows more of the passage.

    Raises:
        DocParserError: The page does not exist or is damaged.
    """
    import pypdfium2

    wanted = _Letters(passage[:_MOST_CHARS])
    with PDFIUM:
        count = len(document)
        if not 1 <= number <= count:
            raise DocParserError(f"{source} has no page {number}: the page count is {count}")
        try:
            best, ranges, size = number, list[range](), 0
            for candidate in range(number, min(number + _PAGES_AHEAD, count) + 1) if wanted.text else ():
                matches = _find(document, candidate, wanted)
                chars = sum(map(len, matches))
                if chars > size:
                    best, ranges, size = candidate, matches, chars
                if size >= 0.9 * len(wanted.text):
                    break
            with closing(document[best - 1]) as page:
                return _draw(page, best, ranges)
        except pypdfium2.PdfiumError as error:
            raise DocParserError(f"page {number} of {source} is corrupted and cannot be rendered") from error


def encode_png(bitmap: Any) -> bytes:
    """Encode an RGB bitmap as PNG, row by row because PDFium pads rows."""
    pixels, size = memoryview(bitmap.buffer).cast("B"), 3 * bitmap.width
    rows = b"".join(
        b"\0" + bytes(pixels[row * bitmap.stride : row * bitmap.stride + size]) for row in range(bitmap.height)
    )
    head = struct.pack(">IIBBBBB", bitmap.width, bitmap.height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


class _Letters:
    """The normalised letters and digits of a text, with their positions in it."""

    def __init__(self, text: str) -> None:
        letters: list[str] = []
        self.positions: list[int] = []
        for position, char in enumerate(text):
            for letter in unicodedata.normalize("NFKC", char).casefold():
                if letter.isalnum():
                    letters.append(letter)
                    self.positions.append(position)
        self.text = "".join(letters)

    def range_of(self, start: int, size: int) -> range:
        """Return the range of the text that corresponds to a range of letters."""
        return range(self.positions[start], self.positions[start + size - 1] + 1)


def _find(document: Any, number: int, wanted: _Letters) -> list[range]:
    """Return the ranges of characters on a page that match a passage, either as a whole or in its longest parts."""
    with closing(document[number - 1]) as page, closing(page.get_textpage()) as text_page:
        shown = _Letters(_text_of(text_page))
    start = shown.text.find(wanted.text)
    if start >= 0:
        return [shown.range_of(start, len(wanted.text))]
    return [shown.range_of(*run) for run in _runs(shown.text, wanted.text)]


def _runs(shown: str, wanted: str) -> list[tuple[int, int]]:
    """Return the positions and lengths in `shown` of the longest parts of `wanted`, regardless of their order."""
    matcher = SequenceMatcher(None, shown, wanted, autojunk=False)
    runs, gaps = list[tuple[int, int]](), [(0, len(wanted))]
    least = min(_LEAST_RUN, len(wanted))
    while gaps and len(runs) < _MOST_RUNS:
        begin, end = gaps.pop(0)
        match = matcher.find_longest_match(0, len(shown), begin, end)
        if match.size >= least:
            runs.append((match.a, match.size))
            around = ((begin, match.b), (match.b + match.size, end))
            gaps += [gap for gap in around if gap[1] - gap[0] >= least]
    return sorted(runs)


def _text_of(text_page: Any) -> str:
    """Return the characters of a page, with exactly one per PDFium index."""
    import pypdfium2.raw as pdfium

    count = min(text_page.count_chars(), _MOST_CHARS)
    return "".join(chr(pdfium.FPDFText_GetUnicode(text_page, index) % 0x110000) for index in range(count))


def _draw(page: Any, number: int, ranges: Sequence[range]) -> PageImage:
    width, height = page.get_size()
    scale = min(_WIDTH / max(width, 1), _MOST_HEIGHT / max(height, 1), (_MOST_PIXELS / max(width * height, 1)) ** 0.5)
    with closing(page.render(scale=scale, rev_byteorder=True, maybe_alpha=False, prefer_bgrx=False)) as bitmap:
        boxes = _boxes(page, ranges, bitmap.width, bitmap.height)
        with closing(page.get_textpage()) as text_page:
            has_text = text_page.count_chars() > 0
        return PageImage(number, encode_png(bitmap), bitmap.width, bitmap.height, tuple(boxes), has_text)


def _boxes(page: Any, ranges: Sequence[range], width: int, height: int) -> list[Box]:
    """Return a bounding box for each line of the characters in the ranges."""
    boxes: list[Box] = []
    is_turned = page.get_rotation() in (90, 270)
    with closing(page.get_textpage()) as text_page:
        for index in (index for one in ranges for index in one):
            left, bottom, right, top = text_page.get_charbox(index, loose=True)
            if left >= right or bottom >= top:
                continue  # a line break
            one, other = _on_image(page, left, top, width, height), _on_image(page, right, bottom, width, height)
            box = (min(one[0], other[0]), min(one[1], other[1]), max(one[0], other[0]), max(one[1], other[1]))
            if boxes and _is_same_line(boxes[-1], box, is_turned):
                boxes[-1] = _join(boxes[-1], box)
            elif len(boxes) < _MOST_BOXES:
                boxes.append(box)
    return [(*(round(min(1.0, max(0.0, edge)), 4) for edge in box),) for box in boxes]  # type: ignore[misc]


def _on_image(page: Any, x: float, y: float, width: int, height: int) -> tuple[float, float]:
    """Convert page coordinates to shares of the image. Pages may be rotated and cropped."""
    import pypdfium2.raw as pdfium

    across, down = ctypes.c_int(), ctypes.c_int()
    # Ten times as large, because the result is an integer.
    pdfium.FPDF_PageToDevice(page, 0, 0, 10 * width, 10 * height, 0, x, y, across, down)
    return across.value / (10 * width), down.value / (10 * height)


def _is_same_line(line: Box, char: Box, is_turned: bool) -> bool:
    """Return True if a character continues a line. On a rotated page, lines run vertically."""
    if is_turned:
        line, char = (line[1], line[0], line[3], line[2]), (char[1], char[0], char[3], char[2])
    shared = min(line[3], char[3]) - max(line[1], char[1])
    gap = max(char[0] - line[2], line[0] - char[2])
    return shared > 0.5 * min(line[3] - line[1], char[3] - char[1]) and gap < 0.05


def _join(one: Box, other: Box) -> Box:
    return min(one[0], other[0]), min(one[1], other[1]), max(one[2], other[2]), max(one[3], other[3])
