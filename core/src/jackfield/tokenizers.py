"""The contract of tokenizers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol


class TokenCounter(Protocol):
    """Counts the tokens of a text."""

    def __call__(self, text: str, /) -> int:
        """How many tokens `text` has."""


class Tokenizer(ABC):
    """Counts and cuts texts as one vocabulary does. It is called from many threads at once.

    Making one reads nothing; the vocabulary is read at the first call. Text is never read as control tokens: a user who
    writes `<|im_end|>` has written ten characters.

    Attributes:
        name: Its name in models' facts.
        exact: Whether counts are those of the vocabulary; if not, they are estimates.
    """

    name: str
    exact: bool = True

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """The ids of a text's tokens.

        Raises:
            ConfigError: The vocabulary cannot be loaded; the text says what to do.
        """

    @abstractmethod
    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens; bytes that are not UTF-8, as at a cut character, become U+FFFD.

        Raises:
            ValueError: The vocabulary has no such id.
        """

    def count(self, text: str) -> int:
        """How many tokens a text has; 0 for an empty one. Half a surrogate pair counts as U+FFFD does."""
        return len(self.encode(text))

    def cut(self, text: str, most: int) -> str:
        """The longest beginning of a text, in whole characters, that has at most `most` tokens.

        A beginning may have more tokens than a longer one has, so this is not always the longest there is; but it has
        at most `most` tokens, would have more with one character more, and a text that fits is returned whole.
        """
        if most <= 0:
            return ""
        return text if self.count(text) <= most else self._bisected(text, most)

    def _bisected(self, text: str, most: int) -> str:
        # Where the end must be about: counting a long text at every step takes long.
        low, high = 0, min(len(text), 4 * most)
        while high < len(text) and self.count(text[:high]) <= most:
            low, high = high, min(len(text), 2 * high)
        while high - low > 1:
            middle = (low + high) // 2
            if self.count(text[:middle]) <= most:
                low = middle
            else:
                high = middle
        return text[:low]
