"""Parser for Word files."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import ClassVar

from lxml import etree

from jackfield.errors import DocParserError
from jackfield.retrieval import Block, BlockKind, Document, Parser
from jackfield_documents import pipe_table
from jackfield_markup import Element
from jackfield_office.drawings import drawings_of
from jackfield_office.package import LEVELS, MC, Package, R, links_in

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_P, _TBL, _TR, _TC, _T, _PPR, _TCPR = (_W + name for name in ("p", "tbl", "tr", "tc", "t", "pPr", "tcPr"))
_HYPERLINK, _BOX, _RENDERED_BREAK = _W + "hyperlink", _W + "txbxContent", _W + "lastRenderedPageBreak"
_NOTES = {"footnotes": "", "endnotes": "e", "comments": "c"}  # the prefix of their numbers
_NO_LIST = "0"  # the list number that means no list
_GONE = (_W + "del", _W + "moveFrom", MC + "Fallback")  # deleted text, moved text, and a duplicate for older programs
_LEVEL_OF_NAME = {"title": 1, **{f"heading {level}": level for level in range(1, 10)}}
_CODE = re.compile(r"(?:source ?code|html preformatted|preformatted(?: text)?|code(?: block)?|plain text)$")
_WRAPPERS = tuple(_W + name for name in ("sdt", "sdtContent", "ins", "customXml", "moveTo"))
_MOST_SPAN = 63  # columns, which is Word's limit

_BULLETS = ("bullet", "none")


class DocxParser(Parser):
    """Parses Word files in reading order. Tracked insertions are kept, and deletions are dropped.

    Blocks have page numbers if Word recorded page breaks when saving the file. Unreadable notes, comments, charts and
    diagrams are listed in `metadata["unread"]`.
    """

    name: ClassVar[str] = "docx"

    def parse(self, data: bytes, *, source: str) -> Document:
        """Parse a Word file into blocks.

        Raises:
            DocParserError: The file is empty, encrypted, damaged, not a Word file, too large when unpacked, or without
                text.
        """
        package = Package(data, source=source, kind="docx", main="word/")
        blocks = _blocks_of(package)
        if not blocks:
            raise DocParserError(f"{source} contains no text: it may contain only images")
        title, stated = package.stated()
        return Document(source, tuple(blocks), content_hash="", title=title or _title(blocks), metadata=stated)


def _blocks_of(package: Package) -> list[Block]:
    root = package.part(package.main)
    etree.strip_elements(root, *_GONE, with_tail=False)
    _write_links(root, links_in(package.relations(package.main)))
    reader = _Reader(
        _styles(package.part_beside("styles.xml", "the styles")),
        _numbering(package.part_beside("numbering.xml", "the numbers of its lists")),
        page=1 if _has(root, _RENDERED_BREAK) else None,
        has_boxes=_has(root, _BOX),
    )
    reader.read(root)
    reader.add(drawings_of(package, package.main))
    for name, mark in _NOTES.items():
        reader.read_notes(package.part_beside(f"{name}.xml", f"the {name}"), mark)
    return reader.blocks


@dataclass(frozen=True, slots=True)
class _Style:
    """Paragraph properties, set directly or by a style."""

    level: int = 0
    is_code: bool = False
    numbering: tuple[str, int] | None = None

    @property
    def place_in_list(self) -> tuple[str, int] | None:
        """The paragraph's list and level, or None if it is not in a list."""
        return self.numbering if self.numbering and self.numbering[0] != _NO_LIST else None

    def over(self, basis: _Style) -> _Style:
        """Return these properties with missing values filled in from a base style."""
        return _Style(self.level or basis.level, self.is_code or basis.is_code, self.numbering or basis.numbering)


_PLAIN = _Style()


@dataclass(frozen=True, slots=True)
class _Level:
    """The numbering of a list level."""

    is_counted: bool = False
    start: int = 1


@dataclass(slots=True)
class _Reader:
    """Reads paragraphs and tables into blocks, merging list items and lines of code."""

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
        """Read the paragraphs and tables in an element, including those inside content controls and other wrappers."""
        for child in _reached(parent, (_P, _TBL)):
            if child.tag == _P:
                self._paragraph(child)
            elif _is_frame(child):
                self.read(next(child.iter(_TC)))
            else:
                self._table(child)

    def add(self, blocks: Iterable[Block]) -> None:
        """Append blocks."""
        self._end_lines()
        self.blocks += blocks

    def read_notes(self, notes: Element | None, mark: str) -> None:
        """Append notes or comments, each with its reference mark."""
        for note in () if notes is None else notes:
            text = self._all_text(note) if note.get(_W + "type") in (None, "normal") else ""
            if text:
                author = note.get(_W + "author")
                text = f"{author}: {text}" if author else text
                self._add(f"[^{mark}{note.get(_W + 'id')}]: {text}", "paragraph")

    def _paragraph(self, paragraph: Element) -> None:
        boxes = list(paragraph.iter(_BOX)) if self.has_boxes else []
        for box in boxes:
            box.getparent().remove(box)
        before = self.page
        text = self._text(paragraph)
        if text.strip():
            page = self.page if _begins_a_page(paragraph) else before
            self._add_paragraph(text, self._style_of(paragraph), page)
        for box in boxes:
            self.read(box)

    def _add_paragraph(self, text: str, style: _Style, page: int | None) -> None:
        if style.level:
            self._add(" ".join(text.split()), "heading", level=style.level, page=page)
        elif place := style.place_in_list:
            self._line(self._item(place, text.strip()), "list", page)
        elif style.is_code:
            self._line(text.rstrip(), "code", page)
        else:
            self._add(text.strip(), "paragraph", page=page)

    def _style_of(self, paragraph: Element) -> _Style:
        properties = _properties(paragraph, _PPR)
        if properties is None:
            return self.styles[""]
        own = _Style(_outline_level(properties), numbering=_numbering_of(properties))
        return own.over(self.styles.get(_value(properties, "pStyle") or "", _PLAIN))

    def _all_text(self, element: Element) -> str:
        """Return the non-empty paragraphs in an element, separated by line breaks."""
        return "\n".join(filter(None, map(self._text, element.iter(_P))))

    def _text(self, paragraph: Element) -> str:
        """Return the text of a paragraph, and advance the page number past the page breaks in it."""
        if self.page is not None:
            self.page += sum(1 for _ in paragraph.iter(_RENDERED_BREAK))
        # Iterate over all nodes, because lxml takes longer to prepare a list of tags than to walk through a paragraph.
        return "".join([write(node) for node in paragraph.iter() if (write := _WRITTEN.get(node.tag))])

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
                text = self._all_text(cell)
                is_merged, span = _merging(cell)
                if is_merged and len(texts) < len(above):
                    text = above[len(texts)]
                texts += [text, *[""] * (span - 1)]
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


def _write_links(root: Element, links: Mapping[str, str]) -> None:
    """Rewrite hyperlinks as Markdown, in the first text node of each link."""
    for link in root.iter(_HYPERLINK):
        target = links.get(link.get(R + "id", ""))
        if target is not None:
            _write_link(list(link.iter(_T)), target)


def _write_link(texts: Sequence[Element], target: str) -> None:
    shown = "".join(map(_text_of, texts)).strip()
    if shown:
        for text in texts:
            text.text = ""
        texts[0].text = f"[{shown}]({target})"


def _text_of(node: Element) -> str:
    return node.text or ""


_WRITTEN: dict[object, Callable[[Element], str]] = {
    _T: _text_of,
    _M + "t": _text_of,
    _W + "tab": lambda _: "\t",
    _W + "br": lambda _: "\n",
    _W + "cr": lambda _: "\n",
    _W + "noBreakHyphen": lambda _: "-",
    _W + "footnoteReference": lambda node: f"[^{node.get(_W + 'id')}]",
    _W + "endnoteReference": lambda node: f"[^e{node.get(_W + 'id')}]",
    _W + "commentReference": lambda node: f"[^c{node.get(_W + 'id')}]",
}
"""Functions that return a node's text, by tag. Other nodes have no text."""


def _has(root: Element, tag: str) -> bool:
    return next(root.iter(tag), None) is not None


def _begins_a_page(paragraph: Element) -> bool:
    first = next(paragraph.iter(_T, _RENDERED_BREAK), None)
    return first is not None and first.tag == _RENDERED_BREAK


def _is_frame(table: Element) -> bool:
    """Return True if a table has a single cell and therefore only draws a box around text."""
    cells = table.iter(_TC)
    return next(cells, None) is not None and next(cells, None) is None


def _inside(parent: Element, tag: str) -> Iterator[Element]:
    """Yield children with this tag. Content controls and insertions are searched as well, but not nested tables."""
    return _reached(parent, (tag,), through=_WRAPPERS)


def _reached(parent: Element, tags: Collection[str], *, through: Collection[str] | None = None) -> Iterator[Element]:
    """Yield the nearest descendants with these tags in document order.

    If `through` is given, only elements with those tags are searched.
    """
    stack = [iter(parent)]
    while stack:
        child = next(stack[-1], None)
        if child is None:
            stack.pop()
        elif child.tag in tags:
            yield child
        elif through is None or child.tag in through:
            stack.append(iter(child))


def _merging(cell: Element) -> tuple[bool, int]:
    """Return True if a cell continues the cell above it, and the number of columns it spans."""
    properties = _properties(cell, _TCPR)
    merging = _child(properties, _W + "vMerge")
    is_merged = merging is not None and merging.get(_W + "val") in (None, "continue")
    return is_merged, max(1, min(_small(_value(properties, "gridSpan")), _MOST_SPAN))


def _title(blocks: list[Block]) -> str:
    return next((block.text for block in blocks if block.kind == "heading" and block.level == 1), "")


# --- styles and numbering ---


def _properties(parent: Element, tag: str) -> Element | None:
    """Return the properties of a paragraph or cell, or None. They are always the first child."""
    return parent[0] if len(parent) and parent[0].tag == tag else None


def _child(parent: Element | None, tag: str) -> Element | None:
    """Return the first child with a tag, or None. Faster than lxml's `find`, which parses its path on each call."""
    return None if parent is None else next(parent.iterchildren(tag), None)


def _all(root: Element | None, tag: str) -> Iterable[Element]:
    return () if root is None else root.iter(tag)


def _value(properties: Element | None, name: str) -> str | None:
    found = _child(properties, _W + name)
    return None if found is None else found.get(_W + "val")


def _small(number: str | None) -> int:
    """Parse a number of up to five digits. Anything else yields 1."""
    return int(number) if number and number.isdecimal() and len(number) < 6 else 1


def _outline_level(properties: Element | None) -> int:
    """Return the heading level, or 0 for other paragraphs."""
    return LEVELS.get(_value(properties, "outlineLvl") or "", -1) + 1


def _numbering_of(properties: Element | None) -> tuple[str, int] | None:
    found = _child(properties, _W + "numPr")
    if found is None:
        return None
    return _value(found, "numId") or "", LEVELS.get(_value(found, "ilvl") or "", 0)


def _styles(root: Element | None) -> dict[str, _Style]:
    """Return the properties of each style by id. The key '' is the default paragraph style."""
    entries = {
        entry.get(_W + "styleId", ""): entry
        for entry in _all(root, _W + "style")
        if entry.get(_W + "type") == "paragraph"
    }
    usual = [("", entry) for entry in entries.values() if entry.get(_W + "default") == "1"]
    return {"": _PLAIN} | {name: _style(entry, entries) for name, entry in [*entries.items(), *usual]}


def _style(entry: Element, entries: Mapping[str, Element]) -> _Style:
    return reduce(_Style.over, map(_own_style, _bases(entry, entries)))


def _bases(entry: Element | None, entries: Mapping[str, Element]) -> Iterator[Element]:
    """Yield a style and its base styles, at most ten, because the chain may be circular in a malicious file."""
    for _ in range(10):
        if entry is not None:
            yield entry
            entry = entries.get(_value(entry, "basedOn") or "")


def _own_style(entry: Element) -> _Style:
    name, properties = (_value(entry, "name") or "").lower(), _child(entry, _PPR)
    level = _LEVEL_OF_NAME.get(name) or _outline_level(properties)
    return _Style(level, _CODE.match(name) is not None, _numbering_of(properties))


def _numbering(root: Element | None) -> dict[tuple[str, int], _Level]:
    levels = {entry.get(_W + "abstractNumId"): _levels(entry) for entry in _all(root, _W + "abstractNum")}
    return {
        (entry.get(_W + "numId", ""), place): level
        for entry in _all(root, _W + "num")
        for place, level in levels.get(_value(entry, "abstractNumId"), {}).items()
    }


def _levels(abstract: Element) -> dict[int, _Level]:
    found = ((LEVELS.get(level.get(_W + "ilvl", "")), level) for level in abstract.iter(_W + "lvl"))
    return {place: _level(level) for place, level in found if place is not None}


def _level(level: Element) -> _Level:
    is_counted = (_value(level, "numFmt") or "bullet") not in _BULLETS
    return _Level(is_counted, _small(_value(level, "start")))
