"""From lines to paragraphs, lists and headings, by the position of the lines and how they end."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from jackfield.retrieval import Block
from jackfield_pdf.lines import HYPHEN, Line, Page

_CJK = r"\u2e80-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef"
_IS_CJK = re.compile(rf"[{_CJK}]")
_BULLET = re.compile(r"[•‣◦▪●○■□–—*·-]\s+\S")
_NUMBERED = re.compile(r"\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,5})[.)]\s+\S|\d+(?:\.\d+)+\.?\s+\S|[一二三四五六七八九十]+、")
_SENTENCE_END = re.compile(r"[.!?:;。！？：；…][\"'”’)\]」』）]*$")
# The dots that lead to a page number, rules made of signs.
_LEADERS = re.compile(r"(?:[.\-_*—–=·…]\s?){7,}")
_HYPHENATED = re.compile(rf"\b(\w++)-?{HYPHEN}(\w+)")
_COMPOUND = re.compile(r"\b\w++-\w++")
_LIGATURES = str.maketrans(
    {
        "\ufb00": "ff",
        "\ufb01": "fi",
        "\ufb02": "fl",
        "\ufb03": "ffi",
        "\ufb04": "ffl",
        "\ufb05": "st",
        "\ufb06": "st",
        "\u00ad": "",
    }
)
_NEIGHBOURS = 8  # lines before and after one that show how wide its column is
_HEADING_SIZE = 1.15  # times the size of most of the text
_HEADING_CHARS = 200
_SIZE_STEP = 0.5  # sizes nearer than that are one


def blocks_of(pages: Sequence[Page]) -> Iterator[Block]:
    """The blocks of a document, page by page; nothing is joined across pages."""
    levels = _heading_levels(pages)
    compounds = {
        word for page in pages for line in page.lines if "-" in line.text for word in _COMPOUND.findall(line.text)
    }
    for page in pages:
        groups = _groups(page.lines)
        yield from _merge_lists(_block(lines, rows, page.number, levels, compounds) for lines, rows in groups)


@dataclass(frozen=True, slots=True)
class _Layout:
    """The lines of a page, and what they have in common.

    Attributes:
        rows: Whether each stands for itself: a row of a table, an entry of a table of contents.
        pitch: The usual distance from one line to the next; 0 if it cannot be told.
        right: Where the widest one ends.
    """

    lines: Sequence[Line]
    rows: Sequence[bool]
    pitch: float
    right: float


def _heading_levels(pages: Sequence[Page]) -> dict[float, int]:
    """The level of each size of type that is clearly larger than most of the text."""
    chars: Counter[float] = Counter()
    for page in pages:
        for line in page.lines:
            chars[_rounded(line.size)] += len(line.text)
    if not chars:
        return {}
    body = chars.most_common(1)[0][0]
    larger = sorted((size for size in chars if body and size >= _HEADING_SIZE * body), reverse=True)
    return {size: min(level, 6) for level, size in enumerate(larger, start=1)}


def _rounded(size: float) -> float:
    return round(size / _SIZE_STEP) * _SIZE_STEP


# --- lines to groups ---


def _groups(lines: Sequence[Line]) -> Iterator[tuple[list[Line], bool]]:
    """The lines of each block, and whether they are rows."""
    if not lines:
        return
    rows = [line.is_row or bool(_LEADERS.search(line.text)) for line in lines]
    layout = _Layout(lines, rows, _pitch(lines), max(line.right for line in lines))
    start = 0
    for place in range(1, len(lines)):
        if _begins_block(layout, place, is_second=place == start + 1):
            yield list(lines[start:place]), rows[start]
            start = place
    yield list(lines[start:]), rows[start]


def _pitch(lines: Sequence[Line]) -> float:
    steps = [
        before.last - line.first
        for before, line in pairwise(lines)
        if before.size and line.size and 0 < before.last - line.first < 3 * line.size
    ]
    return median(steps) if steps else 0.0


def _begins_block(layout: _Layout, place: int, *, is_second: bool) -> bool:
    before, line = layout.lines[place - 1], layout.lines[place]
    text = line.text.lstrip()
    if _BULLET.match(text):
        return True
    if not (before.size and line.size):
        return _begins_block_by_text(before, text)
    step = before.last - line.first
    are_rows = layout.rows[place - 1 : place + 1]
    if any(are_rows):
        return not all(are_rows) or step >= 3 * line.size
    if abs(before.size - line.size) > 0.12 * max(before.size, line.size):
        return True
    if step < -0.5 * line.size:  # further up: the next column
        return _ends_sentence(before) or text[:1].isupper()
    if step > 1.4 * max(layout.pitch, line.size) or _is_short(layout, place - 1):
        return True
    return _ends_sentence(before) and _looks_like_a_first(before, line, is_second=is_second)


def _looks_like_a_first(before: Line, line: Line, *, is_second: bool) -> bool:
    """Whether a line has a number, or begins elsewhere than the one above it, as the first of a paragraph does."""
    indent = line.left - before.left
    # The second line of a paragraph stands left of an indented first one.
    moved = indent > 0.8 * line.size or (indent < -0.8 * line.size and not is_second)
    return moved or bool(_NUMBERED.match(line.text.lstrip()))


def _begins_block_by_text(before: Line, text: str) -> bool:
    """As good as it can be told without knowing where the lines stand."""
    return _ends_sentence(before) and (len(before.text) < 50 or bool(_NUMBERED.match(text)))


def _ends_sentence(line: Line) -> bool:
    return bool(_SENTENCE_END.search(line.text.rstrip()[-6:]))


def _is_short(layout: _Layout, place: int) -> bool:
    """Whether a line ends well before its column does."""
    line = layout.lines[place]
    if not _ends_before(line, layout.right):
        return False  # not even beside the widest line of the page
    around = range(max(0, place - _NEIGHBOURS), min(len(layout.lines), place + _NEIGHBOURS + 1))
    column = [
        other.right
        for other, is_row in ((layout.lines[near], layout.rows[near]) for near in around)
        if not is_row and other.size and abs(other.left - line.left) < 4 * line.size
    ]
    return _ends_before(line, max(column, default=line.right))


def _ends_before(line: Line, right: float) -> bool:
    return right - line.right > 0.25 * (right - line.left)


# --- groups to blocks ---


def _block(lines: Sequence[Line], are_rows: bool, page: int, levels: dict[float, int], compounds: set[str]) -> Block:
    if are_rows:
        rows = (_LEADERS.sub(" … ", _clean(line.text, compounds)) for line in lines)
        return Block("\n".join(_single_spaces(row) for row in rows), page=page)
    text = _clean(_joined([line.text.strip() for line in lines]), compounds)
    level = levels.get(_rounded(lines[0].size), 0)
    if level and len(text) <= _HEADING_CHARS:
        return Block(text, kind="heading", page=page, level=level)
    return Block(text, kind="list" if _BULLET.match(text) else "paragraph", page=page)


def _joined(texts: Sequence[str]) -> str:
    parts = [texts[0]]
    for before, after in pairwise(texts):
        parts += [_glue(before, after), after]
    return "".join(parts)


def _glue(before: str, after: str) -> str:
    """What stands between two lines; a broken word gets a mark beside its hyphen, which `_clean` takes out."""
    last, first = before[-1:], after[:1]
    if last == "\u00ad":
        return ""
    if last == "-" and first.isalnum() and before[-2:-1].isalnum():
        return HYPHEN if first.islower() and before[-2:-1].islower() else ""
    return "" if _IS_CJK.match(last) and _IS_CJK.match(first) else " "


def _clean(text: str, compounds: set[str]) -> str:
    def unhyphenated(found: re.Match[str]) -> str:
        # `well-known` that stands elsewhere in one piece is no word that a line has broken.
        compound = f"{found[1]}-{found[2]}"
        return compound if compound in compounds else found[1] + found[2]

    if HYPHEN in text:
        text = _HYPHENATED.sub(unhyphenated, text).replace(HYPHEN, "-")
    return _single_spaces(text.translate(_LIGATURES))


def _single_spaces(text: str) -> str:
    return re.sub(r"[ \t]{2,}", " ", text).strip() if "  " in text else text.strip()


def _merge_lists(blocks: Iterator[Block]) -> Iterator[Block]:
    """The items of a list as one block."""
    items: list[Block] = []
    for block in blocks:
        if not block.text:
            continue
        if block.kind == "list":
            items.append(block)
            continue
        if items:
            yield _list(items)
            items = []
        yield block
    if items:
        yield _list(items)


def _list(items: Sequence[Block]) -> Block:
    return Block("\n".join(item.text for item in items), kind="list", page=items[0].page)
