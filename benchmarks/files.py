"""Generate documents of any length to benchmark parsers."""

from __future__ import annotations

import io
from typing import Any

import docx
import openpyxl
import pptx
from reportlab.pdfgen.canvas import Canvas

SENTENCE = "Green tea is brewed with hot water in a pot of clay that stands on the table for a while."


def pdf_file(pages: int) -> bytes:
    """Return a PDF with a heading and 40 lines in five paragraphs on each page."""
    file = io.BytesIO()
    canvas = Canvas(file, invariant=True)
    for page in range(1, pages + 1):
        canvas.setFont("Helvetica-Bold", 16)
        canvas.drawString(72, 780, f"Section {page}")
        canvas.setFont("Helvetica", 11)
        for line in range(40):
            canvas.drawString(72, 750 - 15 * line, SENTENCE if line % 8 else f"{SENTENCE[:40]}.")
        canvas.showPage()
    canvas.save()
    return file.getvalue()


def html_file(sections: int = 60) -> bytes:
    """Return a page with paragraphs with links, a list, a table and code in each section."""
    paragraph = (
        "<p>Green <b>tea</b> is brewed with <a href='/water?hot=1'>hot water</a> &amp; more, in a pot of clay.</p>"
    )
    table = "<table><tr><th>a<th>b</tr>" + "<tr><td>1</td><td>2|3</td></tr>" * 8 + "</table>"
    section = f"<h2>Section</h2>{paragraph * 6}<ul><li>one</li><li>two</li></ul>{table}<pre><code>print(1)</code></pre>"
    menu = "<nav><ul>" + "<li><a href='#'>menu</a></li>" * 40 + "</ul></nav>"
    return f"<html><head><title>Tea</title></head><body>{menu}<main>{section * sections}</main></body></html>".encode()


def docx_file(sections: int = 60) -> bytes:
    """Return a Word file with a heading, paragraphs and a table in each section."""
    document = docx.Document()
    for number in range(sections):
        document.add_heading(f"Section {number}", 2)
        for _ in range(6):
            document.add_paragraph(SENTENCE)
        for row in document.add_table(6, 4).rows:
            for cell in row.cells:
                cell.text = "some text"
    return _saved(document)


def pptx_file(slides: int = 100) -> bytes:
    """Return a presentation with a title and six paragraphs on each slide."""
    presentation = pptx.Presentation()
    for number in range(slides):
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text = f"Slide {number}"
        for _ in range(6):
            slide.placeholders[1].text_frame.add_paragraph().text = SENTENCE
    return _saved(presentation)


def xlsx_file(rows: int = 50_000) -> bytes:
    """Return a spreadsheet with twelve cells in each row."""
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    for number in range(rows):
        sheet.append([number, f"text {number % 500}", 3.5] * 4)
    return _saved(book)


def _saved(file: Any) -> bytes:
    data = io.BytesIO()
    file.save(data)
    return data.getvalue()
