"""Contract of tokenizers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol


class TokenCounter(Protocol):
    """A function that counts the tokens of a text."""

    def __call__(self, text: str, /) -> int:
        """Return the number of tokens."""


class Tokenizer(ABC):
    """Base class of tokenizers, which count and cut text with one vocabulary. Instances are thread-safe.

    The first call loads the vocabulary. Text never becomes control tokens: `<|im_end|>` in a user's message is ten
    characters.

    Attributes:
        name: The tokenizer's name, as in `ModelFacts`.
        exact: True if counts are exact for the vocabulary, rather than estimates.
    """

    name: str
    exact: bool = True

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text.

        Raises:
            ConfigError: The vocabulary cannot be loaded. The message contains the next step.
        """

    @abstractmethod
    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of token ids. Invalid UTF-8, such as a cut character, becomes U+FFFD.

        Raises:
            ValueError: An id is not in the vocabulary.
        """

    def count(self, text: str) -> int:
        """Return the number of tokens in a text. Lone surrogates count like U+FFFD."""
        return len(self.encode(text))

    def cut(self, text: str, most: int) -> str:
        """Return the beginning of a text with at most `most` tokens, in whole characters, or the whole text if it fits.

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
