"""Report an evaluation by case and agent, compare it with the previous one, and save it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Any

from jackfield.errors import ConfigError
from jackfield.messages import Usage
from jackfield.privatefiles import write_private
from jackfield_eval.cases import Suite
from jackfield_eval.running import Attempt
from jackfield_eval.statistics import Interval, bootstrap, mean, wilson

_VERSION = 1
_MAX_FILES = 50  # maximum number of results files
_STAMP = "%Y%m%dT%H%M%S.%fZ"


@dataclass(frozen=True, slots=True)
class CaseResult:
    """An agent's result for a case, over all repetitions."""

    agent: str
    case: str
    digest: str
    attempts: tuple[Attempt, ...]

    @property
    def share(self) -> float:
        """The fraction of runs that passed."""
        return mean([float(attempt.passed) for attempt in self.attempts])

    @property
    def score(self) -> float:
        """The runs' mean score."""
        return mean([attempt.value for attempt in self.attempts])

    @property
    def errors(self) -> int:
        """The number of runs that failed with an error."""
        return sum(bool(attempt.error) for attempt in self.attempts)

    @property
    def interval(self) -> Interval | None:
        """The confidence interval of the share, or None for a single run, which says almost nothing."""
        return wilson(self.share, len(self.attempts)) if len(self.attempts) > 1 else None


@dataclass(frozen=True, slots=True)
class AgentResult:
    """An agent's result for all cases.

    Attributes:
        share: The pass rate.
        share_interval: The confidence interval of the pass rate, over cases because repetitions are not independent.
        score: The mean score.
        score_interval: The confidence interval of the mean score, over cases.
    """

    agent: str
    share: float
    share_interval: Interval
    score: float
    score_interval: Interval | None
    errors: int
    usage: Usage


@dataclass(frozen=True, slots=True)
class Comparison:
    """The differences from an earlier evaluation, for pairs of agent and case.

    Attributes:
        since: The name of the earlier results file.
        worse, better: The pairs whose result has changed, as `agent/case: from → to`.
        pairs: The number of pairs compared.
        difference: The mean score difference, new minus old; 0 if nothing was compared.
        interval: The confidence interval of the difference, or None for fewer than two pairs.
        left_out: The number of pairs that are new or whose case has changed.
    """

    since: str
    worse: tuple[str, ...]
    better: tuple[str, ...]
    pairs: int
    difference: float
    interval: Interval | None
    left_out: int


@dataclass(frozen=True, slots=True)
class Report:
    """The report of an evaluation. `unmet` lists the unmet conditions."""

    suite: Suite
    mode: str
    seed: int
    cases: tuple[CaseResult, ...]
    agents: tuple[AgentResult, ...]
    comparison: Comparison | None = None
    unmet: tuple[str, ...] = ()


def build_report(suite: Suite, attempts: Sequence[Attempt], *, mode: str, seed: int) -> Report:
    """Group runs by case and agent."""
    by_pair: defaultdict[tuple[str, str], list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        by_pair[attempt.agent, attempt.case].append(attempt)
    cases = tuple(
        CaseResult(agent, case.name, case.digest, tuple(by_pair[agent, case.name]))
        for agent, case in product(suite.agents, suite.cases)
    )
    agents = tuple(
        _agent_result(agent, [result for result in cases if result.agent == agent], seed) for agent in suite.agents
    )
    return Report(suite, mode, seed, cases, agents)


def _agent_result(agent: str, cases: Sequence[CaseResult], seed: int) -> AgentResult:
    shares, scores = [result.share for result in cases], [result.score for result in cases]
    return AgentResult(
        agent,
        mean(shares),
        wilson(mean(shares), len(cases)),
        mean(scores),
        bootstrap(scores, seed=seed),
        sum(result.errors for result in cases),
        sum((attempt.usage for result in cases for attempt in result.attempts), Usage()),
    )


# --- comparing with the last one --------------------------------------------------------------------------------------


def compare(report: Report, before: Sequence[Mapping[str, Any]], *, since: str) -> Comparison:
    """Compare a report with the earlier results from `load_last_results`, stored in the file `since`."""
    earlier = {(entry["agent"], entry["case"], entry["digest"]): entry for entry in before}
    worse: list[str] = []
    better: list[str] = []
    differences: list[float] = []
    for now in report.cases:
        old = earlier.get((now.agent, now.case, now.digest))
        if old is None:
            continue
        differences.append(now.score - old["score"])
        # Compare passes first, because the score may rise while passes drop.
        loss = (round(old["share"] - now.share, 9), round(old["score"] - now.score, 9))
        change = f"{now.agent}/{now.case}: {_format_result(old['share'], old['score'])} → "
        change += _format_result(now.share, now.score)
        if loss > (0, 0):
            worse.append(change)
        elif loss < (0, 0):
            better.append(change)
    return Comparison(
        since,
        tuple(worse),
        tuple(better),
        len(differences),
        mean(differences),
        bootstrap(differences, seed=report.seed),
        len(report.cases) - len(differences),
    )


def _format_result(share: float, score: float) -> str:
    return percent(share) if share == score else f"{percent(share)} (score {score:.2f})"


def percent(share: float) -> str:
    """Format a share as a percentage."""
    return f"{100 * share:.0f} %"


# --- files ------------------------------------------------------------------------------------------------------------


def load_last_results(folder: Path, agents: Collection[str]) -> tuple[str, list[dict[str, Any]]] | None:
    """Return the last result of each agent for each case, and the name of the newest file with any of them.

    The last results of an agent may be in an older file: an evaluation with `--agent` stores only those of its agents.

    Returns:
        The name and the results as JSON values, or None if there are no results of these agents.

    Raises:
        ConfigError: One of the files is invalid.
    """
    newest = ""
    results: list[dict[str, Any]] = []
    missing = set(agents)
    for path in sorted(folder.glob("*Z.json"), reverse=True):
        if not missing:
            break
        found = [entry for entry in _load_results(path) if entry["agent"] in missing]
        if found:
            newest = newest or path.name
            results += found
            missing -= {entry["agent"] for entry in found}
    return (newest, results) if results else None


def _load_results(path: Path) -> list[dict[str, Any]]:
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
        version = table["version"]
        for entry in table["cases"]:
            float(entry["share"]), float(entry["score"]), entry["agent"], entry["case"], entry["digest"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path} is not a valid results file ({type(error).__name__}): delete the file") from error
    if version != _VERSION:
        raise ConfigError(f"{path}: expected version {_VERSION}, found {version}: delete the file")
    results: list[dict[str, Any]] = table["cases"]
    return results


def save_results(report: Report, *, now: datetime) -> Path:
    """Save the results to a new file, retaining only the newest fifty files.

    Raises:
        ConfigError: The directory cannot be written.
    """
    folder = report.suite.results
    path = folder / f"{now.strftime(_STAMP)}.json"
    try:
        write_private(path, json.dumps(to_json(report), indent=1, ensure_ascii=False) + "\n")
        for old in sorted(folder.glob("*Z.json"))[:-_MAX_FILES]:
            old.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(
            f"cannot store results in {folder} ({error.strerror or error}): pass a different folder with --results"
        ) from error
    return path


def to_json(report: Report) -> dict[str, Any]:
    """Return the report as JSON values."""
    comparison = report.comparison
    return {
        "version": _VERSION,
        "mode": report.mode,
        "seed": report.seed,
        "agents": [
            {
                "agent": result.agent,
                "share": result.share,
                "share_interval": result.share_interval,
                "score": result.score,
                "score_interval": result.score_interval,
                "errors": result.errors,
                "usage": result.usage.model_dump(mode="json"),
            }
            for result in report.agents
        ],
        "cases": [
            {
                "agent": result.agent,
                "case": result.case,
                "digest": result.digest,
                "share": result.share,
                "score": result.score,
                "attempts": [_attempt_json(attempt) for attempt in result.attempts],
            }
            for result in report.cases
        ],
        "comparison": None
        if comparison is None
        else {
            "since": comparison.since,
            "worse": comparison.worse,
            "better": comparison.better,
            "pairs": comparison.pairs,
            "difference": comparison.difference,
            "interval": comparison.interval,
            "left_out": comparison.left_out,
        },
        "unmet": report.unmet,
    }


def _attempt_json(attempt: Attempt) -> dict[str, Any]:
    return {
        "number": attempt.number,
        "passed": attempt.passed,
        "score": attempt.value,
        "why": attempt.why,
        "error": bool(attempt.error),
        "stop_reason": attempt.stop_reason,
        "answer": attempt.answer,
        "scores": [
            {"scorer": result.scorer, "value": result.value, "passed": result.passed} for result in attempt.scores
        ],
        "tokens": attempt.usage.total_tokens,
        "seconds": round(attempt.seconds, 3),
    }
