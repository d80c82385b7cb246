"""Command line: `make quality`, or `python -m quality --only keyword_search`."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from jackfield.plugins import default_host
from quality.floors import below, record
from quality.judged import JudgedSet, Question, read_set
from quality.measures import DEPTH, Figures, Ranking, figures_of
from quality.searchers import SETUPS, NotInstalledError, rankings
from quality.weights import CannotInstallError

FLOORS = Path(__file__).with_name("floors.json")
PEER = Path(__file__).with_name("peer_qwen.py")


def main(arguments: Sequence[str]) -> int:
    """Measure, print, and compare with the floors. Return 1 if a figure is below its floor."""
    parser = argparse.ArgumentParser(prog="python -m quality", description="How well searchers find.")
    parser.add_argument("--only", default="", help="names of searchers, separated by semicolons")
    parser.add_argument("--record", action="store_true", help="make these figures the floors")
    parser.add_argument("--show", action="store_true", help="list the questions whose answer is not found")
    options = parser.parse_args(arguments)
    judged = read_set()
    wanted = [name.strip() for name in options.only.split(";") if name.strip()]
    print(f"{len(judged.passages)} passages, {len(judged.questions)} questions")
    print(f"{'searcher':34} {'questions':22} {'':>4} {'recall@5':>8} {'MRR':>6} {'nDCG@10':>8}")
    measured = _ours(judged, wanted, show=options.show)
    python = os.environ.get("QWEN_PYTHON")
    if python:
        _peer(judged, python)
    if wanted and not measured:
        print(f"nothing of this name can be measured: {options.only}")
        return 1
    if options.record:
        record(measured, FLOORS)
        return 0
    faults = below(measured, json.loads(FLOORS.read_text(encoding="utf-8")))
    for fault in faults:
        print(f"below its floor: {fault}")
    return 1 if faults else 0


def _ours(judged: JudgedSet, wanted: Sequence[str], *, show: bool) -> dict[str, dict[str, Figures]]:
    host = default_host()
    measured = {}
    for setup in SETUPS:
        if wanted and setup.name not in wanted:
            continue
        try:
            found = rankings(setup, judged, host)
        except (NotInstalledError, CannotInstallError) as error:
            print(f"{setup.name:34} skipped: {error}")
            continue
        pairs = list(zip(judged.questions, found, strict=True))
        measured[setup.name] = figures_of(pairs)
        _print(setup.name, measured[setup.name])
        _print_unanswerable(pairs)
        if show:
            _print_missed(pairs)
    return measured


def _print_unanswerable(pairs: Sequence[tuple[Question, Ranking]]) -> None:
    rankings_of_none = [ranking for question, ranking in pairs if question.kind == "none"]
    silent = sum(not ranking for ranking in rankings_of_none)
    print(f"{'':34} finds nothing for {silent} of {len(rankings_of_none)} questions without an answer")


def _print_missed(pairs: Sequence[tuple[Question, Ranking]]) -> None:
    missed = (pair for pair in pairs if pair[0].answers and pair[0].answers.isdisjoint(pair[1][:5]))
    for question, ranking in missed:
        print(f"    {question.kind:10} {question.text}  {sorted(question.answers)} {ranking[:3]}")


def _peer(judged: JudgedSet, python: str) -> None:
    documents: dict[str, list[tuple[str, str]]] = {}
    for passage in judged.passages:
        documents.setdefault(passage.document, []).append((passage.id, passage.text))
    job = {"documents": documents, "questions": [question.text for question in judged.questions], "depth": DEPTH}
    done = subprocess.run(
        [python, str(PEER)], input=json.dumps([job]), capture_output=True, text=True, timeout=900, check=True
    )
    for name, (found,) in json.loads(done.stdout.splitlines()[-1]).items():
        _print(f"Qwen-Agent: {name}", figures_of(zip(judged.questions, found, strict=True)))


def _print(name: str, figures: Mapping[str, Figures]) -> None:
    for number, (group, one) in enumerate(figures.items()):
        shown = "" if number else name
        print(f"{shown:34} {group:22} {one.questions:4} {one.recall:8.3f} {one.mrr:6.3f} {one.ndcg:8.3f}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
