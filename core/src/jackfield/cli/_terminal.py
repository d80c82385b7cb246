"""Show untrusted text so that it cannot control the terminal or deceive its reader.

Models, servers, files and plugins name things and write texts; a terminal would take some of their characters for
orders (escape sequences), hide others, or turn lines round. Here each of these becomes its code, as Python writes it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TextIO

# Controls, but for tab and line feed; what is not seen or turns text round; tags; halves of surrogate pairs.
_UNSEEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff\ud800-\udfff"
)
_CONTROLS = re.compile("[\x00-\x1f\x7f]")
_ASCII = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
# They join letters, as Persian, Indic scripts and emoji need it, or choose the form of the one before.
_JOINERS = re.compile("[\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_KEYCAPS = "0123456789#*"


def shown_text(text: str, before: str = "") -> str:
    """A text of several lines, made safe for a terminal.

    Joiners and variation selectors stay behind what they can join or vary: a letter that is not ASCII, a symbol. Behind
    anything else they are only hidden.

    Args:
        text: As it came.
        before: The last character before it, where it is a piece of a text.
    """
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n")
    pattern = _ASCII if text.isascii() else _unseen()
    return pattern.sub(lambda match: _kept(match, before), text)


def shown_name(text: str) -> str:
    """A name, or a line, made safe for a terminal: two that differ look different. A line feed becomes a code, too."""
    if text.isascii() and text.isprintable():
        return text
    shown = text if text.isascii() else _unseen().sub(lambda match: _code(match[0]), text)
    return _CONTROLS.sub(lambda match: _code(match[0]), shown)


@cache
def _unseen() -> re.Pattern[str]:
    return re.compile(f"[{_UNSEEN}]")  # at first use: it takes some milliseconds, and most texts need none


def _kept(match: re.Match[str], before: str) -> str:
    char, at = match[0], match.start()
    if not _JOINERS.match(char):
        return _code(char)
    last = match.string[at - 1] if at else before
    if char == "\ufe0f" and last and last in _KEYCAPS:
        return char
    import unicodedata  # most texts need none of it

    joins = bool(last) and not last.isascii() and unicodedata.category(last)[0] in "LMS"
    # Not behind another selector, which is a mark, too: a row of them carries hidden text.
    return char if joins and not _JOINERS.match(last) else _code(char)


def _code(char: str) -> str:
    number = ord(char)
    if number < 0x100:
        return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char, f"\\x{number:02x}")
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


class Terminal:
    """A stream to a terminal, on which only `styled` writes control characters."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._last = ""

    def write(self, text: str) -> int:
        """Write a text as `shown_text` has it."""
        self._stream.write(shown_text(text, self._last))
        self._last = text[-1:] or self._last
        return len(text)

    def writelines(self, lines: Any) -> None:
        """As `write`, each."""
        for line in lines:
            self.write(line)

    def styled(self, text: str, *, before: str, after: str) -> None:
        """Write a text between two orders of ours."""
        self._stream.write(before)
        self.write(text)
        self._stream.write(after)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def guarded() -> Iterator[None]:
    """Send everything printed to a terminal through `Terminal`, so that it never fails because of an encoding."""
    before = sys.stdout, sys.stderr
    for stream in before:
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None and stream.errors == "strict":
            reconfigure(errors="backslashreplace")
    sys.stdout, sys.stderr = (Terminal(stream) if stream.isatty() else stream for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


@contextmanager
def unguarded() -> Iterator[None]:
    """Give a plugin's command the original streams: it may draw, and is trusted to."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (getattr(stream, "_stream", stream) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
