"""Resolve the OpenDocument styles that determine the kind of a paragraph."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from jackfield_markup import Element
from jackfield_opendocument.names import FO, STYLE, TEXT

_CODE = re.compile(r"(?:source ?code|html preformatted|preformatted(?: text)?|code(?: block)?|plain text)$", re.I)
_MOST_BASES = 10  # styles may be circular in a malicious file
_SMALL = re.compile(r"[0-9]{1,5}")


@dataclass(frozen=True, slots=True)
class _Style:
    """A style: the name of its parent style, and True if it starts a new page."""

    parent: str
    begins_page: bool


class Styles:
    """The styles of a file.

    Args:
        roots: XML trees with style definitions. The first definition of a name wins.
    """

    def __init__(self, roots: Iterable[Element]) -> None:
        self._styles: dict[str, _Style] = {}
        self._starts: dict[tuple[str, int], int] = {}
        for root in roots:
            for entry in root.iter(STYLE + "style"):
                if entry.get(STYLE + "family") == "paragraph":
                    self._styles.setdefault(entry.get(STYLE + "name", ""), _style(entry))
            for entry in root.iter(TEXT + "list-style"):
                for level in entry.iterchildren(TEXT + "list-level-style-number"):
                    key = entry.get(STYLE + "name", ""), number(level.get(TEXT + "level"))
                    if level.get(STYLE + "num-format"):  # without one, no number is shown
                        self._starts.setdefault(key, number(level.get(TEXT + "start-value")))

    def is_code(self, name: str) -> bool:
        """Return True for a style for program code, or a style derived from one."""
        return any(_CODE.match(base.replace("_20_", " ")) for base, _ in self._bases(name))

    def is_title(self, name: str) -> bool:
        """Return True for the document title style, or a style derived from it."""
        return any(base == "Title" for base, _ in self._bases(name))

    def begins_page(self, name: str) -> bool:
        """Return True if paragraphs of this style start a new page."""
        return any(style.begins_page for _, style in self._bases(name))

    def first_number(self, list_style: str, level: int) -> int | None:
        """Return the first number at a list level, which may be 0, or None if the level is not numbered."""
        return self._starts.get((list_style, level))

    def _bases(self, name: str) -> Iterator[tuple[str, _Style]]:
        """Yield a style and its base styles, each as name and style."""
        for _ in range(_MOST_BASES):
            if not name:
                return
            style = self._styles.get(name, _Style("", begins_page=False))
            yield name, style
            name = style.parent


def number(text: str | None, default: int = 1) -> int:
    """Parse a number of up to five digits. Anything else yields `default`."""
    return int(text) if text and _SMALL.fullmatch(text) else default


def _style(entry: Element) -> _Style:
    properties = entry.find(STYLE + "paragraph-properties")
    begins_page = properties is not None and properties.get(FO + "break-before") == "page"
    return _Style(
        entry.get(STYLE + "parent-style-name", ""), begins_page or bool(entry.get(STYLE + "master-page-name"))
    )
