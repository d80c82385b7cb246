"""Run agents on cases: some at a time, each run by itself, and a run that fails is a result."""

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
from jackfield.errors import ConfigError
from jackfield.events import TurnFinished
from jackfield.messages import FunctionCall, Usage
from jackfield.secrets import Secrets, secrets_of
from jackfield.tools import ToolContext
from jackfield_eval.cases import Case, Suite
from jackfield_eval.scorers import Answered, Score
from jackfield_eval.statistics import mean
from jackfield_eval.taping import Mode, TapingHost, hide_secrets_of, taped

NOT_RUN = "not run: the limit of tokens or money was reached"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of one agent on one case.

    Attributes:
        number: Which repetition it is, from 1.
        scores: What each scorer says; () if it did not come so far.
        answer: The text of the answer.
        stop_reason: Why the run ended; '' if it failed.
        error: What went wrong; '' if nothing did. A wrong answer is not an error.
        usage: What it used, judges included.
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

    @property
    def passed(self) -> bool:
        """Whether the run finished, and every scorer is content."""
        return self._ended_well and all(score.passed for score in self.scores)

    @property
    def value(self) -> float:
        """The mean of its scores, from 0 to 1; 0 if there are none."""
        return mean([score.value for score in self.scores]) if self._ended_well else 0.0

    @property
    def why(self) -> str:
        """Why it did not pass; '' if it did."""
        if self.error or self._ended_well:
            return self.error or "; ".join(score.why for score in self.scores if not score.passed)
        return f"the run ended early: {self.stop_reason.replace('_', ' ')}"

    @property
    def _ended_well(self) -> bool:
        return not self.error and self.stop_reason == "finished"


@dataclass(slots=True)
class Budget:
    """What all runs together may use; it is asked before each of them."""

    tokens: float
    cost: float | None
    currency: str
    spent: Usage = field(default_factory=Usage)

    def spend(self, usage: Usage) -> None:
        """Add what a run has used."""
        self.spent = self.spent + usage

    @property
    def is_used_up(self) -> bool:
        """Whether no other run may begin.

        Raises:
            ConfigError: Money is limited, and the price of what was used is not known.
        """
        return self.spent.total_tokens >= self.tokens or self._is_money_used_up()

    def _is_money_used_up(self) -> bool:
        if self.cost is None or not self.spent.total_tokens:
            return False
        if self.spent.cost is None or self.spent.currency != self.currency:
            raise ConfigError(
                f"max_cost is set, but the price of these models in {self.currency} is not known: use max_tokens"
            )
        return self.spent.cost >= Decimal(str(self.cost))


async def run_all(
    suite: Suite, host: TapingHost, *, mode: Mode, on_done: Callable[[int, int], None] | None = None
) -> list[Attempt]:
    """Run every agent on every case, as often as the suite says; results in the order of agents, cases and numbers.

    Args:
        suite: The cases and agents.
        host: Where names are looked up.
        mode: Whether models are asked; see `Mode`.
        on_done: Told how many runs are done, and of how many.

    Raises:
        ConfigError: A scorer cannot work, or money is limited and the price is not known.
    """
    for case in suite.cases:
        for scorer in case.scorers:
            scorer.check(suite.settings.judge, host.settings)
    settings = suite.settings
    # What is played back was paid for when it was recorded.
    is_free = mode == "replay"
    limits = (None, None) if is_free else (settings.max_tokens, settings.max_cost)
    budget = Budget(limits[0] or math.inf, limits[1], settings.currency)
    places = asyncio.Semaphore(settings.concurrency)
    runner = _Runner(suite, host, mode)
    planned = list(product(suite.agents, suite.cases, range(1, settings.repeat + 1)))
    done = 0

    async def one(agent: str, case: Case, number: int) -> Attempt:
        nonlocal done
        async with places:
            if budget.is_used_up:
                return Attempt(agent, case.name, number, error=NOT_RUN)
            attempt = await runner.attempt(agent, case, number)
            budget.spend(attempt.usage)
        done += 1
        if on_done is not None:
            on_done(done, len(planned))
        return attempt

    return await _gathered([asyncio.ensure_future(one(*each)) for each in planned])


async def _gathered(tasks: Sequence[asyncio.Task[Attempt]]) -> list[Attempt]:
    """The results of all; the first error ends the others, and is raised as it is."""
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

    async def attempt(self, agent: str, case: Case, number: int) -> Attempt:
        """One run, whatever becomes of it."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        account = _Account(secrets_of(settings=self.host.settings))
        path = self.suite.cassettes / agent / case.name / f"{number}.json"
        limit = asyncio.timeout(self.suite.settings.timeout_s)
        try:
            with (
                tempfile.TemporaryDirectory(prefix="jackfield-eval-") as folder,
                taped(path, self.mode, self._names(folder)),
            ):
                async with limit:
                    await self._run(self.suite.agents[agent], case, folder, account)
        except Exception as error:  # noqa: BLE001 - of an agent, a tool or a scorer of anybody: the others go on
            too_long = f"it took longer than {self.suite.settings.timeout_s:g} s (timeout_s)"
            account.error = too_long if limit.expired() else f"{type(error).__name__}: {error}"
        attempt = Attempt(agent, case.name, number, error=account.error, usage=account.spent)
        if result := account.result:
            attempt = replace(attempt, answer=result.text, stop_reason=result.stop_reason, usage=result.usage)
        attempt = replace(
            attempt, answer=account.secrets.hide(attempt.answer), error=account.secrets.hide(attempt.error)
        )
        account.scores = [replace(score, why=account.secrets.hide(score.why)) for score in account.scores]
        usage = sum((score.usage for score in account.scores), attempt.usage)
        return replace(attempt, scores=tuple(account.scores), usage=usage, seconds=loop.time() - began)

    async def _run(self, config: AgentConfig, case: Case, workspace: str, account: _Account) -> None:
        agent = create_agent(config, host=self.host, workspace=workspace, files=(*config.files, *case.files))
        account.secrets.include(agent)
        hide_secrets_of(agent)
        try:
            async with agent.stream(case.messages, approve=self._approve) as events:
                async for event in events:
                    if isinstance(event, TurnFinished):
                        account.spent += event.usage
            account.result = events.result
        finally:
            if agent.llm is not None:
                await agent.llm.aclose()
        if account.result.stop_reason == "finished":
            answered = Answered(case.question, account.result, self.host, self.suite.settings.judge)
            for scorer in case.scorers:
                account.scores.append(await scorer.score(answered))

    def _names(self, workspace: str) -> dict[str, str]:
        """What differs from machine to machine, and what a cassette has in its place."""
        folders = [str(one) for one in self.suite.folders if one != one.parent]
        names = {folder: f"[folder {number}]" for number, folder in enumerate(folders, start=1)}
        return {**names, workspace: "[workspace]", os.path.realpath(workspace): "[workspace]"}

    def _approve(self, call: FunctionCall, _: ToolContext) -> bool:
        return call.name in self.suite.settings.approve


@dataclass(slots=True)
class _Account:
    """What is known of a run so far, also of one that fails."""

    secrets: Secrets
    result: RunResult | None = None
    spent: Usage = field(default_factory=Usage)
    scores: list[Score] = field(default_factory=list)
    error: str = ""
