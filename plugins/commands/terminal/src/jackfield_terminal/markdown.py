"""Render Markdown in a terminal while it is being streamed.

Complete blocks are printed once. The last block may still change, so it is redrawn below them. Only its changed lines
are rewritten, which avoids flicker and leaves the scrollback intact.
"""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TextIO

from markdown_it import MarkdownIt
from rich.color import ColorSystem
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
from rich.containers import Lines
from rich.markdown import (
    Heading,
    ImageItem,
    Markdown,
    MarkdownContext,
    MarkdownElement,
    Paragraph,
    TableDataElement,
)
from rich.measure import Measurement
from rich.segment import Segment
from rich.text import Text

from jackfield.cli import find_breaks, split_line, width_of
from jackfield_terminal.safe_text import shown_text

EVERY_S = 0.06  # minimum time between two redraws of the last block
_MAX_COLUMNS = 100  # longer lines are hard to read
_CLEAR_BELOW = "\x1b[J"
_UP = "\x1b[{}A\r"

Size = tuple[int, int]
"""Columns and lines."""


class MarkdownWriter:
    """Renders streamed Markdown. All text passes through `shown_text`, both before and after rendering.

    Args:
        stream: The terminal, as an unguarded stream.
        size: Returns the terminal size.
        every_s: The minimum time between redraws. If 0, each chunk is drawn immediately in the caller's thread.
        colour: True to use colours. If False, text is still bold, italic and underlined.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        size: Callable[[], Size] | None = None,
        every_s: float = EVERY_S,
        colour: bool = True,
    ) -> None:
        self._stream = stream
        self._size = size or _terminal_size
        self._every_s = every_s
        self._colour = colour
        self._console = Console(file=stream, force_terminal=True, legacy_windows=False, highlight=False)
        self._parser = _parser()
        self._text = ""  # the text of the blocks that are not complete
        self._held = ""
        self._drawn: list[str] = []  # the lines of the last block on screen
        self._has_printed = False
        self._lock = threading.Lock()
        self._painter: threading.Thread | None = None
        self._changed, self._done = threading.Event(), threading.Event()

    def feed(self, text: str) -> None:
        """Append text."""
        with self._lock:
            self._append(text)
        if not self._every_s:
            self._paint(last=False)
            return
        self._changed.set()
        if self._painter is None:
            self._done.clear()
            self._painter = threading.Thread(target=self._paint_repeatedly, daemon=True, name="markdown")
            self._painter.start()

    def _append(self, text: str) -> None:
        text = self._held + text
        # A carriage return may be the first half of a line ending. Other line separators are escaped.
        self._held = "\r" if text.endswith("\r") else ""
        self._text += shown_text(text.removesuffix("\r"), self._text[-1:])

    def finish(self) -> None:
        """Print the rest. The next text starts a new document."""
        painter, self._painter = self._painter, None
        if painter is not None:
            self._done.set()
            self._changed.set()
            painter.join()
        self._paint(last=True)
        self._has_printed = False

    def _paint_repeatedly(self) -> None:
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
            complete, self._text = (blocks, "") if last else (blocks[:-1], blocks[-1])
            out = self._erase() if complete or last else ""
            for block in complete:
                out += self._print_block(self._lines(block, columns))
            if self._text.strip():
                # At most one screen, because lines in the scrollback cannot be redrawn.
                out += self._redraw(self._lines(self._text, columns)[-max(1, rows - 2) :])
            if out:
                self._stream.write(out)
                self._stream.flush()

    def _print_block(self, lines: Sequence[str]) -> str:
        """Return the output for a complete block, preceded by a blank line unless it is the first."""
        gap = "\n" if self._has_printed and lines else ""
        self._has_printed = self._has_printed or bool(lines)
        return gap + "".join(f"{line}\n" for line in lines)

    def _erase(self) -> str:
        count, self._drawn = len(self._drawn), []
        return f"{_UP.format(count)}{_CLEAR_BELOW}" if count else ""

    def _redraw(self, lines: list[str]) -> str:
        """Return the output that replaces the lines on screen."""
        if self._has_printed:
            lines = ["", *lines]
        before, self._drawn = self._drawn, lines
        same = 0
        while same < min(len(before), len(lines)) and before[same] == lines[same]:
            same += 1
        up = len(before) - same
        return (f"{_UP.format(up)}{_CLEAR_BELOW}" if up else "") + "".join(f"{line}\n" for line in lines[same:])

    def _lines(self, text: str, columns: int) -> list[str]:
        """Render a text to lines that contain no control sequences except our own."""
        options = self._console.options.update(width=max(20, min(columns, _MAX_COLUMNS)), height=None)
        rendered = self._console.render_lines(_Markdown(text, self._parser), options, pad=False)
        colours = _COLOURS.get(self._console.color_system or "")
        lines = [_as_text(line, colours, colour=self._colour) for line in rendered]
        written = [number for number, line in enumerate(lines) if not _is_empty(line)]
        return lines[written[0] : written[-1] + 1] if written else []


_STYLES = re.compile(r"\x1b\[[0-9;]*m")
_COLOURS = {"standard": ColorSystem.STANDARD, "256": ColorSystem.EIGHT_BIT, "truecolor": ColorSystem.TRUECOLOR}


def _as_text(line: Sequence[Segment], colours: ColorSystem | None, *, colour: bool) -> str:
    parts, before = [], ""
    for text, style, control in line:
        if control or not text:
            continue
        # Again, because rendering may have changed the text.
        shown = shown_text(text.replace("\n", ""), before)
        before = text[-1]
        # Links are removed, because a terminal would hide their URL behind the text.
        if style:
            allowed = style if colour else style.without_color
            shown = allowed.update_link(None).render(shown, color_system=colours)
        parts.append(shown)
    return "".join(parts).rstrip()


def _is_empty(line: str) -> bool:
    return not _STYLES.sub("", line).strip()


def _parser() -> MarkdownIt:
    # Tags and link definitions are shown as text: rich would drop them, and an answer must be complete.
    return MarkdownIt("commonmark", {"html": False}).enable("table").enable("strikethrough").disable("reference")


def _blocks(parser: MarkdownIt, text: str) -> list[str]:
    """Split a text into one or more blocks, of which only the last may still grow or change its kind."""
    starts = [token.map[0] for token in parser.parse(text) if token.level == 0 and token.map and token.nesting >= 0]
    lines = text.splitlines(keepends=True)  # only line feeds are left; other separators are escaped
    ends = [*starts[1:], len(lines)]
    # Text before the first block belongs to it.
    return ["".join(lines[start:end]) for start, end in zip([0, *starts[1:]], ends, strict=True)]


def _terminal_size() -> Size:
    columns, rows = shutil.get_terminal_size()
    return columns, rows


class _WrappedText(Text):
    """Text that wraps between words, and also between Chinese and Latin words that no space separates."""

    def copy(self) -> Text:
        """Copy the text as the same class, since rich copies table headers."""
        copied = _WrappedText(self.plain, style=self.style, justify=self.justify, end=self.end)
        copied.spans = list(self.spans)
        return copied

    def wrap(self, console: Console, width: int, **options: Any) -> Lines:
        """Wrap the text to the given width."""
        lines = Lines()
        for line in self.split(allow_blank=True):
            line.expand_tabs()
            for part in line.divide(find_breaks(line.plain, max(1, width))):
                part.rstrip()
                lines.append(part)
        if justify := options.get("justify") or self.justify:
            lines.justify(console, width, justify=justify, overflow="fold")
        return lines

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        lines = self.plain.splitlines() or [""]
        longest_piece = max(width_of(piece.rstrip()) for line in lines for piece in split_line(line))
        return Measurement(longest_piece, max(width_of(line) for line in lines))


class _Paragraph(Paragraph):
    def on_enter(self, context: MarkdownContext) -> None:
        super().on_enter(context)
        self.text = _WrappedText(justify="left")


class _Cell(TableDataElement):
    def __init__(self, justify: JustifyMethod) -> None:
        super().__init__(justify)
        self.content = _WrappedText(justify=justify)


class _Heading(Heading):
    """Left-aligned heading, which rich would centre or frame."""

    def on_enter(self, context: MarkdownContext) -> None:
        """Start the heading's text."""
        super().on_enter(context)
        self.text = _WrappedText(style=self.text.style)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _Image(ImageItem):
    """Image shown as its text and URL; nothing is fetched."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text.assemble("[", self.text or Text("image"), f"] ({self.destination})", end="")


class _Markdown(Markdown):
    """Markdown rendered with our parser and without links that hide their URL."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "image": _Image,
        "paragraph_open": _Paragraph,
        "td_open": _Cell,
        "th_open": _Cell,
    }

    def __init__(self, text: str, parser: MarkdownIt) -> None:
        super().__init__("", code_theme="ansi_dark", hyperlinks=False)
        self.markup = text
        self.parsed = parser.parse(text)
        for token in self.parsed:
            for part in (token, *(token.children or ())):
                # Before layout, because escapes are longer, and after parsing, which turns `&#x202e;` into a character.
                part.content = shown_text(part.content)
