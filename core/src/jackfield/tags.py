"""Find fixed strings (tags, stop words) in text that arrives in chunks.

A stream reader forwards text that cannot be part of a tag, buffers text that may be the start of a tag, and searches
again when more text arrives. The buffer is always shorter than the longest tag, so the work is linear in the length of
the text, regardless of the chunk size.
"""

from __future__ import annotations

import re
from collections.abc import Iterable


class Tags:
    """A set of fixed strings to search for.

    Args:
        tags: The tags. At least one tag is required, and no tag may be empty.
    """

    __slots__ = ("_first", "_longest", "_pattern", "_tags", "may_be_in", "search")

    def __init__(self, *tags: str) -> None:
        self._tags = tags
        self._longest = max(map(len, tags))
        # Longer tags come first, because one may start with another.
        self._pattern = re.compile("|".join(re.escape(tag) for tag in sorted(tags, key=len, reverse=True)))
        self._first = re.compile(f"[{re.escape(''.join(sorted({tag[0] for tag in tags})))}]")
        # These are not methods, because they run for each chunk of a stream, where another call would double the cost.
        self.search = self._pattern.search
        """Match the first tag in a text at or after an index. If several start at the same index, the longest wins."""
        self.may_be_in = self._first.search
        """Match if a text may contain a tag or the start of one."""

    def half(self, text: str, start: int = 0) -> int:
        """Return the index of a partial tag at the end of the text, or the text's length if there is none.

        Args:
            text: Text in which `search` finds no tag.
            start: The index to search from.
        """
        first = self.may_be_in(text, max(start, len(text) - self._longest + 1))
        while first:
            begun = text[first.start() :]
            for tag in self._tags:  # a loop instead of a generator, because this runs often
                if tag.startswith(begun):
                    return first.start()
            first = self.may_be_in(text, first.end())
        return len(text)


class StopSearch:
    """Incremental search for stop words. Stop words must match exactly.

    The search finds the stop word that is completed first, like a server that checks after each character. If several
    stop words end at the same position, the longest one is found. The result does not depend on how the text is split
    into chunks.

    Args:
        words: The stop words. At least one stop word is required, and no stop word may be empty.

    Attributes:
        found: The stop word that ended the text, or '' until one has.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self._tags = Tags(*_words_that_can_be_first(words))
        self._held = ""
        self.found = ""

    def feed(self, text: str) -> str:
        """Add a chunk and return the text that can be shown, up to a stop word or the possible start of a stop word."""
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
        """Return the buffered text. Call this method when the text ends without a stop word."""
        rest, self._held = self._held, ""
        return rest


def _words_that_can_be_first(words: Iterable[str]) -> list[str]:
    """Drop words that contain another word before their last character.

    Of the remaining words, the one that starts first in a text also ends first, or is the longest word that ends there.
    A regular expression finds exactly this word.
    """
    unique = list(dict.fromkeys(words))
    return [word for word in unique if not any(other in word[:-1] for other in unique)]
