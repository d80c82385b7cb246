"""Find a rule's matches in a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import regex as regexes

from jackfield.errors import ConfigError

SEARCH_S = 0.1
"""CPU seconds for one search in one window; a typical one takes microseconds."""


@dataclass(frozen=True, slots=True)
class Found:
    """A match in a text.

    Attributes:
        start, end: The bounds of the match, which is never empty.
        kept: The number of leading characters to keep when the match is removed.
    """

    start: int
    end: int
    kept: int = 0


class Finder(Protocol):
    """Finds matches in texts.

    Attributes:
        window: The number of characters, from the start of a match, that usually suffice to find it. A match that
            reaches the end of the visible text is searched for again in a longer text.
    """

    window: int

    def find(self, text: str, start: int, *, complete: bool) -> Found | None:
        """Return the first match at or after `start`.

        Args:
            text: The text. Characters before `start` are only for lookbehind.
            start: The position to search from.
            complete: True if the text ends there, False if more may follow.
        """


class RegexFinder:
    """Finds matches of a regular expression in bounded time.

    Raises:
        ConfigError: The search exceeded its time limit. None of the text is forwarded in this case.
    """

    def __init__(self, regex: str, window: int) -> None:
        self.window = window
        self._source = regex
        self._regex = regexes.compile(regex, regexes.VERSION0)

    def find(self, text: str, start: int, *, complete: bool) -> Found | None:  # noqa: ARG002 - the interface's
        """Return the first non-empty match."""
        while match := self._search(text, start):
            if match.end() > match.start():
                return Found(match.start(), match.end())
            start = match.end() + 1  # only a lookaround
            if start > len(text):
                break
        return None

    def _search(self, text: str, start: int) -> regexes.Match[str] | None:
        try:
            return self._regex.search(text, start, timeout=SEARCH_S)
        except TimeoutError:
            raise ConfigError(
                f"the regular expression {self._source[:100]!r} of a rule took more than {SEARCH_S:g} s on a part of "
                f"this text: make its repetitions possessive (`++`, `*+`), or its alternatives mutually exclusive"
            ) from None
