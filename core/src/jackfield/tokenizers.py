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
    """Counts and cuts texts by one vocabulary. It serves many threads at once.

    The first call reads the vocabulary. Text never becomes control tokens: `<|im_end|>` in a user's message is ten
    characters.

    Attributes:
        name: Its name in models' facts.
        exact: Counts are those of the vocabulary, not estimates.
    """

    name: str
    exact: bool = True

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """Return the ids of a text's tokens.

        Raises:
            ConfigError: The vocabulary cannot be loaded; the text has the next step.
        """

    @abstractmethod
    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens. Invalid UTF-8, such as a cut character, becomes U+FFFD.

        Raises:
            ValueError: The vocabulary has no such id.
        """

    def count(self, text: str) -> int:
        """Return the number of tokens in a text. A lone surrogate counts like U+FFFD."""
        return len(self.encode(text))

    def cut(self, text: str, most: int) -> str:
        """Return the beginning of a text with at most `most` tokens, in whole characters; the whole text if it fits.

        One more character would exceed the limit. A longer beginning may fit nevertheless, because a text can have
        fewer tokens than its beginning.
        """
        if most <= 0:
            return ""
        if self.count(text) <= most:
            return text
        # Find a range for the end first: counting a long text at every step is slow.
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
