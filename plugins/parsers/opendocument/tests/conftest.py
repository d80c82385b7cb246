"""OpenDocument files, written by odfpy and by hand for the tests that read them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping

import pytest

_NAMES = ("office", "text", "table", "drawing", "style", "presentation", "chart", "meta")
_PREFIXES = {"drawing": "draw"}
NAMESPACES = (
    " ".join(f'xmlns:{_PREFIXES.get(name, name)}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in _NAMES)
    + ' xmlns:fo="urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0"'
    + ' xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0"'
    + ' xmlns:calcext="urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0"'
    + ' xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xlink="http://www.w3.org/1999/xlink"'
)
KINDS = {"odt": "text", "ods": "spreadsheet", "odp": "presentation"}
MakeFile = Callable[..., bytes]


def make_content(kind: str, body: str, styles: str = "", *, root: str = "document-content", more: str = "") -> str:
    """The XML of a file with this body."""
    name = KINDS[kind]
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><office:{root} {NAMESPACES}>{more}'
        f"<office:automatic-styles>{styles}</office:automatic-styles>"
        f"<office:body><office:{name}>{body}</office:{name}></office:body></office:{root}>"
    )


def make_file(kind: str, body: str, styles: str = "", **files: str | bytes) -> bytes:
    """A zipped file with this body; `files` are others in it, by their path."""
    parts: Mapping[str, str | bytes] = {"content.xml": make_content(kind, body, styles), **files}
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", f"application/vnd.oasis.opendocument.{KINDS[kind]}", zipfile.ZIP_STORED)
        for name, content in parts.items():
            archive.writestr(name, content)
    return data.getvalue()


def make_flat(kind: str, body: str, more: str = "") -> bytes:
    """A file in one piece of XML."""
    return make_content(kind, body, root="document", more=more).encode()


@pytest.fixture
def file() -> MakeFile:
    return make_file


@pytest.fixture
def flat() -> MakeFile:
    return make_flat


@pytest.fixture
def content() -> Callable[..., str]:
    return make_content
