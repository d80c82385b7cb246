"""Convert HTML to blocks (paragraphs, headings, lists, tables and code), in page order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, count, repeat

from lxml import etree

from jackfield.retrieval import Block, BlockKind
from jackfield_documents import pipe_table
from jackfield_markup.trees import Element

_LONGEST_LINK = 300  # characters; longer ones are for machines, or contain the picture itself
_LONGEST_CELL = 2000  # characters; no cell of a data table is that long
_MOST_SPAN = 1000  # columns or rows (HTML, 4.9.11)
_OTHER_SCHEME = re.compile(r"(?!(?:https?|mailto|ftp|tel):)[^/:]*:", re.IGNORECASE)
_SMALL = re.compile(r"(?=0*[1-9])[0-9]{1,5}")
_BREAK = "\v"  # which occurs in no page
_SIGNS = ("¶", "#")  # the text of links from a heading to itself
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_LISTS = frozenset(("ul", "ol", "menu", "dl", "dir"))
_ITEMS = frozenset(("li", "dt", "dd"))
_CELLS = frozenset(("td", "th"))
_CODE = frozenset(("code", "kbd", "samp", "tt"))
_HIDDEN = re.compile(r"display *: *none", re.IGNORECASE)
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


def blocks_of(root: Element, *, leave_out: Callable[[Element], bool] | None = None) -> Iterator[Block]:
    """Yield the blocks of an element and its content, in order.

    Links become Markdown links, inline code gets backticks, a list becomes one block, a data table becomes a GitHub
    table, and a layout table is replaced by its contents.

    Args:
        root: The element.
        leave_out: Returns True for an element to leave out, with everything in it.
    """
    writer = _Writer(leave_out or _stays)
    walker = etree.iterwalk(root, events=("start", "end"))
    for event, element in walker:
        if event == "start":
            if not writer.start(element.tag, element):
                walker.skip_subtree()
            continue
        writer.end(element.tag, element)
        if element is not root and (tail := element.tail):
            writer.inline.append(tail)
        if writer.done:
            yield from writer.take()
    writer.flush_all()
    yield from writer.take()


def _stays(_: Element) -> bool:
    return False


@dataclass(slots=True)
class _List:
    """A list being read: the next number, if it is numbered, and the marker for the next line."""

    number: int | None
    lead: str = ""
    is_implied: bool = False


@dataclass(slots=True)
class _Mark:
    """The start of a link or of inline code."""

    tag: str
    place: int
    flushes: int


@dataclass(slots=True)
class _Writer:
    """Collects a page's text until it forms a block."""

    leave_out: Callable[[Element], bool]
    skipped: Element | None = None
    inline: list[str] = field(default_factory=list)
    flushes: int = 0
    marks: list[_Mark] = field(default_factory=list)
    level: int = 0
    lists: list[_List] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    done: list[Block] = field(default_factory=list)

    def take(self) -> list[Block]:
        """Return the finished blocks."""
        done, self.done = self.done, []
        return done

    # --- elements ---

    def start(self, tag: str, element: Element) -> bool:
        """Start an element, and return False if it has already been read as a whole, or is left out."""
        begin = _BEGINNINGS.get(tag)
        if _is_unseen(element, tag) or self.leave_out(element) or (begin and not begin(self, tag, element)):
            self.skipped = element
            return False
        if text := element.text:
            self.inline.append(text)
        return True

    def end(self, tag: str, element: Element) -> None:
        """End an element."""
        end = _ENDS.get(tag)
        if end and element is not self.skipped:
            end(self, tag, element)

    def flush(self) -> None:
        """End the current line, which becomes a paragraph, a heading or a line in a list."""
        if not self.inline:
            return
        text = _lines_of("".join(self.inline))
        self.inline.clear()
        self.flushes += 1
        if text:
            self._line(text)

    def flush_all(self) -> None:
        """End the current line and the list around it."""
        self.flush()
        self._finish_list()

    # --- parts ---

    def _line(self, text: str) -> None:
        if self.lists:
            self._line_of_list(text)
        elif not self.level:
            self.done.append(Block(text))
        elif heading := " ".join(text.split("\n")).rstrip("¶").rstrip():
            self.done.append(Block(heading, kind="heading", level=self.level))

    def _start_apart(self, tag: str, element: Element) -> bool:
        self.flush()
        self.level = _level(tag, element) or self.level
        return True

    def _end_apart(self, tag: str, element: Element) -> None:
        self.flush()
        if _level(tag, element):
            self.level = 0

    def _start_break(self, _: str, __: Element) -> bool:
        self.inline.append(_BREAK)
        return True

    def _start_rule(self, _: str, __: Element) -> bool:
        self.flush()
        return True

    def _start_picture(self, _: str, element: Element) -> bool:
        self.inline.append(element.get("alt", ""))
        return True

    def _start_mark(self, tag: str, _: Element) -> bool:
        if all(mark.tag != tag for mark in self.marks):
            self.marks.append(_Mark(tag, len(self.inline), self.flushes))
        return True

    def _end_mark(self, tag: str, element: Element) -> None:
        if not self.marks or self.marks[-1].tag != tag:
            return
        mark = self.marks.pop()
        if mark.flushes != self.flushes:
            return  # a link around whole paragraphs
        text = "".join(self.inline[mark.place :])
        shown = _lines_of(text)
        if self.level:  # headings are plain text, without links to themselves
            if tag == "a" and shown in _SIGNS:
                del self.inline[mark.place :]
        elif shown and "\n" not in shown:
            before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
            self.inline[mark.place :] = [before, _marked(tag, shown, element), after]

    def _start_list(self, tag: str, element: Element) -> bool:
        self.flush()
        self.lists.append(_List(_number(element.get("start"), 1) if tag == "ol" else None))
        return True

    def _start_item(self, tag: str, element: Element) -> bool:
        self.flush()
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
        return True

    def _end_item(self, tag: str, element: Element) -> None:
        self.flush()
        is_implied = bool(self.lists) and self.lists[-1].is_implied
        if is_implied and getattr(element.getnext(), "tag", None) not in _ITEMS:
            self._end_list(tag, element)

    def _end_list(self, _: str, __: Element) -> None:
        self.flush()
        del self.lists[-1:]
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

    def _start_code(self, _: str, element: Element) -> bool:
        for line_break in element.iter("br"):
            line_break.text = "\n"
        self._apart("".join(element.itertext()).strip("\n").rstrip(), "code")
        return False

    def _start_table(self, tag: str, element: Element) -> bool:
        rows = _rows_of_data(element)
        if not rows:
            return self._start_apart(tag, element)
        caption = next(element.iterchildren("caption"), None)
        if caption is not None:
            self._apart(_lines_of("".join(caption.itertext())), "paragraph")
        self._apart(pipe_table(_texts(rows)), "table")
        return False

    def _apart(self, text: str, kind: BlockKind) -> None:
        self.flush_all()
        if text.strip():
            self.done.append(Block(text, kind=kind))


_BEGINNINGS: dict[str, Callable[[_Writer, str, Element], bool]] = {
    **dict.fromkeys((*_APART, *_HEADINGS), _Writer._start_apart),
    **dict.fromkeys(_LISTS, _Writer._start_list),
    **dict.fromkeys(_ITEMS, _Writer._start_item),
    **dict.fromkeys(("a", *_CODE), _Writer._start_mark),
    "table": _Writer._start_table,
    "pre": _Writer._start_code,
    "br": _Writer._start_break,
    "hr": _Writer._start_rule,
    "img": _Writer._start_picture,
}
"""Actions at an element's start, by tag. They return False if they read it whole. Other elements are inline text."""

_ENDS: dict[str, Callable[[_Writer, str, Element], None]] = {
    **dict.fromkeys((*_APART, *_HEADINGS), _Writer._end_apart),
    **dict.fromkeys(_LISTS, _Writer._end_list),
    **dict.fromkeys(_ITEMS, _Writer._end_item),
    **dict.fromkeys(("a", *_CODE), _Writer._end_mark),
}


def _marked(tag: str, text: str, element: Element) -> str:
    """Format a link or inline code as Markdown."""
    if tag != "a":
        return text if "`" in text else f"`{text}`"
    if text in _SIGNS:
        return ""
    target = _target(element)
    return f"[{text}]({target})" if target else text


def _is_unseen(element: Element, tag: object) -> bool:
    if not isinstance(tag, str) or tag in _UNSEEN:
        return True
    if not element.keys():
        return False
    is_hidden = element.get("hidden") is not None or element.get("aria-hidden") == "true"
    return is_hidden or _HIDDEN.search(element.get("style", "")) is not None


def _level(tag: str, element: Element) -> int:
    if tag in _HEADINGS:
        return _HEADINGS[tag]
    return _number(element.get("aria-level"), 2) if element.get("role") == "heading" else 0


def _number(text: str | None, default: int) -> int:
    """Return an attribute's small number, at least 1."""
    return int(text) if text and _SMALL.fullmatch(text) else default


def _lines_of(text: str) -> str:
    """Return a text as browsers show it: whitespace is collapsed, and line breaks are preserved."""
    if _BREAK not in text:
        return " ".join(text.replace("\xad", "").split())
    lines = (" ".join(line.replace("\xad", "").split()) for line in text.split(_BREAK))
    return "\n".join(line for line in lines if line)


def _target(element: Element) -> str:
    """Return a link's target, or '' if it is useless to a reader."""
    target = "".join(element.get("href", "").split())
    if len(target) > _LONGEST_LINK or target.startswith("#"):
        return ""
    return "" if _OTHER_SCHEME.match(target) else target.replace("(", "%28").replace(")", "%29")


# --- tables ---


def _rows_of_data(table: Element) -> list[list[Element]]:
    """Return a data table's cells, or [] for a layout table."""
    if table.get("role") in ("presentation", "none") or _has(table.iterdescendants("table", "form", *_HEADINGS)):
        return []
    rows = list(map(_cells, table.iter("tr")))
    is_wide = max(map(len, rows), default=0) > 1
    has_header = len(rows) > 1 or _has(table.iter("th"))
    return rows if is_wide and has_header and _are_short(chain.from_iterable(rows)) else []


def _cells(row: Element) -> list[Element]:
    return [cell for cell in row if cell.tag in _CELLS]


def _has(elements: Iterator[Element]) -> bool:
    return next(elements, None) is not None


def _are_short(cells: Iterable[Element]) -> bool:
    return not any(map(_is_long, cells))


def _is_long(cell: Element) -> bool:
    return len(cell) > 0 and len(etree.tostring(cell, method="text", encoding="unicode")) > _LONGEST_CELL


def _texts(rows: Sequence[Sequence[Element]]) -> Iterator[list[str]]:
    """Yield a table's texts by row. Cells spanning rows are repeated; those spanning columns are padded."""
    below: dict[int, tuple[str, int]] = {}
    # A few spans of a thousand rows and columns would turn a page of kilobytes into a table of gigabytes.
    spare = 1000 + 4 * sum(map(len, rows))
    for row in rows:
        texts: list[str] = []
        for cell in row:
            spare -= _from_above(texts, below)
            text, (width, height) = _cell_text(cell), _spans(cell, spare)
            filled = [text, *[""] * (width - 1)]
            if height > 1:
                below.update(zip(count(len(texts)), zip(filled, repeat(height - 1)), strict=False))
            texts += filled
            spare -= width - 1
        spare -= _from_above(texts, below)
        if spare < 0:
            below.clear()
        yield texts


def _spans(cell: Element, spare: int) -> tuple[int, int]:
    """Return the number of columns and rows that a cell spans, or one of each if the span exceeds the columns left."""
    if not cell.keys():  # as for most cells
        return 1, 1
    width, height = _number(cell.get("colspan"), 1), _number(cell.get("rowspan"), 1)
    return (1, 1) if min(width, _MOST_SPAN) > spare else (min(width, _MOST_SPAN), min(height, _MOST_SPAN))


def _from_above(texts: list[str], below: dict[int, tuple[str, int]]) -> int:
    """Fill in the cells that span from the rows above, and return their number."""
    filled = 0
    while below and len(texts) in below:
        text, height = below.pop(len(texts))
        if height > 1:
            below[len(texts)] = (text, height - 1)
        texts.append(text)
        filled += 1
    return filled


def _cell_text(cell: Element) -> str:
    if not len(cell):
        return _lines_of(cell.text or "")
    return "\n".join(block.text for block in blocks_of(cell))
