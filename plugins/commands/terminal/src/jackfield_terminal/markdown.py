"""Markdown in a terminal, while it is still being written.

Blocks that are complete are printed and never touched again. The last one, which may still change, is redrawn below
them, but only the lines that differ: nothing flickers, and what has scrolled off the screen stays as it is.
"""

from __future__ import annotations

import operator
import re
import shutil
import threading
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import ClassVar, TextIO

from markdown_it import MarkdownIt
from rich.color import ColorSystem
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, ImageItem, Markdown, MarkdownElement
from rich.segment import Segment
from rich.text import Text

from jackfield_terminal.safe import shown_text

EVERY_S = 0.06  # how often the last block is drawn at most
_WIDEST = 100  # longer lines are hard to read
_CLEAR_BELOW = "\x1b[J"
_UP = "\x1b[{}A\r"

Size = tuple[int, int]
"""Columns and lines."""


class MarkdownWriter:
    """Shows Markdown that grows. What others wrote is printed as `shown_text` has it, whatever Markdown made of it.

    Args:
        stream: A terminal, as it is: nothing that guards it stands between.
        size: Asks how large it is.
        every_s: How often it is drawn at most; 0 for at every piece, in the thread of who writes.
    """

    def __init__(self, stream: TextIO, *, size: Callable[[], Size] | None = None, every_s: float = EVERY_S) -> None:
        self._stream = stream
        self._size = size or _size_of_terminal
        self._every_s = every_s
        self._console = Console(file=stream, force_terminal=True, legacy_windows=False, highlight=False)
        self._parser = _parser()
        self._text = ""  # what is not settled
        self._held = ""
        self._drawn: list[str] = []  # the lines of it that are on the screen
        self._has_printed = False
        self._lock = threading.Lock()
        self._painter: threading.Thread | None = None
        self._changed, self._done = threading.Event(), threading.Event()

    def feed(self, text: str) -> None:
        """Take more of the text."""
        with self._lock:
            self._take(text)
        if not self._every_s:
            self._paint(last=False)
            return
        self._changed.set()
        if self._painter is None:
            self._done.clear()
            self._painter = threading.Thread(target=self._paint_from_time_to_time, daemon=True, name="markdown")
            self._painter.start()

    def _take(self, text: str) -> None:
        text = self._held + text
        # Half of a line's end, perhaps. All other characters that end lines are shown as codes.
        self._held = "\r" if text.endswith("\r") else ""
        self._text += shown_text(text.removesuffix("\r"), self._text[-1:])

    def finish(self) -> None:
        """Print what is left; the next text starts a new block."""
        painter, self._painter = self._painter, None
        if painter is not None:
            self._done.set()
            self._changed.set()
            painter.join()
        self._paint(last=True)
        self._has_printed = False

    def _paint_from_time_to_time(self) -> None:
        while not self._done.is_set():
            self._changed.wait()
            self._changed.clear()
            if not self._done.is_set():
                self._paint(last=False)
                self._done.wait(self._every_s)

    def _paint(self, *, last: bool) -> None:
        with self._lock:
            columns, rows = self._size()
            blocks = _blocks(self._parser, self._text)
            settled, self._text = (blocks, "") if last else (blocks[:-1], blocks[-1])
            out = self._erase() if settled or last else ""
            for block in settled:
                out += self._printed(self._lines(block, columns))
            if self._text.strip():
                # No more than the screen holds: what has left it cannot be drawn again.
                out += self._redraw(self._lines(self._text, columns)[-max(1, rows - 2) :])
            if out:
                self._stream.write(out)
                self._stream.flush()

    def _printed(self, lines: Sequence[str]) -> str:
        """The lines of a block that is complete, with an empty one between them and those before."""
        gap = "\n" if self._has_printed and lines else ""
        self._has_printed = self._has_printed or bool(lines)
        return gap + "".join(f"{line}\n" for line in lines)

    def _erase(self) -> str:
        count, self._drawn = len(self._drawn), []
        return f"{_UP.format(count)}{_CLEAR_BELOW}" if count else ""

    def _redraw(self, lines: list[str]) -> str:
        """What turns the lines that are drawn into others."""
        if self._has_printed:
            lines = ["", *lines]
        before, self._drawn = self._drawn, lines
        same = len(list(takewhile(bool, map(operator.eq, before, lines))))
        up = len(before) - same
        return (f"{_UP.format(up)}{_CLEAR_BELOW}" if up else "") + "".join(f"{line}\n" for line in lines[same:])

    def _lines(self, text: str, columns: int) -> list[str]:
        """The lines that a text becomes, with the orders of ours in them and none of anybody else."""
        options = self._console.options.update(width=max(20, min(columns, _WIDEST)), height=None)
        rendered = self._console.render_lines(_Markdown(text, self._parser), options, pad=False)
        colours = _COLOURS.get(self._console.color_system or "")
        lines = [_as_text(line, colours) for line in rendered]
        written = [number for number, line in enumerate(lines) if not _is_empty(line)]
        return lines[written[0] : written[-1] + 1] if written else []


_STYLES = re.compile(r"\x1b\[[0-9;]*m")
_COLOURS = {"standard": ColorSystem.STANDARD, "256": ColorSystem.EIGHT_BIT, "truecolor": ColorSystem.TRUECOLOR}


def _as_text(line: Sequence[Segment], colours: ColorSystem | None) -> str:
    parts, before = [], ""
    for text, style, control in line:
        if control or not text:
            continue
        # Once more: whatever else rich may have put there comes from others, too.
        shown = shown_text(text.replace("\n", ""), before)
        before = text[-1]
        # Without links, whose address a terminal would hide behind the text.
        parts.append(style.update_link(None).render(shown, color_system=colours) if style else shown)
    return "".join(parts).rstrip()


def _is_empty(line: str) -> bool:
    return not _STYLES.sub("", line).strip()


def _parser() -> MarkdownIt:
    # Tags and definitions of links are text: rich would leave them out, and an answer must not lose a word.
    return MarkdownIt("commonmark", {"html": False}).enable("table").enable("strikethrough").disable("reference")


def _blocks(parser: MarkdownIt, text: str) -> list[str]:
    """The blocks of a text, at least one. The last may still grow or turn into another, those before it cannot."""
    starts = [token.map[0] for token in parser.parse(text) if token.level == 0 and token.map and token.nesting >= 0]
    lines = text.splitlines(keepends=True)  # only a line feed ends one: all else was made a code
    ends = [*starts[1:], len(lines)]
    # What stands before the first block belongs to it.
    return ["".join(lines[start:end]) for start, end in zip([0, *starts[1:]], ends, strict=True)]


def _size_of_terminal() -> Size:
    columns, rows = shutil.get_terminal_size()
    return columns, rows


class _Heading(Heading):
    """On the left, where the text is; rich puts it in the middle, or in a frame."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _Image(ImageItem):
    """Its text and its address: nothing is fetched."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text.assemble("[", self.text or Text("image"), f"] ({self.destination})", end="")


class _Markdown(Markdown):
    """As rich has it, with a parser of ours and no links that hide their address."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "image": _Image,
    }

    def __init__(self, text: str, parser: MarkdownIt) -> None:
        super().__init__("", code_theme="ansi_dark", hyperlinks=False)
        self.markup = text
        self.parsed = parser.parse(text)
        for token in self.parsed:
            for part in (token, *(token.children or ())):
                # Before it is laid out, because what is shown may be longer; `&#x202e;` is a character only now.
                part.content = shown_text(part.content)
