"""The tool calls of one turn while they run: at once where they may, and what happens in them as events."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from jackfield.events import ApprovalDecided, RunEvent, ToolFinished, ToolProgress, ToolStarted
from jackfield.messages import FunctionCall
from jackfield.tools._base import BaseTool
from jackfield.tools._foreign import apart
from jackfield.tools._safety import Safety

_Events: TypeAlias = "asyncio.Queue[ApprovalDecided | ToolStarted | ToolProgress | ToolFinished | RunEvent]"


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call with its id and its place among the calls of the turn."""

    index: int
    call_id: str
    call: FunctionCall


@dataclass(frozen=True, slots=True, eq=False)
class ReadyCall:
    """A call that may be made: of a tool as the agent has it, under the safety that holds, with checked arguments."""

    planned: PlannedCall
    tool: BaseTool
    safety: Safety
    arguments: dict[str, object]


class Turn:
    """Makes calls.

    Args:
        make: Makes a call that begins now, by the performance counter.
        failed: The result of a call that raised something after so many seconds.
        timeout_s: How long calls of tools may take that do not say it.
    """

    def __init__(
        self,
        make: Callable[[ReadyCall, Turn, float], Awaitable[ToolFinished]],
        failed: Callable[[PlannedCall, BaseException, float], ToolFinished],
        timeout_s: float,
    ) -> None:
        self.events: _Events = asyncio.Queue()
        self._make, self._failed, self._timeout_s = make, failed, timeout_s
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._tasks: list[asyncio.Task[None]] = []

    def reporter(self, planned: PlannedCall) -> Callable[[str], None]:
        """What a tool says how far it is with; from any thread."""

        def report(text: str) -> None:
            progress = ToolProgress(planned.index, planned.call_id, text)
            if threading.get_ident() == self._thread:
                self.events.put_nowait(progress)
            else:
                self._loop.call_soon_threadsafe(self.events.put_nowait, progress)

        return report

    def start(self, calls: list[ReadyCall]) -> None:
        """Begin all calls that may run at once; the others follow one after the other."""
        rows: dict[ReadyCall | None, list[ReadyCall]] = {}
        for call in calls:
            rows.setdefault(call if call.safety.concurrent else None, []).append(call)
        for row in rows.values():
            self._begin(row)

    def _begin(self, row: list[ReadyCall]) -> None:
        # It counts as a call from now on, for all who share a limit with this run.
        planned = row[0].planned
        self.events.put_nowait(ToolStarted(planned.index, planned.call_id, planned.call))
        self._tasks.append(self._loop.create_task(self._make_all(row)))

    async def _make_all(self, row: list[ReadyCall]) -> None:
        call, *others = row
        planned, started = call.planned, time.perf_counter()
        try:
            work = partial(self._make, call, self, started)
            timeout_s = call.safety.timeout_s or self._timeout_s
            result = await apart(work, name=planned.call.name, timeout_s=timeout_s)
        except Exception as error:  # noqa: BLE001 - whatever a tool does is a result
            result = self._failed(planned, error, time.perf_counter() - started)
        self.events.put_nowait(result)
        if others:
            self._begin(others)

    @property
    def is_open(self) -> bool:
        """Whether there are events to come."""
        return not (self.events.empty() and all(task.done() for task in self._tasks))

    async def aclose(self) -> None:
        """Cancel what still runs, and wait until it has ended, but not for ever."""
        running = [task for task in self._tasks if not task.done()]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
