"""Turn tokens into text while they arrive, without half characters.

A token is not a piece of text: a character may lie across several tokens, and in some vocabularies a word's leading
space shows only behind another token. So a few tokens before the new ones are decoded again with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

REPLACEMENT = "\ufffd"  # what decoders give for bytes that are no character, or not yet
_CONTEXT_TOKENS = 6
_PATIENCE_TOKENS = 8  # after so many without the end of a character, the bytes are none: a character has at most four
_MOST_OPEN = 3  # bytes that a character which is not complete can have

Decode = Callable[[Sequence[int]], str]


class TokenDecoder:
    """Returns the text of tokens as soon as it is certain. All of it, joined, is the text of all tokens."""

    def __init__(self, decode: Decode) -> None:
        self._decode = decode
        self._window: list[int] = []
        self._boundary = 0  # where, in the window, a token ended together with a character; 0 as long as none is marked
        self._open = 0  # how many tokens came since the last one that ended with a character
        self._said = 0  # how many characters of the window's text were given

    def feed(self, token: int) -> str:
        """Return the text that a token makes certain."""
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
        """Return the rest; incomplete characters are replaced."""
        text = self._decode(self._window)
        return self._up_to(text, len(text))

    def _up_to(self, text: str, end: int) -> str:
        piece = text[self._said : end]
        self._said = max(self._said, end)
        return piece

    def _move_on(self) -> None:
        """Forget tokens that no longer matter: a window begins where a character does, with some tokens to spare."""
        if len(self._window) - self._boundary < _CONTEXT_TOKENS:
            return
        if self._boundary:
            self._window = self._window[self._boundary :]
            self._said = len(self._decode(self._window))
        self._boundary = len(self._window)
