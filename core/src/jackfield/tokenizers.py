"""The contract of tokenizers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol


class TokenCounter(Protocol):
    """Counts the tokens of a text."""

    def __call__(self, text: str, /) -> int:
        """Return the number of tokens."""


class Tokenizer(ABC):
    """Counts and cuts texts with one vocabulary. It serves many threads at once.

    The first call reads the vocabulary. Text never becomes control tokens: `<|im_end|>` in a user's message is ten
    characters.

    Attributes:
        name: The tokenizer's name in models' facts.
        exact: True if counts are exact for the vocabulary, not estimates.
    """

    name: str
    exact: bool = True

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """Return the ids of a text's tokens.

        Raises:
            ConfigError: The vocabulary cannot be loaded. The text has the next step.
        """

    @abstractmethod
    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens. Invalid UTF-8, such as a cut character, becomes U+FFFD.

        Raises:
            ValueError: An id is not in the vocabulary.
        """

    def count(self, text: str) -> int:
        """Return the number of tokens in a text. A lone surrogate counts like U+FFFD."""
        return len(self.encode(text))

    def cut(self, text: str, most: int) -> str:
        """Return the beginning of a text with at most `most` tokens, in whole characters; the whole text if it fits.

        One more character would exceed the limit. An even longer beginning may still fit, because a text can have fewer
        tokens than its beginning.
        """
        if most <= 0:
            return ""
        if self.count(text) <= most:
            return text
        # Find a range for the end first, because counting a long text at every step is slow.
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
