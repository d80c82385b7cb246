"""Read the pages of a PDF with PDFium."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from jackfield.errors import DocParserError
from jackfield_pdf.glyphs import Glyphs
from jackfield_pdf.rules import shows_a_picture
from jackfield_pdf.scans import copy_pages
from jackfield_pdf.typeset import Line, lines_of

# PDFium must not be called by two threads at once, even for different documents, so the lock belongs to the process. It
# is taken for one page at a time, so that a long document does not keep short ones waiting.
PDFIUM = threading.Lock()
_PASSWORD_ERROR = 4  # FPDF_ERR_PASSWORD
_SECURITY_ERROR = 5  # FPDF_ERR_SECURITY
_MOST_ENTRIES = 20_000  # of an outline


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits beyond which a file is rejected."""

    pages: int
    chars: int


@dataclass(frozen=True, slots=True)
class Page:
    """A page, with its lines in file order.

    Attributes:
        number: The page number, counted from 1.
        lines: The lines of text.
        is_picture: True if the page has a picture and no text.
    """

    number: int
    lines: tuple[Line, ...]
    is_picture: bool = False

    @property
    def chars(self) -> int:
        """The number of characters on the page."""
        return sum(len(line.text) for line in self.lines)


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry in the document outline. Levels count from 1."""

    title: str
    level: int
    page: int


@dataclass(frozen=True, slots=True)
class Reading:
    """The content of a file.

    Attributes:
        title: The title in the metadata, or ''.
        count: The number of pages, readable or not.
        pages: The readable pages.
        unreadable: The numbers of the damaged pages.
        outline: The entries of the outline.
        copies: Single-page PDFs of the scanned pages, by page number.
    """

    title: str
    count: int
    pages: tuple[Page, ...]
    unreadable: tuple[int, ...]
    outline: tuple[Entry, ...]
    copies: Mapping[int, bytes] = field(default_factory=dict)

    @property
    def without_text(self) -> list[int]:
        """The numbers of the pages without text."""
        return [page.number for page in self.pages if not page.lines]

    @property
    def scanned(self) -> list[int]:
        """The numbers of the pages that have a picture and no text."""
        return [page.number for page in self.pages if page.is_picture]


def read_pages(data: bytes, *, source: str, password: str | None, limits: Limits) -> Reading:
    """Read the lines of all pages.

    Raises:
        DocParserError: The file cannot be opened or exceeds the limits. The message names `source`.
    """
    with open_document(data, source, password) as document:
        with PDFIUM:
            count = len(document)
            title = _stated(lambda: document.get_metadata_value("Title"))
            outline = tuple(_outline(document))
        if count > limits.pages:
            raise DocParserError(f"{source} has {count} pages: split it, or increase max_pages ({limits.pages})")
        numbers = range(1, count + 1)
        pages = list(_short_enough((_page(document, number) for number in numbers), source, limits.chars))
        scanned = [page.number for page in pages if page and page.is_picture]
        with PDFIUM:
            copies = copy_pages(document, scanned, len(data)) if scanned else {}
    unreadable = (number for number, page in zip(numbers, pages, strict=True) if page is None)
    return Reading(title, count, tuple(filter(None, pages)), tuple(unreadable), outline, copies)


def _short_enough(pages: Iterable[Page | None], source: str, most_chars: int) -> Iterator[Page | None]:
    chars = 0
    for page in pages:
        chars += page.chars if page else 0
        if chars > most_chars:
            raise DocParserError(f"{source} has more than {most_chars} characters: split it, or increase max_chars")
        yield page


def _outline(document: Any) -> Iterator[Entry]:
    """Yield the outline entries that point to a page. A circular outline ends where it would repeat."""
    for entry in islice(document.get_toc(), _MOST_ENTRIES):
        title, page = _stated(entry.get_title), _page_of(entry)
        if title and page > 0:
            yield Entry(title, entry.level + 1, page)


def _page_of(entry: Any) -> int:
    """Return the number of the page that an outline entry points to, or 0 if there is none."""
    target = entry.get_dest()
    place = None if target is None else target.get_index()
    return 0 if place is None else int(place) + 1


def _stated(get: Callable[[], str]) -> str:
    """Return a text from the file's metadata on a single line, or '' if its encoding is broken."""
    try:
        return " ".join(get().split())
    except UnicodeDecodeError:
        return ""


@contextmanager
def open_document(data: bytes, source: str, password: str | None) -> Iterator[Any]:
    """Open a file for the duration of a `with` block.

    Raises:
        DocParserError: The file cannot be opened. The message names `source`.
    """
    import pypdfium2

    try:
        with PDFIUM:
            document = pypdfium2.PdfDocument(data, password=password)
    except pypdfium2.PdfiumError as error:
        raise DocParserError(_why_not(error, source, password)) from error
    try:
        yield document
    finally:
        # The garbage collector could close it in any thread at any time, without the lock.
        with PDFIUM:
            document.close()


_SETTING = 'the `password` setting of the pdf parser, for example under [settings."parser.pdf"] in config.toml'


def _why_not(error: Exception, source: str, password: str | None) -> str:
    code = getattr(error, "err_code", None)
    if code == _PASSWORD_ERROR and password is None:
        return f"{source} is encrypted: a password is required ({_SETTING})"
    if code == _PASSWORD_ERROR:
        return f"{source} is encrypted, and the password is incorrect ({_SETTING})"
    if code == _SECURITY_ERROR:
        return f"{source} uses an unsupported encryption: save it without protection"
    return f"{source} is corrupted and cannot be opened as a PDF: copy or download it again"


def _page(document: Any, number: int) -> Page | None:
    """Read a page, or return None if it is damaged."""
    import pypdfium2

    with PDFIUM:
        try:
            with closing(document[number - 1]) as page, closing(page.get_textpage()) as text_page:
                lines = tuple(lines_of(page, Glyphs(text_page)))
                return Page(number, lines, is_picture=not lines and shows_a_picture(page))
        except pypdfium2.PdfiumError:
            return None
