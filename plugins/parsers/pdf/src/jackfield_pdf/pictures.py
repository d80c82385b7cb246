"""Render the pictures of a PDF, so that a model can describe them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any, ClassVar

from pydantic import Field

from jackfield.retrieval import Document, Parser, Part
from jackfield_pdf.drawing import encode_png
from jackfield_pdf.pages import PDFIUM, open_document
from jackfield_pdf.parser import PdfConfig

_SMALLEST = 60.0  # points; smaller ones are logos or ornaments
_LONGEST_SIDE = 1200  # pixels
_POINTS_TO_PIXELS = 2.0


class PdfPicturesConfig(PdfConfig):
    """Settings for extracting pictures."""

    max_pictures: int = Field(default=10, ge=1, description="Maximum number of images per file")


class PdfPictures(Parser):
    """Renders the areas of pages that show a picture, including any text on top."""

    name: ClassVar[str] = "pdf pictures"
    config_class = PdfPicturesConfig
    config: PdfPicturesConfig

    def parse(self, data: bytes, *, source: str) -> Document:
        """Return a document without text that has the pictures as parts.

        Raises:
            DocParserError: The file cannot be opened.
        """
        password = self.config.password.get_secret_value() if self.config.password else None
        parts: list[Part] = []
        with open_document(data, source, password) as document:
            for number in range(1, min(len(document), self.config.max_pages) + 1):
                with PDFIUM:
                    parts += _draw(document, number, self.config.max_pictures - len(parts))
                if len(parts) >= self.config.max_pictures:
                    break
        return Document(source, (), content_hash="", parts=tuple(parts))


def _draw(document: Any, number: int, most: int) -> Iterator[Part]:
    import pypdfium2

    try:
        with closing(document[number - 1]) as page:
            boxes = [image.get_bounds() for image in page.get_objects([pypdfium2.raw.FPDF_PAGEOBJ_IMAGE])]
            for box in [box for box in dict.fromkeys(boxes) if _is_large(box)][:most]:
                yield Part(f"picture on page {number}.png", _png(page, box), page=number)
    except pypdfium2.PdfiumError:
        return  # the page is damaged, which the parser of its text reports


def _is_large(box: tuple[float, float, float, float]) -> bool:
    left, foot, right, top = box
    return right - left >= _SMALLEST and top - foot >= _SMALLEST


def _png(page: Any, box: tuple[float, float, float, float]) -> bytes:
    """Render an area of a page as PNG."""
    width, height = page.get_size()
    left, foot = max(box[0], 0.0), max(box[1], 0.0)
    right, top = min(box[2], width), min(box[3], height)
    longest = max(right - left, top - foot)
    scale = min(_POINTS_TO_PIXELS, _LONGEST_SIDE / longest) if longest > 0 else 1.0
    crop = (left, foot, max(width - right, 0.0), max(height - top, 0.0))
    with closing(
        page.render(scale=scale, crop=crop, rev_byteorder=True, maybe_alpha=False, prefer_bgrx=False)
    ) as bitmap:
        return encode_png(bitmap)
