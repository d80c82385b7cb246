"""A file under another's name, and documents that refer to files of the machine: one error, and nothing is read."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import docx
import openpyxl
import pptx
import pytest
from reportlab.pdfgen.canvas import Canvas

from jackfield.errors import DocParserError
from jackfield.plugins import default_host
from jackfield.retrieval import Document

SECRET = "what a parser must never read"
HTML = b"<!DOCTYPE html><html><body><h1>Tea</h1><p>Green tea.</p></body></html>"


def saved(made: object) -> bytes:
    data = io.BytesIO()
    made.save(data)  # type: ignore[attr-defined]
    return data.getvalue()


def zipped(files: Mapping[str, bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


def changed(data: bytes, change: Callable[[str, bytes], bytes]) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return zipped({name: change(name, archive.read(name)) for name in archive.namelist()})


@cache
def samples() -> dict[str, bytes]:
    word = docx.Document()
    word.add_paragraph("Green tea.")
    slides = pptx.Presentation()
    slides.slides.add_slide(slides.slide_layouts[0]).shapes.title.text = "Green tea."
    book = openpyxl.Workbook()
    book.active["A1"] = "Green tea."
    pdf = io.BytesIO()
    canvas = Canvas(pdf)
    canvas.drawString(72, 700, "Green tea.")
    canvas.save()
    container = b'<container><rootfile full-path="p.opf"/></container>'
    item = b'<item id="a" href="a.xhtml" media-type="text/html"/>'
    package = b'<package><manifest>%s</manifest><spine><itemref idref="a"/></spine></package>' % item
    return {
        "docx": saved(word),
        "pptx": saved(slides),
        "xlsx": saved(book),
        "pdf": pdf.getvalue(),
        "epub": zipped({"META-INF/container.xml": container, "p.opf": package, "a.xhtml": HTML}),
        "html": HTML,
        "png": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8,
        "zip": zipped({"a.txt": b"Green tea."}),
        "xls": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504),
    }


def parse(kind: str, data: bytes, name: str) -> Document:
    document = default_host().load("parser", kind)().parse(data, source=name)
    assert isinstance(document, Document)
    return document


READ = ("docx", "pptx", "xlsx", "pdf", "epub")


@pytest.mark.parametrize("kind", [*READ, "html"])
def test_a_sample_is_read_under_its_own_name(kind: str) -> None:
    assert "Green tea." in "".join(block.text for block in parse(kind, samples()[kind], f"a.{kind}").blocks)


@pytest.mark.parametrize("kind", READ)
@pytest.mark.parametrize("other", ["docx", "pptx", "xlsx", "pdf", "epub", "html", "png", "zip", "xls"])
def test_a_file_under_the_name_of_another_format_is_refused_by_name(kind: str, other: str) -> None:
    if kind != other and not (kind == "xlsx" and other == "xls"):
        with pytest.raises(DocParserError, match=rf"^really {other}\.{kind} "):
            parse(kind, samples()[other], f"really {other}.{kind}")


@pytest.mark.parametrize("kind", ["docx", "pptx", "xlsx", "epub"])
@pytest.mark.parametrize("declared", ['<!ENTITY e SYSTEM "{url}">', '<!ENTITY % e SYSTEM "{url}"> %e;'])
def test_no_document_reads_a_file_of_the_machine(kind: str, declared: str, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text(SECRET)
    doctype = f"<!DOCTYPE a [{declared}]>".format(url=(tmp_path / "secret.txt").as_uri()).encode()

    def with_entity(name: str, content: bytes) -> bytes:
        if not name.endswith(("xml", "xhtml", "opf")) or name in ("[Content_Types].xml", "META-INF/container.xml"):
            return content
        start = content.index(b"?>") + 2 if content.startswith(b"<?xml") else 0
        return content[:start] + doctype + content[start:].replace(b"Green tea.", b"Green tea. &e;")

    assert SECRET not in read_or_refused(kind, changed(samples()[kind], with_entity))


def read_or_refused(kind: str, data: bytes) -> str:
    """The text of a document, or why there is none."""
    try:
        return "".join(block.text for block in parse(kind, data, f"a.{kind}").blocks)
    except DocParserError as error:
        return str(error)


@pytest.mark.parametrize("kind", ["docx", "pptx", "xlsx", "epub"])
def test_a_bomb_in_any_part_of_a_zip_file_is_refused_unopened(kind: str) -> None:
    def swollen(name: str, content: bytes) -> bytes:
        return content + b" " * 20 * 2**20 if name == first else content

    first = zipfile.ZipFile(io.BytesIO(samples()[kind])).namelist()[0]
    with pytest.raises(DocParserError, match=rf"^bomb\.{kind} .*(it decompresses to|more than)"):
        parse(kind, changed(samples()[kind], swollen), f"bomb.{kind}")


@pytest.mark.parametrize("kind", ["docx", "pptx", "xlsx", "epub"])
def test_a_zip_file_whose_entries_share_their_bytes_is_refused(kind: str) -> None:
    data = zipped({"a": bytes(10 * 2**20)})
    at = data.index(b"PK\x01\x02")
    end = data.index(b"PK\x05\x06")
    entry = data[at:end]
    many = b"".join(entry[:-1] + bytes([33 + number]) for number in range(90))
    count = (90).to_bytes(2, "little")
    tail = data[end : end + 8] + count + count + len(many).to_bytes(4, "little") + data[end + 16 :]
    with pytest.raises(DocParserError, match=rf"^shared\.{kind} "):
        parse(kind, data[:at] + many + tail, f"shared.{kind}")
