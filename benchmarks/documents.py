"""Row 8: files as text, beside the library that Qwen-Agent reads each with, and beside Qwen-Agent."""

from __future__ import annotations

import io
import json
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import docx
import openpyxl
import pptx

from benchmarks.measure import Row, in_turns
from jackfield.plugins import default_host

PEER = Path(__file__).with_name("peer_qwen_documents.py")
SENTENCE = "Green tea is brewed with hot water in a pot of clay that stands on the table for a while."
TARGETS = {"html": "0.11", "docx": "0.25", "pptx": "0.25", "xlsx": "0.083"}


def parsing(qwen_python: str | None) -> list[Row]:
    """A page of 60 sections, a Word file of 60 sections with tables, 100 slides, a sheet of 50,000 rows."""
    files = {"html": _html(), "docx": _docx(), "pptx": _pptx(), "xlsx": _xlsx()}
    theirs = _qwen(qwen_python, files) if qwen_python else {}
    rows = []
    for kind, data in files.items():
        parser = default_host().load("parser", kind)()
        works: dict[str, Callable[[], object]] = {"ours": lambda p=parser, d=data: p.parse(d, source="x")}  # type: ignore[misc]
        if kind in PLAIN:
            works["plain"] = lambda kind=kind, d=data: PLAIN[kind](io.BytesIO(d))  # type: ignore[misc]
        took = in_turns(works, rounds=5)
        ours = took["ours"]
        if "plain" in took:
            beside = f"{NAMES[kind]} {took['plain']:.0f} ms"
            rows.append(Row(f"8 {kind}, {len(data) // 1000} kB", f"{ours:.1f} ms", beside, ours / took["plain"]))
        if kind in theirs:
            beside = f"Qwen-Agent {theirs[kind]:.0f} ms"
            rows.append(
                Row(f"8 {kind}, {len(data) // 1000} kB", f"{ours:.1f} ms", beside, ours / theirs[kind], TARGETS[kind])
            )
    return rows


def _qwen(python: str, files: Mapping[str, bytes]) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        for kind, data in files.items():
            Path(folder, f"file.{kind}").write_bytes(data)
        command = [python, str(PEER), folder, *files]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600, cwd=folder)
        figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return figures


def _html() -> bytes:
    paragraph = (
        "<p>Green <b>tea</b> is brewed with <a href='/water?hot=1'>hot water</a> &amp; more, in a pot of clay.</p>"
    )
    table = "<table><tr><th>a<th>b</tr>" + "<tr><td>1</td><td>2|3</td></tr>" * 8 + "</table>"
    section = f"<h2>Section</h2>{paragraph * 6}<ul><li>one</li><li>two</li></ul>{table}<pre><code>print(1)</code></pre>"
    menu = "<nav><ul>" + "<li><a href='#'>menu</a></li>" * 40 + "</ul></nav>"
    return f"<html><head><title>Tea</title></head><body>{menu}<main>{section * 60}</main></body></html>".encode()


def _docx() -> bytes:
    document = docx.Document()
    for number in range(60):
        document.add_heading(f"Section {number}", 2)
        for _ in range(6):
            document.add_paragraph(SENTENCE)
        for row in document.add_table(6, 4).rows:
            for cell in row.cells:
                cell.text = "some text"
    return _saved(document)


def _pptx() -> bytes:
    presentation = pptx.Presentation()
    for number in range(100):
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text = f"Slide {number}"
        for _ in range(6):
            slide.placeholders[1].text_frame.add_paragraph().text = SENTENCE
    return _saved(presentation)


def _xlsx() -> bytes:
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    for number in range(50_000):
        sheet.append([number, f"text {number % 500}", 3.5] * 4)
    return _saved(book)


def _saved(file: Any) -> bytes:
    data = io.BytesIO()
    file.save(data)
    return data.getvalue()


def _plain_docx(file: io.BytesIO) -> str:
    document = docx.Document(file)
    texts = [paragraph.text for paragraph in document.paragraphs]
    texts += [cell.text for table in document.tables for row in table.rows for cell in row.cells]
    return "\n".join(texts)


def _plain_pptx(file: io.BytesIO) -> str:
    shapes = [shape for slide in pptx.Presentation(file).slides for shape in slide.shapes if shape.has_text_frame]
    return "\n".join(shape.text_frame.text for shape in shapes)


def _plain_xlsx(file: io.BytesIO) -> int:
    book = openpyxl.load_workbook(file, read_only=True)
    return sum(1 for sheet in book for _ in sheet.iter_rows(values_only=True))


PLAIN: Mapping[str, Callable[[io.BytesIO], object]] = {"docx": _plain_docx, "pptx": _plain_pptx, "xlsx": _plain_xlsx}
NAMES = {"docx": "python-docx", "pptx": "python-pptx", "xlsx": "openpyxl, read-only"}
