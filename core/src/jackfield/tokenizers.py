"""The contract for tokenizers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol


class TokenCounter(Protocol):
    """A function that counts the tokens of a text."""

    def __call__(self, text: str, /) -> int:
        """Return the number of tokens."""


class Tokenizer(ABC):
    """Base class for tokenizers. A tokenizer counts tokens and truncates text using one vocabulary.

    Instances are thread-safe.

    The first call loads the vocabulary. Text is never encoded as control tokens: `<|im_end|>` in a user's message is
    just ten characters.

    Attributes:
        name: The tokenizer's name, as in `ModelFacts`.
        exact: True if counts are exact for the vocabulary, False if they are estimates.
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
        """Return the text for a sequence of token ids. Invalid UTF-8, such as an incomplete character, becomes U+FFFD.

        Raises:
            ValueError: An id is not in the vocabulary.
        """

    def count(self, text: str) -> int:
        """Return the number of tokens in a text. Lone surrogates are counted as U+FFFD."""
        return len(self.encode(text))

    def cut(self, text: str, most: int) -> str:
        """Truncate a text to at most `most` tokens without splitting a character. Text that fits is returned unchanged.

        With one more character, the result would exceed the limit. Even so, a longer prefix may fit, because a text can
        have fewer tokens than its prefix.
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
