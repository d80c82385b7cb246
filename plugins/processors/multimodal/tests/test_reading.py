"""The text of a file, as a model gets it."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield import sync
from jackfield.attachments import AttachedFile
from jackfield.retrieval import Block, Document
from jackfield_multimodal.reading import FileReader

BLOCKS = (
    Block("Sockets", "heading", level=1),
    Block("There are forty."),
    Block("Of brass", "heading", level=3),
    Block("| a | b |\n|---|---|\n| 1 | 2 |", "table"),
)


class Documents:
    """Gives one document, and notes what it was asked for."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.asked: list[object] = []

    async def read(self, address: str) -> Document:
        self.asked.append(address)
        return self.document

    async def read_bytes(self, data: bytes, *, name: str) -> Document:
        self.asked.append((data, name))
        return self.document


def _read(file: AttachedFile, document: Document) -> tuple[str, list[object]]:
    reader: Any = FileReader(None)
    reader._reader = Documents(document)
    return sync.run(reader.read(file)), reader._reader.asked


def test_headings_keep_their_levels_and_a_line_says_what_could_not_be_read() -> None:
    document = Document("/x/a.docx", BLOCKS, "", metadata={"unread": ["page 2", "chapter 3"]})
    text, _ = _read(AttachedFile("a.docx", "/x/a.docx", b""), document)
    assert text == (
        "# Sockets\n\nThere are forty.\n\n### Of brass\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n"
        "(a.docx: page 2 could not be read)\n\n(a.docx: chapter 3 could not be read)"
    )


@pytest.mark.parametrize(
    ("file", "asked"),
    [
        (AttachedFile("a.docx", "/x/a.docx", b"abc"), "/x/a.docx"),
        (AttachedFile("a.docx", "http://h/a.docx", None), "http://h/a.docx"),
        (AttachedFile("file.docx", "", b"abc"), (b"abc", "file.docx")),
        (AttachedFile("file.docx", "", None), (b"", "file.docx")),
    ],
)
def test_a_file_is_read_from_its_address_and_without_one_from_its_bytes(file: AttachedFile, asked: object) -> None:
    assert _read(file, Document("a", (), "")) == ("", [asked])
