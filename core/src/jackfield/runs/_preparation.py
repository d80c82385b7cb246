"""Work that must finish before a turn, such as reading documents or starting servers."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Generic, TypeAlias, TypeVar

from jackfield.events import PreparationProgress
from jackfield.streams import closing

T = TypeVar("T")

ReportProgress: TypeAlias = Callable[[PreparationProgress], None]
"""A function that receives the progress of a preparation, from any thread."""

_END_PATIENCE_S = 0.2  # time for cancelled work to end before it is abandoned
_log = logging.getLogger(__name__)


class Preparation(Generic[T]):
    """Work that precedes a turn and reports its progress as events.

    Cancellation or the time limit stops it immediately.

    Create instances with `Run.prepare`. Work that does not finish soon after it is cancelled is abandoned, so it must
    not hold anything that the next run needs.

    Args:
        work: A function that does the work and takes a callback for reporting progress.
        guard: `Run.guarded` of the waiting run.
    """

    def __init__(
        self,
        work: Callable[[ReportProgress], Coroutine[Any, Any, T]],
        guard: Callable[[AsyncIterator[PreparationProgress]], AsyncIterator[PreparationProgress]],
    ) -> None:
        self._work = work
        self._guard = guard
        self._latest: dict[str, PreparationProgress] = {}
        self._changed = asyncio.Event()
        self._outcome: tuple[T, ...] = ()

    @property
    def result(self) -> T:
        """The result of the work, available once `events` is exhausted."""
        if not self._outcome:
            raise RuntimeError("the preparation has no result yet: iterate over all its events first")
        return self._outcome[0]

    async def events(self) -> AsyncIterator[PreparationProgress]:
        """Do the work and yield its progress. A slow consumer receives only the latest progress of each step.

        Raises:
            Interrupted: The run was cancelled or reached its time limit.
            Exception: The work failed.
        """
        async with closing(self._guard(self._progress())) as events:
            async for event in events:
                yield event

    async def _progress(self) -> AsyncIterator[PreparationProgress]:
        task = asyncio.create_task(self._work(self._reporter()))
        task.add_done_callback(lambda _: self._changed.set())
        try:
            is_done = False
            while not is_done:
                await self._changed.wait()
                self._changed.clear()
                is_done = task.done()
                latest, self._latest = self._latest, {}
                for event in latest.values():
                    yield event
            self._outcome = (task.result(),)
        finally:
            if not self._outcome:
                task.add_done_callback(_log_error)  # asyncio warns about errors that are never read
                task.cancel()
                await asyncio.wait([task], timeout=_END_PATIENCE_S)

    def _reporter(self) -> ReportProgress:
        loop, thread = asyncio.get_running_loop(), threading.get_ident()

        def note(event: PreparationProgress) -> None:
            self._latest[event.step] = event
            self._changed.set()

        def report(event: PreparationProgress) -> None:
            if threading.get_ident() == thread:
                note(event)
            elif not loop.is_closed():  # abandoned work may outlive its event loop
                loop.call_soon_threadsafe(note, event)

        return report


def _log_error(task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and task.exception() is not None:
        _log.debug("preparation failed", exc_info=task.exception())
