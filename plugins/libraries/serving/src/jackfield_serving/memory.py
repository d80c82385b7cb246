"""An in-memory store with a bounded number of runs, for services without a store."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from jackfield.errors import RunBusyError, RunNotFoundError, StoreError
from jackfield.stores import RUNNING, StoredRun
from jackfield_records import RecordingStore
from jackfield_serving.reading import PAUSES


@dataclass(slots=True)
class _Kept:
    run: StoredRun
    entries: list[str]
    hold: int = 1


class MemoryStore(RecordingStore):
    """Stores runs as long as the process lives. Beyond `max_runs`, the oldest ended runs are forgotten.

    Runs that await human input are retained and do not count; `Serving` limits their number.
    """

    name = "memory"

    def __init__(self, max_runs: int = 1_000) -> None:
        super().__init__()
        self._max_runs = max_runs
        self._kept: dict[str, _Kept] = {}
        self._counted: dict[str, None] = {}  # those that do not wait for a person, oldest first

    async def create(self, run: StoredRun, entries: Sequence[str]) -> int:
        """See `Store`."""
        if run.run_id in self._kept:
            raise StoreError(f"run {run.run_id} already exists")
        now = time.time()
        self._kept[run.run_id] = _Kept(replace(run, state=RUNNING, is_held=True, began=now, changed=now), list(entries))
        self._counted[run.run_id] = None
        self._forget()
        return 1

    def count_waiting(self) -> int:
        """Return the number of runs that await human input."""
        return len(self._kept) - len(self._counted)

    def _forget(self) -> None:
        surplus = max(0, len(self._counted) - self._max_runs)
        ended = (run_id for run_id in self._counted if not self._kept[run_id].run.is_held)
        for run_id in list(islice(ended, surplus)):
            del self._kept[run_id], self._counted[run_id]

    async def hold(self, run_id: str) -> int:
        """See `Store`."""
        kept = self._find(run_id)
        if kept.run.is_held:
            raise RunBusyError(f"run {run_id} is still running: wait until it finishes, or cancel it")
        kept.hold += 1
        kept.run = replace(kept.run, is_held=True)
        return kept.hold

    async def append(self, run_id: str, hold: int, entries: Sequence[str], *, state: str = RUNNING) -> None:
        """See `Store`."""
        kept = self._find(run_id)
        if kept.hold != hold or not kept.run.is_held:
            raise RunBusyError(f"run {run_id} is no longer held by this task: another task may have resumed it")
        kept.entries += entries
        if state != RUNNING or kept.run.state != RUNNING:
            changed = kept.run.changed if state == kept.run.state else time.time()
            kept.run = replace(kept.run, state=state, is_held=state == RUNNING, changed=changed)
            if state in PAUSES:
                self._counted.pop(run_id, None)
            else:
                self._counted[run_id] = None

    async def release(self, run_id: str, hold: int) -> None:
        """See `Store`."""
        kept = self._kept.get(run_id)
        if kept is not None and kept.hold == hold and kept.run.is_held:
            kept.run = replace(kept.run, is_held=False)

    async def read(self, run_id: str, *, after: int = 0) -> tuple[StoredRun, list[str]]:
        """See `Store`."""
        kept = self._find(run_id)
        return replace(kept.run, entries=len(kept.entries)), kept.entries[after:]

    async def runs(
        self, *, session: str | None = None, owner: str | None = None, state: str | None = None, limit: int = 100
    ) -> list[StoredRun]:
        """See `Store`."""
        newest_first = (
            kept
            for kept in reversed(self._kept.values())
            if session in (None, kept.run.session)
            and owner in (None, kept.run.owner)
            and state in (None, kept.run.state)
        )
        return [replace(kept.run, entries=len(kept.entries)) for kept in islice(newest_first, limit)]

    async def rename(self, run_id: str, title: str) -> None:
        """See `Store`."""
        kept = self._find(run_id)
        kept.run = replace(kept.run, title=title)

    async def delete(self, run_id: str) -> None:
        """See `Store`."""
        if self._find(run_id).run.is_held:
            raise RunBusyError(f"run {run_id} is still running: wait until it finishes, or cancel it")
        del self._kept[run_id]
        self._counted.pop(run_id, None)

    def _find(self, run_id: str) -> _Kept:
        if run_id not in self._kept:
            raise RunNotFoundError(f"run {run_id!r} was not found; it may have expired")
        return self._kept[run_id]
