"""Find headings and their levels by the outline, type size and bold type."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from jackfield_pdf.edges import lines_around_text
from jackfield_pdf.pages import Entry, Page
from jackfield_pdf.typeset import Line

_LARGE = 1.15  # in relation to the body text
_STEP = 0.5  # closer sizes count as one
_LONGEST = 200  # characters
_LONGEST_BOLD = 120
_LOWEST = 6
_LONG = 5000  # characters; in a shorter text, titles may have a large share
_MOST_TITLES = 0.25  # of a long text
_MOST_BOLD = 0.3  # share of the text; if more is bold, bold type is not significant
_NUMBER = re.compile(r"(?:\d+(?:\.\d+)*|[A-Z](?:\.\d+)+)\.?\s+")
# Two letters that are not a Roman numeral, or a Chinese character: neither a page number nor a symbol.
_TITLE = re.compile(r"(?!\s*[ivxlc]+\s*$)(?=.*(?:[^\W\d_].*[^\W\d_]|[\u2e80-\u9fff\uac00-\ud7af]))", re.DOTALL)
_BOLD_TITLE = re.compile(rf"(?=.*[^\W\d_]).{{1,{_LONGEST_BOLD}}}(?<![.,;:!?。，；：！？])", re.DOTALL)

_Entries = Mapping[int, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Headings:
    """The characteristics of headings in a document.

    Attributes:
        levels: The heading level of each type size that is clearly larger than the body text.
        bold_level: The level of a bold line in body size, or 0 if such lines are not headings.
        entries: The levels of outline titles, by page and then by `_key`.
        has_code: True if monospaced type is the exception, so it marks code.
        others: The page and text of lines that cannot be headings, such as headers, footers and entries of a table of
            contents.
    """

    levels: Mapping[float, int]
    bold_level: int
    entries: _Entries
    has_code: bool
    others: Collection[tuple[int, str]]

    def stated(self, text: str, page: int) -> int:
        """Return the level given by the outline, or 0 if the text has no entry."""
        return _stated(self.entries, text, page)

    def level(self, lines: Sequence[Line], text: str, page: int) -> int:
        """Return the heading level of a block, or 0 if the block is not a heading."""
        stated = self.stated(text, page)
        if stated or len(text) > _LONGEST or not _TITLE.match(text):
            return stated
        if any((page, line.text) in self.others for line in lines):
            return 0
        level = self.levels.get(_rounded(lines[0].size), 0)
        return level or (self.bold_level if _is_bold_title(lines, text) else 0)


def headings_of(pages: Sequence[Page], outline: Sequence[Entry]) -> Headings:
    """Determine the characteristics of headings in a document."""
    lines = [line for page in pages for line in page.lines if not line.table]
    chars = _chars_by_size(lines)
    total = chars.total()
    bold = sum(len(line.text) for line in lines if line.is_bold)
    mono = sum(len(line.text) for line in lines if line.is_mono)
    entries = _entries(outline)
    levels = _levels(_larger_sizes(chars), _stated_sizes(pages, entries))
    below = min(max(levels.values(), default=0) + 1, _LOWEST)
    bold_level = below if bold <= _MOST_BOLD * total else 0
    others = lines_around_text(pages, lambda line: _rounded(line.size) in levels)
    return Headings(levels, bold_level, entries, mono <= total / 2, others)


def _is_bold_title(lines: Sequence[Line], text: str) -> bool:
    is_title = len(lines) < 3 and _BOLD_TITLE.fullmatch(text) is not None
    return is_title and all(line.is_bold for line in lines)


def _chars_by_size(lines: Iterable[Line]) -> Counter[float]:
    """Count the characters per type size."""
    chars: Counter[float] = Counter()
    for line in lines:
        chars[_rounded(line.size)] += len(line.text)
    return chars


def _larger_sizes(chars: Counter[float]) -> list[float]:
    """Return the sizes that are clearly larger than the body text, largest first.

    The most frequent size is not always that of the body text, because code listings in smaller type may be longer.
    """
    [(body, _)] = chars.most_common(1) or [(0.0, 0)]
    if chars.total() >= _LONG:
        body = max(size for size in (body, *chars) if size == body or chars[size] > _MOST_TITLES * chars.total())
    return sorted((size for size in chars if size >= _LARGE * body > 0), reverse=True)


def _levels(larger: Sequence[float], stated: Mapping[float, int]) -> dict[float, int]:
    """Return the level of each size: that of outline titles in this size, or one below the next larger size."""
    levels: dict[float, int] = {}
    level = 0
    for size in larger:
        level = levels[size] = min(stated.get(size, level + 1), _LOWEST)
    return levels


def _stated_sizes(pages: Sequence[Page], entries: _Entries) -> dict[float, int]:
    """Return the most frequent outline level for each type size."""
    found: defaultdict[float, Counter[int]] = defaultdict(Counter)
    for page in pages:
        for line in page.lines:
            level = _stated(entries, line.text, page.number)
            if level:
                found[_rounded(line.size)][level] += 1
    return {size: levels.most_common(1)[0][0] for size, levels in found.items()}


def _entries(outline: Sequence[Entry]) -> _Entries:
    entries: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for entry in outline:
        entries[entry.page][_key(entry.title)] = min(entry.level, _LOWEST)
    return dict(entries)


def _stated(entries: _Entries, text: str, page: int) -> int:
    of_page = entries.get(page)
    return of_page.get(_key(text), 0) if of_page and len(text) <= _LONGEST else 0


def _key(title: str) -> str:
    """Normalise a title for comparison: without its number, which an outline may omit, and without spaces."""
    title = title.strip()
    number = _NUMBER.match(title)
    return "".join(title[number.end() if number else 0 :].split()).casefold()


def _rounded(size: float) -> float:
    return round(size / _STEP) * _STEP
