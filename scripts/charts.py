"""Draw the figures recorded in `benchmarks/figures.toml` as charts, into docs/assets/charts.

python scripts/charts.py    draw all charts; a figure is a ratio, with Jackfield as 1
"""

from __future__ import annotations

import datetime
import textwrap
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIGURES = ROOT / "benchmarks/figures.toml"
CHARTS = ROOT / "docs/assets/charts"
WIDTH, MARGIN, BAR, GAP = 420, 16, 16, 4
SHARE = 0.85
"""The longest bar's share of the width. Its figure follows the bar."""

_STYLE = """
    svg { --page: #fbfcfd; --edge: #cbd2d9; --text: #1f2933; --dim: #52606d; --ours: #2f6fb2; --peer: #9aa5b1; }
    @media (prefers-color-scheme: dark) {
      svg { --page: #14171f; --edge: #3b4252; --text: #e4e7eb; --dim: #9aa5b1; --ours: #6ea8e0; --peer: #616e7c; }
    }
    text { font: 14px system-ui, "DejaVu Sans", sans-serif; fill: var(--text); }
    .title { font-weight: 600; font-size: 15px; } .row { font-weight: 600; }
    .small { font-size: 12px; fill: var(--dim); }
    .page { fill: var(--page); stroke: var(--edge); } .ours { fill: var(--ours); } .peer { fill: var(--peer); }
""".strip("\n")


@dataclass(frozen=True)
class Chart:
    """Figures of one kind, recorded on one day on one machine.

    Attributes:
        name: The file name.
        title: The quantity measured.
        reading: Which bars are better.
        command: The command that prints the figures.
        rows: For each measurement, the ratio of each program to Jackfield, which is first and has the value 1.
    """

    name: str
    title: str
    reading: str
    date: datetime.date
    machine: str
    command: str
    rows: Mapping[str, Mapping[str, float]]


def load_charts(path: Path = FIGURES) -> Sequence[Chart]:
    """Read the recorded figures.

    Raises:
        ValueError: A row has no peer, or its first bar is not Jackfield with the value 1.
    """
    charts = [Chart(**chart) for chart in tomllib.loads(path.read_text(encoding="utf-8"))["chart"]]
    for chart in charts:
        for name, bars in chart.rows.items():
            if len(bars) < 2 or next(iter(bars.items())) != ("Jackfield", 1):
                raise ValueError(f"{chart.name}, {name!r}: Jackfield must come first, with 1, and then a peer")
    return charts


def draw(chart: Chart) -> str:
    """Return a self-contained SVG chart with light and dark colours."""
    longest = max(ratio for bars in chart.rows.values() for ratio in bars.values())
    label_width = 8 + max(len(name) for bars in chart.rows.values() for name in bars) * 8
    unit = (WIDTH - 2 * MARGIN - label_width) * SHARE / longest
    body: list[str] = []
    y = MARGIN + 12
    for line in textwrap.wrap(chart.title, 48):
        body.append(_text(line, MARGIN, y, "title"))
        y += 20
    body.append(_text(chart.reading, MARGIN, y, "small"))
    y += 12
    for row, bars in chart.rows.items():
        y += 24
        body.append(_text(row, MARGIN, y, "row"))
        y += 8
        for name, ratio in bars.items():
            kind = "ours" if name == "Jackfield" else "peer"
            x, width = MARGIN + label_width, max(2, round(ratio * unit))
            body.append(_text(name, MARGIN, y + 13, ""))
            body.append(f'  <rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{BAR}" rx="2" />')
            body.append(_text(_figure(ratio), x + width + 6, y + 13, ""))
            y += BAR + GAP
    y += 20
    for line in [*textwrap.wrap(f"{chart.date}, {chart.machine}", 62), *textwrap.wrap(chart.command, 62)]:
        body.append(_text(line, MARGIN, y, "small"))
        y += 16
    return "\n".join([*_head(chart, y), *body, "</svg>", ""])


def _head(chart: Chart, height: int) -> list[str]:
    told = "; ".join(f"{row}: {_sentence(bars)}" for row, bars in chart.rows.items())
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
        ' role="img" aria-labelledby="title desc">',
        f'  <title id="title">{escape(chart.title, quote=False)}</title>',
        f'  <desc id="desc">{escape(told, quote=False)}</desc>',
        f"  <style>\n{_STYLE}\n  </style>",
        f'  <rect class="page" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8" />',
    ]


def _sentence(bars: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {_figure(ratio)}" for name, ratio in bars.items())


def _figure(ratio: float) -> str:
    """Format a ratio with two significant digits."""
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.2g}"


def _text(text: str, x: int, y: int, class_: str) -> str:
    styled = f' class="{class_}"' if class_ else ""
    return f'  <text{styled} x="{x}" y="{y}">{escape(text, quote=False)}</text>'


def main() -> None:
    """Redraw all charts."""
    CHARTS.mkdir(exist_ok=True)
    for old in CHARTS.glob("*.svg"):
        old.unlink()
    for chart in load_charts():
        (CHARTS / f"{chart.name}.svg").write_text(draw(chart), encoding="utf-8")


if __name__ == "__main__":
    main()
