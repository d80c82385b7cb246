"""Find the first stop word in a text that comes in pieces, and show of it only what no stop word can begin in."""

from __future__ import annotations

import re
from collections.abc import Iterable


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
        self._words = _that_can_be_first(words)
        self._longest = max(map(len, self._words))
        self._pattern = re.compile("|".join(map(re.escape, self._words)))
        firsts = "".join(sorted({word[0] for word in self._words}))
        self._first = re.compile(f"[{re.escape(firsts)}]")
        self._held = ""
        self.found = ""

    def feed(self, text: str) -> str:
        """What may be shown after this piece: up to the stop word, or to where one may have begun."""
        if not self._held and not self._first.search(text):
            return text
        whole = self._held + text
        match = self._pattern.search(whole)
        if match:
            self.found, self._held = match[0], ""
            return whole[: match.start()]
        end = self._beginning(whole)
        self._held = whole[end:]
        return whole[:end]

    def rest(self) -> str:
        """What was held back, when the text ends without a stop word."""
        rest, self._held = self._held, ""
        return rest

    def _beginning(self, text: str) -> int:
        """Where a stop word begins that may go on in the next piece; the end of the text if none does."""
        for first in self._first.finditer(text, max(0, len(text) - self._longest + 1)):
            begun = text[first.start() :]
            for word in self._words:  # a loop, and no generator: this runs at each piece that ends in a first letter
                if word.startswith(begun):
                    return first.start()
        return len(text)


def _that_can_be_first(words: Iterable[str]) -> list[str]:
    """The words without those in which another one is complete before they are.

    Of the words that are left, none contains another but at its end. So the one that begins first also ends first, or
    is the longest of those that end there: what a regular expression finds.
    """
    unique = list(dict.fromkeys(words))
    return [word for word in unique if not any(other in word[:-1] for other in unique)]
