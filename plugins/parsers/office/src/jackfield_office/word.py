"""Word files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from lxml import etree

from jackfield.errors import DocParserError
from jackfield_documents import pipe_table
from jackfield_markup import Element
from jackfield_office.package import MC, Package, R, Relation
from jackfield_search_parts.documents import Block, BlockKind, Document, Parser

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_P, _TBL, _TR, _TC, _T, _PPR, _TCPR = (_W + name for name in ("p", "tbl", "tr", "tc", "t", "pPr", "tcPr"))
_HYPERLINK, _BOX, _RENDERED_BREAK = _W + "hyperlink", _W + "txbxContent", _W + "lastRenderedPageBreak"
_NOTE_REFERENCES = {_W + "footnoteReference": "", _W + "endnoteReference": "e"}
_IN_LINE = {_W + "tab": "\t", _W + "br": "\n", _W + "cr": "\n", _W + "noBreakHyphen": "-"}
_TEXTS = (_T, _M + "t")
_GONE = (_W + "del", _W + "moveFrom", MC + "Fallback")  # deleted, moved elsewhere, the same once more
_HEADING = re.compile(r"heading ([1-9])$")
_CODE = re.compile(r"(?:source ?code|html preformatted|preformatted(?: text)?|code(?: block)?|plain text)$")
_MOST_SPAN = 63  # columns, which is Word's limit
_LONGEST_LINK = 300  # characters
_BULLETS = ("bullet", "none")


class DocxParser(Parser):
    """Reads Word files in the order of their text: what was deleted is left out, what was inserted is read.

    Blocks have pages if Word noted where they began when it saved the file.
    """

    name: ClassVar[str] = "docx"

    def parse(self, data: bytes, *, source: str) -> Document:
        """Turn a Word file into blocks.

        Raises:
            DocParserError: It is empty, encrypted, damaged, not a Word file, too large unpacked, or has no text.
        """
        package = Package(data, source=source, kind="docx", main="word/")
        root = package.part(package.main)
        etree.strip_elements(root, *_GONE, with_tail=False)
        _write_links(root, package.relations(package.main))
        reader = _Reader(
            _styles(package.part_beside("styles.xml")),
            _numbering(package.part_beside("numbering.xml")),
            page=1 if _has(root, _RENDERED_BREAK) else None,
            has_boxes=_has(root, _BOX),
        )
        reader.read(root)
        for name, mark in (("footnotes.xml", ""), ("endnotes.xml", "e")):
            reader.read_notes(package.part_beside(name), mark)
        blocks = reader.finish()
        if not blocks:
            raise DocParserError(f"{source} has no text: it may hold pictures only")
        title, stated = package.stated()
        return Document(source, tuple(blocks), content_hash="", title=title or _title(blocks), metadata=stated)


@dataclass(frozen=True, slots=True)
class _Style:
    """What a style makes of a paragraph."""

    level: int = 0
    is_code: bool = False
    numbering: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class _Level:
    """How the items of one level of a list are counted."""

    is_counted: bool = False
    start: int = 1


@dataclass(slots=True)
class _Reader:
    """Reads paragraphs and tables, and joins the items of lists and the lines of code."""

    styles: Mapping[str, _Style]
    numbering: Mapping[tuple[str, int], _Level]
    page: int | None
    has_boxes: bool
    blocks: list[Block] = field(default_factory=list)
    _lines: list[str] = field(default_factory=list)
    _kind: BlockKind = "list"
    _begun: int | None = None
    _counts: dict[tuple[str, int], int] = field(default_factory=dict)

    def read(self, parent: Element) -> None:
        """Read what stands in an element, whatever wraps it."""
        stack = [iter(parent)]
        while stack:
            child = next(stack[-1], None)
            if child is None:
                stack.pop()
            elif child.tag == _P:
                self._paragraph(child)
            elif child.tag != _TBL:
                stack.append(iter(child))  # content controls, insertions, and what is yet to be thought of
            elif _is_frame(child):
                stack.append(iter(next(child.iter(_TC))))
            else:
                self._table(child)

    def read_notes(self, notes: Element | None, mark: str) -> None:
        """Read the notes at the end, each with its number."""
        for note in () if notes is None else notes:
            if note.get(_W + "type") in (None, "normal"):
                text = "\n".join(filter(None, (self._text(paragraph) for paragraph in note.iter(_P))))
                if text:
                    self._add(f"[^{mark}{note.get(_W + 'id')}]: {text}", "paragraph")

    def finish(self) -> list[Block]:
        """All that was read."""
        self._end_lines()
        return self.blocks

    def _paragraph(self, paragraph: Element) -> None:
        boxes = list(paragraph.iter(_BOX)) if self.has_boxes else []
        for box in boxes:
            box.getparent().remove(box)
        style, numbering = self._style_of(paragraph)
        before = self.page
        text = self._text(paragraph)
        if text.strip():
            page = before if self.page == before or not _begins_a_page(paragraph) else self.page
            if style.level:
                self._add(" ".join(text.split()), "heading", level=style.level, page=page)
            elif numbering:
                self._line(self._item(numbering, text.strip()), "list", page)
            elif style.is_code:
                self._line(text.rstrip(), "code", page)
            else:
                self._add(text.strip(), "paragraph", page=page)
        for box in boxes:
            self.read(box)

    def _style_of(self, paragraph: Element) -> tuple[_Style, tuple[str, int] | None]:
        properties = _properties(paragraph, _PPR)
        if properties is None:
            return self.styles.get("", _Style()), None
        style = self.styles.get(_value(properties, "pStyle") or "", _Style())
        outline = _value(properties, "outlineLvl")
        if outline and outline in "012345678":
            style = _Style(int(outline) + 1)
        numbering = _numbering_of(properties)
        if numbering and numbering[0] == "0":  # which takes away what the style gives
            return style, None
        return style, numbering or style.numbering

    def _text(self, paragraph: Element) -> str:
        parts: list[str] = []
        # All nodes: lxml takes longer to prepare a list of tags than to walk through a paragraph.
        for node in paragraph.iter():
            tag = node.tag
            if tag in _TEXTS:
                parts.append(node.text or "")
            elif tag in _IN_LINE:
                parts.append(_IN_LINE[tag])
            elif tag in _NOTE_REFERENCES:
                parts.append(f"[^{_NOTE_REFERENCES[tag]}{node.get(_W + 'id')}]")
            elif tag == _RENDERED_BREAK:
                self.page = (self.page or 0) + 1
        return "".join(parts)

    def _item(self, numbering: tuple[str, int], text: str) -> str:
        number, level = numbering
        how = self.numbering.get(numbering, _Level())
        for deeper in range(level + 1, 9):
            self._counts.pop((number, deeper), None)
        count = self._counts[numbering] = self._counts.get(numbering, how.start - 1) + 1
        return "  " * level + (f"{count}. " if how.is_counted else "- ") + text.replace("\n", " ")

    # --- tables ---

    def _table(self, table: Element) -> None:
        page = self.page
        self._add(pipe_table(self._rows(table)), "table", page=page)

    def _rows(self, table: Element) -> Iterator[list[str]]:
        above: list[str] = []
        for row in _inside(table, _TR):
            texts: list[str] = []
            for cell in _inside(row, _TC):
                text = "\n".join(filter(None, [self._text(paragraph) for paragraph in cell.iter(_P)]))
                is_merged, span = _merging(cell)
                if is_merged and len(texts) < len(above):
                    text = above[len(texts)]
                texts.append(text)
                if span > 1:
                    texts += [""] * (span - 1)
            above = texts
            yield texts

    # --- blocks ---

    def _line(self, line: str, kind: BlockKind, page: int | None) -> None:
        if self._kind != kind:
            self._end_lines()
        if not self._lines:
            self._kind, self._begun = kind, page
        self._lines.append(line)

    def _end_lines(self) -> None:
        if self._lines:
            self.blocks.append(Block("\n".join(self._lines), kind=self._kind, page=self._begun))
            self._lines.clear()

    def _add(self, text: str, kind: BlockKind, *, level: int = 0, page: int | None = None) -> None:
        self._end_lines()
        if text.strip():
            self.blocks.append(Block(text, kind=kind, level=level, page=page or self.page))


def _write_links(root: Element, relations: Mapping[str, Relation]) -> None:
    """Write links as Markdown, each into the first of its texts."""
    for link in root.iter(_HYPERLINK):
        relation = relations.get(link.get(R + "id") or "")
        texts = list(link.iter(_T))
        shown = "".join(text.text or "" for text in texts).strip()
        if relation and relation.is_external and shown and len(relation.target) <= _LONGEST_LINK:
            for text in texts:
                text.text = ""
            texts[0].text = f"[{shown}]({relation.target.replace('(', '%28').replace(')', '%29')})"


def _has(root: Element, tag: str) -> bool:
    return next(root.iter(tag), None) is not None


def _begins_a_page(paragraph: Element) -> bool:
    first = next(paragraph.iter(_T, _RENDERED_BREAK), None)
    return first is not None and first.tag == _RENDERED_BREAK


def _is_frame(table: Element) -> bool:
    """Whether a table has a single cell: it draws a box around text."""
    cells = table.iter(_TC)
    return next(cells, None) is not None and next(cells, None) is None


def _inside(parent: Element, tag: str) -> Iterator[Element]:
    """The children with this tag, those in content controls and insertions as well; not those of inner tables."""
    stack = [iter(parent)]
    while stack:
        child = next(stack[-1], None)
        if child is None:
            stack.pop()
        elif child.tag == tag:
            yield child
        elif child.tag in (_W + "sdt", _W + "sdtContent", _W + "ins", _W + "customXml", _W + "moveTo"):
            stack.append(iter(child))


def _merging(cell: Element) -> tuple[bool, int]:
    """Whether a cell is a part of the one above it, and how many columns it spans."""
    is_merged, span = False, 1
    properties = _properties(cell, _TCPR)
    for entry in () if properties is None else properties:
        if entry.tag == _W + "vMerge":
            is_merged = entry.get(_W + "val") in (None, "continue")
        elif entry.tag == _W + "gridSpan":
            value = entry.get(_W + "val") or ""
            span = max(1, min(int(value), _MOST_SPAN)) if value.isdecimal() and len(value) < 6 else 1
    return is_merged, span


def _title(blocks: list[Block]) -> str:
    return next((block.text for block in blocks if block.kind == "heading" and block.level == 1), "")


# --- styles and numbering ---


def _properties(parent: Element, tag: str) -> Element | None:
    """The properties of a paragraph or a cell, which come first if there are any."""
    return parent[0] if len(parent) and parent[0].tag == tag else None


def _child(parent: Element, tag: str) -> Element | None:
    """The first child with a tag; lxml's own `find` reads a path each time."""
    return next(parent.iterchildren(tag), None)


def _value(properties: Element, name: str) -> str | None:
    found = _child(properties, _W + name)
    return None if found is None else found.get(_W + "val")


def _numbering_of(properties: Element) -> tuple[str, int] | None:
    found = _child(properties, _W + "numPr")
    if found is None:
        return None
    level = _value(found, "ilvl") or "0"
    return (_value(found, "numId") or "", int(level) if level in "012345678" else 0)


def _styles(root: Element | None) -> dict[str, _Style]:
    """What each style makes of a paragraph; that of '' is the one of paragraphs that name none."""
    found = () if root is None else root.iter(_W + "style")
    entries = {entry.get(_W + "styleId") or "": entry for entry in found if entry.get(_W + "type") == "paragraph"}
    made = {name: _style(entry, entries) for name, entry in entries.items()}
    usual = next((name for name, entry in entries.items() if entry.get(_W + "default") == "1"), None)
    return made if usual is None else {**made, "": made[usual]}


def _style(entry: Element, entries: Mapping[str, Element]) -> _Style:
    level, is_code, numbering = 0, False, None
    for _ in range(10):  # styles that stand on each other; in a hostile file they stand in a circle
        name = (_value(entry, "name") or "").lower()
        properties = _child(entry, _PPR)
        outline = None if properties is None else _value(properties, "outlineLvl")
        heading = _HEADING.match(name)
        if not level:
            level = int(heading[1]) if heading else 1 if name == "title" else 0
        if not level and outline and outline in "012345678":
            level = int(outline) + 1
        is_code = is_code or _CODE.match(name) is not None
        numbering = numbering or (None if properties is None else _numbering_of(properties))
        basis = entries.get(_value(entry, "basedOn") or "")
        if basis is None:
            break
        entry = basis
    return _Style(level, is_code, numbering)


def _numbering(root: Element | None) -> dict[tuple[str, int], _Level]:
    if root is None:
        return {}
    abstract = {entry.get(_W + "abstractNumId"): entry for entry in root.iter(_W + "abstractNum")}
    levels: dict[tuple[str, int], _Level] = {}
    for entry in root.iter(_W + "num"):
        basis = abstract.get(_value(entry, "abstractNumId"))
        for level in () if basis is None else basis.iter(_W + "lvl"):
            place, start = level.get(_W + "ilvl") or "", _value(level, "start") or "1"
            if place in ("0", "1", "2", "3", "4", "5", "6", "7", "8"):
                is_counted = (_value(level, "numFmt") or "bullet") not in _BULLETS
                first = int(start) if start.isdecimal() and len(start) < 6 else 1
                levels[entry.get(_W + "numId") or "", int(place)] = _Level(is_counted, first)
    return levels
