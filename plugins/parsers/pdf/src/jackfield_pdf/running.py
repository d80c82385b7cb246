"""Remove headers, footers and page numbers: lines that recur at the same position on many pages."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from jackfield_pdf.edges import edge_lines
from jackfield_pdf.headings import Headings
from jackfield_pdf.pages import Page
from jackfield_pdf.typeset import Line

_PAGES = 3  # on fewer pages, a line may well be ordinary text
_FARTHEST = 200  # maximum offset between the printed page number and the one in the file
_MOST_DIGITS = 6  # of a page number
_NUMBER = re.compile(r"\d+")
_A_NUMBER = "\0"  # which occurs in no line
_WORD = re.compile(r"[^\W\d_]{2,}")
_PAGE_WORDS = frozenset(("page", "pages", "of", "seite", "von", "pagina", "página", "第", "页"))

_Place = tuple[int, int]  # of a line: which page, which line
_Key = tuple[str, int, bool]
_One = TypeVar("_One", bound=Hashable)
_Other = TypeVar("_Other")


def without_running_lines(pages: Sequence[Page], headings: Headings) -> tuple[list[Page], list[str]]:
    """Return the pages without their running lines (headers and footers), and the texts of these lines.

    A running line is set apart from the text, at the same height on at least three pages, and not in larger type. Apart
    from page numbers, its text is the same on each page. It is kept on the first page where it occurs, unless it is a
    bare page number, so that nothing is lost.
    """
    found = _collected(_candidates(pages, headings))
    running = {key: places for key, places in found.items() if _is_running(pages, places)}
    out = _collected(_left_out(running))
    texts = {text.replace(_A_NUMBER, "#") for text, *_ in running}
    return [_without(page, out[at]) for at, page in enumerate(pages)], sorted(texts)


def _collected(pairs: Iterable[tuple[_One, _Other]]) -> defaultdict[_One, list[_Other]]:
    collected: defaultdict[_One, list[_Other]] = defaultdict(list)
    for one, other in pairs:
        collected[one].append(other)
    return collected


def _left_out(running: Mapping[_Key, Sequence[_Place]]) -> Iterator[_Place]:
    for (text, *_), places in running.items():
        yield from places[1:] if _says_something(text) else places


def _candidates(pages: Sequence[Page], headings: Headings) -> Iterator[tuple[_Key, _Place]]:
    """Yield possible headers and footers, each as its form shared across pages and its place."""
    for at, page in enumerate(pages):
        for place, is_top in edge_lines(page):
            line = page.lines[place]
            if not _is_heading(line, page, headings):
                yield (_NUMBER.sub(_A_NUMBER, " ".join(line.text.split())), round(line.first), is_top), (at, place)


def _is_heading(line: Line, page: Page, headings: Headings) -> bool:
    """Return True if a line is a heading by size or outline. Bold type does not count, because headers may be bold."""
    return headings.level([replace(line, is_bold=False)], line.text, page.number) > 0


def _is_running(pages: Sequence[Page], places: Sequence[_Place]) -> bool:
    """Return True if lines that differ only in numbers recur on enough pages, and the numbers follow the pages."""
    if len(places) < _PAGES:
        return False
    numbers = [_NUMBER.findall(pages[at].lines[place].text) for at, place in places]
    return all(
        _counts([(pages[at].number, column) for (at, _), column in zip(places, of_all, strict=True)])
        for of_all in zip(*numbers, strict=True)
    )


def _counts(shown: Sequence[tuple[int, str]]) -> bool:
    """Return True if the numbers are the same on all pages, or follow the page numbers at a constant offset."""
    pages, numbers = zip(*shown, strict=True)
    if len(set(numbers)) == 1:
        return True
    if max(map(len, numbers)) > _MOST_DIGITS:
        return False
    steps = {int(number) - page for number, page in zip(numbers, pages, strict=True)}
    return len(steps) == 1 and abs(steps.pop()) <= _FARTHEST


def _says_something(text: str) -> bool:
    return any(word.lower() not in _PAGE_WORDS for word in _WORD.findall(text))


def _without(page: Page, out: Collection[int]) -> Page:
    if not out:
        return page
    return replace(page, lines=tuple(line for place, line in enumerate(page.lines) if place not in out))
