"""Real office files, written for the test that reads them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import docx
import openpyxl
import pptx
import pytest
import xlwt


class Files:
    """What makes office files."""

    @staticmethod
    def saved(file: Any) -> bytes:
        """What a library writes."""
        data = io.BytesIO()
        file.save(data)
        return data.getvalue()

    @staticmethod
    def word(write: Callable[[Any], object]) -> bytes:
        """A Word file."""
        document = docx.Document()
        write(document)
        return Files.saved(document)

    @staticmethod
    def slides(write: Callable[[Any], object]) -> bytes:
        """A PowerPoint file."""
        presentation = pptx.Presentation()
        write(presentation)
        return Files.saved(presentation)

    @staticmethod
    def book(**sheets: Sequence[Sequence[object]]) -> bytes:
        """An Excel file."""
        workbook = openpyxl.Workbook()
        workbook.remove(workbook.active)
        for name, rows in sheets.items():
            sheet = workbook.create_sheet(name)
            for row in rows:
                sheet.append(row)
        return Files.saved(workbook)

    @staticmethod
    def old_book(**sheets: Sequence[Sequence[object]]) -> bytes:
        """An Excel file of before 2007."""
        workbook = xlwt.Workbook()
        for name, rows in sheets.items():
            sheet = workbook.add_sheet(name)
            for place, row in enumerate(rows):
                for column, value in enumerate(row):
                    sheet.write(place, column, value)
        return Files.saved(workbook)

    @staticmethod
    def changed(data: bytes, parts: Mapping[str, Callable[[bytes], bytes]]) -> bytes:
        """A zip file with some of its files changed; one that is not there is changed from b''."""
        made = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
            for name in old.namelist():
                new.writestr(name, parts[name](old.read(name)) if name in parts else old.read(name))
            for name in parts.keys() - set(old.namelist()):
                new.writestr(name, parts[name](b""))
        return made.getvalue()

    @staticmethod
    def body(xml: str) -> bytes:
        """A Word file with this in its body, in which `w:` is the usual namespace."""
        return Files.changed(
            Files.word(lambda document: document.add_paragraph("x")),
            {
                "word/document.xml": lambda old: (
                    old[: old.index(b"<w:body>") + 8] + xml.encode() + b"</w:body></w:document>"
                )
            },
        )

    @staticmethod
    def entity(old: bytes) -> bytes:
        """XML with an entity that names a file."""
        end = old.index(b"?>") + 2
        return old[:end] + b'<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/hostname">]>' + old[end:]

    @staticmethod
    def bomb(name: str, data: bytes, *, size: int = 24 * 2**20) -> bytes:
        """A zip file, one of whose files is enormous, and nothing but spaces."""
        return Files.changed(data, {name: lambda old: old.replace(b"?>", b"?>" + b" " * size, 1)})


@pytest.fixture(scope="session")
def files() -> type[Files]:
    """What makes office files."""
    return Files
