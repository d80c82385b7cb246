"""Write to a run's record while it is held, and wait out store outages."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from jackfield.errors import RunBusyError, RunNotFoundError, StoreError, StoreUnavailableError
from jackfield.runs import Run
from jackfield.secrets import Secrets
from jackfield.stores import RUNNING, Store
from jackfield_records.entries import hide_entry

T = TypeVar("T")

_log = logging.getLogger(__name__)
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 0.5
# A call right after a write needs no confirmation of its own. Otherwise, every call of a turn would query the store.
_CONFIRMED_S = 0.01
_NOT_HELD_TEXT = "Nothing was done: this process no longer holds the run ({reason})."


class Writer:
    """Appends to one record, on behalf of the run and all its nested runs.

    Once the hold is lost, or an outage has outlasted the store's patience, every later write fails with the same error,
    and `before_call` refuses every call.

    Args:
        store: The record's store.
        run: The run, whose time limit and cancel token also end the wait during an outage.
        hold: The hold's number.
        secrets: The secrets to hide in entries.
        below: The number of nested runs in the record.
    """

    def __init__(self, store: Store, run: Run, hold: int, secrets: Secrets, below: int = 0) -> None:
        self.store, self.run_id, self.hold, self.secrets, self.below = store, run.id, hold, secrets, below
        self._run = run
        self._turn = asyncio.Lock()
        self._failure: StoreError | None = None
        self._confirmed_at = time.monotonic()

    async def append(
        self, number: int, entries: Sequence[str], state: str = RUNNING, *, patiently: bool = True
    ) -> None:
        """Append entries for the run with this number in the record.

        Raises:
            RunBusyError: The hold was lost.
            StoreError: The entries cannot be written.
        """
        async with self._turn:  # agents work in parallel; an entry whose secrets take long to hide keeps its place
            hidden = [await hide_entry(entry, self.secrets) for entry in entries]
            if number:  # the end of a nested run is not the end of the whole
                state, hidden = RUNNING, [f'{{"below": {number}, {entry[1:]}' for entry in hidden]
            await self._append(hidden, state, patiently=patiently)

    async def before_call(self) -> str:
        """Confirm just before a call that the run is still held. Return '' if so, else the reason, for the model."""
        try:
            if self._failure is None and time.monotonic() - self._confirmed_at <= _CONFIRMED_S:
                return ""
            async with self._turn:
                await self._append([], RUNNING, patiently=True)
        except StoreError as error:
            return _NOT_HELD_TEXT.format(reason=error)
        return ""

    def doubt(self) -> None:
        """Force the next call to confirm the hold even after a recent write, because time may have passed unnoticed."""
        self._confirmed_at = float("-inf")

    async def release(self) -> None:
        """Release the hold. The run ends here, even if the store fails."""
        await self.store.release(self.run_id, self.hold)

    async def _append(self, entries: Sequence[str], state: str, *, patiently: bool) -> None:
        if self._failure is not None:
            raise self._failure

        async def append() -> None:
            await self.store.append(self.run_id, self.hold, entries, state=state)

        try:
            await (wait_out_outage(append, self.store, self._run) if patiently else append())
        except (RunBusyError, RunNotFoundError, StoreUnavailableError) as error:
            self._failure = error
            raise
        self._confirmed_at = time.monotonic()


async def wait_out_outage(work: Callable[[], Awaitable[T]], store: Store, run: Run) -> T:
    """Run a store operation, retrying during an outage until the store's patience ends.

    The run's time limit and cancel token also end the wait.

    Raises:
        StoreUnavailableError: The store was unavailable the whole time.
    """
    pause_s, began = _FIRST_PAUSE_S, 0.0
    while True:
        try:
            result = await work()
        except StoreUnavailableError as error:
            if not began:
                began = time.monotonic()
                _log.warning("run %s is waiting for its store, for up to %g s: %s", run.id, store.patience_s, error)
            if time.monotonic() - began >= store.patience_s or _must_end(run):
                raise
        else:
            if began:
                _log.warning("run %s continues: its store is available again", run.id)
            return result
        await asyncio.sleep(min(pause_s, store.patience_s))
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def _must_end(run: Run) -> bool:
    is_over = run.ends_at is not None and asyncio.get_running_loop().time() >= run.ends_at
    return is_over or (run.cancel is not None and run.cancel.cancelled)
