"""The lines that a terminal shows of a program's output, and a drawing of them as SVG.

A line never scrolls away. A control sequence that no command of Jackfield writes is an error, so that a drawing never
differs from a terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby

from wcwidth import wcwidth

_TOKEN = re.compile(r"\x1b\[(?P<arguments>[0-9;?]*)(?P<final>[@-~])|(?P<character>.)", re.DOTALL)
_BLANK = (" ", "")

COLOURS = {"31": "red", "32": "green", "33": "yellow", "34": "blue", "35": "magenta", "36": "cyan"}
IGNORED = {"40"}  # the black ground of code, which the page has none of
STYLES = {"1": "bold", "2": "dim", "3": "italic", "4": "underline", "9": "struck"} | COLOURS


class Screen:
    """A terminal of a fixed width and without an end.

    Args:
        columns: Its width.
    """

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self._rows: list[list[tuple[str, str]]] = [[]]  # of characters with the names of their styles
        self._row = self._column = 0
        self._style = ""

    def feed(self, output: str) -> None:
        """Show the output of a program.

        Raises:
            ValueError: It has a control sequence that this screen does not know.
        """
        for token in _TOKEN.finditer(output):
            if token["final"]:
                self._control(token["arguments"], token["final"])
            else:
                self._show(token["character"])

    def text(self) -> str:
        """Return all lines, without blanks at their ends."""
        lines = ["".join(character for character, _ in row).rstrip() for row in self._rows]
        return "\n".join(lines).rstrip()

    def runs(self) -> Iterator[list[tuple[int, str, str]]]:
        """Yield for each line its pieces of one style: the column, the text and the names of the style."""
        rows = list(self._rows)
        while rows and not "".join(character for character, _ in rows[-1]).strip():
            rows.pop()
        for row in rows:
            pieces: list[tuple[int, str, str]] = []
            for style, cells in groupby(enumerate(row), key=lambda cell: cell[1][1]):
                found = list(cells)
                text = "".join(character for _, (character, _) in found)
                start = found[0][0] + len(text) - len(text.lstrip(" "))
                if text.strip():
                    pieces.append((start, text.strip(" "), style))
            yield pieces

    def _show(self, character: str) -> None:
        match character:
            case "\n":
                self._row += 1
            case "\r":
                self._column = 0
            case "\b":
                self._column = max(0, self._column - 1)
            case _ if (width := wcwidth(character)) > 0:
                self._put(character, width)
            case _:
                raise ValueError(f"the screen does not know {character!r}")

    def _put(self, character: str, width: int) -> None:
        if self._column + width > self.columns:
            self._row, self._column = self._row + 1, 0
        row = self._line()
        row += [_BLANK] * (self._column + width - len(row))
        row[self._column : self._column + width] = [(character, self._style), *[("", self._style)] * (width - 1)]
        self._column += width

    def _line(self) -> list[tuple[str, str]]:
        while len(self._rows) <= self._row:
            self._rows.append([])
        return self._rows[self._row]

    def _control(self, arguments: str, final: str) -> None:
        count = int(arguments) if arguments.isdigit() else 1
        match final:
            case "m":
                self._set_style(arguments)
            case "A":
                self._row = max(0, self._row - count)
            case "C":
                self._column = min(self.columns - 1, self._column + count)
            case "D":
                self._column = max(0, self._column - count)
            case "J" if arguments in ("", "0"):
                del self._line()[self._column :], self._rows[self._row + 1 :]
            case "K" if arguments in ("", "0"):
                del self._line()[self._column :]
            case "h" | "l" if arguments.startswith("?"):
                pass  # the cursor's look, pasting, wrapping: nothing that stays on the screen
            case _:
                raise ValueError(f"the screen does not know the sequence ESC[{arguments}{final}")

    def _set_style(self, arguments: str) -> None:
        styles = self._style.split()
        if arguments.startswith("38;5;"):
            styles.append("dim")  # the only colours of the large palette are greys
        else:
            for code in (arguments or "0").split(";"):
                if code == "0":
                    styles = []
                elif code not in IGNORED:
                    styles.append(STYLES[code])
        self._style = " ".join(dict.fromkeys(styles))


CHARACTER_WIDTH, LINE_HEIGHT, MARGIN = 8.4, 20, 14
_STYLE = """
    svg { --page: #fbfcfd; --edge: #cbd2d9; --text: #1f2933; --dim: #52606d; --red: #b42318; --green: #11703c;
      --yellow: #8a5a00; --blue: #1d5fbf; --magenta: #8b3fa8; --cyan: #0b6e80; }
    @media (prefers-color-scheme: dark) {
      svg { --page: #14171f; --edge: #3b4252; --text: #e4e7eb; --dim: #9aa5b1; --red: #ff8a80; --green: #7bd88f;
        --yellow: #ecc94b; --blue: #82b1ff; --magenta: #d6a2e8; --cyan: #76d7ea; }
    }
    .page { fill: var(--page); stroke: var(--edge); }
    text { font: 14px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; white-space: pre; }
    text { fill: var(--text); }
    .bold { font-weight: 700; } .italic { font-style: italic; } .underline { text-decoration: underline; }
    .struck { text-decoration: line-through; } .dim { fill: var(--dim); }
    .red { fill: var(--red); } .green { fill: var(--green); } .yellow { fill: var(--yellow); }
    .blue { fill: var(--blue); } .magenta { fill: var(--magenta); } .cyan { fill: var(--cyan); }
""".strip("\n")


def draw(screen: Screen, *, title: str) -> str:
    """Return the screen as an SVG, with light and dark colours, which loads nothing."""
    rows = list(screen.runs())
    width = round(2 * MARGIN + CHARACTER_WIDTH * screen.columns)
    height = round(2 * MARGIN + LINE_HEIGHT * len(rows))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        ' role="img" aria-labelledby="title desc">',
        f'  <title id="title">{escape(title, quote=False)}</title>',
        f'  <desc id="desc">A terminal of {screen.columns} columns. Its text is the text of this image.</desc>',
        f"  <style>\n{_STYLE}\n  </style>",
        f'  <rect class="page" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8" />',
    ]
    for number, pieces in enumerate(rows):
        lines += [_piece(piece, number) for piece in pieces]
    return "\n".join([*lines, "</svg>", ""])


def _piece(piece: tuple[int, str, str], row: int) -> str:
    column, text, style = piece
    x = f"{MARGIN + CHARACTER_WIDTH * column:.1f}".removesuffix(".0")
    length = f"{CHARACTER_WIDTH * sum(map(wcwidth, text)):.1f}".removesuffix(".0")
    class_ = f' class="{style}"' if style else ""
    y = MARGIN + LINE_HEIGHT * row + 15
    return f'  <text{class_} x="{x}" y="{y}" textLength="{length}">{escape(text, quote=False)}</text>'


def texts_of(svg: str) -> Sequence[str]:
    """Return the texts of a drawing, for a message that shows a difference."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)
