"""Floors: figures reached in the past, below which no new figure may fall."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from quality.measures import Figures, Share

TOLERANCE = 0.005  # another CPU adds numbers in a different order, which may swap two neighbours
MEASURES = ("recall", "mrr", "ndcg")  # for searchers; others have a `share`

Floors = Mapping[str, Mapping[str, Mapping[str, float]]]


def below(measured: Mapping[str, Mapping[str, Figures | Share]], floors: Floors) -> list[str]:
    """Return a line for each figure below its floor."""
    return [
        f"{searcher}, {group}: {measure} is {found:.3f} and was {floor:.3f}"
        for searcher, groups in measured.items()
        for group, figures in groups.items()
        for measure, floor in floors.get(searcher, {}).get(group, {}).items()
        if (found := float(getattr(figures, measure))) < floor - TOLERANCE
    ]


def record(measured: Mapping[str, Mapping[str, Figures | Share]], path: Path) -> None:
    """Record the figures as their searchers' new floors. The floors of other searchers stay unchanged."""
    floors = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for searcher, groups in measured.items():
        floors[searcher] = {
            group: {
                measure: math.floor(1000 * value) / 1000
                for measure, value in asdict(figures).items()
                if measure != "questions"
            }
            for group, figures in groups.items()
        }
    path.write_text(json.dumps(floors, indent=2) + "\n", encoding="utf-8")
    print(f"recorded in {path.name}")
