"""Cache entries in an SQLite file shared by many threads and processes.

A cache must never make a call fail or damage a file that is not its own. An unusable file is left unchanged, and one
warning is logged.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from jackfield_local_state.ownfile import BusyFileError, OwnFile, UnusableFileError, is_busy, writing

T = TypeVar("T")

SCHEMA_VERSION = 1
BUSY_S = 2.0
REST_S = 10.0  # pause after a failure of the file, so that not every call waits for it
TOUCH_S = 60.0  # least age of the recorded use before a new one is recorded

_SCHEMA = """
CREATE TABLE answers (
    key BLOB PRIMARY KEY, events BLOB NOT NULL, size_bytes INTEGER NOT NULL,
    made_at REAL NOT NULL, used_at REAL NOT NULL, expires_at REAL
);
CREATE INDEX by_use ON answers (used_at);
CREATE INDEX by_expiry ON answers (expires_at) WHERE expires_at IS NOT NULL;
CREATE TABLE total (size_bytes INTEGER NOT NULL);
INSERT INTO total VALUES (0);
CREATE TRIGGER added AFTER INSERT ON answers BEGIN UPDATE total SET size_bytes = size_bytes + NEW.size_bytes; END;
CREATE TRIGGER removed AFTER DELETE ON answers BEGIN UPDATE total SET size_bytes = size_bytes - OLD.size_bytes; END;
"""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Kept:
    """A cached value and its creation time, in seconds since 1970 (UTC)."""

    content: bytes
    made_at: float


class CacheFile:
    """Stores bytes by key, up to a total size and a maximum age.

    The file is opened on first use. All methods may be called from any thread, and after a fork.

    Args:
        path: The file. If missing, the file and its folder are created, readable only by the user.
        application_id: The id in the file's header that marks it as the owner's.
        owner: The package that owns the file, for errors.
        what: The cache's contents, for warnings.
        instead: The consequence of working without the cache, for warnings.
        ttl_s: The maximum age of an entry, in seconds. None for no limit.
        max_bytes: The maximum total size of keys and contents. The least recently used entries are evicted first.
        clock: Returns the time in seconds since 1970 (UTC).
        busy_s: The time to wait while another process writes, in seconds.
    """

    def __init__(
        self,
        path: Path,
        *,
        application_id: int,
        owner: str,
        what: str,
        instead: str,
        ttl_s: float | None,
        max_bytes: int,
        clock: Callable[[], float] = time.time,
        busy_s: float = BUSY_S,
    ) -> None:
        self.path = path
        self._ttl_s = ttl_s
        self._max_bytes = max_bytes
        self._clock = clock
        self._busy_s = busy_s
        self._what = what
        self._instead = instead
        self._file = OwnFile(path, application_id=application_id, version=SCHEMA_VERSION, schema=_SCHEMA, owner=owner)
        self._failed_at: float | None = None
        self._warned_of: set[str] = set()

    def get(self, key: bytes) -> Kept | None:
        """Return a key's entry, or None if it is missing or expired, or if the file is unusable."""
        return self._guarded(lambda connection: self._get(connection, key))

    def put(self, key: bytes, content: bytes) -> None:
        """Add an entry, and delete expired and surplus ones. Does nothing if the file is unusable."""
        self._guarded(lambda connection: self._put(connection, key, content))

    def close(self) -> None:
        """Close the file, which is reopened when needed."""
        self._file.close()

    def _get(self, connection: sqlite3.Connection, key: bytes) -> Kept | None:
        now = self._clock()
        row = connection.execute(
            "SELECT events, made_at, used_at FROM answers WHERE key = ? AND (expires_at IS NULL OR expires_at > ?)",
            (key, now),
        ).fetchone()
        if row is None:
            return None
        content, made_at, used_at = row
        if self._ttl_s is not None and made_at + self._ttl_s <= now:  # its writer may have had a longer ttl
            return None
        if now - used_at >= TOUCH_S:
            self._touch(connection, key, now)
        return Kept(content, made_at)

    def _touch(self, connection: sqlite3.Connection, key: bytes, now: float) -> None:
        """Record an entry's use, unless another process is writing, because a cache hit must not wait."""
        connection.execute("PRAGMA busy_timeout = 0")
        try:
            connection.execute("UPDATE answers SET used_at = ? WHERE key = ?", (now, key))
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
        finally:  # the next write waits again
            connection.execute(f"PRAGMA busy_timeout = {int(self._busy_s * 1000)}")

    def _put(self, connection: sqlite3.Connection, key: bytes, content: bytes) -> None:
        size_bytes = len(key) + len(content)
        if size_bytes > self._max_bytes:
            return  # it would evict all the others, and then itself
        now = self._clock()
        expires_at = None if self._ttl_s is None else now + self._ttl_s
        with writing(connection):
            # Not INSERT OR REPLACE, which deletes without the trigger that counts.
            connection.execute("DELETE FROM answers WHERE key = ? OR expires_at <= ?", (key, now))
            self._make_room(connection, size_bytes)
            connection.execute(
                "INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?)", (key, content, size_bytes, now, now, expires_at)
            )

    def _make_room(self, connection: sqlite3.Connection, size_bytes: int) -> None:
        (total,) = connection.execute("SELECT size_bytes FROM total").fetchone()
        excess = total + size_bytes - self._max_bytes
        oldest = connection.execute("SELECT rowid, size_bytes FROM answers ORDER BY used_at") if excess > 0 else ()
        leaving = []
        for rowid, freed in oldest:
            if excess <= 0:
                break
            leaving.append((rowid,))
            excess -= freed
        connection.executemany("DELETE FROM answers WHERE rowid = ?", leaving)

    def _guarded(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        if self._failed_at is not None and abs(self._clock() - self._failed_at) < REST_S:
            return None  # it failed a moment ago, so leave it alone
        try:
            with self._file.use(patience_s=self._busy_s) as connection:
                return work(connection)
        except (sqlite3.Error, OSError, UnusableFileError, BusyFileError) as error:
            self._failed(error)
            return None

    def _failed(self, error: Exception) -> None:
        """Record a failure. After a pause, the next use starts over."""
        self._failed_at = self._clock()
        if is_busy(error):
            what, advice = "in use by other processes", "It will be retried shortly"
        else:
            self._file.close()
            what, advice = "not usable", "The file was left unchanged: move it away, or set another `path`"
        if what not in self._warned_of:
            self._warned_of.add(what)
            _log.warning(
                "the cache of %s in %s is %s (%s); %s. %s", self._what, self.path, what, error, self._instead, advice
            )
