"""Real PDF files, written for the test that reads them."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from reportlab.lib.enums import TA_JUSTIFY
from reportlab.lib.pagesizes import A5
from reportlab.lib.styles import ParagraphStyle, getSampleStyleSheet
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Flowable, PageBreak, Paragraph, SimpleDocTemplate, Table

MakePdf = Callable[..., bytes]


@pytest.fixture(scope="session")
def styles() -> dict[str, ParagraphStyle]:
    pdfmetrics.registerFont(UnicodeCIDFont("STSong-Light"))
    sample = getSampleStyleSheet()
    body = sample["BodyText"]
    return {
        "h1": sample["Heading1"],
        "h2": sample["Heading2"],
        "body": body,
        "justified": ParagraphStyle("justified", parent=body, alignment=TA_JUSTIFY, firstLineIndent=14, spaceBefore=0),
        "zh": ParagraphStyle("zh", parent=body, fontName="STSong-Light", wordWrap="CJK"),
    }


@pytest.fixture
def typeset(styles: dict[str, ParagraphStyle]) -> MakePdf:
    """Typeset (style, text) pairs, tables as lists of rows, and None for a new page."""

    def make(*story: tuple[str, str] | list[list[str]] | None, **options: Any) -> bytes:
        flowables: list[Flowable] = []
        for entry in story:
            if entry is None:
                flowables.append(PageBreak())
            elif isinstance(entry, tuple):
                flowables.append(Paragraph(entry[1], styles[entry[0]]))
            else:
                flowables.append(Table(entry))
        file = io.BytesIO()
        SimpleDocTemplate(file, pagesize=A5, **options).build(flowables)
        return file.getvalue()

    return make


@pytest.fixture
def lay_out() -> MakePdf:
    """Pages of lines, each line a text or (x, y, text); 12 points, 14 apart."""

    def make(*pages: Sequence[str | tuple[float, float, str]], **options: Any) -> bytes:
        file = io.BytesIO()
        canvas = Canvas(file, invariant=True, **options)
        for lines in pages:
            for number, line in enumerate(lines):
                x, y, text = line if isinstance(line, tuple) else (72.0, 740.0 - 14 * number, line)
                canvas.drawString(x, y, text)
            canvas.showPage()
        canvas.save()
        return file.getvalue()

    return make
