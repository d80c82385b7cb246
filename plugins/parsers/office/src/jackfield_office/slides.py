"""Parser for PowerPoint files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain, count, groupby, starmap
from typing import ClassVar

from lxml import etree

from jackfield.errors import DocParserError
from jackfield.retrieval import Block, Document, Parser
from jackfield_documents import pipe_table
from jackfield_markup import Element
from jackfield_office.comments import comments_of_slide
from jackfield_office.drawings import drawings_of
from jackfield_office.package import LEVELS, MC, Package, R, Relation, links_in

_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_PARAGRAPH, _PROPERTIES, _TEXT, _LINE_BREAK = (_A + name for name in ("p", "pPr", "t", "br"))
_TITLES = ("title", "ctrTitle")
_NO_TITLES = ("", "PowerPoint Presentation")
_MASTER_KINDS = ("dt", "ftr", "hdr", "sldNum", "sldImg")  # date, footer, header, number, picture of the slide
_BULLETS = (_A + "buChar", _A + "buAutoNum", _A + "buBlip")
_TRUE = ("1", "true", "on")


class PptxParser(Parser):
    """Parses PowerPoint files slide by slide. `page` is the slide number.

    Each slide starts with its title as a heading and ends with charts, diagrams, speaker notes and comments. Unreadable
    slides and parts of slides are listed in `metadata["unread"]`.
    """

    name: ClassVar[str] = "pptx"

    def parse(self, data: bytes, *, source: str) -> Document:
        """Parse slides into blocks.

        Raises:
            DocParserError: The file is empty, encrypted, damaged, not a PowerPoint file, too large when unpacked, or
                without text.
        """
        package = Package(data, source=source, kind="pptx", main="ppt/")
        relations = package.relations(package.main)
        slides = [relations.get(entry.get(R + "id") or "") for entry in package.part(package.main).iter(_P + "sldId")]
        blocks = list(chain.from_iterable(map(partial(_slide, package), slides, count(1))))
        if not blocks and package.unread:
            raise DocParserError(f"{source} is corrupted: {package.unread[0]} cannot be read")
        if not blocks:
            raise DocParserError(f"{source} contains no text: its slides may contain only images")
        title, stated = package.stated()
        return Document(
            source,
            tuple(blocks),
            content_hash="",
            title=_title(blocks) if title in _NO_TITLES else title,
            metadata={"slides": len(slides), **stated},
        )


def _slide(package: Package, slide: Relation | None, number: int) -> Iterator[Block]:
    if slide is None or slide.target not in package.names:
        package.unread.append(f"slide {number}")
        return
    root = package.part_or_none(slide.target, f"slide {number}")
    if root is None:
        return
    relations = package.relations(slide.target)
    title, blocks = _texts(root, links_in(relations), number)
    blocks += drawings_of(package, slide.target, page=number)
    blocks += _notes(package, relations, number)
    comments = [f"- Comment by {line}" for line in comments_of_slide(package, relations, number=number)]
    blocks += [Block("\n".join(comments), kind="list", page=number)] if comments else []
    if title or blocks:
        # Without a heading of its own, it would be below that of the previous slide.
        yield Block(title or f"Slide {number}", kind="heading", page=number, level=1)
        yield from blocks


def _texts(root: Element, links: Mapping[str, str], number: int) -> tuple[str, list[Block]]:
    """Return the title of a slide, and blocks for its remaining text."""
    etree.strip_elements(root, MC + "Fallback", with_tail=False)
    title, blocks = "", list[Block]()
    for shape in root.iter(_P + "sp", _A + "tbl"):
        kind = _placeholder(shape)
        if kind in _TITLES and not title:
            title = " ".join(_paragraphs(shape, {}).split())
        elif shape.tag == _A + "tbl":
            blocks += _table(shape, links, number)
        elif kind not in _MASTER_KINDS:
            blocks += _body(shape, links, number, is_outline=kind in ("body", "obj"))
    return title, blocks


def _table(shape: Element, links: Mapping[str, str], number: int) -> Iterator[Block]:
    if table := pipe_table(_rows(shape, links)):
        yield Block(table, kind="table", page=number)


def _body(shape: Element, links: Mapping[str, str], number: int, *, is_outline: bool) -> Iterator[Block]:
    """Yield the blocks of a shape. Bulleted paragraphs, and outlines of several paragraphs, become lists."""
    paragraphs = list(_with_text(shape, links))
    is_list = is_outline and len(paragraphs) > 1
    for is_item, group in groupby(paragraphs, key=lambda paragraph: _is_item(paragraph[0], is_outline=is_list)):
        if is_item:
            yield Block("\n".join(starmap(_item, group)), kind="list", page=number)
        else:
            yield from (Block(text, page=number) for _, text in group)


def _with_text(shape: Element, links: Mapping[str, str]) -> Iterator[tuple[Element | None, str]]:
    """Yield the non-empty paragraphs of a shape with their properties."""
    for paragraph in shape.iter(_PARAGRAPH):
        if text := _text(paragraph, links).strip():
            yield next(paragraph.iterchildren(_PROPERTIES), None), text


def _item(properties: Element | None, text: str) -> str:
    level = "0" if properties is None else properties.get("lvl", "0")
    return "  " * LEVELS.get(level, 0) + "- " + text.replace("\n", " ")


def _is_item(properties: Element | None, *, is_outline: bool) -> bool:
    if properties is None:
        return is_outline
    if properties.find(_A + "buNone") is not None:
        return False
    return is_outline or any(properties.find(bullet) is not None for bullet in _BULLETS)


def _placeholder(shape: Element) -> str:
    """Return the type of a placeholder, `obj` if it has no type, or '' if the shape is not a placeholder."""
    found = shape.find(f"{_P}nvSpPr/{_P}nvPr/{_P}ph")
    return "" if found is None else found.get("type") or "obj"


def _paragraphs(shape: Element, links: Mapping[str, str]) -> str:
    return "\n".join(_text(paragraph, links) for paragraph in shape.iter(_PARAGRAPH))


def _text(paragraph: Element, links: Mapping[str, str]) -> str:
    return "".join(_shown(node, links) for node in paragraph.iter(_LINE_BREAK, _TEXT))


def _shown(node: Element, links: Mapping[str, str]) -> str:
    if node.tag == _LINE_BREAK:
        return "\n"
    return _linked(node, links) if links and node.text else node.text or ""


def _linked(node: Element, links: Mapping[str, str]) -> str:
    link, shown = node.getparent().find(f"{_A}rPr/{_A}hlinkClick"), node.text.strip()
    target = None if link is None else links.get(link.get(R + "id", ""))
    return f"[{shown}]({target})" if shown and target is not None else str(node.text)


def _rows(table: Element, links: Mapping[str, str]) -> Iterator[list[str]]:
    above: list[str] = []
    for row in table.iterchildren(_A + "tr"):
        texts: list[str] = []
        for cell in row.iterchildren(_A + "tc"):
            if cell.get("vMerge") in _TRUE and len(texts) < len(above):
                texts.append(above[len(texts)])
            elif cell.get("hMerge") in _TRUE:
                texts.append("")
            else:
                texts.append(_paragraphs(cell, links))
        above = texts
        yield texts


def _notes(package: Package, relations: Mapping[str, Relation], number: int) -> Iterator[Block]:
    """Yield the speaker notes."""
    for relation in relations.values():
        if relation.kind == "notesSlide" and (text := _noted(package, relation.target, number)):
            yield Block(f"Notes: {text}", page=number)


def _noted(package: Package, name: str, number: int) -> str:
    """Return the text of a notes page, or '' if it is missing or unreadable."""
    root = package.part_or_none(name, f"the notes of slide {number}")
    shapes = [] if root is None else [shape for shape in root.iter(_P + "sp") if _placeholder(shape) == "body"]
    return "\n".join(text for shape in shapes for _, text in _with_text(shape, {}))


def _title(blocks: list[Block]) -> str:
    first = blocks[0].text
    return "" if first.startswith("Slide ") and first[6:].isdecimal() else first
