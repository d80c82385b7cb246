"""Small named states, changed concurrently by a process's threads or by all processes that share a file."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, Protocol, Self, TypeVar

from jackfield import sync
from jackfield.errors import ConfigError, JackfieldError
from jackfield_local_state.ownfile import BusyFileError, OwnFile, UnusableFileError, is_busy, writing

T = TypeVar("T")

_SCHEMA = "CREATE TABLE states (name TEXT PRIMARY KEY, content TEXT NOT NULL);"
PATIENCE_S = 5.0
"""The default wait. A transaction takes less than a millisecond, but others may be queued, or the disk may be busy."""


class BusyError(JackfieldError):
    """Others used the file for the whole time allowed for waiting. The file itself is fine."""


class State(Protocol):
    """A named state, changed by one caller at a time."""

    def to_json(self) -> str:
        """Serialise the state to text for `from_json`."""

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Restore a state from the output of `to_json`.

        Raises:
            ValueError: The text is not a serialised state.
        """


StateT = TypeVar("StateT", bound=State)
StateT_co = TypeVar("StateT_co", bound=State, covariant=True)


class Ledger(Protocol[StateT_co]):
    """Stores states by name. All methods may be called from any thread."""

    def change(self, name: str, work: Callable[[StateT_co], T]) -> T:
        """Run `work` with exclusive access to a state.

        Blocks while others hold the state, so call `achange` on an event loop.

        Args:
            name: The state's name. If there is no such state, a new one is created.
            work: Changes the state. Must be quick and must not block.
        """

    async def achange(
        self, name: str, work: Callable[[StateT_co], T], *, undo: Callable[[StateT_co, T], object] | None = None
    ) -> T:
        """Change a state without blocking the event loop; see `change`.

        Args:
            name, work: See `change`.
            undo: Reverts `work`, given its result, if the caller was cancelled and never received that result.
        """

    async def anote(self, name: str, work: Callable[[StateT_co], T]) -> None:
        """Record something that has already happened, even if the caller is cancelled. Otherwise like `achange`."""

    def close(self) -> None:
        """Close all open resources, which are reopened when needed."""


class MemoryLedger(Generic[StateT]):
    """A ledger for a single process.

    Args:
        new: Creates the state for a new name.
        is_idle: Returns True for a state equivalent to a new one. If given, such states are dropped once there are
            many.
    """

    _MOST_IDLE = 64

    def __init__(self, new: Callable[[], StateT], *, is_idle: Callable[[StateT], bool] | None = None) -> None:
        self._new = new
        self._is_idle = is_idle
        self._lock = threading.Lock()
        self._states: dict[str, StateT] = {}

    def change(self, name: str, work: Callable[[StateT], T]) -> T:
        """Change a state; see `Ledger.change`. Never waits for another process."""
        with self._lock:
            if name not in self._states:
                self._forget_idle()
                self._states[name] = self._new()
            return work(self._states[name])

    async def achange(
        self,
        name: str,
        work: Callable[[StateT], T],
        *,
        undo: Callable[[StateT, T], object] | None = None,  # noqa: ARG002
    ) -> T:
        """Change a state immediately, without any chance of cancellation; see `Ledger.achange`."""
        return self.change(name, work)

    async def anote(self, name: str, work: Callable[[StateT], T]) -> None:
        """See `Ledger.anote`."""
        self.change(name, work)

    def close(self) -> None:
        """Do nothing, because nothing is open."""

    def _forget_idle(self) -> None:
        if self._is_idle is not None and len(self._states) >= self._MOST_IDLE:
            self._states = {name: state for name, state in self._states.items() if not self._is_idle(state)}


class FileLedger(Generic[StateT]):
    """A ledger shared by all processes on a machine that use the same file.

    The file is opened on first use, and again after a fork.

    Args:
        path: The file.
        new: Creates the state for a new name.
        application_id: The id in the file's header that marks it as the owner's.
        version: The format version of `to_json`.
        owner: The package that owns the file.
        what: The file's contents, for errors: "the file of rate limits".
        patience_s: The time to wait for other threads and processes, in seconds.

    Raises:
        ConfigError: On a change: the file is not this package's, or cannot be read or written. The file is left
            unchanged.
        BusyError: On a change: others used the file the whole time.
    """

    def __init__(
        self,
        path: Path,
        new: type[StateT],
        *,
        application_id: int,
        version: int,
        owner: str,
        what: str,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.path = path
        self._new = new
        self._what = what
        self._patience_s = patience_s
        self._file = OwnFile(path, application_id=application_id, version=version, schema=_SCHEMA, owner=owner)

    def change(self, name: str, work: Callable[[StateT], T]) -> T:
        """See `Ledger.change`."""
        try:
            with self._file.use(patience_s=self._patience_s) as connection, writing(connection):
                row = connection.execute("SELECT content FROM states WHERE name = ?", (name,)).fetchone()
                state = self._read(row[0]) if row else self._new()
                result = work(state)
                connection.execute("REPLACE INTO states VALUES (?, ?)", (name, state.to_json()))
        except (sqlite3.Error, OSError, UnusableFileError, BusyFileError) as error:
            if is_busy(error):
                raise BusyError(
                    f"{self._what} {self.path} was in use by other processes for "
                    f"{self._patience_s:g} s ({error}): try again; "
                    f"if the problem persists, find the process that has the file open, or set another `path`"
                ) from error
            raise ConfigError(
                f"{self._what} {self.path} cannot be used ({error}): move it away, or set another `path`"
            ) from error
        return result

    async def achange(
        self, name: str, work: Callable[[StateT], T], *, undo: Callable[[StateT, T], object] | None = None
    ) -> T:
        """Change a state in a worker thread; see `Ledger.achange`."""
        change = _Change(self, name, work)
        try:
            return await sync.in_worker(change.make)
        except asyncio.CancelledError:
            if undo is not None:
                sync.in_background(lambda: change.take_back(undo))
            raise

    async def anote(self, name: str, work: Callable[[StateT], T]) -> None:
        """Record a change in a worker thread; see `Ledger.anote`."""
        errors: list[JackfieldError] = []

        def make() -> None:
            try:
                self.change(name, work)
            except JackfieldError as error:
                errors.append(error)

        await asyncio.wrap_future(sync.in_background(make))
        if errors:
            raise errors.pop()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read(self, text: str) -> StateT:
        try:
            return self._new.from_json(text)
        except ValueError as error:
            raise UnusableFileError(str(error)) from error


class _Change(Generic[StateT, T]):
    """A change that runs in a worker thread and is undone if its caller no longer waits."""

    def __init__(self, ledger: FileLedger[StateT], name: str, work: Callable[[StateT], T]) -> None:
        self._ledger = ledger
        self._name = name
        self._work = work
        self._turn = threading.Lock()
        self._is_given_up = False
        self._results: list[T] = []

    def make(self) -> T:
        with self._turn:
            if self._is_given_up:
                raise asyncio.CancelledError  # no caller is left to receive it
            result = self._ledger.change(self._name, self._work)
            self._results.append(result)
            return result

    def take_back(self, undo: Callable[[StateT, T], object]) -> None:
        with self._turn:
            self._is_given_up = True
            if self._results:
                self._ledger.change(self._name, lambda state: undo(state, self._results[0]))
