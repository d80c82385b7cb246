"""Small named states, changed concurrently by threads of a process or by all processes that share a file."""

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
"""A transaction takes less than a millisecond, but others may be queued, or the disk may be busy."""


class BusyError(JackfieldError):
    """Others used the file during the whole wait. The file itself is fine."""


class State(Protocol):
    """The state for one name, changed by one caller at a time."""

    def to_json(self) -> str:
        """Return the state as text, for `from_json`."""

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the state that `to_json` wrote.

        Raises:
            ValueError: The text is something else.
        """


StateT = TypeVar("StateT", bound=State)
StateT_co = TypeVar("StateT_co", bound=State, covariant=True)


class Ledger(Protocol[StateT_co]):
    """Keeps states by name. All methods may be called from any thread."""

    def change(self, name: str, work: Callable[[StateT_co], T]) -> T:
        """Run `work` with exclusive access to a state.

        It may block while others hold the state; on an event loop, call `achange`.

        Args:
            name: The name of the state; a new state is made if there is none.
            work: Must be quick, and must not block.
        """

    async def achange(
        self, name: str, work: Callable[[StateT_co], T], *, undo: Callable[[StateT_co, T], object] | None = None
    ) -> T:
        """Like `change`, without blocking the event loop.

        Args:
            name, work: As for `change`.
            undo: Reverts `work`, given its result, if the caller was cancelled and never received it.
        """

    async def anote(self, name: str, work: Callable[[StateT_co], T]) -> None:
        """Like `achange`, for something that has already happened: it is recorded even if the caller is cancelled."""

    def close(self) -> None:
        """Close everything that is open; it is opened again when needed."""


class MemoryLedger(Generic[StateT]):
    """A ledger for one process.

    Args:
        new: Makes the state of a name that has none.
        is_idle: Returns True for a state equivalent to a new one; if given, such states are dropped when there are
            many.
    """

    _MOST_IDLE = 64

    def __init__(self, new: Callable[[], StateT], *, is_idle: Callable[[StateT], bool] | None = None) -> None:
        self._new = new
        self._is_idle = is_idle
        self._lock = threading.Lock()
        self._states: dict[str, StateT] = {}

    def change(self, name: str, work: Callable[[StateT], T]) -> T:
        """Like `Ledger.change`, without ever waiting."""
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
        """Like `Ledger.achange`: done at once, so it cannot be cancelled halfway."""
        return self.change(name, work)

    async def anote(self, name: str, work: Callable[[StateT], T]) -> None:
        """Note a change as `Ledger.anote` does."""
        self.change(name, work)

    def close(self) -> None:
        """Do nothing, because nothing is open."""

    def _forget_idle(self) -> None:
        if self._is_idle is not None and len(self._states) >= self._MOST_IDLE:
            self._states = {name: state for name, state in self._states.items() if not self._is_idle(state)}


class FileLedger(Generic[StateT]):
    """Shared by all processes of a machine that name the file. It is opened at first use, and again after a fork.

    Args:
        path: The file.
        new: Makes the state of a name that has none.
        application_id: The mark that identifies the file as the owner's.
        version: The version of the output of `to_json`.
        owner: The package that it belongs to.
        what: The contents of the file, for errors: "the file of rate limits".
        patience_s: The time that a change waits for other threads and processes, in seconds.

    Raises:
        ConfigError: From a change: the file is not this package's, or cannot be read or written. It is left as it is.
        BusyError: From a change: others used the file the whole time.
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
        """Change a state as `Ledger.change` does."""
        try:
            with self._file.use(patience_s=self._patience_s) as connection, writing(connection):
                row = connection.execute("SELECT content FROM states WHERE name = ?", (name,)).fetchone()
                state = self._read(row[0]) if row else self._new()
                result = work(state)
                connection.execute("REPLACE INTO states VALUES (?, ?)", (name, state.to_json()))
        except (sqlite3.Error, OSError, UnusableFileError, BusyFileError) as error:
            if is_busy(error):
                raise BusyError(
                    f"{self._what} {self.path} was in use by others for {self._patience_s:g} s ({error}): try again; "
                    f"if this continues, find the process that has the file open, or set another `path`"
                ) from error
            raise ConfigError(
                f"{self._what} {self.path} cannot be used ({error}): move it away, or set another `path`"
            ) from error
        return result

    async def achange(
        self, name: str, work: Callable[[StateT], T], *, undo: Callable[[StateT, T], object] | None = None
    ) -> T:
        """Change a state as `Ledger.achange` does, in a worker thread."""
        change = _Change(self, name, work)
        try:
            return await sync.in_worker(change.make)
        except asyncio.CancelledError:
            if undo is not None:
                sync.in_background(lambda: change.take_back(undo))
            raise

    async def anote(self, name: str, work: Callable[[StateT], T]) -> None:
        """Note a change as `Ledger.anote` does, in a worker thread."""
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
    """Change a state in a worker thread, and undo the change if its caller no longer waits."""

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
