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
from jackfield.tools._foreign import Apart, Outcome, end

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
        self._alone: list[ReadyCall] = []  # that wait for another one; a deque is larger than most turns
        self._running: dict[ReadyCall, Apart[ToolFinished]] = {}

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
        self._alone = alone[1:]
        for call in calls:
            if not call.is_alone or call is alone[0]:
                self._begin(call)

    def _begin(self, call: ReadyCall) -> None:
        planned, started = call.planned, time.perf_counter()
        self.events.put_nowait(ToolStarted(planned.index, planned.call_id, planned.call))
        self._running[call] = Apart(
            partial(call.make, started),
            partial(self._ended, call, started),
            name=planned.call.name,
            timeout_s=call.timeout_s,
        )

    @property
    def is_open(self) -> bool:
        """Whether there are events to come."""
        return bool(self._running) or not self.events.empty()

    def _ended(self, call: ReadyCall, started: float, outcome: Outcome[ToolFinished]) -> None:
        result, error = outcome
        if result is None:
            assert error is not None  # noqa: S101 - one of the two is there
            result = self._failed(call.planned, error, time.perf_counter() - started)
        del self._running[call]
        self.events.put_nowait(result)
        if call.is_alone and self._alone:
            self._begin(self._alone.pop(0))

    async def aclose(self) -> None:
        """Cancel what still runs, and wait until it has ended, but not for ever."""
        running = list(self._running.values())
        if running:
            self._alone.clear()
            self._running.clear()
            await end(running)
