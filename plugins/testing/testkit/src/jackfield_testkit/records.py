"""In-memory run store that can interrupt a run at any write, as if its process had been killed."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jackfield.errors import RunBusyError, RunNotFoundError, StoreError
from jackfield.stores import RUNNING, StoredRun
from jackfield_records import RecordingStore


class KilledError(BaseException):
    """Simulates the death of the process."""


def interrupted(run: Callable[[MemoryStore], object]) -> Iterator[MemoryStore]:
    """Yield a store for each possible interruption of a run: before and after every write."""
    for early in (False, True):
        for writes in itertools.count(1):
            store = MemoryStore()
            store.writes_left, store.early = writes, early
            try:
                run(store)
            except KilledError:
                store.restarted()
                yield store
            else:
                break


@dataclass
class Kept:
    """A run and its record."""

    run: StoredRun
    entries: list[str]
    hold: int = 1
    is_held: bool = True


class MemoryStore(RecordingStore):
    """Run store for the duration of a test.

    Attributes:
        kept: The runs, by id.
        writes_left: The number of writes before the process dies. The last one raises `KilledError`.
        early: True if the process dies before the last write rather than after it.
        refuses: The error that every write raises, or None.
    """

    name = "memory"

    def __init__(self, *, content: bool = True) -> None:
        super().__init__()
        self.content = content
        self.kept: dict[str, Kept] = {}
        self.writes_left = 1_000_000
        self.early = False
        self.refuses: StoreError | None = None

    def _write(self, write: Callable[[], None]) -> None:
        self.writes_left -= 1
        if self.writes_left < 0 or (self.early and not self.writes_left):
            raise KilledError
        if self.refuses:
            raise self.refuses
        write()
        if not self.writes_left:
            raise KilledError

    def restarted(self) -> None:
        """Simulate a new process that opens the same store."""
        self.writes_left = 1_000_000
        for kept in self.kept.values():
            kept.is_held = False

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return the entries with this event name, from all runs."""
        entries = (json.loads(entry) for kept in self.kept.values() for entry in kept.entries)
        return [entry for entry in entries if entry["event"] == name]

    async def create(self, run: StoredRun, entries: Sequence[str]) -> int:
        """See `Store`."""
        if run.run_id in self.kept:
            raise StoreError(f"run {run.run_id} already exists")
        self._write(lambda: self.kept.update({run.run_id: Kept(replace(run, state=RUNNING), list(entries))}))
        return 1

    async def hold(self, run_id: str) -> int:
        """See `Store`."""
        kept = self._of(run_id)
        if kept.is_held:
            raise RunBusyError(f"run {run_id} is still running")
        kept.hold += 1
        kept.is_held = True
        return kept.hold

    async def append(self, run_id: str, hold: int, entries: Sequence[str], *, state: str = RUNNING) -> None:
        """See `Store`."""
        kept = self._of(run_id)
        if kept.hold != hold or not kept.is_held:
            raise RunBusyError("the hold was lost")
        if not entries and state == kept.run.state:
            return  # the write only confirms the hold

        def write() -> None:
            kept.entries += entries
            kept.run = replace(kept.run, state=state)
            kept.is_held = state == RUNNING

        self._write(write)

    async def release(self, run_id: str, hold: int) -> None:
        """See `Store`."""
        kept = self.kept.get(run_id)
        if kept is not None and kept.hold == hold:
            kept.is_held = False

    async def read(self, run_id: str, *, after: int = 0) -> tuple[StoredRun, list[str]]:
        """See `Store`."""
        kept = self._of(run_id)
        return replace(kept.run, is_held=kept.is_held, entries=len(kept.entries)), kept.entries[after:]

    async def runs(
        self, *, session: str | None = None, owner: str | None = None, state: str | None = None, limit: int = 100
    ) -> list[StoredRun]:
        """See `Store`."""
        wanted = {"session": session, "owner": owner, "state": state}
        found = [
            replace(one.run, is_held=one.is_held, entries=len(one.entries))
            for one in self.kept.values()
            if all(value in (None, getattr(one.run, name)) for name, value in wanted.items())
        ]
        return found[::-1][:limit]

    async def rename(self, run_id: str, title: str) -> None:
        """See `Store`."""
        kept = self._of(run_id)
        kept.run = replace(kept.run, title=title)

    async def delete(self, run_id: str) -> None:
        """See `Store`."""
        if self._of(run_id).is_held:
            raise RunBusyError(f"run {run_id} is still running")
        del self.kept[run_id]

    def _of(self, run_id: str) -> Kept:
        if run_id not in self.kept:
            raise RunNotFoundError(f"no run {run_id!r}")
        return self.kept[run_id]
