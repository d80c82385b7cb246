"""An SQLite file that belongs to one plugin, used by many threads and processes at once.

A file of somebody else, or of another version, is left as it is.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class UnusableFileError(ValueError):
    """The file is another program's, or of another version."""


class OwnFile:
    """A database that is made, and opened, at first use. It may be used from any thread, and after a fork.

    Args:
        path: The file; it and its folder are made if they are missing, for the user's eyes only.
        application_id: What marks it as the owner's, in its header.
        version: Of the schema.
        schema: The statements that make it.
        owner: Who it belongs to, for errors: a distribution.
    """

    def __init__(self, path: Path, *, application_id: int, version: int, schema: str, owner: str) -> None:
        self.path = path
        self._application_id = application_id
        self._version = version
        self._schema = schema
        self._owner = owner
        # By process id. A child must neither use nor close what its parent has open, nor take its lock.
        self._by_process: dict[int, _Open] = {}

    @contextmanager
    def use(self, *, patience_s: float) -> Iterator[sqlite3.Connection]:
        """The connection, for this thread alone; it commits by itself, see `writing`.

        Args:
            patience_s: How long to wait for another process that writes, in seconds.

        Raises:
            sqlite3.Error, OSError: SQLite or the machine cannot; see `is_busy`.
            UnusableFileError: The file is none of the owner's.
        """
        mine = self._mine()
        with mine.lock:
            if mine.connection is None:
                mine.connection = self._opened(patience_s)
            mine.connection.execute(f"PRAGMA busy_timeout = {int(patience_s * 1000)}")
            yield mine.connection

    def close(self) -> None:
        """Close it in this process; it is opened again when it is needed."""
        mine = self._mine()
        with mine.lock:
            connection, mine.connection = mine.connection, None
            if connection is not None:
                connection.close()

    def _mine(self) -> _Open:
        pid = os.getpid()
        return self._by_process.get(pid) or self._by_process.setdefault(pid, _Open())

    def _opened(self, patience_s: float) -> sqlite3.Connection:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # SQLite would take the mode from the umask; its companions, -wal and -shm, take theirs from this file.
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        connection = sqlite3.connect(self.path, timeout=patience_s, isolation_level=None, check_same_thread=False)
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Make sure the file is the owner's before anything is changed in it."""
        if _is_empty(connection):
            with writing(connection):
                if _is_empty(connection):  # another process may have been quicker
                    for statement in _statements(self._schema):
                        connection.execute(statement)
                    connection.execute(f"PRAGMA user_version = {self._version}")
                    connection.execute(f"PRAGMA application_id = {self._application_id}")
        if _number(connection, "application_id") != self._application_id:
            raise UnusableFileError("it is a database of another program")
        version = _number(connection, "user_version")
        if version != self._version:
            raise UnusableFileError(f"it has version {version}, and this {self._owner} reads {self._version}")
        _let_readers_and_a_writer_in(connection)
        # When the machine fails, the last entries may be lost; the file stays whole.
        connection.execute("PRAGMA synchronous = NORMAL")


class _Open:
    """The file as one process has it open."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.connection: sqlite3.Connection | None = None


@contextmanager
def writing(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction that has the right to write from its beginning, so that none fails half-way for want of it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # some failures have rolled it back already
            connection.execute("ROLLBACK")
        raise


def is_busy(error: Exception) -> bool:
    """Whether an error says that another process writes at this moment."""
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode in (
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
    )


def _let_readers_and_a_writer_in(connection: sqlite3.Connection) -> None:
    """Switch to the write-ahead log, in which nobody who reads waits for somebody who writes."""
    try:
        connection.execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError as error:
        # SQLite does not wait here. Somebody else has the file open, who switches it; this connection notices.
        if not is_busy(error):
            raise


def _is_empty(connection: sqlite3.Connection) -> bool:
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return bool(tables == 0 and _number(connection, "application_id") == 0)


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    (number,) = connection.execute(f"PRAGMA {pragma}").fetchone()
    return int(number)


def _statements(script: str) -> list[str]:
    """The statements of a script; `executescript` would end the transaction."""
    statements, begun = [], ""
    for line in script.strip().splitlines():
        begun += line + "\n"
        if sqlite3.complete_statement(begun):
            statements.append(begun)
            begun = ""
    return statements
