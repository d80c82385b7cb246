"""Sanitise models' text for a terminal, but retain the joiners and variation selectors that scripts need."""

from __future__ import annotations

import re
import unicodedata
from typing import TextIO

from jackfield import cli

# Joiners connect letters in Persian, Indic scripts and emoji; selectors choose the form of the previous character.
_JOINERS = re.compile("([\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef])")
_KEYCAPS = "0123456789#*"


def shown_text(text: str, before: str = "") -> str:
    """Sanitise multi-line text for a terminal.

    Joiners and variation selectors are retained only after a character they can affect, which is a non-ASCII letter or
    a symbol. Anywhere else they could hide text, so they are escaped.

    Args:
        text: The text, or a chunk of it.
        before: The character before the chunk, or ''.
    """
    if text.isascii() or not _JOINERS.search(text):
        return cli.escape_text(text)
    shown = []
    for part in _JOINERS.split(text.replace("\r\n", "\n")):
        if part:
            shown.append(part if _JOINERS.match(part) and _has_effect(part, before) else cli.escape_text(part))
            before = part[-1]
    return "".join(shown)


def _has_effect(joiner: str, last: str) -> bool:
    """Return True if a joiner or selector affects the preceding character."""
    if not last or (joiner == "\ufe0f" and last in _KEYCAPS):
        return bool(last)
    # Not after another selector, which is also a mark: a sequence of them could carry hidden text.
    return not last.isascii() and unicodedata.category(last)[0] in "LMS" and not _JOINERS.match(last)


class Terminal(cli.Terminal):
    """Terminal stream on which only `styled` writes control characters."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._last = ""

    def write(self, text: str) -> int:
        """Write a text sanitised with `shown_text`."""
        self.stream.write(shown_text(text, self._last))
        self._last = text[-1:] or self._last
        return len(text)

    def styled(self, text: str, *, before: str, after: str) -> None:
        """Write a text between two of our own control sequences."""
        self.stream.write(before)
        self.write(text)
        self.stream.write(after)
