"""Find lines that are not part of the text: headers, footers, and entries of a table of contents or an index."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from jackfield_pdf.pages import Page
from jackfield_pdf.typeset import Line

_GAP = 1.5  # in type sizes; a line nearer to the text belongs to it
_PAGES = 3  # on fewer pages, a line may well be ordinary text
_NUMBER = re.compile(r"\d+")
_FIRST_NUMBER = re.compile(r"\s*(\d{1,5})\b(?!\.\d)")
_LAST_NUMBER = re.compile(r"(?<![\w.])(\d{1,5})\s*$")
_LETTER = re.compile(r"[^\W\d_]")
_END_OF_ENTRY = re.compile(r"[\s.,…·](?:\d{1,4}|[ivxl]{1,6})$")
_LONGEST_END = 7  # characters; searching the whole line would be slow
_NEAR = 3  # lines to look at before and after an entry of a table of contents
_ENTRIES = 3  # of these, at least so many must be entries as well


def edge_lines(page: Page) -> Iterator[tuple[int, bool]]:
    """Yield the indexes of lines that a gap separates from the text, each with True for the top of the page."""
    placed = sorted((line.first, place) for place, line in enumerate(page.lines) if line.size)
    for ordered, is_top in ((placed, False), (placed[::-1], True)):
        edge = _first_height(page, ordered)
        for _, nearest in ordered[len(edge) : len(edge) + 1]:
            yield from (
                (place, is_top) for place in edge if _is_apart(page.lines[place], page.lines[nearest], is_top=is_top)
            )


def lines_around_text(pages: Sequence[Page], is_large: Callable[[Line], bool]) -> frozenset[tuple[int, str]]:
    """Return the page and text of each line that cannot be a heading, even in bold or large type.

    These are entries of a table of contents or an index, and headers and footers: lines at the edge of a page, not in
    large type, that recur on three pages or number at least three pages.
    """
    entries = {(page.number, text) for page in pages for text in _entries(page)}
    return frozenset(entries.union(_headers(pages, is_large)))


def _first_height(page: Page, ordered: Sequence[tuple[float, int]]) -> list[int]:
    """Return the indexes of the lines at the same height as the first."""
    return [place for height, place in ordered if abs(height - ordered[0][0]) < 0.5 * page.lines[place].size]


def _is_apart(line: Line, nearest: Line, *, is_top: bool) -> bool:
    upper, lower = (line, nearest) if is_top else (nearest, line)
    return upper.last - lower.first > _GAP * max(upper.size, lower.size)


def _entries(page: Page) -> Iterator[str]:
    """Yield lines that end in a number and have neighbours that do as well."""
    ends = [not line.table and _is_entry(line.text.rstrip()) for line in page.lines]
    for place, line in enumerate(page.lines):
        if ends[place] and sum(ends[max(0, place - _NEAR) : place + _NEAR + 1]) > _ENTRIES:
            yield line.text


def _is_entry(text: str) -> bool:
    """Return True if a text ends in a page number."""
    return _END_OF_ENTRY.search(text[-_LONGEST_END:]) is not None and _LETTER.search(text[:-1]) is not None


def _headers(pages: Sequence[Page], is_large: Callable[[Line], bool]) -> Iterator[tuple[int, str]]:
    repeated: Counter[tuple[str, int, bool]] = Counter()
    steps: defaultdict[int, set[int]] = defaultdict(set)
    edges = [
        [(page.lines[place], is_top) for place, is_top in edge_lines(page) if not is_large(page.lines[place])]
        for page in pages
    ]
    for page, of_page in zip(pages, edges, strict=True):
        repeated.update({_form(line, is_top=is_top) for line, is_top in of_page})
        for line, _ in of_page:
            for step in _steps(line.text, page.number):
                steps[step].add(page.number)
    for page, of_page in zip(pages, edges, strict=True):
        for line, is_top in of_page:
            if repeated[_form(line, is_top=is_top)] >= _PAGES or _has_page_number(line.text, page.number, steps):
                yield page.number, line.text


def _form(line: Line, *, is_top: bool) -> tuple[str, int, bool]:
    """Return the characteristics that a header shares across pages: its text without numbers, and its position."""
    return _NUMBER.sub("\\0", " ".join(line.text.split())), round(line.first), is_top


def _has_page_number(text: str, page: int, steps: Mapping[int, set[int]]) -> bool:
    return any(len(steps[step]) >= _PAGES for step in _steps(text, page))


def _steps(text: str, page: int) -> Iterator[int]:
    """Yield the differences between the first and last number in a text and the page number."""
    for found in (_FIRST_NUMBER.match(text), _LAST_NUMBER.search(text)):
        if found:
            yield int(found[1]) - page
