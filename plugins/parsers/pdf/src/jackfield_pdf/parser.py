"""Parse a PDF file into a document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field, SecretStr

from jackfield.config import Config
from jackfield.errors import DocParserError
from jackfield.retrieval import Block, Document, PageImage, Parser, Part
from jackfield_pdf.drawing import draw_page
from jackfield_pdf.headings import headings_of
from jackfield_pdf.pages import Limits, Reading, open_document, read_pages
from jackfield_pdf.paragraphs import blocks_of, in_ranges
from jackfield_pdf.running import without_running_lines
from jackfield_pdf.scans import SCAN

_HEADER_BYTES = 1024  # where readers look for `%PDF-`
_TRAILER_BYTES = 2048
_MOST_SHOWN = 20
_NO_TITLES = ("", "untitled", "untitled document", "(unspecified)", "(anonymous)", "unknown")


class PdfConfig(Config):
    """Settings for opening and reading a PDF."""

    password: SecretStr | None = None
    running_lines: bool = Field(default=False, description="Keep headers, footers and page numbers")
    max_pages: int = Field(default=10_000, ge=1, description="Files with more pages are rejected")
    max_chars: int = Field(default=50_000_000, ge=1, description="Files with more text are rejected")


class PdfParser(Parser):
    """Parses the text layer of PDF files page by page. Scanned pages become parts, for a parser with OCR.

    Keys in `metadata`:

    - `pages_without_text`: pages without text.
    - `scanned_pages`: pages without text that show a picture.
    - `unreadable_pages`: damaged pages, which are also listed for people in `unread`.
    - `running_lines`: headers and footers that were removed, with `#` in place of numbers.
    """

    name: ClassVar[str] = "pdf"
    config_class = PdfConfig
    config: PdfConfig

    def parse(self, data: bytes, *, source: str) -> Document:
        """Parse a PDF into headings, paragraphs, lists, tables and code.

        Raises:
            DocParserError: The file is empty, not a PDF, truncated, damaged, encrypted, too long, or has neither text
                nor pictures.
        """
        _check_ends(data, source)
        password = self.config.password.get_secret_value() if self.config.password else None
        limits = Limits(self.config.max_pages, self.config.max_chars)
        reading = read_pages(data, source=source, password=password, limits=limits)
        _check_text(reading, source)
        headings = headings_of(reading.pages, reading.outline)
        pages, running = list(reading.pages), list[str]()
        if not self.config.running_lines:
            pages, running = without_running_lines(pages, headings)
        blocks = tuple(blocks_of(pages, headings, reading.copies))
        return Document(
            source,
            blocks,
            content_hash="",
            title=_title(reading.title, blocks),
            metadata={
                "pages": reading.count,
                "pages_without_text": reading.without_text,
                "scanned_pages": reading.scanned,
                "running_lines": running[:_MOST_SHOWN],
                "unreadable_pages": list(reading.unreadable),
                "unread": [in_ranges(reading.unreadable)] if reading.unreadable else [],
            },
            parts=tuple(Part(SCAN, data, page=number) for number, data in reading.copies.items()),
        )

    def draw_page(self, data: bytes, *, page: int, passage: str, source: str) -> PageImage:
        """Render the page that shows a passage, at most 1,200 pixels wide and two million pixels in total.

        Raises:
            DocParserError: The file cannot be opened, or the page is missing or damaged.
        """
        password = self.config.password.get_secret_value() if self.config.password else None
        with open_document(data, source, password) as document:
            return draw_page(document, page, passage, source)


def _check_ends(data: bytes, source: str) -> None:
    if not data:
        raise DocParserError(f"{source} is empty")
    if b"%PDF-" not in data[:_HEADER_BYTES]:
        raise DocParserError(f"{source} is not a PDF: its extension may be wrong")
    # PDFium repairs a truncated file as well as it can, without reporting lost pages.
    if b"%%EOF" not in data[-_TRAILER_BYTES:]:
        raise DocParserError(f"{source} is truncated: copy or download it again")


def _check_text(reading: Reading, source: str) -> None:
    if not reading.pages:
        raise DocParserError(f"{source} is corrupted: none of its pages can be read")
    if len(reading.without_text) == len(reading.pages) and not reading.scanned:
        raise DocParserError(f"{source} has no text layer: every page is empty or an image")


def _title(stated: str, blocks: Sequence[Block]) -> str:
    """Return the title in the metadata, unless it is a generic placeholder, or else the first top-level heading."""
    if stated.casefold() not in _NO_TITLES:
        return stated
    return next((block.text for block in blocks if block.kind == "heading" and block.level == 1), "")
