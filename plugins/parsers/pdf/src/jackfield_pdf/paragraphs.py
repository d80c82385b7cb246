"""Combine lines into paragraphs, lists and headings, judging by position and line endings."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby, pairwise, takewhile

from jackfield.retrieval import Block
from jackfield_documents import pipe_table
from jackfield_pdf.columns import in_columns
from jackfield_pdf.headings import Headings
from jackfield_pdf.pages import Page
from jackfield_pdf.spans import grouped, merged
from jackfield_pdf.typeset import HYPHEN, Line, Part

_CJK = r"\u2e80-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef"
_IS_CJK = re.compile(rf"[{_CJK}]")
_BULLET = re.compile(r"[\uf0b7\uf0a7•‣◦▪●○■□–—*·-]\s+\S")
_NUMBERED = re.compile(r"\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,5})[.)]\s+\S|\d+(?:\.\d+)+\.?\s+\S|[一二三四五六七八九十]+、")
_SECTION = re.compile(r"\s*\d+(?:\.\d+)+\.?\s+\S")
_SENTENCE_END = re.compile(r"[.!?:;。！？：；…][\"'”’)\]」』）]*$")
# The dots that lead to a page number, rules made of signs.
_LEADERS = re.compile(r"[.\-_*—–=·…]\s?(?:[.\-_*—–=·…]\s?){6,}")
_HYPHENATED = re.compile(rf"\b(\w++)[-\u2010]?{HYPHEN}(\w+)")
_HYPHENS = ("-", "\u2010")
_COMPOUND = re.compile(r"\b\w++-\w++")
_LETTERS = {
    "\ufb00": "ff",
    "\ufb01": "fi",
    "\ufb02": "fl",
    "\ufb03": "ffi",
    "\ufb04": "ffl",
    "\ufb05": "st",
    "\ufb06": "st",
    "\u00ad": "",
    # The bullets of the fonts Symbol and Wingdings, with which Word and LibreOffice write lists.
    "\uf0b7": "•",
    "\uf0a7": "▪",
}
_ODD_LETTERS = re.compile(f"[{''.join(_LETTERS)}]")
_NOTE = "[No text on {pages}, only images: install jackfield-ocr to read them]"
_NEIGHBOURS = 8  # lines before and after one that show how wide its column is
_NEAREST = 3  # lines before and after one that may be of the same paragraph
_EDGE = 2.0  # points; the edges of justified lines are nearer to each other
_MOST_COLUMNS = 50
_MOST_INDENT = 100  # characters


def blocks_of(pages: Sequence[Page], headings: Headings, copied: Container[int] = ()) -> Iterator[Block]:
    """Yield the blocks of a document page by page. No block spans two pages.

    A note takes the place of pages with pictures but no text, so readers know that something is missing. Pages in
    `copied` get notes of their own, because OCR may replace these notes.
    """
    notes = {first: _NOTE.format(pages=in_ranges(range(first, last + 1))) for first, last in _pictures(pages, copied)}
    compounds = _compounds(pages)
    for page in pages:
        if page.number in notes:
            yield Block(notes[page.number], page=page.number)
        groups = _groups(page, headings)
        yield from _merge_lists(_block(lines, rows, page.number, headings, compounds) for lines, rows in groups)


def in_ranges(numbers: Sequence[int]) -> str:
    """Format page numbers for people, as in `page 3` or `pages 1-4 and 7`."""
    ranges = grouped(numbers, lambda before, number: number == before[-1] + 1)
    shown = ["-".join(dict.fromkeys((str(pages[0]), str(pages[-1])))) for pages in ranges]
    listed = " and ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))
    return f"page{'s' if len(numbers) > 1 else ''} {listed}"


def _compounds(pages: Sequence[Page]) -> set[str]:
    """Return the hyphenated words that occur within a line."""
    with_hyphens = (line.text for page in pages for line in page.lines if "-" in line.text)
    return set(chain.from_iterable(map(_COMPOUND.findall, with_hyphens)))


def _pictures(pages: Sequence[Page], copied: Container[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last page of each run of picture pages."""
    for (is_picture, _), group in groupby(pages, key=lambda page: (page.is_picture, page.number in copied)):
        if is_picture:
            numbers = [page.number for page in group]
            yield numbers[0], numbers[-1]


@dataclass(frozen=True, slots=True)
class _Layout:
    """The lines of a page, and measurements they have in common.

    Attributes:
        lines: The lines.
        rows: True for each line that stands alone, such as a table row or an entry of a table of contents.
        stated: True for each line that is a heading according to the outline.
        pitch: The usual distance between consecutive lines, or 0 if unknown.
        right: The right end of the widest line.
        has_code: True if monospaced type marks code.
    """

    lines: Sequence[Line]
    rows: Sequence[bool]
    stated: Sequence[bool]
    pitch: float
    right: float
    has_code: bool

    def step(self, place: int) -> float:
        """Return the distance between a line and the previous one."""
        return self.lines[place - 1].last - self.lines[place].first


# --- lines to groups ---


def _groups(page: Page, headings: Headings) -> Iterator[tuple[list[Line], bool]]:
    """Yield the lines of each block, with True if they are table rows."""
    lines = in_columns(page.lines)
    if not lines:
        return
    layout = _layout(lines, page.number, headings)
    start = 0
    for place in range(1, len(lines)):
        if _begins_block(layout, place, is_second=place == start + 1):
            yield lines[start:place], layout.rows[start]
            start = place
    yield lines[start:], layout.rows[start]


def _layout(lines: Sequence[Line], page: int, headings: Headings) -> _Layout:
    stated = [bool(headings.stated(line.text, page)) for line in lines]
    rows = [_is_row(lines, place) for place in range(len(lines))]
    return _Layout(lines, rows, stated, _pitch(lines), max(line.right for line in lines), headings.has_code)


def _is_row(lines: Sequence[Line], place: int) -> bool:
    """Return True if a line stands alone, such as a table row. Lines of justified text do not count."""
    line = lines[place]
    if not line.parts:
        return _LEADERS.search(line.text) is not None
    around = lines[max(0, place - _NEAREST) : place + _NEAREST + 1]
    return _LEADERS.search(line.text) is not None or not any(_is_text_above_or_below(line, other) for other in around)


def _is_text_above_or_below(line: Line, other: Line) -> bool:
    """Return True if the other line is running text with the same left and right edges."""
    is_text = other.size == line.size and not other.parts
    return is_text and max(abs(other.left - line.left), abs(other.right - line.right)) < _EDGE


def _pitch(lines: Sequence[Line]) -> float:
    steps = sorted(
        before.last - line.first
        for before, line in pairwise(lines)
        if before.size and 0 < before.last - line.first < 3 * line.size
    )
    # Not the middle one: on a page of short paragraphs, most steps are the gaps between them.
    return steps[len(steps) // 4] if steps else 0.0


def _begins_block(layout: _Layout, place: int, *, is_second: bool) -> bool:
    """Return True if a line begins a block. The first applicable rule decides."""
    for rule in _RULES:
        answer = rule(layout, place)
        if answer is not None:
            return answer
    return _begins_by_place(layout, place, is_second=is_second)


def _begins_alone(layout: _Layout, place: int) -> bool | None:
    """Return True for bullets, tables and outline entries, which always begin a block."""
    before, line = layout.lines[place - 1], layout.lines[place]
    is_alone = before.table or line.table or layout.stated[place - 1] or layout.stated[place]
    return True if is_alone or _BULLET.match(line.text.lstrip()) else None


def _begins_by_text(layout: _Layout, place: int) -> bool | None:
    """Decide by the text alone if the positions of the lines are unknown."""
    before, line = layout.lines[place - 1], layout.lines[place]
    if before.size and line.size:
        return None
    return _ends_sentence(before) and (len(before.text) < 50 or bool(_NUMBERED.match(line.text.lstrip())))


def _begins_among_rows(layout: _Layout, place: int) -> bool | None:
    was_row, is_row = layout.rows[place - 1], layout.rows[place]
    if not was_row and not is_row:
        return None
    return was_row != is_row or layout.step(place) >= 3 * layout.lines[place].size


def _begins_section(layout: _Layout, place: int) -> bool | None:
    """Return True between consecutive numbered sections, as in a table of contents."""
    before, line = layout.lines[place - 1], layout.lines[place]
    return True if _SECTION.match(line.text) and _SECTION.match(before.text) else None


def _begins_code(layout: _Layout, place: int) -> bool | None:
    before, line = layout.lines[place - 1], layout.lines[place]
    is_code = layout.has_code and before.is_mono and line.is_mono
    return layout.step(place) > 2.5 * line.size if is_code else None


def _begins_in_other_type(layout: _Layout, place: int) -> bool | None:
    """Return True if the type size or weight changes."""
    before, line = layout.lines[place - 1], layout.lines[place]
    if before.is_bold != line.is_bold and (_ends_sentence(before) or _is_short(layout, place - 1)):
        return True
    return abs(before.size - line.size) > 0.12 * max(before.size, line.size) or None


def _begins_in_next_column(layout: _Layout, place: int) -> bool | None:
    """Decide for a line that is higher up than the previous one."""
    before, line = layout.lines[place - 1], layout.lines[place]
    if layout.step(place) >= -0.5 * line.size:
        return None
    return _ends_sentence(before) or line.text.lstrip()[:1].isupper()


_RULES: tuple[Callable[[_Layout, int], bool | None], ...] = (
    _begins_alone,
    _begins_by_text,
    _begins_among_rows,
    _begins_section,
    _begins_code,
    _begins_in_other_type,
    _begins_in_next_column,
)


def _begins_by_place(layout: _Layout, place: int, *, is_second: bool) -> bool:
    """Return True if a line is positioned like the first line of a paragraph."""
    before, line = layout.lines[place - 1], layout.lines[place]
    if layout.step(place) > 1.4 * max(layout.pitch, line.size) or _is_short(layout, place - 1):
        return True
    return _ends_sentence(before) and _looks_like_a_first(before, line, is_second=is_second)


def _looks_like_a_first(before: Line, line: Line, *, is_second: bool) -> bool:
    """Return True if a line has a number or a different indent, like the first line of a paragraph."""
    indent = line.left - before.left
    # The second line of a paragraph begins left of an indented first one.
    moved = indent > 0.8 * line.size or (indent < -0.8 * line.size and not is_second)
    return moved or bool(_NUMBERED.match(line.text.lstrip()))


def _ends_sentence(line: Line) -> bool:
    return bool(_SENTENCE_END.search(line.text.rstrip()[-6:]))


def _is_short(layout: _Layout, place: int) -> bool:
    """Return True if a line ends well before the end of its column."""
    line = layout.lines[place]
    if not _ends_before(line, layout.right):
        return False  # not even beside the widest line of the page
    return _ends_before(line, max(_rights(layout, place), default=line.right))


def _rights(layout: _Layout, place: int) -> list[float]:
    """Return the right ends of lines with the same indent, in the same column if it is recognisable, or else nearby."""
    line = layout.lines[place]
    column = _rights_beside(line, _around(layout, place))
    if _is_justified(column, line.left):
        return column
    near = slice(max(0, place - _NEIGHBOURS), place + _NEIGHBOURS + 1)
    lines = zip(layout.lines[near], layout.rows[near], strict=True)
    return _rights_beside(line, (other for other, is_row in lines if other.size and not is_row))


def _rights_beside(line: Line, others: Iterable[Line]) -> list[float]:
    """Return the right ends of the lines with the same indent."""
    return [other.right for other in others if abs(other.left - line.left) < 4 * line.size]


def _is_justified(rights: Sequence[float], left: float) -> bool:
    """Return True if several lines end near the right edge of their column."""
    widest = max(rights, default=left)
    return sum(widest - right < 0.15 * (widest - left) for right in rights) > 2


def _around(layout: _Layout, place: int) -> Iterator[Line]:
    """Return the lines before and after a line, up to the first gap, except for rows."""
    goes_on = partial(_goes_on, layout)
    above = takewhile(goes_on, range(place, max(0, place - _NEIGHBOURS), -1))
    below = takewhile(goes_on, range(place + 1, min(len(layout.lines), place + _NEIGHBOURS + 1)))
    near = chain((at - 1 for at in above), below)
    return (layout.lines[at] for at in near if not layout.rows[at])


def _goes_on(layout: _Layout, place: int) -> bool:
    """Return True if a line follows the previous one without a gap."""
    size = layout.lines[place].size
    return size > 0 and -0.5 * size < layout.step(place) <= 1.4 * max(layout.pitch, size)


def _ends_before(line: Line, right: float) -> bool:
    return right - line.right > 0.25 * (right - line.left)


# --- groups to blocks ---


def _block(lines: Sequence[Line], are_rows: bool, page: int, headings: Headings, compounds: Collection[str]) -> Block:
    if lines[0].table:
        return Block(pipe_table(_ruled(lines[0].table, compounds)), kind="table", page=page)
    if are_rows:
        return _rows(lines, page, compounds)
    if headings.has_code and _are_mono(lines):
        return Block(_code(lines), kind="code", page=page)
    return _running_text(lines, page, headings, compounds)


def _are_mono(lines: Sequence[Line]) -> bool:
    """Return True if there are several lines, all of them monospaced."""
    return len(lines) > 1 and all(line.is_mono for line in lines)


def _running_text(lines: Sequence[Line], page: int, headings: Headings, compounds: Collection[str]) -> Block:
    text = _clean(_joined([line.text.strip() for line in lines]), compounds)
    level = headings.level(lines, text, page)
    if level:
        return Block(text, kind="heading", page=page, level=level)
    return Block(text, kind="list" if _BULLET.match(text) else "paragraph", page=page)


def _rows(lines: Sequence[Line], page: int, compounds: Collection[str]) -> Block:
    """Return rows as a table, or as separate lines if they do not share columns."""
    cells = _cells(lines)
    if cells:
        return Block(pipe_table([[_clean(text, compounds) for text in row] for row in cells]), "table", page)
    rows = (_single_spaces(_LEADERS.sub(" … ", _clean(line.text, compounds))) for line in lines)
    return Block("\n".join(rows), page=page)


def _ruled(table: Sequence[Sequence[str]], compounds: Collection[str]) -> Iterator[list[str]]:
    for row in table:
        yield [_clean(_joined([line.strip() for line in cell.split("\n")]), compounds) for cell in row]


def _cells(lines: Sequence[Line]) -> list[list[str]]:
    """Return the cells of a table without rules, or [] if the rows do not share columns."""
    parts = [line.parts for line in lines]
    if len(parts) < 2 or not all(parts):
        return []
    lefts = [left for left, _ in merged((part.left, part.right) for of_line in parts for part in of_line)]
    rows = [_by_column(row, lefts) for row in parts]
    has_two_in_a_cell = sum(map(len, rows)) < sum(map(len, parts))
    if has_two_in_a_cell or not 2 <= len(lefts) <= _MOST_COLUMNS:
        return []
    return [_in_row(texts, len(lefts)) for texts in rows]


def _in_row(texts: Mapping[int, str], columns: int) -> list[str]:
    return [texts.get(column, "") for column in range(columns)]


def _by_column(parts: Sequence[Part], lefts: Sequence[float]) -> dict[int, str]:
    return {bisect(lefts, part.left) - 1: part.text for part in parts}


def _code(lines: Sequence[Line]) -> str:
    """Return monospaced lines with the indentation they have on the page."""
    left, width = min(line.left for line in lines), 0.6 * lines[0].size
    places = (min(round((line.left - left) / width), _MOST_INDENT) for line in lines)
    return "\n".join(
        " " * place + line.text.replace(HYPHEN, "-").rstrip() for place, line in zip(places, lines, strict=True)
    )


def _joined(texts: Sequence[str]) -> str:
    parts = [texts[0]]
    for before, after in pairwise(texts):
        parts += [_glue(before, after), after]
    return "".join(parts)


def _glue(before: str, after: str) -> str:
    """Return the separator for two lines. For a hyphenated word, it is a mark that `_clean` removes later."""
    last, first = before[-1:], after[:1]
    if last == "\u00ad":
        return ""
    letters = before[-2:-1], first
    if last in _HYPHENS and all(map(str.isalnum, letters)):
        return HYPHEN if all(map(str.islower, letters)) else ""
    return "" if all(map(_IS_CJK.match, (last, first))) else " "


def _clean(text: str, compounds: Collection[str]) -> str:
    def unhyphenated(found: re.Match[str]) -> str:
        # `well-known` that occurs elsewhere in one piece is not a word broken by a line end.
        compound = f"{found[1]}-{found[2]}"
        return compound if compound in compounds else found[1] + found[2]

    if HYPHEN in text:
        text = _HYPHENATED.sub(unhyphenated, text).replace(HYPHEN, "-")
    if not text.isascii():
        text = _ODD_LETTERS.sub(lambda found: _LETTERS[found[0]], text)
    return _single_spaces(text)


def _single_spaces(text: str) -> str:
    return re.sub(r"[ \t]{2,}", " ", text).strip() if "  " in text else text.strip()


def _merge_lists(blocks: Iterable[Block]) -> Iterator[Block]:
    """Merge consecutive list items into one block."""
    with_text = (block for block in blocks if block.text)
    for is_list, group in groupby(with_text, key=lambda block: block.kind == "list"):
        together = list(group)
        yield from [_list(together)] if is_list else together


def _list(items: Sequence[Block]) -> Block:
    return Block("\n".join(item.text for item in items), kind="list", page=items[0].page)
