"""Read the paragraphs, lists, tables and drawings of OpenDocument files into blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from jackfield.retrieval import Block, BlockKind
from jackfield_documents import pipe_table
from jackfield_markup import Element
from jackfield_opendocument.names import (
    ANNOTATION,
    CHART,
    DC,
    DRAW,
    LIST,
    MATH,
    OFFICE,
    SVG,
    TABLE_TABLE,
    TEXT,
    XLINK,
    H,
    P,
)
from jackfield_opendocument.package import Package
from jackfield_opendocument.styles import number
from jackfield_opendocument.tables import Spare, rows_of

_SPACES = re.compile(r"[ \t\r\n]+")
_LONGEST_LINK = 300  # characters
_MOST_SPACES = 80
_MOST_INDENT = 20  # levels
_SOFT_BREAK = TEXT + "soft-page-break"
_NOTE = TEXT + "note"
# Deleted text, copies of headings, declarations, and pictures of content that is read as text.
_LEFT_OUT = frozenset(
    (
        *(TEXT + name for name in ("tracked-changes", "table-of-content", "illustration-index", "table-index")),
        *(TEXT + name for name in ("object-index", "alphabetical-index", "sequence-decls", "variable-decls")),
        *(TEXT + name for name in ("user-field-decls", "ruby-text", "note-citation")),
        *(DRAW + name for name in ("image", "object-ole", "plugin")),
        SVG + "title",
        SVG + "desc",
        ANNOTATION,
    )
)


@dataclass(slots=True)
class Reader:
    """Reads elements into blocks, merging list items and lines of code.

    Attributes:
        package: The file.
        spare: The budget for repeated rows and cells.
        page: The page or slide number, or None if there are no pages.
        blocks: The blocks read so far.
    """

    package: Package
    spare: Spare
    page: int | None = None
    blocks: list[Block] = field(default_factory=list)
    _lines: list[str] = field(default_factory=list)
    _kind: BlockKind = "list"
    _begun: int | None = None
    _drawings: list[Element] = field(default_factory=list)
    _notes: list[str] = field(default_factory=list)
    _note_counts: dict[str, int] = field(default_factory=dict)
    _counts: dict[tuple[str, int], int] = field(default_factory=dict)

    def read(self, parent: Element) -> None:
        """Read the content of an element, including sections, groups and unknown elements."""
        for child in parent:
            self._read_one(child)

    def finish(self) -> list[Block]:
        """Return all blocks, with the notes at the end."""
        self._end_lines()
        self.blocks += [Block(note, page=self.page) for note in self._notes]
        return self.blocks

    def text_of(self, element: Element) -> str:
        """Return the non-empty paragraphs in an element, separated by line breaks."""
        outer, self._drawings = self._drawings, []  # the paragraphs of drawings are among those of the element
        texts = [self._text(paragraph).strip() for paragraph in _paragraphs_in(element)]
        self._drawings = outer
        return "\n".join(text for text in texts if text)

    def line_of(self, paragraph: Element) -> str:
        """Return the text of a paragraph, ignoring drawings."""
        text = self._text(paragraph).strip()
        self._drawings.clear()
        return text

    def _read_one(self, child: Element) -> None:
        tag = child.tag
        if tag in (P, H):
            self._paragraph(child)
        elif tag == LIST:
            self._list(child, "", 1)
        elif tag == TABLE_TABLE:
            self._add(pipe_table(rows_of(child, self.text_of, self.spare, fill_merged=True)), "table")
        elif tag == _SOFT_BREAK:
            self._turn_page()
        elif tag == DRAW + "frame":
            self._frame(child)
        elif tag == DRAW + "object":
            self._object(child)
        elif tag not in _LEFT_OUT:
            self.read(child)

    # --- paragraphs ---

    def _paragraph(self, paragraph: Element) -> None:
        styles, style = self.package.styles, paragraph.get(TEXT + "style-name", "")
        if self.blocks and styles.begins_page(style):
            self._turn_page()
        page = self.page
        text = self._text(paragraph)
        if paragraph.tag == H:
            level = number(paragraph.get(TEXT + "outline-level"))
            self._add(" ".join(text.split()), "heading", level=max(1, level), page=page)
        elif styles.is_title(style):
            self._add(" ".join(text.split()), "heading", level=1, page=page)
        elif styles.is_code(style):
            self._line(text.rstrip(), "code", page)
        else:
            self._add(text.strip(), "paragraph", page=page)
        self._draw()

    def _text(self, element: Element) -> str:
        parts: list[str] = []
        self._write(element, parts)
        return "".join(parts)

    def _write(self, element: Element, parts: list[str]) -> None:
        if element.text:
            parts.append(_SPACES.sub(" ", element.text))
        for child in element:
            self._write_one(child, parts)
            if child.tail:
                parts.append(_SPACES.sub(" ", child.tail))

    def _write_one(self, child: Element, parts: list[str]) -> None:
        tag = child.tag
        if tag == TEXT + "s":
            parts.append(" " * min(number(child.get(TEXT + "c")), _MOST_SPACES))
        elif tag == TEXT + "tab":
            parts.append("\t")
        elif tag == TEXT + "line-break":
            parts.append("\n")
        elif tag == _SOFT_BREAK:
            self._turn_page()
        elif tag == TEXT + "a":
            parts.append(self._link(child))
        elif tag in (_NOTE, ANNOTATION):
            parts.append(self._note(child))
        elif tag.startswith(DRAW):
            self._drawings.append(child)
        elif tag not in _LEFT_OUT:
            self._write(child, parts)

    def _link(self, link: Element) -> str:
        text, target = self._text(link), link.get(XLINK + "href", "")
        if not text.strip() or not target or target.startswith("#") or len(target) > _LONGEST_LINK:
            return text
        return f"[{text}]({target.replace('(', '%28').replace(')', '%29')})"

    def _note(self, note: Element) -> str:
        """Store a note or comment for the end, and return its reference mark."""
        kind = "c" if note.tag == ANNOTATION else "e" if note.get(TEXT + "note-class") == "endnote" else ""
        text = self.text_of(note)
        if not text:
            return ""
        self._note_counts[kind] = self._note_counts.get(kind, 0) + 1
        mark = f"[^{kind}{self._note_counts[kind]}]"
        author = (note.findtext(DC + "creator") or "").strip()
        self._notes.append(f"{mark}: {author}: {text}" if author else f"{mark}: {text}")
        return mark

    def _turn_page(self) -> None:
        if self.page is not None:
            self.page += 1

    # --- lists ---

    def _list(self, element: Element, style: str, level: int) -> None:
        style = element.get(TEXT + "style-name") or style
        first = self.package.styles.first_number(style, level)
        goes_on = element.get(TEXT + "continue-numbering") == "true" or element.get(TEXT + "continue-list") is not None
        count = self._counts.get((style, level)) if goes_on else None
        if count is None:
            count = (1 if first is None else first) - 1
        for item in element:
            lead = "  "
            if item.tag == TEXT + "list-item":
                count = number(item.get(TEXT + "start-value"), count + 1)
                lead = "- " if first is None else f"{count}. "
            self._item(item, lead, style, level)
        self._counts[style, level] = count

    def _item(self, item: Element, lead: str, style: str, level: int) -> None:
        indent = "  " * min(level - 1, _MOST_INDENT)
        for child in item:
            if child.tag == P:
                page, text = self.page, " ".join(self._text(child).split())
                if text:
                    self._line(f"{indent}{lead}{text}", "list", page)
                    lead = "  "
                self._draw()
            elif child.tag == LIST:
                self._list(child, style, level + 1)
            else:
                self._read_one(child)

    # --- drawings ---

    def _draw(self) -> None:
        """Read the drawings anchored in the paragraph that just ended."""
        drawings, self._drawings = self._drawings, []
        for drawing in drawings:
            self._read_one(drawing)

    def _frame(self, frame: Element) -> None:
        names = (frame.findtext(SVG + "title"), frame.findtext(SVG + "desc"))
        name = ": ".join(" ".join(text.split()) for text in names if text and text.strip())
        if name and frame.find(DRAW + "image") is not None and frame.find(DRAW + "object") is None:
            self._add(f"(Picture: {name})", "paragraph")
        self.read(frame)

    def _object(self, element: Element) -> None:
        root = self.package.object_root(element, element.get(XLINK + "href", ""))
        if root is None:
            return
        chart = next(root.iter(CHART + "chart"), None)
        if chart is not None:
            title = chart.find(CHART + "title")
            text = "" if title is None else " ".join(self.text_of(title).split())
            self._add(f"Chart: {text}" if text else "Chart", "paragraph")
            for table in chart.iterchildren(TABLE_TABLE):
                self._add(pipe_table(rows_of(table, self.text_of, self.spare, fill_merged=False)), "table")
        elif root.tag == MATH + "math":
            formula = next(root.iter(MATH + "annotation"), root)
            self._add(" ".join("".join(formula.itertext()).split()), "paragraph")
        elif tables := root.findall(f"{OFFICE}body/{OFFICE}spreadsheet/{TABLE_TABLE}"):
            for table in tables:
                self._add(pipe_table(rows_of(table, self.text_of, self.spare, fill_merged=False)), "table")
        else:
            self._add("(Embedded object, not read)", "paragraph")

    # --- blocks ---

    def _line(self, line: str, kind: Literal["list", "code"], page: int | None) -> None:
        if self._kind != kind:
            self._end_lines()
        if not self._lines:
            self._kind, self._begun = kind, page
        self._lines.append(line)

    def _end_lines(self) -> None:
        text = "\n".join(self._lines).strip("\n")
        if text.strip():
            self.blocks.append(Block(text, kind=self._kind, page=self._begun))
        self._lines.clear()

    def _add(self, text: str, kind: BlockKind, *, level: int = 0, page: int | None = None) -> None:
        if text.strip():
            self._end_lines()
            self.blocks.append(Block(text, kind=kind, level=level, page=self.page if page is None else page))


def _paragraphs_in(element: Element) -> Iterator[Element]:
    """Yield the paragraphs in an element, including those in drawings but not those in notes and comments."""
    for child in element:
        if child.tag in (P, H):
            yield child
        if child.tag not in (_NOTE, ANNOTATION):
            yield from _paragraphs_in(child)
