"""Run the ready calls of a turn concurrently, and queue their events."""

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
from jackfield.tools._foreign import run_isolated
from jackfield.tools._plan import PlannedCall, ReadyCall

_Events: TypeAlias = "asyncio.Queue[ApprovalDecided | ToolStarted | ToolProgress | ToolFinished | RunEvent]"


class Turn:
    """The running calls of one turn.

    A call starts right after its `ToolStarted` event has been yielded, so that event is always the call's first.

    Args:
        make: A function that makes a call. The last argument is the start time (`time.perf_counter`).
        failed: A function that takes a call, the error that it raised and the elapsed seconds, and returns the call's
            result.
        refusal: A function that returns the result of a call that must not start any more, or None if the call may
            start. The function runs right before each call, outside the tool's timeout.
        timeout_s: Default timeout for tools that do not set their own, in seconds.

    Attributes:
        events: The queue of the calls' events.
        begun: The positions of calls whose tools have been called.
        still_running: The positions of calls that were cancelled but could not be stopped.
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
        self._announced: dict[int, list[ReadyCall]] = {}
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._tasks: list[asyncio.Task[None]] = []

    def reporter(self, planned: PlannedCall) -> Callable[[str], None]:
        """Return a function that reports a tool's progress from any thread."""

        def report(text: str) -> None:
            progress = ToolProgress(planned.index, planned.call_id, text)
            if threading.get_ident() == self._thread:
                self.events.put_nowait(progress)
            else:
                self._loop.call_soon_threadsafe(self.events.put_nowait, progress)

        return report

    def start(self, calls: list[ReadyCall]) -> None:
        """Start all calls that may run concurrently. The other calls follow one at a time."""
        queues: dict[ReadyCall | None, list[ReadyCall]] = {}
        for call in calls:
            queues.setdefault(call if call.safety.concurrent else None, []).append(call)
        for queue in queues.values():
            self._announce(queue)

    def _announce(self, queue: list[ReadyCall]) -> None:
        # From here on, the call counts towards the limits of all runs that share them.
        planned = queue[0].planned
        self._announced[planned.index] = queue
        self.events.put_nowait(ToolStarted(planned.index, planned.call_id, planned.call))

    def begin_soon(self, index: int) -> None:
        """Once its `ToolStarted` has been yielded, start the call at this position, unless it must no longer run."""
        queue = self._announced.pop(index, None)
        if queue is not None:
            # A new task takes its first step in the next iteration of the event loop.
            self._tasks.append(self._loop.create_task(self._make_all(queue)))

    async def _make_all(self, queue: list[ReadyCall]) -> None:
        call, *others = queue
        planned, started = call.planned, time.perf_counter()
        timeout_s = call.safety.timeout_s or self._timeout_s
        try:
            work = partial(self._make, call, self, started)
            result = await self._refusal(planned)
            if result is None:
                name = planned.call.name
                result = await run_isolated(work, name=name, timeout_s=timeout_s, on_late=self.events.put_nowait)
        except asyncio.CancelledError as error:
            if sync.is_abandoned(error):
                self.still_running.add(planned.index)
            raise
        except Exception as error:  # noqa: BLE001 - any error of a tool becomes a result
            problem = error
            if isinstance(error, ToolTimeoutError) and planned.index not in self.begun:
                # The call waited for a worker thread, or for the tool to load.
                problem = ToolTimeoutError(
                    f"Tool {planned.call.name} did not start within {timeout_s:g} s; nothing was done"
                )
            result = self._failed(planned, problem, time.perf_counter() - started)
        self.events.put_nowait(result)
        if others:
            self._announce(others)

    @property
    def is_open(self) -> bool:
        """True if there are more events to come."""
        return not (self.events.empty() and not self._announced and all(task.done() for task in self._tasks))

    async def aclose(self) -> None:
        """Cancel running calls and wait a few seconds for them to finish. No further call starts."""
        self._announced.clear()
        running = [task for task in self._tasks if not task.done()]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)

    def results(self) -> dict[int, ToolFinished]:
        """Return unread results by position, after the turn is closed."""
        results: dict[int, ToolFinished] = {}
        while not self.events.empty():
            event = self.events.get_nowait()
            if isinstance(event, ToolFinished):
                results[event.index] = event
        return results
