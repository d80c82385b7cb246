"""Plugin hooks for the PDF parser."""

from __future__ import annotations

from jackfield.plugins import ParserSpec, hook


@hook.parsers
def parsers() -> list[ParserSpec]:
    """Provide the parser for PDF files."""
    return [
        ParserSpec(
            name="pdf",
            target="jackfield_pdf.parser:PdfParser",
            config="jackfield_pdf.parser:PdfConfig",
            summary="Text of PDF files by page, with PDFium: paragraphs joined, large type as headings.",
            extensions=("pdf",),
            media_types=("application/pdf", "application/x-pdf"),
            magic=(b"%PDF-",),
            has_parts=True,
            part_extensions=("pdf-scan",),
            draws_pages=True,
            pictures="jackfield_pdf.pictures:PdfPictures",
        )
    ]
