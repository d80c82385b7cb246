"""Find fixed texts (tags, stop words) in a text that arrives in pieces.

A stream reader passes on text that is certain, holds back text that may begin a tag, and searches again when more text
arrives. It holds back less than the longest tag, so the work is linear in the text, whatever the size of the pieces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable


class Tags:
    """A set of fixed texts.

    Args:
        tags: At least one tag, and no empty tags.
    """

    __slots__ = ("_first", "_longest", "_pattern", "_tags", "may_be_in", "search")

    def __init__(self, *tags: str) -> None:
        self._tags = tags
        self._longest = max(map(len, tags))
        # Longer tags first, because one may begin with another.
        self._pattern = re.compile("|".join(re.escape(tag) for tag in sorted(tags, key=len, reverse=True)))
        self._first = re.compile(f"[{re.escape(''.join(sorted({tag[0] for tag in tags})))}]")
        # Not methods, because they run for each piece of a stream, where one more call would double the cost.
        self.search = self._pattern.search
        """Match the first tag in a text from a position on; if several begin there, the longest."""
        self.may_be_in = self._first.search
        """Match if a text may contain a tag or the beginning of a tag."""

    def half(self, text: str, start: int = 0) -> int:
        """Return the start of a tag that may continue in the next piece; the text's length if there is none.

        Args:
            text: A text in which `search` finds no tag.
            start: The position to look from.
        """
        first = self.may_be_in(text, max(start, len(text) - self._longest + 1))
        while first:
            begun = text[first.start() :]
            for tag in self._tags:  # not a generator, because this runs often
                if tag.startswith(begun):
                    return first.start()
            first = self.may_be_in(text, first.end())
        return len(text)


class StopSearch:
    """Searches a text for stop words, piece by piece. Characters are compared exactly.

    The stop word that is complete first counts, as on a server that checks after each character; if several end at the
    same position, the longest. The result does not depend on the pieces.

    Args:
        words: The stop words: at least one, and no empty words.

    Attributes:
        found: The stop word that ended the text; '' until then.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self._tags = Tags(*_words_that_can_be_first(words))
        self._held = ""
        self.found = ""

    def feed(self, text: str) -> str:
        """Add a piece, and return the text that may be shown: up to the stop word or its possible beginning."""
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
        """Return the text that was held back. Call this when the text ends without a stop word."""
        rest, self._held = self._held, ""
        return rest


def _words_that_can_be_first(words: Iterable[str]) -> list[str]:
    """Drop words that contain another word before their last character.

    The remaining word that begins first in a text also ends first, or is the longest of those that end there. A regular
    expression finds exactly this word.
    """
    unique = list(dict.fromkeys(words))
    return [word for word in unique if not any(other in word[:-1] for other in unique)]
