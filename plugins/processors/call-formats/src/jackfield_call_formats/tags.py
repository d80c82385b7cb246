"""Find fixed texts in a stream, with the beginning of one that may go on in the next piece."""

from __future__ import annotations

import re


class Tags:
    """A set of fixed texts, none of which has its own first character inside but at its end."""

    def __init__(self, *tags: str) -> None:
        self._tags = tags
        self._firsts = "".join(sorted({tag[0] for tag in tags}))
        self._longest = max(map(len, tags))
        # Longer ones first: one may begin like another.
        self._pattern = re.compile("|".join(re.escape(tag) for tag in sorted(tags, key=len, reverse=True)))

    def search(self, text: str, start: int) -> re.Match[str] | None:
        """The first of them from `start` on."""
        return self._pattern.search(text, start)

    def may_be_in(self, text: str) -> bool:
        """Whether one may be in the text, or begin in it."""
        return any(first in text for first in self._firsts)

    def half(self, text: str, start: int) -> int:
        """Where one begins that may go on in the next piece; the end of the text if none does."""
        earliest = max(start, len(text) - self._longest + 1)
        found = len(text)
        for first in self._firsts:
            place = text.rfind(first, earliest)
            if 0 <= place < found and any(tag.startswith(text[place:]) for tag in self._tags):
                found = place
        return found
