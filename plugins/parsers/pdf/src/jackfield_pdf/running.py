"""Headers, footers and page numbers: lines that stand at the same place of many pages."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from jackfield_pdf.headings import Headings
from jackfield_pdf.pages import Page

_PAGES = 3  # on fewer, a line may well be there for itself
_GAP = 1.5  # in sizes of the type; what is nearer to the text is a part of it
_FARTHEST = 200  # how far the number on a page may be from its number in the file
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
    for key, places in running.items():
        for at, place in places[1:] if _says_something(key[0]) else places:
            out[at].add(place)
    return [_without(page, out.get(at, set())) for at, page in enumerate(pages)], sorted(
        {key[0].replace(_A_NUMBER, "#") for key in running}
    )


def _candidates(page: Page, headings: Headings) -> Iterator[tuple[_Key, int]]:
    """The lines at the top and at the foot of a page that stand apart from the rest."""
    placed = sorted((line.first, place) for place, line in enumerate(page.lines) if line.size)
    for ordered, is_top in ((placed, False), (placed[::-1], True)):
        edge = [place for height, place in ordered if abs(height - ordered[0][0]) < 0.5 * page.lines[place].size]
        rest = ordered[len(edge) :]
        if not rest:
            continue
        for place in edge:
            line = page.lines[place]
            near = page.lines[rest[0][1]]
            gap = line.last - near.first if is_top else near.last - line.first
            is_heading = headings.level([replace(line, is_bold=False)], line.text, page.number)
            if gap > _GAP * max(line.size, near.size) and not is_heading:
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
    if len({number for _, number in shown}) == 1:
        return True
    steps = {int(number) - page for page, number in shown if len(number) < 7}
    return len(steps) == 1 and abs(steps.pop()) <= _FARTHEST and all(len(number) < 7 for _, number in shown)


def _says_something(text: str) -> bool:
    return any(word.lower() not in _PAGE_WORDS for word in _WORD.findall(text))


def _without(page: Page, out: set[int]) -> Page:
    if not out:
        return page
    return replace(page, lines=tuple(line for place, line in enumerate(page.lines) if place not in out))
