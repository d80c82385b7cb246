"""Parser for OpenDocument presentations."""

from __future__ import annotations

from typing import ClassVar

from jackfield.errors import DocParserError
from jackfield.retrieval import Block, Document, Parser
from jackfield_markup import Element
from jackfield_opendocument.names import DRAW, PRESENTATION
from jackfield_opendocument.package import Package
from jackfield_opendocument.reader import Reader
from jackfield_opendocument.tables import Spare

_CLASS = PRESENTATION + "class"
_MASTER_KINDS = ("page-number", "date-time", "footer", "header", "page")


class OdpParser(Parser):
    """Parses presentations slide by slide. `page` is the slide number.

    Each slide starts with its title as a heading and ends with the speaker notes. Unreadable embedded objects are
    listed in `metadata["unread"]`.
    """

    name: ClassVar[str] = "odp"

    def parse(self, data: bytes, *, source: str) -> Document:
        """Parse slides into blocks.

        Raises:
            DocParserError: The file is empty, encrypted, damaged, not an OpenDocument presentation, too large when
                unpacked, or without text.
        """
        package = Package(data, source=source, kind="presentation")
        spare = Spare(package.body)
        slides = list(package.body.iterchildren(DRAW + "page"))
        blocks: list[Block] = []
        for number, slide in enumerate(slides, start=1):
            blocks += _read_slide(slide, package, spare, number)
        if not blocks:
            raise DocParserError(f"{source} contains no text: its slides may contain only images")
        title, metadata = package.metadata()
        first = "" if blocks[0].text == f"Slide {blocks[0].page}" else blocks[0].text
        metadata["slides"] = len(slides)
        return Document(source, tuple(blocks), content_hash="", title=title or first, metadata=metadata)


def _read_slide(slide: Element, package: Package, spare: Spare, number: int) -> list[Block]:
    reader = Reader(package, spare, page=number)
    title = notes = ""
    for shape in list(slide):
        kind = shape.get(_CLASS)
        if shape.tag == PRESENTATION + "notes":
            frames = [frame for frame in shape.iter(DRAW + "frame") if frame.get(_CLASS) == "notes"]
            notes = "\n".join(text for frame in frames if (text := reader.text_of(frame)))
            slide.remove(shape)
        elif kind == "title" and not title:
            title = " ".join(reader.text_of(shape).split())
            slide.remove(shape)
        elif kind in _MASTER_KINDS:
            slide.remove(shape)
    reader.read(slide)
    blocks = reader.finish()
    if notes:
        blocks.append(Block(f"Notes: {notes}", page=number))
    if not title and not blocks:
        return []
    # Without a heading of its own, it would be below that of the previous slide.
    return [Block(title or f"Slide {number}", kind="heading", page=number, level=1), *blocks]
