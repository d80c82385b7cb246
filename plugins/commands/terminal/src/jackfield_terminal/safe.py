"""Show what models write: as `jackfield.cli` does, but for the joiners and selectors that people's scripts need."""

from __future__ import annotations

import re
import unicodedata
from typing import TextIO

from jackfield import cli

# They join letters, as Persian, Indic scripts and emoji need it, or choose the form of the one before.
_JOINERS = re.compile("([\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef])")
_KEYCAPS = "0123456789#*"


def shown_text(text: str, before: str = "") -> str:
    """A text of several lines, made safe for a terminal.

    Joiners and variation selectors stay behind what they can join or vary: a letter that is not ASCII, a symbol. Behind
    anything else they are only hidden.

    Args:
        text: As it came.
        before: The last character before it, where it is a piece of a text.
    """
    if text.isascii() or not _JOINERS.search(text):
        return cli.shown_text(text)
    shown = []
    for part in filter(None, _JOINERS.split(text.replace("\r\n", "\n"))):
        shown.append(part if _JOINERS.match(part) and _joins(part, before) else cli.shown_text(part))
        before = part[-1]
    return "".join(shown)


def _joins(joiner: str, last: str) -> bool:
    """Whether a joiner does something behind a character."""
    if not last or (joiner == "\ufe0f" and last in _KEYCAPS):
        return bool(last)
    # Not behind another selector, which is a mark, too: a row of them carries hidden text.
    return not last.isascii() and unicodedata.category(last)[0] in "LMS" and not _JOINERS.match(last)


class Terminal(cli.Terminal):
    """A stream to a terminal, on which only `styled` writes control characters."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._last = ""

    def write(self, text: str) -> int:
        """Write a text as `shown_text` has it."""
        self.stream.write(shown_text(text, self._last))
        self._last = text[-1:] or self._last
        return len(text)

    def styled(self, text: str, *, before: str, after: str) -> None:
        """Write a text between two orders of ours."""
        self.stream.write(before)
        self.write(text)
        self.stream.write(after)
