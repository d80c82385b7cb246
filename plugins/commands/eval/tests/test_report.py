"""Reports: how runs are grouped, compared, written and read."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from jackfield.errors import ConfigError
from jackfield.messages import Usage
from jackfield_eval import command
from jackfield_eval.cases import Suite, load_suite
from jackfield_eval.report import (
    Comparison,
    Report,
    build_report,
    compare,
    load_last_results,
    percent,
    save_results,
    to_json,
)
from jackfield_eval.running import Attempt
from jackfield_eval.scorers import Score
from jackfield_eval.statistics import bootstrap, wilson

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    """Two agents and two cases."""
    for agent in ("a", "b"):
        (tmp_path / f"{agent}.yaml").write_text("llm: offline:rules\n")
    cases = [{"name": name, "prompt": name, "expect": name} for name in ("x", "y")]
    (tmp_path / "cases.yaml").write_text(yaml.safe_dump({"agents": ["a.yaml", "b.yaml"], "cases": cases}))
    return load_suite(tmp_path / "cases.yaml")


def attempt(agent: str, case: str, number: int, *values: float, error: str = "") -> Attempt:
    """A run with these scores, of which those below 1 do not suffice."""
    scores = tuple(Score("contains", value, value == 1, "" if value == 1 else "too little") for value in values)
    usage = Usage(prompt_tokens=10, completion_tokens=number, cost=Decimal("0.5"), currency="EUR")
    stop_reason = "" if error else "finished"
    return Attempt(agent, case, number, scores, f"{case}!", stop_reason, error, usage, seconds=0.12345)


ATTEMPTS = [
    attempt("a", "x", 1, 1),
    attempt("a", "x", 2, 1, 0.5),
    attempt("a", "y", 1, 1, error="no key"),
    attempt("a", "y", 2, error="no key"),
    attempt("b", "x", 1, 0.5),
    attempt("b", "x", 2, 1),
    attempt("b", "y", 1, 1),
    attempt("b", "y", 2, 1),
]


@pytest.fixture
def report(suite: Suite) -> Report:
    return build_report(suite, [*ATTEMPTS[4:], *ATTEMPTS[:4]], mode="live", seed=5)


def test_runs_are_grouped_by_agent_and_case_in_the_order_of_the_file(report: Report) -> None:
    assert [(one.agent, one.case, one.share, one.score, one.errors) for one in report.cases] == [
        ("a", "x", 0.5, 0.875, 0),
        ("a", "y", 0.0, 0.0, 2),
        ("b", "x", 0.5, 0.75, 0),
        ("b", "y", 1.0, 1.0, 0),
    ]
    assert [one.interval for one in report.cases] == [wilson(share, 2) for share in (0.5, 0.0, 0.5, 1.0)]
    first, second = report.agents
    assert (first.agent, first.share, first.score, first.errors) == ("a", 0.25, 0.4375, 2)
    assert (first.share_interval, first.score_interval) == (wilson(0.25, 2), bootstrap([0.875, 0.0], seed=5))
    assert (second.agent, second.share, second.score, second.errors) == ("b", 0.75, 0.875, 0)
    assert first.usage == Usage(prompt_tokens=40, completion_tokens=6, cost=Decimal(2), currency="EUR")


def test_the_interval_of_scores_depends_on_the_seed(suite: Suite) -> None:
    values = {f"case-{number}": math.sqrt(number) % 1 for number in range(2, 14)}  # few means are alike
    cases = [{"name": name, "prompt": name, "expect": name} for name in values]
    suite.path.write_text(yaml.safe_dump({"agents": ["a.yaml"], "cases": cases}))
    attempts = [attempt("a", name, 1, value) for name, value in values.items()]
    first, second = (build_report(load_suite(suite.path), attempts, mode="live", seed=seed) for seed in (1, 2))
    assert first.agents[0].score_interval != second.agents[0].score_interval
    before = to_json(first)["cases"]
    for entry in before:
        entry["score"] = 0.0
    assert compare(first, before, since="").interval != compare(second, before, since="").interval


def test_pairs_are_compared_by_passes_and_then_by_scores(report: Report) -> None:
    before = to_json(report)["cases"]
    changes = [(1.0, 0.5), (0.0, 0.0), (0.0, 0.875), (1.0, 0.875)]
    for entry, (share, score) in zip(before, changes, strict=True):
        entry |= {"share": share, "score": score}
    before.append({**before[0], "case": "gone"})
    comparison = compare(report, before, since="then")
    assert comparison.worse == ("a/x: 100 % (score 0.50) → 50 % (score 0.88)",)
    assert comparison.better == (
        "b/x: 0 % (score 0.88) → 50 % (score 0.75)",
        "b/y: 100 % (score 0.88) → 100 %",
    )
    assert (comparison.since, comparison.pairs, comparison.left_out) == ("then", 4, 0)
    differences = [0.375, 0.0, -0.125, 0.125]
    assert comparison.difference == sum(differences) / 4
    assert comparison.interval == bootstrap(differences, seed=5)


@pytest.mark.parametrize("key", ["agent", "case", "digest"])
def test_another_agent_case_or_content_is_not_compared(key: str, report: Report) -> None:
    before = to_json(report)["cases"]
    before[0][key] = "another"
    comparison = compare(report, before, since="then")
    assert (comparison.pairs, comparison.left_out, comparison.worse, comparison.better) == (3, 1, (), ())


def test_everything_is_in_the_json(report: Report) -> None:
    table = json.loads(json.dumps(to_json(report)))
    first = table["agents"][0]
    assert (first["agent"], first["share"], first["score"], first["errors"]) == ("a", 0.25, 0.4375, 2)
    assert (first["usage"]["prompt_tokens"], first["usage"]["currency"]) == (40, "EUR")
    assert table["cases"][1]["attempts"][0] == {
        "number": 1,
        "passed": False,
        "score": 0.0,
        "why": "no key",
        "error": True,
        "stop_reason": "",
        "answer": "y!",
        "scores": [{"scorer": "contains", "value": 1, "passed": True}],
        "tokens": 11,
        "seconds": 0.123,
    }
    assert table["cases"][0]["attempts"][1]["stop_reason"] == "finished"
    comparison = Comparison("then", ("w",), ("b", "c"), 3, 0.5, (0.25, 0.75), 1)
    assert to_json(replace(report, comparison=comparison))["comparison"] == asdict(comparison)
    assert (table["mode"], table["seed"], table["comparison"], table["unmet"]) == ("live", 5, None, [])


def test_the_newest_fifty_results_are_kept_and_other_files_stay(report: Report) -> None:
    folder = report.suite.results
    folder.mkdir()
    for other in ("notes.json", "aaa.json", "zzz.json"):
        (folder / other).write_text("[]")
    paths = [save_results(report, now=NOON + timedelta(microseconds=number)) for number in range(53)]
    assert sorted(folder.glob("*Z.json")) == paths[3:]
    assert len(list(folder.iterdir())) == 53
    assert paths[-1].stat().st_mode & 0o777 == 0o600
    paths[3].touch()  # names say which is the newest, not times
    last = load_last_results(folder, report.suite.agents)
    assert last == (paths[-1].name, json.loads(json.dumps(to_json(report)["cases"])))


@pytest.mark.parametrize(
    ("share", "text"), [(0.0, "0 %"), (1 / 3, "33 %"), (2 / 3, "67 %"), (0.996, "100 %"), (1.0, "100 %")]
)
def test_a_percentage_is_rounded(share: float, text: str) -> None:
    assert percent(share) == text


def test_results_older_than_those_of_all_agents_are_not_read(report: Report) -> None:
    newest = save_results(report, now=NOON)
    (report.suite.results / "1Z.json").write_text("broken")
    last = load_last_results(report.suite.results, report.suite.agents)
    assert last is not None
    assert last[0] == newest.name


def test_the_last_results_of_each_agent_are_those_of_its_newest_file(report: Report) -> None:
    def save(hour: int, *agents: str) -> Path:
        cases = tuple(result for result in report.cases if result.agent in agents)
        return save_results(replace(report, seed=hour, cases=cases), now=NOON + timedelta(hours=hour))

    paths = [save(0, "a", "b"), save(1, "b"), save(2, "a"), save(3, "a")]
    for agents, newest in ((("a", "b"), 3), (("b", "a", "new"), 3), (("b",), 1)):
        last = load_last_results(report.suite.results, agents)
        assert last is not None
        assert last[0] == paths[newest].name
        pairs = [(entry["agent"], entry["case"]) for entry in last[1]]
        assert sorted(pairs) == [(agent, case) for agent in "ab" if agent in agents for case in "xy"]
    assert load_last_results(report.suite.results, ["new"]) is None


@pytest.mark.parametrize("tiny", [-1e-12, 1e-12])
def test_an_error_of_rounding_is_no_change(report: Report, tiny: float) -> None:
    before = json.loads(json.dumps(to_json(report)["cases"]))
    for entry in before:
        entry["share"] += tiny
        entry["score"] -= tiny
    compared = compare(report, before, since="then")
    assert (compared.worse, compared.better, compared.pairs) == ((), (), 4)


def test_a_report_is_printed(suite: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    attempts = [replace(one, error=one.error and f"{'no ' * 100}key\nat all") for one in ATTEMPTS]
    attempts[4:] = [replace(one, usage=replace_currency(one.usage)) for one in attempts[4:]]
    comparison = Comparison("then", ("w",), ("b", "c"), 4, -0.5, (-0.75, 0.25), 1)
    report = replace(build_report(suite, attempts, mode="live", seed=5), comparison=comparison, unmet=("u", "v"))
    command._print(report)
    printed = capsys.readouterr()
    rows = [re.split(r"  +", line.rstrip()) for line in printed.out.partition("\n\n")[0].splitlines()]
    ends = [_ends(share) for share in (0.5, 0.0, 0.5, 1.0)]
    assert rows == [
        ["agent", "case", "passed", "95 %", "score", "tokens", "seconds", "why not"],
        ["a", "x", "1/2", ends[0], "0.88", "23", "0.2", "too little"],
        ["a", "y", "0/2", ends[1], "0.00", "23", "0.2", ("no " * 100)[:200].rstrip()],
        ["b", "x", "1/2", ends[2], "0.75", "23", "0.2", "too little"],
        ["b", "y", "2/2", ends[3], "1.00", "23", "0.2"],
    ]
    low, high = report.agents[0].score_interval or (9, 9)
    first, second, *rest = printed.out.partition("\n\n")[2].splitlines()
    assert first == f"a: 25 % passed ({_ends(0.25)}), score 0.44 ({low:.2f} to {high:.2f}), 46 tokens, 2.0 EUR"
    assert second.endswith(", 46 tokens, 2.0")  # in no currency
    assert rest == [
        "since then: score -0.50 (-0.75 to +0.25) over 4 pairs",
        *("  worse: w", "  better: b", "  better: c", "  not compared (new or changed): 1"),
    ]
    assert printed.err == "jackfield: u\njackfield: v\n"


def replace_currency(usage: Usage) -> Usage:
    """The same usage without a currency."""
    return usage.model_copy(update={"currency": None})


def _ends(share: float) -> str:
    return " to ".join(percent(end) for end in wilson(share, 2))


@pytest.mark.parametrize("key", ["share", "score", "agent", "case", "digest"])
def test_results_that_lack_an_entry_are_refused(key: str, report: Report) -> None:
    table: dict[str, Any] = to_json(report)
    del table["cases"][-1][key]
    report.suite.results.mkdir()
    (report.suite.results / "1Z.json").write_text(json.dumps(table))
    with pytest.raises(ConfigError, match=r"1Z\.json is not a valid results file \(KeyError\): delete the file"):
        load_last_results(report.suite.results, report.suite.agents)
