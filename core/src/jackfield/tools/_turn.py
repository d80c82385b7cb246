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
from jackfield.tools._foreign import apart

_Events: TypeAlias = "asyncio.Queue[ApprovalDecided | ToolStarted | ToolProgress | ToolFinished | RunEvent]"


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call with its id and its place among the calls of the turn."""

    index: int
    call_id: str
    call: FunctionCall


@dataclass(frozen=True, slots=True, eq=False)
class ReadyCall:
    """A call that may be made.

    Attributes:
        planned: Which.
        make: Makes it; takes the time at which it began, of the performance counter.
        timeout_s: How long it may take.
        is_alone: It may not run beside others that may not, either.
    """

    planned: PlannedCall
    make: Callable[[float], Awaitable[ToolFinished]]
    timeout_s: float
    is_alone: bool


class Turn:
    """Makes calls.

    Args:
        failed: The result of a call that raised something after so many seconds.
    """

    def __init__(self, failed: Callable[[PlannedCall, BaseException, float], ToolFinished]) -> None:
        self.events: _Events = asyncio.Queue()
        self._failed = failed
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
        alone = [call for call in calls if call.is_alone]
        for call in calls:
            if not call.is_alone:
                self._begin([call])
            elif call is alone[0]:
                self._begin(alone)

    def _begin(self, row: list[ReadyCall]) -> None:
        # It counts as a call from now on, for all who share a limit with this run.
        planned = row[0].planned
        self.events.put_nowait(ToolStarted(planned.index, planned.call_id, planned.call))
        self._tasks.append(self._loop.create_task(self._make(row)))

    async def _make(self, row: list[ReadyCall]) -> None:
        call, *others = row
        planned, started = call.planned, time.perf_counter()
        try:
            work = partial(call.make, started)
            result = await apart(work, name=planned.call.name, timeout_s=call.timeout_s)
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
