"""Decode files into greyscale pictures of limited size."""

from __future__ import annotations

import io
import math
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jackfield.errors import DocParserError

if TYPE_CHECKING:
    from PIL.Image import Image

_POINTS_PER_INCH = 72
_FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "WEBP")
_DECODED_PIXELS = 60_000_000  # of one picture, before it is scaled down
_PDFIUM = threading.Lock()  # the library must not be called by two threads at once


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for pictures.

    Attributes:
        dpi: The resolution for rendering PDF pages, reduced if `max_pixels` requires it.
        max_pixels: The maximum number of pixels per picture.
    """

    dpi: int
    max_pixels: int


@dataclass(frozen=True, slots=True)
class Picture:
    """A greyscale picture and its resolution, which is 0 if unknown."""

    image: Image
    dpi: int


def pictures_of(data: bytes, source: str, limits: Limits) -> Iterator[Picture]:
    """Yield the pages of a file, decoding one at a time.

    Raises:
        DocParserError: The file is empty, damaged, too large or of another type.
    """
    if not data:
        raise DocParserError(f"{source} is empty")
    is_pdf = data.startswith(b"%PDF-")
    return _draw(data, source, limits) if is_pdf else _decode(data, source, limits)


def _draw(data: bytes, source: str, limits: Limits) -> Iterator[Picture]:
    """Render the pages of a PDF. The PDF parser passes scanned pages one by one, each as a PDF."""
    import pypdfium2

    number, count = 0, 1
    while number < count:
        try:
            with _PDFIUM, pypdfium2.PdfDocument(data) as document:
                count = len(document)
                page = document[number]
                width, height = page.get_size()
                fits = math.sqrt(limits.max_pixels / max(width * height, 1))
                scale = min(limits.dpi / _POINTS_PER_INCH, fits)
                image = page.render(scale=scale, grayscale=True).to_pil().convert("L")
        except (pypdfium2.PdfiumError, ValueError) as error:
            raise DocParserError(f"{source} is corrupted: the page cannot be rendered") from error
        yield Picture(image, round(scale * _POINTS_PER_INCH))
        number += 1


def _decode(data: bytes, source: str, limits: Limits) -> Iterator[Picture]:
    from PIL import Image, ImageOps, ImageSequence

    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
            for frame in ImageSequence.Iterator(image):
                _check_size(frame, source)
                dpi = _stated_dpi(frame)
                grey = _on_white(ImageOps.exif_transpose(frame))
                scale = min(1.0, math.sqrt(limits.max_pixels / (grey.width * grey.height)))
                if scale < 1:
                    grey = grey.resize((max(1, int(grey.width * scale)), max(1, int(grey.height * scale))))
                yield Picture(grey, round(dpi * scale))
    except DocParserError:
        raise
    except Exception as error:  # Pillow's decoders raise many types of errors for damaged files
        raise DocParserError(
            f"{source} is corrupted or not an image; supported formats: {', '.join(_FORMATS)}"
        ) from error


def _check_size(image: Image, source: str) -> None:
    if image.width * image.height > _DECODED_PIXELS:
        size = f"{image.width} × {image.height} pixels"
        raise DocParserError(f"{source} is too large for OCR ({size}): scale it down")


def _on_white(image: Image) -> Image:
    """Convert a picture to greyscale. Transparent pixels become white instead of black."""
    from PIL import Image as Images

    if "A" not in image.getbands() and "transparency" not in image.info:
        return image.convert("L")
    image = image.convert("RGBA")
    white = Images.new("RGBA", image.size, "white")
    return Images.alpha_composite(white, image).convert("L")


def _stated_dpi(image: Image) -> int:
    stated = image.info.get("dpi")
    # Rounded first: PNG and BMP state pixels per metre, so that 72 dpi become 72.009.
    dpi = round(float(stated[0])) if isinstance(stated, tuple) and stated else 0
    return dpi if 72 < dpi <= 1200 else 0  # 72 is the value of programs that do not know it
