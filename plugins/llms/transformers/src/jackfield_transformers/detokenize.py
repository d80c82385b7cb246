"""Decode tokens as they arrive, without splitting characters.

Tokens do not map directly to text: a character may consist of several tokens, and in some vocabularies a word's leading
space appears only once another token precedes it. New tokens are therefore decoded together with a few earlier ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

REPLACEMENT = "\ufffd"  # decoders' substitute for invalid or incomplete characters
_CONTEXT_TOKENS = 6
_PATIENCE_TOKENS = (
    8  # after so many without a complete character, the bytes are invalid, because a character has at most four
)
_MOST_OPEN = 3  # maximum bytes of an incomplete character

Decode = Callable[[Sequence[int]], str]


class TokenDecoder:
    """Decodes tokens incrementally, returning text as soon as it is final.

    Concatenated, the returned strings equal the text of all tokens.
    """

    def __init__(self, decode: Decode) -> None:
        self._decode = decode
        self._window: list[int] = []
        self._boundary = 0  # the window position after a token that completed a character, or 0
        self._open = 0  # the number of tokens since the last one that completed a character
        self._returned = 0  # the number of characters in the window already returned

    def feed(self, token: int) -> str:
        """Return the text that a token makes final."""
        self._window.append(token)
        text = self._decode(self._window)
        if not text.endswith(REPLACEMENT):
            self._open = 0
            piece = self._up_to(text, len(text))
            self._move_on()
            return piece
        self._open += 1
        if self._open <= _PATIENCE_TOKENS:
            return ""
        open_characters = len(text) - len(text.rstrip(REPLACEMENT))
        return self._up_to(text, len(text) - min(_MOST_OPEN, open_characters))

    def finish(self) -> str:
        """Return the rest, with incomplete characters replaced."""
        text = self._decode(self._window)
        return self._up_to(text, len(text))

    def _up_to(self, text: str, end: int) -> str:
        piece = text[self._returned : end]
        self._returned = max(self._returned, end)
        return piece

    def _move_on(self) -> None:
        """Drop tokens that are no longer needed. A window starts at a character, a few tokens before the new ones."""
        if len(self._window) - self._boundary < _CONTEXT_TOKENS:
            return
        if self._boundary:
            self._window = self._window[self._boundary :]
            self._returned = len(self._decode(self._window))
        self._boundary = len(self._window)
