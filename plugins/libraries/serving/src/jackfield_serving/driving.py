"""Drive runs, each in a task, with a limited number at a time and the rest in a queue."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Iterable
from typing import Any

from jackfield.agents import Agent
from jackfield.errors import StoreError
from jackfield.events import RunFailed
from jackfield.runs import RunResources
from jackfield.servers import failure_of
from jackfield.streams import Interrupted, InterruptibleWait, closing
from jackfield.tools import Editor
from jackfield_records.pending import append_failure
from jackfield_records.recording import PendingRun
from jackfield_serving.agents import ServedAgent
from jackfield_serving.clienttools import ClientTools
from jackfield_serving.limits import ServingLimits
from jackfield_serving.live import LiveRun
from jackfield_serving.memory import MemoryStore
from jackfield_serving.recording import HeldRun, ServedStore
from jackfield_serving.toolcalls import agent_of_call

_log = logging.getLogger("jackfield.serving")
_KEPT = 32
"""The number of ended runs whose live events are retained for readers."""


class Driver:
    """Drives the runs of this process.

    Attributes:
        live: The queued and running runs and the most recently ended ones, by id.
        count: The number of queued and running runs.
        editors: The editors of connected users, by the owner and session of their runs.
    """

    def __init__(self, store: ServedStore, limits: ServingLimits) -> None:
        self.live: dict[str, LiveRun] = {}
        self.count = 0
        self.editors: dict[tuple[str, str], Editor] = {}
        self._store, self._limits = store, limits
        self._slots = asyncio.Semaphore(limits.runs)
        self._ended: deque[LiveRun] = deque()

    def active(self) -> list[LiveRun]:
        """Return the queued and running runs."""
        return [live for live in self.live.values() if not live.is_over]

    def find(self, run_id: str) -> LiveRun | None:
        """Return a run that is queued or running in this process, or None."""
        live = self.live.get(run_id)
        return None if live is None or live.is_over else live

    def forget(self, live: LiveRun) -> None:
        """Drop a run's live events, so that readers get them from the record."""
        if self.live.get(live.run_id) is live:
            del self.live[live.run_id]

    def begin(self, served: ServedAgent, live: LiveRun, pending: PendingRun) -> None:
        """Begin a run in a task, once there is a free slot."""
        self._store.pass_on_pending(pending)
        self._start(served, live, pending.hold)

    def resume(self, served: ServedAgent, live: LiveRun, held: HeldRun) -> None:
        """Resume a run in a task, once there is a free slot."""
        self._store.pass_on(held)
        live.is_resumed = True
        self._start(served, live, held.hold)

    def _start(self, served: ServedAgent, live: LiveRun, hold: int) -> None:
        self.live[live.run_id] = live
        self.count += 1
        live.task = asyncio.create_task(self._run(served, live, hold), name=f"jackfield-run-{live.run_id}")

    async def drain(self, seconds: float) -> None:
        """Wait for runs to end, then leave the rest to other processes, or without a shared store, cancel them."""
        tasks = [live.task for live in self.active() if live.task is not None]
        if tasks and seconds > 0:
            await asyncio.wait(tasks, timeout=seconds)
        left = self.active()
        is_shared = not isinstance(self._store.inner, MemoryStore)
        for live in left:
            if is_shared:
                self._store.abandon(live.run_id)
                if live.task is not None:
                    live.task.cancel()
            else:
                live.cancel.cancel()
        if left:
            await asyncio.wait(_tasks_of(left))

    async def _run(self, served: ServedAgent, live: LiveRun, hold: int) -> None:
        try:
            has_slot = await self._take_slot(live)
            live.is_queued = False
            try:
                await _let_requests_be_accepted()
                await self._run_agent(served, live)
            finally:
                if has_slot:
                    self._slots.release()
        except Exception as error:  # noqa: BLE001 - the run's end, which its readers get
            # Clients only get a reference to this log as the cause, unless they caused the error themselves.
            is_ours = failure_of(RunFailed(str(error), type(error).__name__)).status >= 500
            _log.log(logging.WARNING if is_ours else logging.INFO, "run %s failed", live.run_id, exc_info=True)
            await self._record_failure(served, live, hold, error)
        finally:
            await self._store.release(live.run_id, hold)
            live.close()
            self.count -= 1
            self._keep(live)

    async def _take_slot(self, live: LiveRun) -> bool:
        """Wait for a free slot. Return False if the run is cancelled; its agent then ends it without asking a model."""
        wait = InterruptibleWait()
        live.cancel.enter(wait)
        try:
            with wait:
                await self._slots.acquire()
        except Interrupted:
            return False
        finally:
            live.cancel.leave(wait)
        return True

    async def _run_agent(self, served: ServedAgent, live: LiveRun) -> None:
        request = live.request
        agent: Agent[Any] = served.agent
        if request.client_tools:
            agent = served.with_client_tools(ClientTools(request.client_tools, live.results))
        if request.call is not None:
            agent = agent_of_call(agent, request.call)
        options: dict[str, Any] = {"output": request.output} if request.output else {}
        editor = self.editors.get((live.run.owner, live.run.session)) if live.run.session else None
        async with RunResources(editor) as resources:
            events = agent.astream(
                (),
                run_id=live.run_id,
                resume=(dict(live.answers.approvals) or True) if live.is_resumed else False,
                session=live.run.session,
                cancel=live.cancel,
                ask=live.questions.ask if request.takes_questions else None,
                resources=resources if editor is not None else None,
                deps=live.deps,
                config=request.config or None,
                **options,
            )
            async with closing(events):
                async for event in events:
                    live.publish(event)

    async def _record_failure(self, served: ServedAgent, live: LiveRun, hold: int, error: Exception) -> None:
        """Record that a run could not begin. The agent has already recorded any other failure."""
        if live.end is None and not isinstance(error, StoreError):
            with contextlib.suppress(StoreError):
                await append_failure(served.recorder, live.run_id, hold, error)

    def _keep(self, live: LiveRun) -> None:
        """Retain the events of the most recently ended runs, for readers that are about to read the end."""
        if live.end is not None:
            self._ended.append(live)
            if len(self._ended) <= _KEPT:
                return
            live = self._ended.popleft()
        self.forget(live)


async def _let_requests_be_accepted() -> None:
    """Let the event loop run two iterations: one to read arrived data, and one to accept the requests in it.

    In a burst, clients then get their headers before the runs of earlier clients take up the loop. The 95th percentile
    of the time to the first text does not change: see `benchmarks/streams.py`.
    """
    for _ in range(2):
        await asyncio.sleep(0)


def _tasks_of(runs: Iterable[LiveRun]) -> list[asyncio.Task[None]]:
    return [live.task for live in runs if live.task is not None]
