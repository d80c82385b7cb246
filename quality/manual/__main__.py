"""Command line: `make quality`, or `python -m quality.manual --only keyword_search`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from jackfield.errors import PluginNotFoundError
from jackfield.plugins import PluginHost
from jackfield.retrieval import Corpus
from jackfield.settings import Settings
from quality.debian import NoManualError
from quality.floors import below, record
from quality.manual.comparing import measure_peers
from quality.manual.measuring import SETUPS, Case, ManualSetup, cases_of, measure, measure_request
from quality.manual.questions import ManualQuestion, read_questions
from quality.manual.texts import read_corpus
from quality.manual.tools import answers_by_query, read_table_questions, summarize_by_tool
from quality.manual.wholes import mean_shares, read_wholes, show_by_assistant
from quality.measures import Figures, Share
from quality.weights import CannotInstallError

FLOORS = Path(__file__).with_name("floors.json")


def main(arguments: Sequence[str]) -> int:
    """Measure, print, and compare with the floors. Return 1 if a figure is below its floor."""
    options = _parse(arguments)
    wanted = [name.strip() for name in options.only.split(";") if name.strip()]
    try:
        corpora = {language: read_corpus(language) for language in ("en", "zh")}
    except NoManualError as error:
        print(f"questions about a manual: skipped: {error}")
        return 0
    questions = read_questions()
    host = PluginHost(Settings())
    print(
        f"\nthe Debian Reference, {sum(len(one.chunks) for one in corpora.values())} chunks, {len(questions)} questions"
    )
    setups = [setup for setup in SETUPS if not wanted or setup.name in wanted]
    kept = cases_of(questions, "kept")
    if options.request:
        for setup in setups:
            counts = measure_request(setup, corpora, kept, host, max_tokens=options.request)
            _print_counts(f"{setup.name}, {options.request} tokens", counts)
        return 0
    measured = _measure_searchers(setups, corpora, questions, host, shows_tuned=options.show)
    if not wanted:
        measured |= _measure_documents()
    if options.peers:
        _compare(measured, corpora, kept, host)
    if options.record:
        record(measured, FLOORS)
        return 0
    faults = below(measured, json.loads(FLOORS.read_text(encoding="utf-8")))
    for fault in faults:
        print(f"below its floor: {fault}")
    return 1 if faults else 0


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m quality.manual", description="Questions about a real manual.")
    parser.add_argument("--only", default="", help="names of searchers, separated by semicolons")
    parser.add_argument("--record", action="store_true", help="make these figures the floors")
    parser.add_argument("--show", action="store_true", help="also the half of the questions that settings are tuned on")
    parser.add_argument(
        "--request", type=int, metavar="TOKENS", help="only count the sections that are in a request of this size"
    )
    parser.add_argument("--peers", action="store_true", help="also ask the peers, and print all figures side by side")
    return parser.parse_args(arguments)


def _measure_searchers(
    setups: Sequence[ManualSetup],
    corpora: Mapping[str, Corpus],
    questions: Sequence[ManualQuestion],
    host: PluginHost,
    *,
    shows_tuned: bool,
) -> dict[str, Mapping[str, Figures | Share]]:
    """Measure and print the kept half of the questions, and the tuned half if `shows_tuned` is set."""
    measured: dict[str, Mapping[str, Figures | Share]] = {}
    for setup in setups:
        try:
            if shows_tuned:
                _print(f"{setup.name} (tuned on)", measure(setup, corpora, cases_of(questions, "tuned"), host))
            measured[setup.name] = measure(setup, corpora, cases_of(questions, "kept"), host)
        except (PluginNotFoundError, CannotInstallError) as error:
            print(f"{setup.name:34} skipped: {str(error).partition(chr(10))[0]}")
            continue
        _print(setup.name, measured[setup.name])
    return measured


def _measure_documents() -> dict[str, Mapping[str, Share]]:
    """Measure and print how `assistant` and its tools handle questions about whole documents and tables."""
    wholes, tables = read_wholes(), read_table_questions()
    chapters = [whole for whole in wholes if whole.chapter]
    measured = {
        "assistant": mean_shares(wholes, [show_by_assistant(whole) for whole in wholes]),
        "summarize_document": mean_shares(chapters, [summarize_by_tool(whole) for whole in chapters]),
        "query_table": {"all rows of a table": Share(len(tables), fmean(map(answers_by_query, tables)))},
    }
    for name, shares in measured.items():
        _print(name, shares)
    return {**measured}


def _compare(
    ours: Mapping[str, Mapping[str, Figures | Share]],
    corpora: Mapping[str, Corpus],
    cases: Sequence[Case],
    host: PluginHost,
) -> None:
    """Ask the peers, and print their figures next to ours."""
    try:
        peers = measure_peers(corpora, cases, read_wholes(), host)
    except CannotInstallError as error:
        print(f"peers: skipped: {error}")
        return
    _print_side_by_side({**ours, **peers})


def _print_side_by_side(columns: Mapping[str, Mapping[str, Figures | Share]]) -> None:
    """Print a Markdown table of nDCG@10 for each group, and of the share of facts for whole documents."""
    print(f"\n| | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    for group in sorted({group for figures in columns.values() for group in figures}):
        cells = [_cell(figures.get(group)) for figures in columns.values()]
        print(f"| {group} | {' | '.join(cells)} |")


def _cell(figures: Figures | Share | None) -> str:
    match figures:
        case Figures():
            return f"{figures.ndcg:.3f}"
        case Share():
            return f"{figures.share:.3f}"
    return ""


def _print(name: str, groups: Mapping[str, Figures | Share]) -> None:
    print(f"{name:46} {'':>4} {'recall@5':>8} {'MRR':>6} {'nDCG@10':>8} {'share':>6}")
    for group, one in groups.items():
        if isinstance(one, Figures):
            figures = f"{one.recall:8.3f} {one.mrr:6.3f} {one.ndcg:8.3f}"
        else:
            figures = f"{one.share:31.3f}"
        print(f"  {group:44} {one.questions:4} {figures}", flush=True)


def _print_counts(name: str, counts: Mapping[str, tuple[int, int]]) -> None:
    print(name)
    for group, (found, asked) in counts.items():
        print(f"  {group:44} {found:4} of {asked}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
