"""The lines of a PDF and their positions, read with PDFium."""

from __future__ import annotations

import ctypes
import math
import re
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from jackfield.errors import DocParserError

HYPHEN = "\ufffe"
"""What PDFium writes for a hyphen at the end of a line; it joins that line with the next."""

# PDFium must not be called by two threads at once, whichever documents they read: the lock is the process's, as is
# the library. It is taken for one page at a time, so that a long document does not keep short ones waiting.
_PDFIUM = threading.Lock()
_CONTROL = re.compile(r"\r(?!\n)|(?<!\r)\n|[\x00-\x09\x0b\x0c\x0e-\x1f\x7f]")  # but line ends
_PASSWORD_ERROR = 4  # FPDF_ERR_PASSWORD
_SECURITY_ERROR = 5  # FPDF_ERR_SECURITY
_TABLE_GAP = 1.0  # in sizes of the type; spaces between words, also of justified text, are narrower


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits beyond which a file is refused."""

    pages: int
    chars: int


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text, or several that hyphens join. Lengths are in points, upwards from the foot of the page.

    Attributes:
        text: Its text; `HYPHEN` where a hyphen ended a line.
        left, right: Where the first line begins and the last ends.
        first, last: The base of the first and of the last line.
        size: The type size; 0 if the line's position is unknown.
        is_row: Whether wide gaps divide it, as in a table.
    """

    text: str
    left: float = 0.0
    right: float = 0.0
    first: float = 0.0
    last: float = 0.0
    size: float = 0.0
    is_row: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """A page, numbered from 1, with its lines in the file's order."""

    number: int
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """The content of a file. `count` is the number of its pages, `unreadable` are those that are not in `pages`."""

    title: str
    count: int
    pages: tuple[Page, ...]
    unreadable: tuple[int, ...]


def read_pages(data: bytes, *, source: str, password: str | None, limits: Limits) -> Reading:
    """Read the lines of all pages.

    Raises:
        DocParserError: The file cannot be opened, or exceeds the limits; the message names `source`.
    """
    with _opened(data, source, password) as document:
        with _PDFIUM:
            count = len(document)
            title = str(document.get_metadata_dict(skip_empty=True).get("Title", "")).strip()
        if count > limits.pages:
            raise DocParserError(f"{source} has {count} pages: split it, or raise max_pages ({limits.pages})")
        pages: list[Page] = []
        unreadable: list[int] = []
        chars = 0
        for number in range(1, count + 1):
            lines = _lines_of_page(document, number)
            if lines is None:
                unreadable.append(number)
                continue
            chars += sum(len(line.text) for line in lines)
            if chars > limits.chars:
                raise DocParserError(f"{source} has more than {limits.chars} characters: split it, or raise max_chars")
            pages.append(Page(number, tuple(lines)))
    return Reading(title, count, tuple(pages), tuple(unreadable))


@contextmanager
def _opened(data: bytes, source: str, password: str | None) -> Iterator[Any]:
    import pypdfium2

    try:
        with _PDFIUM:
            document = pypdfium2.PdfDocument(data, password=password)
    except pypdfium2.PdfiumError as error:
        raise DocParserError(_why_not(error, source, password)) from error
    try:
        yield document
    finally:
        # Left to the garbage collector, it would be closed by any thread at any time, past the lock.
        with _PDFIUM:
            document.close()


def _why_not(error: Exception, source: str, password: str | None) -> str:
    code = getattr(error, "err_code", None)
    if code == _PASSWORD_ERROR and password is None:
        return f"{source} is encrypted: a password is needed (the setting `password` of the parser pdf)"
    if code == _PASSWORD_ERROR:
        return f"{source} is encrypted with another password than the one given"
    if code == _SECURITY_ERROR:
        return f"{source} is encrypted in a way that cannot be read: save it without protection"
    return f"{source} is damaged and cannot be opened as a PDF: copy or download it again"


def _lines_of_page(document: Any, number: int) -> list[Line] | None:
    """The lines of a page, or None if it is damaged."""
    import pypdfium2

    with _PDFIUM:
        try:
            with closing(document[number - 1]) as page, closing(page.get_textpage()) as text_page:
                return list(_lines(text_page))
        except pypdfium2.PdfiumError:
            return None


def _lines(text_page: Any) -> Iterator[Line]:
    text = _CONTROL.sub(" ", text_page.get_text_range())
    # PDFium counts characters; what it adds or leaves out would shift every place behind it.
    placed = len(text) == text_page.count_chars()
    start = 0
    for line in text.split("\r\n"):
        if line.strip():
            yield _placed(text_page, line, start) if placed else Line(line)
        start += len(line) + 2


def _placed(text_page: object, text: str, start: int) -> Line:
    import pypdfium2.raw as pdfium

    left, top, right, bottom = (ctypes.c_double() for _ in range(4))
    boxes = [
        (left.value, right.value, bottom.value)
        for index in range(pdfium.FPDFText_CountRects(text_page, start, len(text)))
        if pdfium.FPDFText_GetRect(text_page, index, left, top, right, bottom)
    ]
    if not boxes:
        return Line(text)
    size = _size(text_page, start + len(text) // 2)  # in the middle: a bullet may be of another size
    return Line(
        text,
        left=boxes[0][0],
        right=boxes[-1][1],
        first=boxes[0][2],
        last=boxes[-1][2],
        size=size,
        is_row=len(boxes) > 1 and HYPHEN not in text and _is_row(boxes, size),
    )


def _size(text_page: object, index: int) -> float:
    """The size of the type as it is seen: some writers set everything at size 1 and scale it."""
    import pypdfium2.raw as pdfium

    matrix = pdfium.FS_MATRIX()
    size = float(pdfium.FPDFText_GetFontSize(text_page, index))
    if pdfium.FPDFText_GetMatrix(text_page, index, matrix):
        size *= math.hypot(matrix.c, matrix.d)
    return abs(size)


def _is_row(boxes: list[tuple[float, float, float]], size: float) -> bool:
    wide = [before for before, after in pairwise(boxes) if after[0] - before[1] > _TABLE_GAP * size]
    # A bullet or a number stands apart from its item, too.
    return bool(wide) and not (len(wide) == 1 and wide[0] == boxes[0] and boxes[0][1] - boxes[0][0] < 2 * size)
