"""Open an SQLite file owned by one plugin, for many threads and processes at once.

A file that belongs to another program or version is left unchanged. Only the user can read the file: its mode is set on
it and on SQLite's companion files, even if another program created them.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


class UnusableFileError(ValueError):
    """The file is a link, has another version, or belongs to another program or user."""


class OtherVersionError(UnusableFileError):
    """The file has another schema version."""


class BusyFileError(Exception):
    """Another thread of this process has been using the file for too long."""


class OwnFile:
    """A database that is opened on first use, and created if missing. May be used from any thread, and after a fork.

    Args:
        path: The file. If missing, the file and its folder are created, readable only by the user.
        application_id: The id in the file's header that marks it as the owner's.
        version: The schema version.
        schema: The SQL statements that create the schema.
        owner: The package that owns the file, for errors.
        on_creation: Called with the connection when this process has just created the tables.
    """

    def __init__(
        self,
        path: Path,
        *,
        application_id: int,
        version: int,
        schema: str,
        owner: str,
        on_creation: Callable[[sqlite3.Connection], None] | None = None,
    ) -> None:
        self.path = path
        self._application_id = application_id
        self._version = version
        self._schema = schema
        self._owner = owner
        self._on_creation = on_creation
        # By process id. A child must neither use nor close its parent's connection, nor take its lock.
        self._by_process: dict[int, _Open] = {}

    @contextmanager
    def use(self, *, patience_s: float) -> Iterator[sqlite3.Connection]:
        """Yield this process's connection, locked for the current thread. Blocks while others use the file.

        Each statement is committed on its own, except within `writing`.

        Args:
            patience_s: The time to wait for other threads and processes that use the file, in seconds.

        Raises:
            sqlite3.Error, OSError, BusyFileError: SQLite or the system failed; see `is_busy`.
            UnusableFileError: The file is not the owner's.
        """
        mine = self._mine()
        ends_at = time.monotonic() + patience_s
        if not mine.lock.acquire(timeout=patience_s):
            raise BusyFileError(f"another thread has been using it for {patience_s:g} s")
        try:
            left_s = max(0.0, ends_at - time.monotonic())
            if mine.connection is None:
                mine.connection = self._opened(left_s)
            mine.wait_at_most(int(left_s * 1000))
            yield mine.connection
        finally:
            mine.lock.release()

    def close(self) -> None:
        """Close this process's connection, which is reopened when needed."""
        mine = self._mine()
        with mine.lock:
            connection, mine.connection = mine.connection, None
            mine.waits_ms = -1
            if connection is not None:
                connection.close()

    def _mine(self) -> _Open:
        pid = os.getpid()
        return self._by_process.get(pid) or self._by_process.setdefault(pid, _Open())

    def _opened(self, patience_s: float) -> sqlite3.Connection:
        with _turn():
            try:
                _make_private(self.path)
            except UnusableFileError:
                raise
            except ValueError as error:  # a NUL, a lone surrogate, or nothing after the last slash
                raise UnusableFileError("the path does not refer to a file") from error
        connection = sqlite3.connect(self.path, timeout=patience_s, isolation_level=None, check_same_thread=False)
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Create the schema in a new file, and check that an existing file is the owner's before changing anything."""
        if _is_empty(connection):
            with writing(connection):
                if _is_empty(connection):  # another process may have been quicker
                    for statement in _statements(self._schema):
                        connection.execute(statement)
                    connection.execute(f"PRAGMA user_version = {self._version}")
                    connection.execute(f"PRAGMA application_id = {self._application_id}")
                    if self._on_creation is not None:
                        self._on_creation(connection)
        if _number(connection, "application_id") != self._application_id:
            raise UnusableFileError("it is a database of another program")
        version = _number(connection, "user_version")
        if version != self._version:
            raise OtherVersionError(
                f"it has version {version}, but this {self._owner} only reads version {self._version}"
            )
        _let_readers_and_a_writer_in(connection)
        # If the machine fails, the last entries may be lost; the file stays intact.
        connection.execute("PRAGMA synchronous = NORMAL")


def _make_private(path: Path) -> None:
    """Ensure that the file exists, and that only the user can read it and its companions.

    Raises:
        UnusableFileError: The file or a companion is a link, is not a regular file, or belongs to another user.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        # SQLite would take the mode from the umask; its companions take theirs from this file. Only a file that is not
        # open may be opened here, because closing it would drop the locks of all this process's connections to it.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        for one in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm", "-journal"))):
            _make_one_private(one)


def _make_one_private(path: Path) -> None:
    try:
        found = path.lstat()
    except FileNotFoundError:  # a companion that does not exist, or no longer does
        return
    if stat.S_ISLNK(found.st_mode):
        raise UnusableFileError(f"{path.name} is a symbolic link, and links are not followed: specify the file itself")
    if not stat.S_ISREG(found.st_mode):
        raise UnusableFileError(f"{path.name} is not a file")
    if os.name == "posix":
        _let_nobody_else_read(path, found)


def _let_nobody_else_read(path: Path, found: os.stat_result) -> None:
    if found.st_uid != os.geteuid():
        raise UnusableFileError(f"{path.name} is owned by another user (UID {found.st_uid})")
    if stat.S_IMODE(found.st_mode) & 0o077:
        path.chmod(0o600)


def _turn() -> threading.Lock:
    pid = os.getpid()
    return _turns.get(pid) or _turns.setdefault(pid, threading.Lock())


# By process id, as above: one thread at a time checks for a file and creates it.
_turns: dict[int, threading.Lock] = {}


class _Open:
    """The file as opened by one process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.connection: sqlite3.Connection | None = None
        self.waits_ms = -1

    def wait_at_most(self, patience_ms: int) -> None:
        """Set how long statements wait for other processes. Executes nothing if that is unchanged."""
        if self.connection is not None and patience_ms != self.waits_ms:
            self.connection.execute(f"PRAGMA busy_timeout = {patience_ms}")
            self.waits_ms = patience_ms


@contextmanager
def writing(connection: sqlite3.Connection) -> Iterator[None]:
    """Run a transaction that takes the write lock at the start, so that it cannot fail to get it halfway."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # some failures have rolled it back already
            connection.execute("ROLLBACK")
        raise


def is_busy(error: Exception) -> bool:
    """Return True if the error only means that the file is currently in use.

    The low eight bits of SQLite's error code say that the file is busy; the higher bits say why (a snapshot …).
    """
    if isinstance(error, sqlite3.Error):
        # An error of the module itself has no code.
        return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    return isinstance(error, BusyFileError)


def is_full(error: Exception) -> bool:
    """Return True if the disk, or the user's share of it, is full."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code == sqlite3.SQLITE_FULL or getattr(error, "errno", 0) in (errno.ENOSPC, errno.EDQUOT)


def _let_readers_and_a_writer_in(connection: sqlite3.Connection) -> None:
    """Switch to the write-ahead log, with which readers do not wait for writers."""
    try:
        connection.execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError as error:
        # SQLite does not wait here. Another connection has the file open and switches it; this one notices.
        if not is_busy(error):
            raise


def _is_empty(connection: sqlite3.Connection) -> bool:
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return bool(tables == 0 and _number(connection, "application_id") == 0)


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    (number,) = connection.execute(f"PRAGMA {pragma}").fetchone()
    return int(number)


def _statements(script: str) -> list[str]:
    """Split a script into statements, because `executescript` would end the transaction."""
    statements, begun = [], ""
    for line in script.strip().splitlines():
        begun += line + "\n"
        if sqlite3.complete_statement(begun):
            statements.append(begun)
            begun = ""
    return statements
