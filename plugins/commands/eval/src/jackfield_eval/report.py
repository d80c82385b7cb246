"""What came of an evaluation: by case and by agent, with intervals, beside the last one, and as a file."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
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
_KEPT = 50  # files of results
_STAMP = "%Y%m%dT%H%M%S.%fZ"


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What an agent made of a case, over all repetitions."""

    agent: str
    case: str
    digest: str
    attempts: tuple[Attempt, ...]

    @property
    def share(self) -> float:
        """Of its runs that passed."""
        return mean([float(one.passed) for one in self.attempts])

    @property
    def score(self) -> float:
        """The mean score of its runs."""
        return mean([one.value for one in self.attempts])

    @property
    def errors(self) -> int:
        """How many of its runs failed."""
        return sum(bool(one.error) for one in self.attempts)

    @property
    def interval(self) -> Interval | None:
        """Of its share; None for one run, which says next to nothing of it."""
        return wilson(self.share, len(self.attempts)) if len(self.attempts) > 1 else None


@dataclass(frozen=True, slots=True)
class AgentResult:
    """What an agent made of all cases.

    Attributes:
        share_interval: Of the share of passes. Repetitions of a case are not independent, so it counts cases.
        score_interval: Of the mean score, over cases.
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
    """What has changed since an earlier evaluation, by pairs of an agent and a case.

    Attributes:
        since: The name of its file.
        worse, better: What fell and what rose, each as `agent/case: from → to`.
        pairs: How many were compared.
        difference: The mean of the differences of scores, now minus then; 0 if nothing was compared.
        interval: Of that; None for less than two pairs.
        left_out: How many are new, or ask something else than before.
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
    """All of it. `unmet` says which conditions do not hold; none if the exit code is 0."""

    suite: Suite
    mode: str
    seed: int
    cases: tuple[CaseResult, ...]
    agents: tuple[AgentResult, ...]
    comparison: Comparison | None = None
    unmet: tuple[str, ...] = ()


def report_of(suite: Suite, attempts: Sequence[Attempt], *, mode: str, seed: int) -> Report:
    """Gather runs by case and by agent."""
    by_pair: defaultdict[tuple[str, str], list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        by_pair[attempt.agent, attempt.case].append(attempt)
    cases = tuple(
        CaseResult(agent, case.name, case.digest, tuple(by_pair[agent, case.name]))
        for agent, case in product(suite.agents, suite.cases)
    )
    agents = tuple(_of_agent(agent, [one for one in cases if one.agent == agent], seed) for agent in suite.agents)
    return Report(suite, mode, seed, cases, agents)


def _of_agent(agent: str, cases: Sequence[CaseResult], seed: int) -> AgentResult:
    shares, scores = [one.share for one in cases], [one.score for one in cases]
    return AgentResult(
        agent,
        mean(shares),
        wilson(mean(shares), len(cases)),
        mean(scores),
        bootstrap(scores, seed=seed),
        sum(one.errors for one in cases),
        sum((attempt.usage for one in cases for attempt in one.attempts), Usage()),
    )


# --- compared with the last one ---------------------------------------------------------------------------------------


def compared(report: Report, before: Mapping[str, Any], *, since: str) -> Comparison:
    """What has changed since an earlier evaluation, whose file was read by `last_kept`."""
    then = {(one["agent"], one["case"], one["digest"]): one for one in before["cases"]}
    worse: list[str] = []
    better: list[str] = []
    differences: list[float] = []
    for now in report.cases:
        old = then.get((now.agent, now.case, now.digest))
        if old is None:
            continue
        differences.append(now.score - old["score"])
        # Passes count first: a score may rise while they fall.
        fell_by = (round(old["share"] - now.share, 9), round(old["score"] - now.score, 9))
        if any(fell_by):
            what = f"{now.agent}/{now.case}: {_pair(old['share'], old['score'])} → {_pair(now.share, now.score)}"
            (worse if fell_by > (0, 0) else better).append(what)
    return Comparison(
        since,
        tuple(worse),
        tuple(better),
        len(differences),
        mean(differences),
        bootstrap(differences, seed=report.seed),
        len(report.cases) - len(differences),
    )


def _pair(share: float, score: float) -> str:
    return percent(share) if share == score else f"{percent(share)} (score {score:.2f})"


def percent(share: float) -> str:
    """A share as people read it."""
    return f"{100 * share:.0f} %"


# --- files ------------------------------------------------------------------------------------------------------------


def last_kept(folder: Path) -> tuple[str, dict[str, Any]] | None:
    """The newest results in a folder, with the name of their file; None if there are none.

    Raises:
        ConfigError: The newest file cannot be read.
    """
    newest = max(folder.glob("*Z.json"), default=None, key=lambda path: path.name)
    if newest is None:
        return None
    try:
        table = json.loads(newest.read_text(encoding="utf-8"))
        version = table["version"]
        for one in table["cases"]:
            float(one["share"]), float(one["score"]), one["agent"], one["case"], one["digest"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{newest} cannot be compared with ({type(error).__name__}): delete it") from error
    if version != _VERSION:
        raise ConfigError(f"{newest} is of version {version}, not {_VERSION}: delete it")
    return newest.name, table


def keep(report: Report, *, now: datetime) -> Path:
    """Write the results to a file of their own; the oldest files of more than fifty are deleted."""
    folder = report.suite.results
    path = folder / f"{now.strftime(_STAMP)}.json"
    write_private(path, json.dumps(to_json(report), indent=1, ensure_ascii=False) + "\n")
    for old in sorted(folder.glob("*Z.json"))[:-_KEPT]:
        old.unlink(missing_ok=True)
    return path


def to_json(report: Report) -> dict[str, Any]:
    """The report as plain values."""
    comparison = report.comparison
    return {
        "version": _VERSION,
        "mode": report.mode,
        "seed": report.seed,
        "agents": [
            {
                "agent": one.agent,
                "share": one.share,
                "share_interval": one.share_interval,
                "score": one.score,
                "score_interval": one.score_interval,
                "errors": one.errors,
                "usage": one.usage.model_dump(mode="json"),
            }
            for one in report.agents
        ],
        "cases": [
            {
                "agent": one.agent,
                "case": one.case,
                "digest": one.digest,
                "share": one.share,
                "score": one.score,
                "attempts": [_attempt_json(attempt) for attempt in one.attempts],
            }
            for one in report.cases
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
        "scores": [{"scorer": one.scorer, "value": one.value, "passed": one.passed} for one in attempt.scores],
        "tokens": attempt.usage.total_tokens,
        "seconds": round(attempt.seconds, 3),
    }
