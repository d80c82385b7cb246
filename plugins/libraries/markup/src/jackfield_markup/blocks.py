"""HTML as blocks: paragraphs, headings, lists, tables and code, in the order of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from lxml import etree

from jackfield_documents import pipe_table
from jackfield_markup.trees import Element
from jackfield_search_parts.documents import Block, BlockKind

_LONGEST_LINK = 300  # characters; longer ones are for machines, or are the picture itself
_LONGEST_CELL = 2000  # characters; in a table of data no cell is that long
_MOST_SPAN = 1000  # columns or rows (HTML, 4.9.11)
_BREAK = "\v"  # which stands in no page
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_LISTS = frozenset(("ul", "ol", "menu", "dl", "dir"))
_ITEMS = frozenset(("li", "dt", "dd"))
_CELLS = frozenset(("td", "th"))
_CODE = frozenset(("code", "kbd", "samp", "tt"))
_UNSEEN_TAGS = (
    "title script style template noscript svg canvas iframe object embed applet audio video map select datalist button "
    "input textarea dialog noembed noframes"
)
_APART_TAGS = (
    "address article aside blockquote body caption center details div fieldset figcaption figure footer form head "
    "header hgroup html legend main nav optgroup option p search section summary table tbody td tfoot th thead tr"
)
_UNSEEN = frozenset(_UNSEEN_TAGS.split())
_APART = frozenset(_APART_TAGS.split())
# What has a say in the blocks; all other elements are text in a line.
_STRUCTURE = frozenset((*_APART, *_HEADINGS, *_LISTS, *_ITEMS, *_CODE, "pre", "br", "hr", "img", "a"))


def blocks_of(root: Element, *, leave_out: Callable[[Element], bool] | None = None) -> Iterator[Block]:
    """The blocks of an element and all that is in it, in order.

    Links are Markdown links, inline code stands in backticks, a list is one block, a table that holds data is a GitHub
    table, and one that holds a layout is what stands in it.

    Args:
        root: The element.
        leave_out: Whether an element is left out, with all that is in it.
    """
    writer = _Writer()
    inline = writer.inline
    walker = etree.iterwalk(root, events=("start", "end"))
    skipped = None
    for event, element in walker:
        tag = element.tag
        if event == "start":
            is_left_out = _is_unseen(element, tag) or (leave_out is not None and leave_out(element))
            if is_left_out or (tag in _STRUCTURE and not writer.start(tag, element)):
                skipped = element
                walker.skip_subtree()
            elif tag not in _STRUCTURE and (text := element.text):
                inline.append(text)
            continue
        if element is skipped:
            skipped = None
        elif tag in _STRUCTURE:
            writer.end(tag, element)
        if element is not root and (tail := element.tail):
            inline.append(tail)
        if writer.done:
            yield from writer.take()
    writer.flush_all()
    yield from writer.take()


@dataclass(slots=True)
class _List:
    """A list that is being read: its numbers, if it has them, and what stands before the next line."""

    number: int | None
    lead: str = ""
    is_implied: bool = False


@dataclass(slots=True)
class _Mark:
    """Where a link or inline code began."""

    tag: str
    place: int
    flushes: int


@dataclass(slots=True)
class _Writer:
    """What has been read of a page and is not yet a block."""

    inline: list[str] = field(default_factory=list)
    flushes: int = 0
    marks: list[_Mark] = field(default_factory=list)
    level: int = 0
    lists: list[_List] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    done: list[Block] = field(default_factory=list)

    def take(self) -> list[Block]:
        """What is finished."""
        done, self.done = self.done, []
        return done

    # --- elements ---

    def start(self, tag: str, element: Element) -> bool:
        """An element begins; False if it has been read whole."""
        if tag in _APART or tag in _HEADINGS:
            if tag == "table" and (rows := _rows_of_data(element)):
                self._table(element, rows)
                return False
            self.flush()
            self.level = _level(tag, element) or self.level
        elif tag in _LISTS or tag in _ITEMS:
            self._start_list(tag, element)
        elif tag == "pre":
            self._code(element)
            return False
        else:
            self._start_inline(tag, element)
        if text := element.text:
            self.inline.append(text)
        return True

    def end(self, tag: str, element: Element) -> None:
        """An element ends."""
        if tag in _APART or tag in _HEADINGS:
            self.flush()
            if tag in _HEADINGS or _level(tag, element):
                self.level = 0
        elif tag in _LISTS:
            self._end_list()
        elif tag in _ITEMS:
            self.flush()
            if self.lists and self.lists[-1].is_implied and getattr(element.getnext(), "tag", None) not in _ITEMS:
                self._end_list()
        elif self.marks and self.marks[-1].tag == tag:
            self._end_mark(self.marks.pop(), element)

    def flush(self) -> None:
        """End the line: it is a paragraph, a heading, or a line of a list."""
        if not self.inline:
            return
        text = _lines_of("".join(self.inline))
        self.inline.clear()
        self.flushes += 1
        if not text:
            return
        if self.lists:
            self._line_of_list(text)
        elif self.level:
            heading = " ".join(text.split("\n")).rstrip("¶#").rstrip()
            if heading:
                self.done.append(Block(heading, kind="heading", level=self.level))
        else:
            self.done.append(Block(text))

    def flush_all(self) -> None:
        """End the line, and the list that it may stand in."""
        self.flush()
        self._finish_list()

    # --- parts ---

    def _start_inline(self, tag: str, element: Element) -> None:
        if tag == "br":
            self.inline.append(_BREAK)
        elif tag == "hr":
            self.flush()
        elif tag == "img":
            self.inline.append(element.get("alt") or "")
        elif (tag == "a" or tag in _CODE) and not self.level and all(mark.tag != tag for mark in self.marks):
            self.marks.append(_Mark(tag, len(self.inline), self.flushes))

    def _end_mark(self, mark: _Mark, element: Element) -> None:
        if mark.flushes != self.flushes:
            return  # a link around whole paragraphs
        text = "".join(self.inline[mark.place :])
        shown = _lines_of(text)
        if not shown or "\n" in shown:
            return
        if mark.tag == "a":
            if shown in ("¶", "#"):
                shown = ""
            elif target := _target(element):
                shown = f"[{shown}]({target})"
        elif "`" not in shown:
            shown = f"`{shown}`"
        before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
        self.inline[mark.place :] = [before, shown, after]

    def _start_list(self, tag: str, element: Element) -> None:
        self.flush()
        if tag in _LISTS:
            self.lists.append(_List(_number(element.get("start"), 1) if tag == "ol" else None))
            return
        if not self.lists:  # an item without a list, which browsers show as one
            self.lists.append(_List(None, is_implied=True))
        inner = self.lists[-1]
        if tag == "dd":
            inner.lead = "  "
        elif inner.number is None:
            inner.lead = "- "
        else:
            inner.number = _number(element.get("value"), inner.number)
            inner.lead = f"{inner.number}. "
            inner.number += 1

    def _end_list(self) -> None:
        self.flush()
        if self.lists:
            self.lists.pop()
        if not self.lists:
            self._finish_list()

    def _line_of_list(self, text: str) -> None:
        inner = self.lists[-1]
        indent = "  " * (min(len(self.lists), 20) - 1)
        for line in text.split("\n"):
            self.lines.append(f"{indent}{inner.lead or '  '}{line}")
            inner.lead = ""

    def _finish_list(self) -> None:
        if self.lines:
            self.done.append(Block("\n".join(self.lines), kind="list"))
            self.lines.clear()

    def _code(self, element: Element) -> None:
        for line_break in element.iter("br"):
            line_break.text = "\n"
        self._apart("".join(element.itertext()).strip("\n").rstrip(), "code")

    def _table(self, element: Element, rows: Sequence[Sequence[Element]]) -> None:
        caption = next(element.iterchildren("caption"), None)
        if caption is not None:
            self._apart(_lines_of("".join(caption.itertext())), "paragraph")
        self._apart(pipe_table(_texts(rows)), "table")

    def _apart(self, text: str, kind: BlockKind) -> None:
        self.flush_all()
        if text.strip():
            self.done.append(Block(text, kind=kind))


def _is_unseen(element: Element, tag: object) -> bool:
    if not isinstance(tag, str) or tag in _UNSEEN:
        return True
    if not element.keys():
        return False
    style = element.get("style")
    if style and "none" in style and "display:none" in style.replace(" ", "").lower():
        return True
    return element.get("hidden") is not None or element.get("aria-hidden") == "true"


def _level(tag: str, element: Element) -> int:
    if tag in _HEADINGS:
        return _HEADINGS[tag]
    return _number(element.get("aria-level"), 2) if element.get("role") == "heading" else 0


def _number(text: str | None, default: int) -> int:
    """A small number of an attribute, at least 1."""
    return int(text) if text and len(text) < 6 and text.isascii() and text.isdecimal() and int(text) else default


def _lines_of(text: str) -> str:
    """A text as it is shown: white space runs together, and breaks stay."""
    if _BREAK not in text:
        return " ".join(text.replace("\xad", "").split())
    lines = (" ".join(line.replace("\xad", "").split()) for line in text.split(_BREAK))
    return "\n".join(line for line in lines if line)


def _target(element: Element) -> str:
    """Where a link leads; '' if that says nothing to a reader."""
    target = "".join((element.get("href") or "").split())
    if not target or len(target) > _LONGEST_LINK or target.startswith("#"):
        return ""
    scheme, colon, _ = target.partition(":")
    is_other = colon and "/" not in scheme and scheme.lower() not in ("http", "https", "mailto", "ftp", "tel")
    return "" if is_other else target.replace("(", "%28").replace(")", "%29")


# --- tables ---


def _rows_of_data(table: Element) -> list[list[Element]] | None:
    """The cells of a table that is one; None if it is a way to put parts of a page beside each other."""
    if table.get("role") in ("presentation", "none"):
        return None
    if next(table.iterdescendants("table", "form", *_HEADINGS), None) is not None:
        return None
    rows = [[cell for cell in row if cell.tag in _CELLS] for row in table.iter("tr")]
    if len(rows) < 2 and next(table.iter("th"), None) is None:
        return None
    is_wide = any(len(row) > 1 for row in rows)
    return rows if is_wide and not any(len(cell) and _is_long(cell) for row in rows for cell in row) else None


def _is_long(cell: Element) -> bool:
    return len(etree.tostring(cell, method="text", encoding="unicode")) > _LONGEST_CELL


def _texts(rows: Sequence[Sequence[Element]]) -> Iterator[list[str]]:
    """The texts of a table. What spans rows stands in each of them; beside what spans columns stand empty cells."""
    below: dict[int, tuple[str, int]] = {}
    # A few spans of a thousand rows and columns would make a table of gigabytes out of a page of kilobytes.
    spare = 1000 + 4 * sum(map(len, rows))
    for row in rows:
        texts: list[str] = []
        for cell in row:
            if below:
                spare -= _from_above(texts, below)
            text = _cell_text(cell) if len(cell) else _lines_of(cell.text or "")
            texts.append(text)
            if not cell.keys():
                continue
            width = min(_number(cell.get("colspan"), 1), _MOST_SPAN)
            height = min(_number(cell.get("rowspan"), 1), _MOST_SPAN)
            if spare < width:
                continue
            if height > 1:
                first = len(texts) - 1
                below.update((first + place, ("" if place else text, height - 1)) for place in range(width))
            texts += [""] * (width - 1)
            spare -= width - 1
        spare -= _from_above(texts, below)
        if spare < 0:
            below.clear()
        yield texts


def _from_above(texts: list[str], below: dict[int, tuple[str, int]]) -> int:
    """Fill in what spans from the rows above; how many cells that were."""
    filled = 0
    while below and len(texts) in below:
        text, height = below.pop(len(texts))
        if height > 1:
            below[len(texts)] = (text, height - 1)
        texts.append(text)
        filled += 1
    return filled


def _cell_text(cell: Element) -> str:
    return "\n".join(block.text for block in blocks_of(cell))
