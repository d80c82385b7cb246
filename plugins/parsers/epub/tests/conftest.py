"""Books, written for the test that reads them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable

import pytest

CONTAINER = (
    '<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
)
METADATA = "<dc:title>Tea for two</dc:title><dc:creator>Ada</dc:creator><dc:creator>Bo</dc:creator>"
MakeBook = Callable[..., bytes]


def make_book(
    chapters: dict[str, str] | None = None, *, metadata: str = METADATA, manifest: str = "", **files: str | bytes
) -> bytes:
    """A book of these chapters, by their names, in this order; `files` are others in it, by their path."""
    chapters = {"one.xhtml": "<h1>Tea</h1><p>Green tea.</p>"} if chapters is None else chapters
    items = "".join(f'<item id="{name}" href="{name}" media-type="application/xhtml+xml"/>' for name in chapters)
    spine = "".join(f'<itemref idref="{name}"/>' for name in chapters)
    opf = (
        '<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0">'
        f'<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">{metadata}</metadata>'
        f"<manifest>{items}{manifest}</manifest><spine>{spine}</spine></package>"
    )
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        book.writestr("META-INF/container.xml", CONTAINER)
        book.writestr("OEBPS/book.opf", opf)
        for name, body in chapters.items():
            page = f'<html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title></head><body>{body}</body></html>'
            book.writestr(f"OEBPS/{name}", '<?xml version="1.0" encoding="utf-8"?>' + page)
        for name, content in files.items():
            book.writestr(name, content)
    return data.getvalue()


@pytest.fixture(scope="session")
def book() -> MakeBook:
    return make_book
