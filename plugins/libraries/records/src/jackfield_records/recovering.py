"""Resume an agent's interrupted runs that no process holds."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from jackfield import sync
from jackfield.agents import Agent
from jackfield.errors import ConfigError, JackfieldError, RunBusyError
from jackfield.runs import AgentLike
from jackfield.stores import RUNNING, Store, StoredRun
from jackfield_records.entries import RESUMED, TRACED, EntryHead, head_of

_log = logging.getLogger(__name__)
_MOST_LISTED = 10_000
_AT_ONCE = 8
MOST_TRIES = 3
"""The maximum number of recoveries without a step in between. After that, a person decides."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """The outcome for one run.

    Attributes:
        run_id: The run's id.
        outcome: The stop reason, as in `RunFinished`, or `failed`, or `skipped` if the run was left alone.
        note: The error, or the reason for skipping the run.
    """

    run_id: str
    outcome: str
    note: str = ""


def recorded_name(agent: AgentLike) -> str:
    """Return the name that an agent's runs are recorded under: its own, else its kind's or class's."""
    return agent.name or str(getattr(agent, "kind", "")) or type(agent).__name__


async def interrupted_runs(store: Store, agent: AgentLike) -> list[StoredRun]:
    """List an agent's runs that are `running` but held by no process, oldest first.

    An agent without a name is identified by its kind if it comes from a file, and by its class if it comes from code.
    """
    names = {recorded_name(agent), agent.name or type(agent).__name__}
    runs = await store.runs(limit=_MOST_LISTED)
    return [run for run in reversed(runs) if run.state == RUNNING and not run.is_held and run.agent in names]


async def recover(agent: Agent) -> list[Recovered]:
    """Resume all of an agent's interrupted runs that no process holds, several in parallel.

    Runs that await approval, have ended or belong to another agent are left alone. Calls in doubt are not repeated
    unless their tools allow it; instead, the run pauses and awaits a decision. A run that was resumed three times
    without a step in between is skipped, because it may be what ends its process each time.

    Raises:
        ConfigError: The agent has no store.
        StoreError: The runs cannot be listed.
    """
    if agent.store is None:
        raise ConfigError(f"agent {agent.name!r} has no store, so there are no runs to recover: configure a store")
    return await recover_from(agent.store, agent)


async def recover_from(store: Store, agent: AgentLike) -> list[Recovered]:
    """Resume an agent's interrupted runs in a store; see `recover`.

    Raises:
        StoreError: The runs cannot be listed.
    """
    room = asyncio.Semaphore(_AT_ONCE)

    async def resume(run: StoredRun) -> Recovered:
        async with room:
            try:
                if count_tries((await store.read(run.run_id))[1]) >= MOST_TRIES:
                    note = f"resumed {MOST_TRIES} times without progress; see: jackfield runs show {run.run_id[:12]}"
                    return Recovered(run.run_id, "skipped", note)
                return Recovered(run.run_id, (await agent.aresume(run.run_id)).stop_reason)
            except RunBusyError as error:
                return Recovered(run.run_id, "skipped", str(error))
            except JackfieldError as error:
                return Recovered(run.run_id, "failed", str(error))

    runs = await interrupted_runs(store, agent)
    return list(await asyncio.gather(*map(resume, runs)))


@dataclass(eq=False)
class Recovery:
    """Recovers one agent's runs in the background, once per process."""

    agent: AgentLike
    store: Store
    _process: int = field(default=0, init=False)

    def begin(self) -> None:
        """Start recovery unless this process already has. Recovered runs do not depend on the run that started it."""
        if self._process != os.getpid():
            self._process = os.getpid()
            sync.in_background(self._run)

    def _run(self) -> None:
        try:
            for one in sync.run(recover_from(self.store, self.agent)):
                _log.warning("recovered run %s: %s %s", one.run_id, one.outcome, one.note)
        except JackfieldError as error:
            _log.warning("interrupted runs could not be recovered: %s", error)


def count_tries(entries: Sequence[str]) -> int:
    """Return the number of times that a run was resumed since its last step."""
    tries = 0
    for head in map(head_of, reversed(entries)):
        if head.event not in (RESUMED, TRACED):
            break
        tries += head == EntryHead(RESUMED)  # nested agents continue with the run, so this counts as one try
    return tries
