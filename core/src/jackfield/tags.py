"""Find fixed texts (tags, stop words) in a text that arrives in pieces.

Who reads a stream passes on what is certain, holds back what may be the beginning of a tag, and looks again when more
has come. As what is held back is shorter than the longest tag, the work grows as the text does, however it is cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterable


class Tags:
    """A set of fixed texts.

    Args:
        tags: At least one, and none of them empty.
    """

    __slots__ = ("_first", "_longest", "_pattern", "_tags", "may_be_in", "search")

    def __init__(self, *tags: str) -> None:
        self._tags = tags
        self._longest = max(map(len, tags))
        # Longer ones first: one may begin like another.
        self._pattern = re.compile("|".join(re.escape(tag) for tag in sorted(tags, key=len, reverse=True)))
        self._first = re.compile(f"[{re.escape(''.join(sorted({tag[0] for tag in tags})))}]")
        # Not methods: each is called for each piece of a stream, and one call more would double what it costs.
        self.search = self._pattern.search
        """The first of them in a text from a position on; of those that begin there, the longest."""
        self.may_be_in = self._first.search
        """A match if one of them may be in a text, or begin in it; None if not."""

    def half(self, text: str, start: int = 0) -> int:
        """Where one of them begins that may go on in the next piece; the end of the text if none does.

        Args:
            text: What `search` finds none of them in.
            start: The position to look from.
        """
        first = self.may_be_in(text, max(start, len(text) - self._longest + 1))
        while first:
            begun = text[first.start() :]
            for tag in self._tags:  # a loop, and no generator: this runs at each piece that ends in a first character
                if tag.startswith(begun):
                    return first.start()
            first = self.may_be_in(text, first.end())
        return len(text)


class StopSearch:
    """Looks for stop words in a text, piece by piece, and compares exactly, character by character.

    The first one is that which is complete first, as for a server that looks after each character; of several that end
    in one place, the longest. How the text is cut makes no difference.

    Args:
        words: At least one, and none of them empty.

    Attributes:
        found: The stop word, once it has come; '' until then.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self._tags = Tags(*_that_can_be_first(words))
        self._held = ""
        self.found = ""

    def feed(self, text: str) -> str:
        """What may be shown after this piece: up to the stop word, or to where one may have begun."""
        if not self._held and not self._tags.may_be_in(text):
            return text
        whole = self._held + text
        match = self._tags.search(whole)
        if match:
            self.found, self._held = match[0], ""
            return whole[: match.start()]
        end = self._tags.half(whole)
        self._held = whole[end:]
        return whole[:end]

    def rest(self) -> str:
        """What was held back, when the text ends without a stop word."""
        rest, self._held = self._held, ""
        return rest


def _that_can_be_first(words: Iterable[str]) -> list[str]:
    """The words without those in which another one is complete before they are.

    Of the words that are left, none contains another but at its end. So the one that begins first also ends first, or
    is the longest of those that end there: what a regular expression finds.
    """
    unique = list(dict.fromkeys(words))
    return [word for word in unique if not any(other in word[:-1] for other in unique)]
