"""`jackfield eval`: evaluate agents on the cases of a file."""

from __future__ import annotations

import argparse
import fnmatch
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, filterfalse
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from jackfield.cli import Parser, print_json, print_table, printable

if TYPE_CHECKING:
    from jackfield_eval.cases import Suite
    from jackfield_eval.report import AgentResult, Comparison, Report
    from jackfield_eval.running import Attempt
    from jackfield_eval.statistics import Interval
    from jackfield_eval.taping import Mode

_EPILOG = """examples:
  jackfield eval cases.yaml --record             # ask the models for what no cassette has, and keep their answers
  jackfield eval cases.yaml                      # from cassettes: no model is asked
  jackfield eval cases.yaml --min 0.9 --no-worse # for CI
  jackfield eval cases.yaml --live --repeat 5    # ask the models, and keep nothing
"""


def main(arguments: Sequence[str]) -> int:
    """Do what the arguments say; gives 0, or 1 if a run failed or a condition does not hold.

    Raises:
        ConfigError: The file of cases, or something that it names, cannot be used.
    """
    options = _parser().parse_args(arguments)
    from jackfield import sync
    from jackfield.cli import with_consent
    from jackfield.consent import is_agreed, record_consent
    from jackfield_eval.cases import load_suite
    from jackfield_eval.report import last_kept, report_of
    from jackfield_eval.running import run_all
    from jackfield_eval.taping import TapingHost

    path, changes = Path(options.cases), _changes(options)
    loaded = with_consent(lambda: load_suite(path, agents=options.agent, changes=changes, trust=options.trust))
    request = loaded.request()
    suite = _chosen(loaded, options.case)
    # Before anything is asked: what cannot be compared with is no news after an hour.
    before = last_kept(suite.results)
    host = TapingHost()
    attempts = sync.run(run_all(suite, host, mode=options.mode, on_done=_progress(options)))
    if options.mode in ("record", "rerecord") and request.effects and is_agreed(request):
        record_consent(loaded.request())  # the user's own recording is a part of what consent is bound to
    report = report_of(suite, attempts, mode=options.mode, seed=options.seed)
    report = _judged(report, options, before, is_whole=len(suite.cases) == len(loaded.cases))
    if options.json:
        print_json(_json(report))
    else:
        _print(report)
    return 1 if report.unmet else 0


def _changes(options: argparse.Namespace) -> dict[str, Any]:
    """Settings of the file that options replace."""
    names = ("repeat", "concurrency", "max_tokens", "max_cost", "cassettes", "results")
    given = {name: value for name in names if (value := getattr(options, name)) not in (None, "")}
    folders = given.keys() & {"cassettes", "results"}
    return given | {name: str(Path(given[name]).absolute()) for name in folders}


def _chosen(suite: Suite, patterns: Sequence[str]) -> Suite:
    from jackfield.errors import ConfigError
    from jackfield.suggestions import suggest

    names = [case.name for case in suite.cases]
    chosen = {pattern: fnmatch.filter(names, pattern) for pattern in patterns or ("*",)}
    for pattern in filterfalse(chosen.get, chosen):
        raise ConfigError(f"{suite.path} has no case {pattern!r}{suggest(pattern, names)}")
    kept = set(chain.from_iterable(chosen.values()))
    return replace(suite, cases=tuple(case for case in suite.cases if case.name in kept))


def _judged(
    report: Report, options: argparse.Namespace, before: tuple[str, dict[str, Any]] | None, *, is_whole: bool
) -> Report:
    """The report with its comparison and the conditions that do not hold; it is kept if it can be compared with."""
    from datetime import UTC, datetime

    from jackfield_eval.report import compared, keep

    if before is not None:
        report = replace(report, comparison=compared(report, before[1], since=before[0]))
    report = replace(report, unmet=tuple(_unmet(report, options)))
    # What fails must not be what the next run is compared with, or a second try would pass.
    if is_whole and not report.unmet:
        keep(report, now=datetime.now(UTC))
    return report


def _unmet(report: Report, options: argparse.Namespace) -> Iterator[str]:
    failed = sum(one.errors for one in report.agents)
    if failed:
        yield f"{failed} of the runs failed"
    yield from _passing_less(report, options.min or 0)
    if options.no_worse and report.comparison:
        yield from _worse(len(report.comparison.worse))


def _passing_less(report: Report, least: float) -> Iterator[str]:
    from jackfield_eval.report import percent

    for one in report.agents:
        if one.share < least:
            yield f"{one.agent} passes {percent(one.share)}, less than {percent(least)}"


def _worse(cases: int) -> Iterator[str]:
    if cases:
        yield f"{cases} {'case' if cases == 1 else 'cases'} became worse"


# --- what is printed --------------------------------------------------------------------------------------------------


def _print(report: Report) -> None:
    print_table(
        ("agent", "case", "passed", "95 %", "score", "tokens", "seconds", "why not"),
        [_row(one.agent, one.case, one.attempts, one.score, one.interval) for one in report.cases],
    )
    sys.stdout.write("\n")
    _write(sys.stdout, map(_line_of, report.agents))
    if report.comparison:
        _write(sys.stdout, _lines_of(report.comparison))
    _write(sys.stderr, map("jackfield: {}".format, report.unmet))


def _write(stream: TextIO, lines: Iterable[str]) -> None:
    stream.writelines(f"{printable(line)}\n" for line in lines)


def _line_of(one: AgentResult) -> str:
    from jackfield_eval.report import percent

    used = f"{one.usage.total_tokens} tokens"
    if one.usage.cost is not None:
        used += f", {one.usage.cost:f} {one.usage.currency or ''}".rstrip()
    of_score = f" ({_shown(one.score_interval, '.2f')})" if one.score_interval else ""
    share = f"{percent(one.share)} passed ({_percents(one.share_interval)})"
    return f"{one.agent}: {share}, score {one.score:.2f}{of_score}, {used}"


def _row(
    agent: str, case: str, attempts: Sequence[Attempt], score: float, interval: Interval | None
) -> tuple[str, ...]:
    passed = f"{sum(one.passed for one in attempts)}/{len(attempts)}"
    tokens = sum(one.usage.total_tokens for one in attempts)
    seconds = sum(one.seconds for one in attempts)
    of_share = _percents(interval) if interval else "-"
    return agent, case, passed, of_share, f"{score:.2f}", str(tokens), f"{seconds:.1f}", _why(attempts)


def _why(attempts: Sequence[Attempt]) -> str:
    """The first reason for which some did not pass, and how many others there are."""
    reasons = dict.fromkeys(one.why for one in attempts if one.why)
    first = next(iter(reasons), "").partition("\n")[0]
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    return first[:200] + more


def _lines_of(then: Comparison) -> Iterator[str]:
    sure = f" ({_shown(then.interval, '+.2f')})" if then.interval else ""
    pairs = "1 pair" if then.pairs == 1 else f"{then.pairs} pairs"
    yield f"since {then.since}: score {then.difference:+.2f}{sure} over {pairs}"
    yield from map("  worse: {}".format, then.worse)
    yield from map("  better: {}".format, then.better)
    if then.left_out:
        yield f"  not compared, because new or changed: {then.left_out}"


def _shown(interval: Interval, form: str) -> str:
    return f"{interval[0]:{form}} to {interval[1]:{form}}"


def _percents(interval: Interval) -> str:
    from jackfield_eval.report import percent

    return f"{percent(interval[0])} to {percent(interval[1])}"


def _json(report: Report) -> dict[str, Any]:
    from jackfield_eval.report import to_json

    return to_json(report)


def _progress(options: argparse.Namespace) -> Callable[[int, int], None] | None:
    """A line on a terminal that says how far it is; nothing elsewhere."""
    if options.json or not sys.stderr.isatty():
        return None

    def show(done: int, of: int) -> None:
        sys.stderr.write(f"\r\x1b[K{done} of {of} runs" if done < of else "\r\x1b[K")
        sys.stderr.flush()

    return show


# --- options ----------------------------------------------------------------------------------------------------------


def _parser() -> Parser:
    parser = Parser(prog="jackfield eval", description="Evaluate agents on the cases of a file.", epilog=_EPILOG)
    parser.add_argument("cases", metavar="CASES", help="a YAML file of cases")
    parser.add_argument(
        "--agent", metavar="FILE", action="append", default=[], help="an agent file, in place of those that CASES names"
    )
    parser.add_argument(
        "--case", metavar="NAME", action="append", default=[], help="only these cases; * stands for any text"
    )
    parser.add_argument(
        "--trust", action="store_true", help="let CASES and its agents do what they ask for, this time and unasked"
    )
    parser.add_argument("--repeat", type=_whole, metavar="N", help="how often each case is asked")
    parser.add_argument("--concurrency", type=_whole, metavar="N", help="how many runs at once (4)")
    _add_modes(parser)
    parser.add_argument("--min", type=_share, metavar="SHARE", help="end with 1 if an agent passes less, such as 0.9")
    parser.add_argument("--no-worse", action="store_true", help="end with 1 if a case is worse than in the last run")
    parser.add_argument("--max-tokens", type=_whole, metavar="N", help="begin no run once this many tokens are used")
    parser.add_argument("--max-cost", type=float, metavar="MONEY", help="begin no run once this much is spent")
    parser.add_argument("--cassettes", metavar="DIR", help="the folder of cassettes (CASES.cassettes)")
    parser.add_argument("--results", metavar="DIR", help="the folder of results (CASES.results)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the resampling for intervals (0)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _add_modes(parser: Parser) -> None:
    modes: dict[Mode, str] = {
        "record": "ask models for what no cassette has, and keep the answers",
        "rerecord": "ask models for everything, and keep the answers in place of the old ones",
        "live": "ask models, and keep nothing",
    }
    group = parser.add_mutually_exclusive_group()
    for mode, text in modes.items():
        group.add_argument(f"--{mode}", dest="mode", action="store_const", const=mode, default="replay", help=text)


def _whole(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"it must be at least 1, not {value}")
    return value


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"it must be from 0 to 1, not {value:g}")
    return value
