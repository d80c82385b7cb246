"""Run it: `make quality`, or `python -m quality.manual --only keyword_search`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from jackfield.errors import PluginNotFoundError
from jackfield.plugins import PluginHost
from jackfield.settings import Settings
from quality.floors import below, record
from quality.manual.measuring import SETUPS, cases_of, measure, measure_request
from quality.manual.multilingual import Plugin
from quality.manual.questions import read_questions
from quality.manual.texts import NoManualError, read_corpus
from quality.measures import Figures
from quality.weights import CannotInstallError

FLOORS = Path(__file__).with_name("floors.json")


def main(arguments: Sequence[str]) -> int:
    """Measure, print, and compare with the floors: 1 if a figure is below its floor."""
    parser = argparse.ArgumentParser(prog="python -m quality.manual", description="Questions about a real manual.")
    parser.add_argument("--only", default="", help="names of searchers, separated by semicolons")
    parser.add_argument("--record", action="store_true", help="make these figures the floors")
    parser.add_argument("--show", action="store_true", help="also the half of the questions that settings are tuned on")
    parser.add_argument(
        "--request", type=int, metavar="TOKENS", help="only count the sections that are in a request of this size"
    )
    options = parser.parse_args(arguments)
    wanted = [name.strip() for name in options.only.split(";") if name.strip()]
    try:
        corpora = {language: read_corpus(language) for language in ("en", "zh")}
    except NoManualError as error:
        print(f"questions about a manual: skipped: {error}")
        return 0
    questions = read_questions()
    host = PluginHost(Settings())
    host.register(Plugin())
    print(
        f"\nthe Debian Reference, {sum(len(one.chunks) for one in corpora.values())} chunks, {len(questions)} questions"
    )
    measured: dict[str, dict[str, Figures]] = {}
    for setup in SETUPS:
        if wanted and setup.name not in wanted:
            continue
        try:
            if options.request:
                counts = measure_request(setup, corpora, cases_of(questions, "kept"), host, max_tokens=options.request)
                _print_counts(f"{setup.name}, {options.request} tokens", counts)
                continue
            if options.show:
                _print(f"{setup.name} (tuned on)", measure(setup, corpora, cases_of(questions, "tuned"), host))
            measured[setup.name] = measure(setup, corpora, cases_of(questions, "kept"), host)
        except (PluginNotFoundError, CannotInstallError) as error:
            print(f"{setup.name:34} skipped: {str(error).partition(chr(10))[0]}")
            continue
        _print(setup.name, measured[setup.name])
    if options.request:
        return 0
    if options.record:
        record(measured, FLOORS)
        return 0
    faults = below(measured, json.loads(FLOORS.read_text(encoding="utf-8")))
    for fault in faults:
        print(f"below its floor: {fault}")
    return 1 if faults else 0


def _print(name: str, figures: dict[str, Figures]) -> None:
    print(f"{name:46} {'':>4} {'recall@5':>8} {'MRR':>6} {'nDCG@10':>8}")
    for group, one in figures.items():
        print(f"  {group:44} {one.questions:4} {one.recall:8.3f} {one.mrr:6.3f} {one.ndcg:8.3f}", flush=True)


def _print_counts(name: str, counts: Mapping[str, tuple[int, int]]) -> None:
    print(name)
    for group, (found, asked) in counts.items():
        print(f"  {group:44} {found:4} of {asked}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
