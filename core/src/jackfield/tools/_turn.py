"""The tool calls of one turn while they run: at once where they may, and what happens in them as events."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias

from jackfield import sync
from jackfield.errors import ToolTimeoutError
from jackfield.events import ApprovalDecided, RunEvent, ToolFinished, ToolProgress, ToolStarted
from jackfield.tools._foreign import apart
from jackfield.tools._plan import PlannedCall, ReadyCall

_Events: TypeAlias = "asyncio.Queue[ApprovalDecided | ToolStarted | ToolProgress | ToolFinished | RunEvent]"


class Turn:
    """Makes calls.

    A call begins right after its `ToolStarted` was handed on, so no event of it overtakes that.

    Args:
        make: Makes a call that begins now, by the performance counter.
        failed: The result of a call that raised something after so many seconds.
        timeout_s: How long calls of tools may take that do not say it.
        refusal: The result of a call that must not begin any more; None to make the call. It is asked right before each
            call, outside of the time-out of the tool.

    Attributes:
        begun: The positions of the calls whose tools were called.
        still_running: The positions of the calls that were cancelled and could not be stopped.
    """

    def __init__(
        self,
        make: Callable[[ReadyCall, Turn, float], Awaitable[ToolFinished]],
        failed: Callable[[PlannedCall, BaseException, float], ToolFinished],
        refusal: Callable[[PlannedCall], Awaitable[ToolFinished | None]],
        timeout_s: float,
    ) -> None:
        self.events: _Events = asyncio.Queue()
        self.begun: set[int] = set()
        self.still_running: set[int] = set()
        self._refusal = refusal
        self._make, self._failed, self._timeout_s = make, failed, timeout_s
        self._rows: dict[int, list[ReadyCall]] = {}
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
            self._announce(row)

    def _announce(self, row: list[ReadyCall]) -> None:
        # It counts as a call from now on, for all who share a limit with this run.
        planned = row[0].planned
        self._rows[planned.index] = row
        self.events.put_nowait(ToolStarted(planned.index, planned.call_id, planned.call))

    def begin_soon(self, index: int) -> None:
        """Begin the call at this place, if it may run, once its `ToolStarted` has been handed to whoever reads it."""
        self._loop.call_soon(self._begin, index)

    def _begin(self, index: int) -> None:
        row = self._rows.pop(index, None)
        if row is not None:
            self._tasks.append(self._loop.create_task(self._make_all(row)))

    async def _make_all(self, row: list[ReadyCall]) -> None:
        call, *others = row
        planned, started = call.planned, time.perf_counter()
        timeout_s = call.safety.timeout_s or self._timeout_s
        try:
            work = partial(self._make, call, self, started)
            result = await self._refusal(planned)
            if result is None:
                name = planned.call.name
                result = await apart(work, name=name, timeout_s=timeout_s, on_late=self.events.put_nowait)
        except asyncio.CancelledError as error:
            if sync.is_abandoned(error):
                self.still_running.add(planned.index)
            raise
        except Exception as error:  # noqa: BLE001 - whatever a tool does is a result
            problem = error
            if isinstance(error, ToolTimeoutError) and planned.index not in self.begun:
                # It waited for a worker thread, or to be loaded.
                text = f"Tool {planned.call.name} did not begin in {timeout_s:g} s; nothing was done"
                problem = ToolTimeoutError(text)
            result = self._failed(planned, problem, time.perf_counter() - started)
        self.events.put_nowait(result)
        if others:
            self._announce(others)

    @property
    def is_open(self) -> bool:
        """Whether there are events to come."""
        return not (self.events.empty() and not self._rows and all(task.done() for task in self._tasks))

    async def aclose(self) -> None:
        """Cancel what still runs, and wait until it has ended, but not for ever. No other call begins."""
        self._rows.clear()
        running = [task for task in self._tasks if not task.done()]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)

    def results(self) -> dict[int, ToolFinished]:
        """Return the results that nobody has read, by position, once the turn is closed."""
        results: dict[int, ToolFinished] = {}
        while not self.events.empty():
            event = self.events.get_nowait()
            if isinstance(event, ToolFinished):
                results[event.index] = event
        return results
