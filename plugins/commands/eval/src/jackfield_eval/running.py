"""Run agents on cases concurrently. A failed run becomes a result and does not affect the others."""

from __future__ import annotations

import asyncio
import math
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import product

from jackfield import AgentConfig, RunResult, create_agent
from jackfield.errors import ConfigError, InvalidAnswerError
from jackfield.events import TurnFinished
from jackfield.messages import FunctionCall, Usage
from jackfield.secrets import Secrets, secrets_of
from jackfield.tools import ToolContext
from jackfield_eval.cases import Case, Suite
from jackfield_eval.scorers import Score, ScoredRun
from jackfield_eval.statistics import mean
from jackfield_eval.taping import Mode, TapingHost, hide_secrets_of, use_cassette

NOT_RUN = "not run: the token or cost limit was reached"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of an agent on a case.

    Attributes:
        number: The number of the repetition, starting at 1.
        scores: The scores; empty if the run ended before scoring.
        answer: The answer's text.
        stop_reason: Why the run ended, or '' if it failed.
        error: The error that ended the run, or ''. A wrong answer is not an error.
        usage: Tokens and cost, including those of judges.
        is_replayed: True if all answers were recorded before, so that the run cost nothing.
    """

    agent: str
    case: str
    number: int
    scores: tuple[Score, ...] = ()
    answer: str = ""
    stop_reason: str = ""
    error: str = ""
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    is_replayed: bool = False

    @property
    def passed(self) -> bool:
        """True if the run finished and all its scores are sufficient."""
        return self._is_finished and all(score.passed for score in self.scores)

    @property
    def value(self) -> float:
        """The mean of the scores, from 0 to 1; 0 if the run did not finish."""
        return mean([score.value for score in self.scores]) if self._is_finished else 0.0

    @property
    def why(self) -> str:
        """Why the run did not pass, or ''."""
        if self.error:
            return self.error
        if self._is_finished:
            return "; ".join(score.why for score in self.scores if not score.passed)
        return f"the run ended early: {self.stop_reason.replace('_', ' ')}"

    @property
    def _is_finished(self) -> bool:
        return not self.error and self.stop_reason == "finished"


@dataclass(slots=True)
class Budget:
    """Token and cost limits for all runs together."""

    tokens: float
    cost: float | None
    currency: str
    spent: Usage = field(default_factory=Usage)

    def spend(self, usage: Usage) -> None:
        """Add a run's usage."""
        self.spent = self.spent + usage

    @property
    def is_used_up(self) -> bool:
        """True if no further run may start.

        Raises:
            ConfigError: The cost is limited, but the models' price is unknown.
        """
        if self.spent.total_tokens >= self.tokens:
            return True
        if self.cost is None or not self.spent.total_tokens:
            return False
        if self.spent.cost is None or self.spent.currency != self.currency:
            raise ConfigError(
                f"max_cost is set, but the {self.currency} prices of these models are unknown: use max_tokens"
            )
        return self.spent.cost >= Decimal(str(self.cost))


async def run_all(
    suite: Suite, host: TapingHost, *, mode: Mode, on_done: Callable[[int, int], None] | None = None
) -> list[Attempt]:
    """Run every agent on every case, as often as the suite demands.

    Args:
        suite: The cases and agents.
        host: The host that loads plugins.
        mode: The mode: play back answers, record them, or call the models live.
        on_done: Receives the number of runs that are done or skipped, and the total number.

    Returns:
        The runs, ordered by agent, case and repetition.

    Raises:
        ConfigError: A scorer cannot work, or the cost is limited but the models' price is unknown.
    """
    for case in suite.cases:
        for scorer in case.scorers:
            scorer.check(suite.settings.judge, host.settings)
    settings = suite.settings
    max_tokens = math.inf if settings.max_tokens is None else settings.max_tokens
    budget = Budget(max_tokens, settings.max_cost, settings.currency)
    slots = asyncio.Semaphore(settings.concurrency)
    runner = _Runner(suite, host, mode)
    planned = list(product(suite.agents, suite.cases, range(1, settings.repeat + 1)))
    done = 0

    async def run_one(agent: str, case: Case, number: int) -> Attempt:
        nonlocal done
        async with slots:
            if budget.is_used_up:
                attempt = Attempt(agent, case.name, number, error=NOT_RUN)
            else:
                attempt = await runner.run(agent, case, number)
            if not attempt.is_replayed:
                budget.spend(attempt.usage)
        done += 1
        if on_done is not None:
            on_done(done, len(planned))
        return attempt

    return await _gather([asyncio.ensure_future(run_one(*run)) for run in planned])


async def _gather(tasks: Sequence[asyncio.Task[Attempt]]) -> list[Attempt]:
    """Return the results of all tasks; the first error cancels the others and is raised unchanged."""
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class _Runner:
    suite: Suite
    host: TapingHost
    mode: Mode

    async def run(self, agent: str, case: Case, number: int) -> Attempt:
        """Run an agent once; an error becomes part of the result."""
        loop = asyncio.get_running_loop()
        start = loop.time()
        progress = _Progress(secrets_of(settings=self.host.settings))
        path = self.suite.cassettes / agent / case.name / f"{number}.json"
        limit = asyncio.timeout(self.suite.settings.timeout_s)
        tape = None
        try:
            with (
                tempfile.TemporaryDirectory(prefix="jackfield-eval-") as folder,
                use_cassette(path, self.mode, self._portable_names(folder)) as tape,
            ):
                async with limit:
                    await self._run(self.suite.agents[agent], case, folder, progress)
        except Exception as error:  # noqa: BLE001 - from any agent, tool or scorer; the other runs continue
            if limit.expired():
                progress.error = f"timed out after {self.suite.settings.timeout_s:g} s (timeout_s)"
            else:
                progress.error = f"{type(error).__name__}: {error}"
        hide, result = progress.secrets.hide, progress.result
        usage = (result.usage if result else progress.usage) + progress.judge_usage
        return Attempt(
            agent,
            case.name,
            number,
            scores=tuple(replace(score, why=hide(score.why)) for score in progress.scores),
            answer=hide(result.text) if result else "",
            stop_reason=result.stop_reason if result else "",
            error=hide(progress.error),
            usage=sum((score.usage for score in progress.scores), usage),
            seconds=loop.time() - start,
            is_replayed=tape is not None and not tape.asked,
        )

    async def _run(self, config: AgentConfig, case: Case, workspace: str, progress: _Progress) -> None:
        agent = create_agent(config, host=self.host, workspace=workspace, files=(*config.files, *case.files))
        progress.secrets.include(agent)
        hide_secrets_of(agent)
        try:
            async with agent.stream(case.messages, approve=self._approve) as events:
                async for event in events:
                    if isinstance(event, TurnFinished):
                        progress.usage += event.usage
            progress.result = events.result
        finally:
            if agent.llm is not None:
                await agent.llm.aclose()
        if progress.result.stop_reason == "finished":
            scored = ScoredRun(case.question, progress.result, self.host, self.suite.settings.judge)
            for scorer in case.scorers:
                try:
                    progress.scores.append(await scorer.score(scored))
                except InvalidAnswerError as error:
                    if isinstance(error.usage, Usage):
                        progress.judge_usage = error.usage
                    raise

    def _portable_names(self, workspace: str) -> dict[str, str]:
        """Return the directories that differ between machines, with their placeholders in a cassette."""
        folders = [str(folder) for folder in self.suite.folders if folder != folder.parent]
        names = {folder: f"[folder {number}]" for number, folder in enumerate(folders, start=1)}
        return {**names, workspace: "[workspace]", os.path.realpath(workspace): "[workspace]"}

    def _approve(self, call: FunctionCall, _: ToolContext) -> bool:
        return call.name in self.suite.settings.approve


@dataclass(slots=True)
class _Progress:
    """The state of a run so far, which is retained if the run fails.

    Attributes:
        judge_usage: The usage of a judge that gave no verdict and therefore no score.
    """

    secrets: Secrets
    result: RunResult | None = None
    usage: Usage = field(default_factory=Usage)
    judge_usage: Usage = field(default_factory=Usage)
    scores: list[Score] = field(default_factory=list)
    error: str = ""
