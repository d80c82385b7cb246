"""Extract the pictures of Word and PowerPoint files, so that a model can describe them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pydantic import Field

from jackfield.config import Config
from jackfield.errors import DocParserError
from jackfield.retrieval import Document, Parser, Part
from jackfield_office.package import Package, R

_SLIDE = "{http://schemas.openxmlformats.org/presentationml/2006/main}sldId"
_SMALLEST_BYTES = 2000  # smaller ones are icons or ornaments
_MAGIC = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpg", b"GIF8": "gif"}


class PicturesConfig(Config):
    """Settings for extracting pictures."""

    max_pictures: int = Field(default=10, ge=1, description="Maximum number of images per file")


class DocxPictures(Parser):
    """Extracts the pictures of a Word file. Their pages are unknown."""

    name: ClassVar[str] = "docx pictures"
    config_class = PicturesConfig
    config: PicturesConfig

    def parse(self, data: bytes, *, source: str) -> Document:
        """Return a document without text that has each distinct picture as a part.

        Raises:
            DocParserError: The file cannot be opened.
        """
        package = Package(data, source=source, kind="docx", main="word/")
        return _document(source, _pictures(package, package.main, set(), None), self.config.max_pictures)


class PptxPictures(Parser):
    """Extracts the pictures of a PowerPoint file, each with the number of the first slide that shows it."""

    name: ClassVar[str] = "pptx pictures"
    config_class = PicturesConfig
    config: PicturesConfig

    def parse(self, data: bytes, *, source: str) -> Document:
        """Return a document without text that has each distinct picture as a part.

        Raises:
            DocParserError: The file cannot be opened.
        """
        package = Package(data, source=source, kind="pptx", main="ppt/")
        return _document(source, _of_slides(package), self.config.max_pictures)


def _document(source: str, pictures: Iterator[Part], most: int) -> Document:
    parts = [part for part, _ in zip(pictures, range(most), strict=False)]
    return Document(source, (), content_hash="", parts=tuple(parts))


def _of_slides(package: Package) -> Iterator[Part]:
    relations = package.relations(package.main)
    known: set[str] = set()
    for number, entry in enumerate(package.part(package.main).iter(_SLIDE), start=1):
        slide = relations.get(entry.get(R + "id") or "")
        if slide is not None:
            yield from _pictures(package, slide.target, known, number)


def _pictures(package: Package, name: str, known: set[str], page: int | None) -> Iterator[Part]:
    for relation in package.relations(name).values():
        target = relation.target
        if relation.kind != "image" or relation.is_external or target in known or target not in package.names:
            continue
        known.add(target)
        try:
            data = package.read(target)
        except DocParserError:
            continue  # the rest is still useful
        kind = next((kind for magic, kind in _MAGIC.items() if data.startswith(magic)), "")
        if kind and len(data) >= _SMALLEST_BYTES:
            yield Part(f"picture {len(known)}.{kind}", data, page)
