"""The charts show the recorded figures, and agree with what else is recorded of them. `make charts` draws them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from scripts.charts import CHARTS, ROOT, Chart, draw, load_charts

RECORDED = {chart.name: chart for chart in load_charts()}


def test_each_recorded_chart_is_drawn_and_no_other() -> None:
    assert {path.stem for path in CHARTS.glob("*.svg")} == set(RECORDED)


@pytest.mark.parametrize("chart", RECORDED.values(), ids=lambda chart: chart.name)
def test_a_chart_shows_its_figures(chart: Chart) -> None:
    drawn = (CHARTS / f"{chart.name}.svg").read_text(encoding="utf-8")
    assert drawn == draw(chart), "run: make charts"
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", drawn)
    assert f"{chart.date}, {chart.machine}" in texts
    assert chart.command in texts
    bars = [int(width) for width in re.findall(r'<rect class="(?:ours|peer)"[^>]*width="(\d+)"', drawn)]
    ratios = [ratio for row in chart.rows.values() for ratio in row.values()]
    assert len(bars) == len(ratios)
    unit = max(bars) / max(ratios)
    assert all(abs(bar - ratio * unit) <= 2 for bar, ratio in zip(bars, ratios, strict=True)), "bars in proportion"


def test_every_chart_is_on_the_page() -> None:
    page = (ROOT / "docs/measured.md").read_text(encoding="utf-8")
    assert set(re.findall(r"assets/charts/([\w-]+)\.svg", page)) == set(RECORDED)


def test_the_chart_of_the_installation_agrees_with_its_table() -> None:
    table = (ROOT / "docs/install-size.md").read_text(encoding="utf-8")
    measured = {
        name.partition(",")[0]: float(theirs) / float(ours)
        for name, ours, theirs in re.findall(r"^\| ([^|]+) \| ([\d.]+) \| ([\d.]+) \|", table, re.M)
    }
    shown = {row: bars["Qwen-Agent"] for row, bars in RECORDED["install"].rows.items()}
    assert shown == {row: pytest.approx(ratio, rel=0.05) for row, ratio in measured.items()}


def test_the_chart_of_search_agrees_with_the_recorded_floors_and_the_decision() -> None:
    floors = json.loads((ROOT / "quality/floors.json").read_text(encoding="utf-8"))
    decision = (ROOT / "docs/decisions/0047-embeddings-without-torch.md").read_text(encoding="utf-8")
    peer = re.search(r"\| Qwen-Agent [\d.]+, `keyword_search`[^|]*\| ([\d.]+) \| ([\d.]+) \|", decision)
    assert peer
    whole, english = float(peer[1]), float(peer[2])
    both = floors["keyword_search + vector_search"]
    assert [row["Qwen-Agent"] for row in RECORDED["search"].rows.values()] == [
        pytest.approx(whole / floors["keyword_search"]["all"]["ndcg"], rel=0.02),
        pytest.approx(whole / both["all"]["ndcg"], rel=0.02),
        pytest.approx(english / both["English"]["ndcg"], rel=0.02),
    ]


def test_the_commands_of_the_charts_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    program = (ROOT / "benchmarks/__main__.py").read_text(encoding="utf-8")
    for chart in RECORDED.values():
        if target := re.fullmatch(r"make (\w+)", chart.command):
            assert f"\n{target[1]}:" in makefile
        else:
            rows = chart.command.removeprefix("python -m benchmarks --only ").split(",")
            assert [row for row in rows if f'"{row}": ' not in program] == []


def test_a_figure_without_a_peer_is_refused(tmp_path: Path) -> None:
    figures = (ROOT / "benchmarks/figures.toml").read_text(encoding="utf-8")
    (tmp_path / "figures.toml").write_text(figures.replace("Jackfield = 1\n", "", 1), encoding="utf-8")
    with pytest.raises(ValueError, match="Jackfield must come first"):
        load_charts(tmp_path / "figures.toml")
