"""Small states by name that many change at once: the threads of a process, or all processes that name a file."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, Protocol, Self, TypeVar

from jackfield.errors import ConfigError
from jackfield.ownfile import OwnFile, UnusableFileError, is_busy, writing

T = TypeVar("T")

_SCHEMA = "CREATE TABLE states (name TEXT PRIMARY KEY, content TEXT NOT NULL);"
_PATIENCE_S = 5.0  # a transaction takes less than a millisecond, but the disk may be busy with something else


class BusyError(Exception):
    """Another process writes at this moment."""


class State(Protocol):
    """What is kept of one name. It is changed by one caller at a time."""

    def to_json(self) -> str:
        """As a text, for `from_json`."""

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What `to_json` wrote.

        Raises:
            ValueError: It is something else.
        """


StateT = TypeVar("StateT", bound=State)
StateT_co = TypeVar("StateT_co", bound=State, covariant=True)


class Ledger(Protocol[StateT_co]):
    """Keeps states by name. All methods may be called from any thread."""

    def change(self, name: str, work: Callable[[StateT_co], T], *, patient: bool = True) -> T:
        """Let `work` look at a state and change it, while nobody else does.

        Args:
            name: Whose state; a new one if there is none.
            work: Quick, and without a wait.
            patient: Wait for another process that writes; without it, `BusyError` is raised.
        """

    def close(self) -> None:
        """Let go of what is open; it is opened again when it is needed."""


class MemoryLedger(Generic[StateT]):
    """For one process.

    Args:
        new: Makes the state of a name that has none.
        is_idle: Whether a state says no more than a new one; if given, those are forgotten where there are many.
    """

    _MOST_IDLE = 64

    def __init__(self, new: Callable[[], StateT], *, is_idle: Callable[[StateT], bool] | None = None) -> None:
        self._new = new
        self._is_idle = is_idle
        self._lock = threading.Lock()
        self._states: dict[str, StateT] = {}

    def change(self, name: str, work: Callable[[StateT], T], *, patient: bool = True) -> T:  # noqa: ARG002
        """As `Ledger.change`; there is nobody to wait for."""
        with self._lock:
            if name not in self._states:
                self._forget_idle()
                self._states[name] = self._new()
            return work(self._states[name])

    def close(self) -> None:
        """As `Ledger.close`: nothing is open."""

    def _forget_idle(self) -> None:
        if self._is_idle is not None and len(self._states) >= self._MOST_IDLE:
            self._states = {name: state for name, state in self._states.items() if not self._is_idle(state)}


class FileLedger(Generic[StateT]):
    """For all processes of a machine that name the file. It is opened at first use, also after a fork.

    Args:
        path: The file.
        new: Makes the state of a name that has none.
        application_id: What marks the file as the owner's.
        version: Of what `to_json` writes.
        owner: Who it belongs to: a distribution.
        what: What the file holds, for errors: "the file of rate limits".

    Raises:
        ConfigError: By `change`: the file is somebody else's, or cannot be read or written. It is left as it is.
    """

    def __init__(
        self, path: Path, new: type[StateT], *, application_id: int, version: int, owner: str, what: str
    ) -> None:
        self.path = path
        self._new = new
        self._what = what
        self._file = OwnFile(path, application_id=application_id, version=version, schema=_SCHEMA, owner=owner)

    def change(self, name: str, work: Callable[[StateT], T], *, patient: bool = True) -> T:
        """As `Ledger.change`."""
        try:
            with self._file.use(patience_s=_PATIENCE_S if patient else 0) as connection, writing(connection):
                row = connection.execute("SELECT content FROM states WHERE name = ?", (name,)).fetchone()
                state = self._read(row[0]) if row else self._new()
                result = work(state)
                connection.execute("REPLACE INTO states VALUES (?, ?)", (name, state.to_json()))
        except (sqlite3.Error, OSError, UnusableFileError) as error:
            if not patient and is_busy(error):
                raise BusyError from error
            raise ConfigError(
                f"{self._what} {self.path} cannot be used ({error}): move it away, or set another `path`"
            ) from error
        return result

    def close(self) -> None:
        """As `Ledger.close`."""
        self._file.close()

    def _read(self, text: str) -> StateT:
        try:
            return self._new.from_json(text)
        except ValueError as error:
            raise UnusableFileError(str(error)) from error
