"""Headers, footers and page numbers: lines that stand at the same place of many pages."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from jackfield_pdf.headings import Headings
from jackfield_pdf.pages import Page
from jackfield_pdf.typeset import Line

_PAGES = 3  # on fewer, a line may well be there for itself
_GAP = 1.5  # in sizes of the type; what is nearer to the text is a part of it
_FARTHEST = 200  # how far the number on a page may be from its number in the file
_MOST_DIGITS = 6  # of the number of a page
_NUMBER = re.compile(r"\d+")
_A_NUMBER = "\0"  # which stands in no line
_WORD = re.compile(r"[^\W\d_]{2,}")
_PAGE_WORDS = frozenset(("page", "pages", "of", "seite", "von", "pagina", "página", "第", "页"))

_Place = tuple[int, int]  # of a line: which page, which line
_Key = tuple[str, int, bool]


def without_running_lines(pages: Sequence[Page], headings: Headings) -> tuple[list[Page], list[str]]:
    """The pages without the lines that are repeated around the text, and the texts of those lines.

    Such a line stays on the first page that has it, unless it is a bare page number, so that nothing is lost. It
    stands apart from the text, at the same height of three pages or more, in type no larger than the text's, and
    differs from page to page in nothing but the number of the page.
    """
    found: defaultdict[_Key, list[_Place]] = defaultdict(list)
    for at, page in enumerate(pages):
        for key, place in _candidates(page, headings):
            found[key].append((at, place))
    running = {key: places for key, places in found.items() if _is_running(pages, places)}
    out: defaultdict[int, set[int]] = defaultdict(set)
    for at, place in _left_out(running):
        out[at].add(place)
    texts = {text.replace(_A_NUMBER, "#") for text, *_ in running}
    return [_without(page, out[at]) for at, page in enumerate(pages)], sorted(texts)


def _left_out(running: Mapping[_Key, Sequence[_Place]]) -> Iterator[_Place]:
    for (text, *_), places in running.items():
        yield from places[1:] if _says_something(text) else places


def _candidates(page: Page, headings: Headings) -> Iterator[tuple[_Key, int]]:
    """The lines at the top and at the foot of a page that stand apart from the rest."""
    placed = sorted((line.first, place) for place, line in enumerate(page.lines) if line.size)
    for ordered, is_top in ((placed, False), (placed[::-1], True)):
        edge = [place for height, place in ordered if abs(height - ordered[0][0]) < 0.5 * page.lines[place].size]
        for _, nearest in ordered[len(edge) : len(edge) + 1]:
            apart = (place for place in edge if _is_apart(page.lines[place], page.lines[nearest], is_top=is_top))
            yield from _that_may_run(page, apart, headings, is_top=is_top)


def _is_apart(line: Line, nearest: Line, *, is_top: bool) -> bool:
    upper, lower = (line, nearest) if is_top else (nearest, line)
    return upper.last - lower.first > _GAP * max(upper.size, lower.size)


def _that_may_run(page: Page, places: Iterator[int], headings: Headings, *, is_top: bool) -> Iterator[tuple[_Key, int]]:
    """Lines that are not headings, with what those of other pages have in common with them."""
    for place in places:
        line = page.lines[place]
        if not headings.level([replace(line, is_bold=False)], line.text, page.number):
            yield (_NUMBER.sub(_A_NUMBER, " ".join(line.text.split())), round(line.first), is_top), place


def _is_running(pages: Sequence[Page], places: Sequence[_Place]) -> bool:
    """Whether lines that are the same but for their numbers stand on many pages, and count these."""
    if len(places) < _PAGES:
        return False
    numbers = [_NUMBER.findall(pages[at].lines[place].text) for at, place in places]
    return all(
        _counts([(pages[at].number, column) for (at, _), column in zip(places, of_all, strict=True)])
        for of_all in zip(*numbers, strict=True)
    )


def _counts(shown: Sequence[tuple[int, str]]) -> bool:
    """Whether numbers are the same on all pages, or those of the pages."""
    numbers = {number for _, number in shown}
    if len(numbers) == 1:
        return True
    if max(map(len, numbers)) > _MOST_DIGITS:
        return False
    steps = {int(number) - page for page, number in shown}
    return len(steps) == 1 and abs(steps.pop()) <= _FARTHEST


def _says_something(text: str) -> bool:
    return any(word.lower() not in _PAGE_WORDS for word in _WORD.findall(text))


def _without(page: Page, out: set[int]) -> Page:
    if not out:
        return page
    return replace(page, lines=tuple(line for place, line in enumerate(page.lines) if place not in out))
