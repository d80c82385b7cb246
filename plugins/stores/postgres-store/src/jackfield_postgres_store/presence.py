"""Use advisory locks to tell other processes that this process is alive and which runs it has released.

All locks belong to one connection, and the server releases them when that connection closes. If the connection drops
while the process is still alive (a server restart, a failover, an idle timeout), a thread reconnects and locks the same
name again. Until then, other processes may take over its runs; the hold number prevents this process from writing to
runs that were taken over.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from dataclasses import dataclass, field

from jackfield.errors import ToolServiceError
from jackfield_postgres import Connection, Database, LostConnectionError, OwnConnection

LOOK_EVERY_S = 1.0
"""Interval between connection checks, which also keep the connection from going idle."""
_RELEASED_IN_S = 1.0
_KEPT_S = 60.0  # by then, readers of the old row have checked the lock
_OWNER = "hashtextextended(:owner, 0)"
_RELEASED = "hashtextextended(CAST(:owner AS text) || ' ' || CAST(:run_id AS text) || ' ' || CAST(:hold AS text), 0)"

# An owner whose name cannot be locked is alive. The lock is shared, so that concurrent checks do not interfere with
# each other.
IS_ALONE = f"pg_try_advisory_xact_lock_shared({_OWNER})"
"""SQL condition: no session holds the owner's lock."""
IS_FREE = f"({IS_ALONE} OR NOT pg_try_advisory_xact_lock_shared({_RELEASED}))"
"""SQL condition: the owner is gone or has released the run."""
# Only an old session of this process can hold its name, if the server has not noticed the session's end yet.
_END_OLD_SESSION = (
    "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' AND granted "  # noqa: S608
    f"AND pid <> pg_backend_pid() AND ((classid::bigint << 32) | objid::bigint) = {_OWNER}"
)
_WRITE_RELEASE = "UPDATE {table} SET owner = NULL WHERE run_id = :run_id AND hold = :hold AND owner = :owner"


@dataclass(eq=False)
class _Release:
    """A released run that may still be marked as held in the table."""

    run_id: str
    hold: int
    is_locked: bool = False
    written_at: float = 0.0
    done: threading.Event = field(default_factory=threading.Event)


class Presence:
    """The name under which this process owns its runs, and the connection that holds the lock on that name.

    Args:
        database: The database to connect to.
        table: The runs table, qualified with its schema.
    """

    def __init__(self, database: Database, table: str) -> None:
        self.current = ""
        self._database, self._table = database, table
        self._process = 0
        self._connection: OwnConnection | None = None
        self._releases: list[_Release] = []
        self._turn = threading.Lock()
        self._wake = threading.Event()
        self._is_closed = threading.Event()

    def name(self) -> str:
        """Return the locked owner name, which changes in child processes and after `close`.

        Raises:
            LostConnectionError: The server cannot be reached.
        """
        if self._process != os.getpid():  # locks, threads and connections belong to the parent
            self._turn, self._wake, self._is_closed = threading.Lock(), threading.Event(), threading.Event()
            self._process, self._connection, self._releases, self.current = os.getpid(), None, [], ""
        with self._turn:
            if not self.current:
                self.current = uuid.uuid4().hex
                self._is_closed = threading.Event()
                threading.Thread(
                    target=self._keep, args=(self._is_closed,), name="jackfield-postgres-presence", daemon=True
                ).start()
            if self._connection is None:
                self._connect()
            return self.current

    def renew(self) -> None:
        """Lock the name again, after other processes may have seen it unlocked.

        Raises:
            ToolServiceError: The name cannot be locked at the moment.
        """
        with self._turn:
            if self._connection is None:
                self._connect()
                return
            try:
                self._lock(self._connection)
            except LostConnectionError:
                self._disconnect()
                self._connect()

    def release(self, run_id: str, hold: int) -> None:
        """Announce that a run is free, even if the table still marks it as held.

        If the server is unreachable, the run is announced after reconnecting.
        """
        if self._process != os.getpid() or not self.current:
            return
        release = _Release(run_id, hold)
        self._releases.append(release)
        self._wake.set()
        release.done.wait(_RELEASED_IN_S)

    def close(self) -> None:
        """Release all holds and close the connection."""
        if self._process == os.getpid():
            with self._turn:
                self.stop()
                self._disconnect()

    def stop(self) -> None:
        """Tell the thread to exit, which releases all holds, but do not wait for it."""
        self.current = ""
        self._releases.clear()
        self._is_closed.set()
        self._wake.set()

    def _keep(self, is_closed: threading.Event) -> None:
        """Keep the name locked and announce released runs. This is the thread's target."""
        while not is_closed.is_set():
            self._wake.wait(LOOK_EVERY_S)
            self._wake.clear()
            with self._turn:
                if is_closed.is_set():
                    break
                try:
                    if self._connection is None:
                        self._connect()
                    if self._connection is not None:
                        self._publish(self._connection)
                except LostConnectionError:
                    self._disconnect()
                except ToolServiceError:  # such as too many connections; the next check may succeed
                    pass
        with self._turn:
            if is_closed is self._is_closed:
                self._disconnect()

    def _publish(self, connection: Connection) -> None:
        connection.run("SELECT 1")  # servers may terminate idle sessions
        releases = [*self._releases]
        for release in releases:
            self._lock_release(connection, release)
        for release in releases:
            values = {"owner": self.current, "run_id": release.run_id, "hold": release.hold}
            if not release.written_at:
                try:
                    connection.run(_WRITE_RELEASE.format(table=self._table), **values)
                except LostConnectionError:
                    raise
                except ToolServiceError:  # the locks already publish the release
                    return
                release.written_at = time.monotonic()
            elif time.monotonic() - release.written_at > _KEPT_S:
                connection.run(f"SELECT pg_advisory_unlock({_RELEASED})", **values)
                self._releases.remove(release)

    def _lock_release(self, connection: Connection, release: _Release) -> None:
        if not release.is_locked:
            values = {"owner": self.current, "run_id": release.run_id, "hold": release.hold}
            connection.run(f"SELECT pg_try_advisory_lock({_RELEASED})", **values)
            release.is_locked = True
            release.done.set()

    def _connect(self) -> None:
        connection = self._database.connect()
        try:
            # Released runs come first; once the name is locked, they would appear held again.
            for release in self._releases:
                release.is_locked = False
                self._lock_release(connection, release)
            self._lock(connection)
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    def _lock(self, connection: Connection) -> None:
        """Lock the name. Locking it again in the same session is harmless."""
        for attempt in range(20):
            [[is_locked]] = connection.run(f"SELECT pg_try_advisory_lock({_OWNER})", owner=self.current)
            if is_locked:
                return
            if attempt == 5:  # concurrent checks would have finished by now
                connection.run(_END_OLD_SESSION, owner=self.current)
            time.sleep(0.005 * (attempt + 1))
        raise LostConnectionError(
            "a previous session of this process still holds the lock: the server has not yet detected "
            "that the session ended"
        )

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
