"""Plugin hooks for the OCR parser."""

from __future__ import annotations

from jackfield.plugins import ParserSpec, hook


@hook.parsers
def parsers() -> list[ParserSpec]:
    """Provide the parser for scanned pages and pictures."""
    return [
        ParserSpec(
            name="ocr",
            target="jackfield_ocr.parser:OcrParser",
            config="jackfield_ocr.parser:OcrConfig",
            summary="Scanned pages of PDFs, and images, through Tesseract if installed.",
            # The extension that the PDF parser gives to its pages without text.
            extensions=("pdf-scan", "png", "jpg", "jpeg", "tif", "tiff", "bmp", "webp"),
            media_types=("image/png", "image/jpeg", "image/tiff", "image/bmp", "image/webp"),
            environment="jackfield_ocr.tesseract:describe_installation",
            effects=frozenset({"files", "processes"}),
        )
    ]
