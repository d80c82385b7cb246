"""`jackfield eval`: evaluate agents on the cases in a file."""

from __future__ import annotations

import argparse
import fnmatch
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jackfield.cli import Parser, escape_line, print_json, print_table
from jackfield.plurals import format_count

if TYPE_CHECKING:
    from jackfield_eval.cases import Suite
    from jackfield_eval.report import AgentResult, CaseResult, Comparison, Report
    from jackfield_eval.statistics import Interval
    from jackfield_eval.taping import Mode

_EPILOG = """examples:
  jackfield eval cases.yaml --record             # call models for missing answers, and record them
  jackfield eval cases.yaml                      # replay recorded answers; no model is called
  jackfield eval cases.yaml --min 0.9 --no-worse # for CI
  jackfield eval cases.yaml --live --repeat 5    # call models, and record nothing
"""


def main(arguments: Sequence[str]) -> int:
    """Run `jackfield eval`; return 0 unless a run failed or a condition is not met.

    Raises:
        ConfigError: The case file, or a file it names, is invalid.
    """
    options = _parser().parse_args(arguments)
    from datetime import UTC, datetime

    from jackfield import sync
    from jackfield.cli import with_consent
    from jackfield.consent import is_agreed, record_consent
    from jackfield_eval.cases import load_suite
    from jackfield_eval.report import build_report, load_last_results, save_results, to_json
    from jackfield_eval.running import run_all
    from jackfield_eval.taping import TapingHost

    path, changes = Path(options.cases), _changes(options)
    loaded = with_consent(lambda: load_suite(path, agents=options.agent, changes=changes, trust=options.trust))
    request = loaded.request()
    suite = _select_cases(loaded, options.case)
    # Before the runs, so that no model is called if its answers cannot be recorded or compared.
    if options.mode in ("record", "rerecord"):
        _check_cassettes(suite.cassettes)
    before = load_last_results(suite.results, suite.agents)
    host = TapingHost()
    with _progress(options) as show:
        attempts = sync.run(run_all(suite, host, mode=options.mode, on_done=show))
    if options.mode in ("record", "rerecord") and request.effects and is_agreed(request):
        record_consent(loaded.request())  # the consent also covers the user's new recordings
    report = build_report(suite, attempts, mode=options.mode, seed=options.seed)
    report = _judge(report, options, before)
    if options.json:
        print_json(to_json(report))
    else:
        _print(report)
    # A failing run must not become the baseline, or a second try would pass.
    if len(suite.cases) == len(loaded.cases) and not report.unmet:
        save_results(report, now=datetime.now(UTC))
    return 1 if report.unmet else 0


def _changes(options: argparse.Namespace) -> dict[str, Any]:
    """Return the file settings that options override."""
    changes: dict[str, Any] = {}
    for name in ("repeat", "concurrency", "max_tokens", "max_cost"):
        if getattr(options, name) is not None:
            changes[name] = getattr(options, name)
    for name in ("cassettes", "results"):
        if getattr(options, name):
            changes[name] = str(Path(getattr(options, name)).absolute())
    return changes


def _check_cassettes(folder: Path) -> None:
    """Raise ConfigError if the folder cannot exist or is read-only."""
    from jackfield.errors import ConfigError

    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not existing.is_dir():
        raise ConfigError(f"{existing} is not a folder: pass a different folder with --cassettes")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise ConfigError(f"cannot record in {existing}, which is read-only: pass a different folder with --cassettes")


def _select_cases(suite: Suite, patterns: Sequence[str]) -> Suite:
    from jackfield.errors import ConfigError
    from jackfield.suggestions import suggest

    names = [case.name for case in suite.cases]
    selected: set[str] = set()
    for pattern in patterns or ("*",):
        matches = fnmatch.filter(names, pattern)
        if not matches:
            raise ConfigError(f"{suite.path}: no case matches {pattern!r}{suggest(pattern, names)}")
        selected.update(matches)
    return replace(suite, cases=tuple(case for case in suite.cases if case.name in selected))


def _judge(report: Report, options: argparse.Namespace, before: tuple[str, list[dict[str, Any]]] | None) -> Report:
    """Add the comparison and the unmet conditions to a report."""
    from jackfield_eval.report import compare

    if before is not None:
        report = replace(report, comparison=compare(report, before[1], since=before[0]))
    return replace(report, unmet=tuple(_unmet(report, options)))


def _unmet(report: Report, options: argparse.Namespace) -> Iterator[str]:
    """Yield the unmet conditions."""
    from jackfield_eval.report import percent

    failed = sum(result.errors for result in report.agents)
    if failed:
        yield f"{format_count(failed, 'run')} failed"
    minimum = options.min or 0
    for result in report.agents:
        if result.share < minimum:
            yield f"{result.agent} passed {percent(result.share)}, below the minimum of {percent(minimum)}"
    if options.no_worse and report.comparison and report.comparison.worse:
        yield f"{format_count(len(report.comparison.worse), 'case')} got worse"


# --- printing ---------------------------------------------------------------------------------------------------------


def _print(report: Report) -> None:
    print_table(
        ("agent", "case", "passed", "95 %", "score", "tokens", "seconds", "why not"),
        [_case_row(result) for result in report.cases],
    )
    lines = ["", *(_agent_line(result) for result in report.agents)]
    if report.comparison:
        lines += _comparison_lines(report.comparison)
    for line in lines:
        sys.stdout.write(f"{escape_line(line)}\n")
    for condition in report.unmet:
        sys.stderr.write(f"jackfield: {escape_line(condition)}\n")


def _case_row(result: CaseResult) -> tuple[str, ...]:
    attempts = result.attempts
    return (
        result.agent,
        result.case,
        f"{sum(attempt.passed for attempt in attempts)}/{len(attempts)}",
        _format_percents(result.interval) if result.interval else "-",
        f"{result.score:.2f}",
        str(sum(attempt.usage.total_tokens for attempt in attempts)),
        f"{sum(attempt.seconds for attempt in attempts):.1f}",
        _first_reason(result),
    )


def _first_reason(result: CaseResult) -> str:
    """Return the first reason for a failure and the number of others, or '' if all runs passed."""
    reasons = list(dict.fromkeys(attempt.why for attempt in result.attempts if attempt.why))
    if not reasons:
        return ""
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    return reasons[0].partition("\n")[0][:200] + more


def _agent_line(result: AgentResult) -> str:
    from jackfield_eval.report import percent

    share = f"{percent(result.share)} passed ({_format_percents(result.share_interval)})"
    interval = f" ({_format_interval(result.score_interval, '.2f')})" if result.score_interval else ""
    usage = format_count(result.usage.total_tokens, "token")
    if result.usage.cost is not None:
        usage += f", {result.usage.cost:f} {result.usage.currency or ''}".rstrip()
    return f"{result.agent}: {share}, score {result.score:.2f}{interval}, {usage}"


def _comparison_lines(comparison: Comparison) -> Iterator[str]:
    interval = f" ({_format_interval(comparison.interval, '+.2f')})" if comparison.interval else ""
    pairs = format_count(comparison.pairs, "pair")
    yield f"since {comparison.since}: score {comparison.difference:+.2f}{interval} over {pairs}"
    for case in comparison.worse:
        yield f"  worse: {case}"
    for case in comparison.better:
        yield f"  better: {case}"
    if comparison.left_out:
        yield f"  not compared (new or changed): {comparison.left_out}"


def _format_interval(interval: Interval, form: str) -> str:
    return f"{interval[0]:{form}} to {interval[1]:{form}}"


def _format_percents(interval: Interval) -> str:
    from jackfield_eval.report import percent

    return f"{percent(interval[0])} to {percent(interval[1])}"


@contextmanager
def _progress(options: argparse.Namespace) -> Iterator[Callable[[int, int], None] | None]:
    """Yield a callback that shows progress while the block runs, or None if there is no terminal."""
    if options.json or not sys.stderr.isatty():
        yield None
        return

    def show(done: int, total: int) -> None:
        write(f"{done} of {format_count(total, 'run')}")

    def write(text: str) -> None:
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()

    try:
        yield show
    finally:
        write("")


# --- options ----------------------------------------------------------------------------------------------------------


def _parser() -> Parser:
    parser = Parser(prog="jackfield eval", description="Evaluate agents on the test cases in a file.", epilog=_EPILOG)
    parser.add_argument("cases", metavar="CASES", help="YAML file with test cases")
    parser.add_argument(
        "--agent",
        metavar="FILE",
        action="append",
        default=[],
        help="agent file, instead of those in CASES; can be repeated",
    )
    parser.add_argument(
        "--case",
        metavar="NAME",
        action="append",
        default=[],
        help="run only these cases; * matches any text; can be repeated",
    )
    parser.add_argument(
        "--trust", action="store_true", help="allow everything that CASES and its agents request, this time only"
    )
    parser.add_argument("--repeat", type=_positive, metavar="N", help="number of runs per case (1)")
    parser.add_argument("--concurrency", type=_positive, metavar="N", help="number of concurrent runs (4)")
    _add_modes(parser)
    parser.add_argument(
        "--min",
        type=_share,
        metavar="SHARE",
        help="exit with status 1 if an agent passes a smaller share of its runs (0 to 1)",
    )
    parser.add_argument(
        "--no-worse", action="store_true", help="exit with status 1 if a case is worse than in the last run"
    )
    parser.add_argument("--max-tokens", type=_positive, metavar="N", help="stop starting runs after this many tokens")
    parser.add_argument("--max-cost", type=float, metavar="MONEY", help="stop starting runs after this cost")
    parser.add_argument("--cassettes", metavar="DIR", help="folder for recorded answers (CASES.cassettes)")
    parser.add_argument("--results", metavar="DIR", help="folder for results (CASES.results)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed for computing the intervals (0)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _add_modes(parser: Parser) -> None:
    modes: dict[Mode, str] = {
        "record": "call models for missing answers, and record them",
        "rerecord": "call models for all answers, and replace the recorded ones",
        "live": "call models, and record nothing",
    }
    group = parser.add_mutually_exclusive_group()
    for mode, text in modes.items():
        group.add_argument(f"--{mode}", dest="mode", action="store_const", const=mode, default="replay", help=text)


def _positive(text: str) -> int:
    if not (text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, got {text!r}")
    return int(text)


def _share(text: str) -> float:
    with suppress(ValueError):
        if 0 <= float(text) <= 1:
            return float(text)
    raise argparse.ArgumentTypeError(f"must be a number from 0 to 1 (for example, 0.9), got {text!r}")
