"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

import io
from typing import ClassVar

from reportlab.pdfgen.canvas import Canvas

from jackfield_testkit.suites import ParserSuite, PluginSuite


def pdf_of(*pages: str, password: str | None = None) -> bytes:
    """A PDF with one paragraph on each page."""
    file = io.BytesIO()
    canvas = Canvas(file, invariant=True, encrypt=password)
    for page in pages:
        for number, line in enumerate(page.split("\n")):
            canvas.drawString(72, 740 - 14 * number, line)
        canvas.showPage()
    canvas.save()
    return file.getvalue()


class TestPlugin(PluginSuite):
    dist = "jackfield-pdf"


class TestPdf(ParserSuite):
    component = "jackfield-pdf/pdf"
    samples: ClassVar = {
        "tea.pdf": (pdf_of("Green tea is brewed\nwith hot water."), "Green tea is brewed with hot water."),
        "pages.pdf": (pdf_of("The first page.", "The second page.", "", "The last page."), "The last page."),
    }
    unreadable: ClassVar = {
        "locked.pdf": pdf_of("secret", password="open sesame"),
        "scan.pdf": pdf_of("", ""),
        "text.pdf": b"just a text",
    }

    @staticmethod
    def make_file(count: int) -> bytes:
        return pdf_of(*(f"This is page {number}." for number in range(count)))
