"""Find what a rule looks for in a text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Found:
    """A place in a text.

    Attributes:
        start, end: Where what was found begins and ends; never empty.
        kept: How many characters at its beginning stay when the rest is taken out.
    """

    start: int
    end: int
    kept: int = 0


class Finder(Protocol):
    """Looks for something in texts.

    Attributes:
        window: How many characters it has to see from where something begins, to find it as a rule. What reaches the
            end of what it sees is looked for again in a longer text.
    """

    window: int

    def find(self, text: str, start: int, *, complete: bool) -> Found | None:
        """The first place from `start` on.

        Args:
            text: The text; what stands before `start` is there to be looked back at.
            start: Where to begin.
            complete: Whether the text ends there, or goes on with what is not seen.
        """


class RegexFinder:
    """Looks for what a regular expression matches."""

    def __init__(self, regex: str, window: int) -> None:
        self.window = window
        self._regex = re.compile(regex)

    def find(self, text: str, start: int, *, complete: bool) -> Found | None:  # noqa: ARG002 - the interface's
        """The first match that is not empty."""
        while match := self._regex.search(text, start):
            if match.end() > match.start():
                return Found(match.start(), match.end())
            start = match.end() + 1  # a lookaround alone
            if start > len(text):
                break
        return None
