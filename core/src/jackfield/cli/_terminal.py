"""Display untrusted text safely: it can neither control the terminal nor deceive the reader.

Names and texts come from models, servers, files and plugins. Some characters control the terminal (escape sequences),
some are invisible, and some reverse the text direction. Each of these characters is replaced with its Python escape.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any, TextIO

# Controls except tab and line feed; invisible and bidirectional characters; tags; lone surrogates.
_UNSEEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff\ud800-\udfff"
)
_CONTROLS = re.compile("[\x00-\x1f\x7f]")
_ASCII = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


def escape_text(text: str) -> str:
    """Escape multi-line text for a terminal."""
    if text.isascii() and text.isprintable():
        return text
    return (_ASCII if text.isascii() else _unseen()).sub(_code, text.replace("\r\n", "\n"))


def escape_line(text: str) -> str:
    """Escape a name or line for a terminal, including line feeds. Different names stay distinguishable."""
    if text.isascii() and text.isprintable():
        return text
    return _CONTROLS.sub(_code, text if text.isascii() else _unseen().sub(_code, text))


@cache
def _unseen() -> re.Pattern[str]:
    return re.compile(f"[{_UNSEEN}]")  # takes milliseconds, and most texts do not need it


def _code(match: re.Match[str]) -> str:
    number = ord(match[0])
    if number < 0x100:
        return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(match[0], f"\\x{number:02x}")
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


class Terminal:
    """Text stream that escapes all characters that would control the terminal."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write text through `escape_text`."""
        self.stream.write(escape_text(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write each line as `write` does."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def guard_output(terminal: Callable[[TextIO], Any] = Terminal) -> Iterator[None]:
    """Route terminal output through `Terminal` or another class. Characters that cannot be encoded are escaped."""
    before = sys.stdout, sys.stderr
    for stream in before:
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None and stream.errors in ("strict", "surrogateescape"):  # the latter in the locale C
            reconfigure(errors="backslashreplace")
    with ExitStack() as opened:
        # Streams that the caller has closed are None.
        streams = [stream or opened.enter_context(open(os.devnull, "w")) for stream in before]  # noqa: PTH123
        sys.stdout, sys.stderr = (terminal(stream) if stream.isatty() else stream for stream in streams)
        try:
            yield
        finally:
            sys.stdout, sys.stderr = before


@contextmanager
def unguard_output() -> Iterator[None]:
    """Restore the original streams for a plugin's command. Such commands may draw on the terminal."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (stream.stream if isinstance(stream, Terminal) else stream for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
