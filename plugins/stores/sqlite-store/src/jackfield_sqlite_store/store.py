"""Store run records in a single SQLite file."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import Field

from jackfield import sync
from jackfield.config import Config, PathText
from jackfield.consent import MakesCall, Request, consent_path, content_hash, is_agreed, record_consent
from jackfield.errors import ConfigError, RunBusyError, RunNotFoundError, StoreError, StoreUnavailableError
from jackfield.stores import RUNNING, Signal, StoredRun
from jackfield_local_state.ownfile import (
    BusyFileError,
    OtherVersionError,
    OwnFile,
    UnusableFileError,
    is_busy,
    is_full,
    writing,
)
from jackfield_records import RecordingStore, search_words
from jackfield_sqlite_store.entries import LAST, LOSSLESS, join_entries, split_last
from jackfield_sqlite_store.index import can_index, forget_texts, search_query, update_index
from jackfield_sqlite_store.owners import Owner, is_held
from jackfield_sqlite_store.sharing import Sharing, read_first, release_base, share_beginning

T = TypeVar("T")

_DAY_S = 86_400
_RUNS_BETWEEN_CLEANINGS = 100
_LOOK_EVERY_S = 0.05
_SIGNALS_KEPT_S = 60
_SCHEMA = """
CREATE TABLE runs (
    number INTEGER PRIMARY KEY, run_id TEXT NOT NULL UNIQUE, agent TEXT NOT NULL, model TEXT NOT NULL,
    session TEXT NOT NULL, parent TEXT NOT NULL, client TEXT NOT NULL, title TEXT NOT NULL, state TEXT NOT NULL,
    owner TEXT, hold INTEGER NOT NULL,
    began REAL NOT NULL, changed REAL NOT NULL, bytes INTEGER NOT NULL,
    first BLOB, last BLOB, lasts INTEGER NOT NULL DEFAULT 0,
    base INTEGER, shared INTEGER NOT NULL DEFAULT 0, depth INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX of_a_base ON runs (base) WHERE base IS NOT NULL;
CREATE INDEX of_a_session ON runs (session, number) WHERE session <> '';
CREATE INDEX of_a_client ON runs (client, number) WHERE client <> '';
CREATE INDEX that_run ON runs (number) WHERE state = 'running';
CREATE TABLE signals (
    number INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, text TEXT NOT NULL, sent REAL NOT NULL
);
CREATE TABLE entries (run INTEGER NOT NULL, place INTEGER NOT NULL, entry BLOB NOT NULL, PRIMARY KEY (run, place))
    WITHOUT ROWID;
CREATE TABLE origin (mark TEXT NOT NULL);
INSERT INTO origin VALUES (lower(hex(randomblob(16))));
"""
# The first entry and the last ones are stored in the run's own row if they are small. A run with one short answer then
# takes two statements that change three pages, rather than eight that change five.
_SMALL = 1500
_COLUMNS = f"run_id, agent, model, session, parent, client, title, state, owner, began, changed, {LAST}"
_ONE_RUN = f"SELECT {_COLUMNS}, number, first, last, base FROM runs WHERE run_id = ?"  # noqa: S608 - constants only
_PLACE = f"SELECT number, owner, hold, {LAST}, bytes, state, last FROM runs WHERE run_id = ?"  # noqa: S608 - constants only
_BEGIN = (
    "INSERT INTO runs (run_id, agent, model, session, parent, client, title, state, owner, hold, began, changed, "
    "bytes, first, base, shared, depth) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?)"
)
_END = (
    "UPDATE runs SET state = ?, changed = ?, bytes = ?, last = ?, lasts = ?, owner = NULL "
    "WHERE number = ? AND hold = ? AND owner = ?"
)
_GO_ON = "UPDATE runs SET state = ?, changed = ? WHERE number = ? AND hold = ? AND owner = ?"
_PAUSES = ("approval_needed", "input_needed")
_IS_HELD = "SELECT 1 FROM runs WHERE number = ? AND hold = ? AND owner = ?"


@dataclass(slots=True)
class _Held:
    """A run held by this process, with its record's length and state."""

    number: int
    hold: int
    owner: str
    place: int
    size: int
    state: str = RUNNING
    process: int = field(default_factory=os.getpid)  # a child does not have its parent's holds


class _Claim:
    """A hold being acquired, possibly in a thread, whose caller may be cancelled in the meantime.

    Attributes:
        held: The hold once it has been written, or None until then.
    """

    def __init__(self) -> None:
        self.held: _Held | None = None
        self._lock = threading.Lock()
        self._is_given_up = False
        self._owner: Owner | None = None
        self._name = ""

    def take(self, owner: Owner) -> str:
        """Acquire the lock that marks the run as held, and return the lock's name."""
        with self._lock:
            self._drop()  # from an attempt that found the file locked
            self._owner, self._name = owner, owner.take()
            if self._is_given_up:
                self._drop()
            return self._name

    def give_up(self) -> None:
        """Release the lock now, or as soon as the thread has acquired it."""
        with self._lock:
            self._is_given_up = True
            self._drop()

    def _drop(self) -> None:
        owner, self._owner = self._owner, None
        if owner is not None:
            owner.drop(self._name)


class SQLiteStoreConfig(Config):
    """File and retention settings."""

    path: PathText | None = Field(
        default=None,
        min_length=1,
        description="The file; jackfield/runs.sqlite below $XDG_DATA_HOME, or ~/.local/share, if unset",
    )
    content: bool = Field(default=True, description="Keep the content of runs; without it, no run can be resumed")
    keep_days: float | None = Field(
        default=None,
        gt=0,
        description="Delete runs this many days after they finish, unless they are waiting for a human; unset: "
        "keep all",
    )
    max_mb: float | None = Field(
        default=None, gt=0, description="Maximum size of all records in MB; the oldest finished runs are deleted first"
    )
    max_run_mb: float = Field(default=256, gt=0, description="Maximum size of one run's record in MB")
    timeout_s: float = Field(
        default=10, gt=0, le=600, description="Maximum time that one step waits for other processes"
    )
    patience_s: float = Field(
        default=30, ge=0, description="Maximum time that a run waits while the file is locked or the disk is full"
    )
    recover: bool = Field(default=False, description="Agents resume their interrupted runs at their first run")
    power_safe: bool = Field(
        default=False, description="Also protect each step against power failures; costs some milliseconds per step"
    )


class SQLiteStore(RecordingStore):
    """Run store in a single file, shared by any number of processes on one machine.

    A hold is an operating-system lock, so it ends with the run or the process and requires no write.
    """

    name = "sqlite"
    reports_writes = True
    config_class = SQLiteStoreConfig
    config: SQLiteStoreConfig

    def __init__(self, cfg: SQLiteStoreConfig | None = None, **settings: Any) -> None:
        super().__init__(cfg, **settings)
        self.content, self.patience_s, self.recover = self.config.content, self.config.patience_s, self.config.recover
        path = Path(self.config.path).expanduser() if self.config.path else _default_path()
        self._path = path
        self._file = OwnFile(
            path,
            application_id=0x4A465253,
            version=6,
            schema=_SCHEMA,
            owner="jackfield-sqlite-store",
            on_creation=self._note_creation,
        )
        self._folder = path.with_name(path.name + "-owners")
        self._owners: dict[int, Owner] = {}  # by process, because a child does not have its parent's holds
        self._held: dict[str, _Held] = {}
        self._until_cleaning = 0

    async def create(self, run: StoredRun, entries: Sequence[str]) -> int:
        """See `Store`. Runs beyond the retention limits are deleted from time to time."""
        if self.config.keep_days or self.config.max_mb:
            self._until_cleaning -= 1
            if self._until_cleaning < 0:
                self._until_cleaning = _RUNS_BETWEEN_CLEANINGS
                await self._in_worker(self._clean)
        return await self._claimed(run.run_id, lambda connection, claim: self._create(connection, run, entries, claim))

    async def foreign_file(self) -> Path | None:
        """See `Store`. The default file in the user's data directory is never foreign."""
        if not self.config.path:
            return None
        origin = await self._used(self._origin)
        return None if is_agreed(origin) else self._path

    def _origin(self, connection: sqlite3.Connection) -> Request:
        """Return the identity that consent for this file refers to: its path and a random mark stored in the file."""
        (mark,) = connection.execute("SELECT mark FROM origin").fetchone()
        place = consent_path(self._path.with_name(f"{self._path.name}#origin"))
        return Request(place, (MakesCall("any tool", "any arguments"),), content_hash({"mark": str(mark).encode()}))

    def _note_creation(self, connection: sqlite3.Connection) -> None:
        if self.config.path:
            # Without a folder for the mark, runs are still recorded; the command line asks before it resumes them.
            with suppress(ConfigError):
                record_consent(self._origin(connection))

    async def hold(self, run_id: str) -> int:
        """See `Store`."""
        return await self._claimed(run_id, lambda connection, claim: self._hold(connection, run_id, claim))

    async def append(self, run_id: str, hold: int, entries: Sequence[str], *, state: str = RUNNING) -> None:
        """See `Store`."""
        held = self._still_held(run_id, hold)
        written = [entry.encode(*LOSSLESS) for entry in entries]
        size = sum(map(len, written))
        is_full = held.size + size > self.config.max_run_mb * 1e6
        if is_full:
            written = []
        if not await self._used(partial(self._append, held=held, written=written, state=state)):
            await self.release(run_id, hold)
            await self._used(lambda connection: _row(connection, _PLACE, run_id))  # raises if the run was deleted
            raise _lost(run_id)
        if state != RUNNING:
            await self.release(run_id, hold)
        if is_full:
            raise StoreError(f"the record of run {run_id} is full: max_run_mb is {self.config.max_run_mb:g}")

    async def release(self, run_id: str, hold: int) -> None:
        """See `Store`. Only the lock is released; the database file does not change."""
        held = self._held.get(run_id)
        if held is not None and held.hold == hold and held.process == os.getpid():
            self._held.pop(run_id, None)
            self._owner().drop(held.owner)

    def _still_held(self, run_id: str, hold: int) -> _Held:
        held = self._held.get(run_id)
        if held is None or held.hold != hold or held.process != os.getpid():
            raise _lost(run_id)
        return held

    async def read(self, run_id: str, *, after: int = 0) -> tuple[StoredRun, list[str]]:
        """See `Store`."""

        def read(connection: sqlite3.Connection) -> tuple[StoredRun, list[str]]:
            connection.execute("BEGIN")  # both from one snapshot
            try:
                row = _row(connection, _ONE_RUN, run_id)
                *columns, number, first, last, base = row
                rows = connection.execute(
                    "SELECT entry FROM entries WHERE run = ? AND place > ? ORDER BY place", (number, after)
                ).fetchall()
                middle = [entry for (entry,) in rows]
                if base is not None and not after:
                    middle = middle[first is None :]
                    first = read_first(connection, number)
            finally:
                connection.execute("COMMIT")
            run = self._run(columns)
            entries = join_entries(None if after else first, middle, last)
            return run, entries[max(0, len(entries) - max(0, run.entries - after)) :]

        return await self._used(read)

    async def runs(
        self, *, session: str | None = None, owner: str | None = None, state: str | None = None, limit: int = 100
    ) -> list[StoredRun]:
        """See `Store`."""
        wanted = {"session": session, "client": owner, "state": state}
        values = {name: _storable(value) for name, value in wanted.items() if value is not None}
        where = " AND ".join([f"{name} = ?" for name in values]) or "1"
        if state == RUNNING:  # the index on these runs is only used for a literal
            where = f"{where} AND state = '{RUNNING}'"
        query = f"SELECT {_COLUMNS} FROM runs WHERE {where} ORDER BY number DESC LIMIT ?"  # noqa: S608 - constants only
        rows = await self._used(lambda connection: connection.execute(query, (*values.values(), limit)).fetchall())
        return [self._run(row) for row in rows]

    async def search(self, text: str, *, owner: str | None = None, limit: int = 20) -> list[StoredRun]:
        """See `Store`. Runs are indexed only when searched, so recording a run costs nothing extra."""
        words = search_words(text)
        if not words:
            return []
        if not await self._used(can_index):
            return await super().search(text, owner=owner, limit=limit)
        while await self._in_worker(update_index):
            pass
        query, values = search_query(_COLUMNS, words, None if owner is None else _storable(owner))
        rows = await self._in_worker(lambda connection: connection.execute(query, (*values, limit)).fetchall())
        return [self._run(row) for row in rows]

    async def rename(self, run_id: str, title: str) -> None:
        """See `Store`."""

        def rename(connection: sqlite3.Connection) -> None:
            with writing(connection):
                _row(connection, "SELECT number FROM runs WHERE run_id = ?", run_id)
                connection.execute("UPDATE runs SET title = ? WHERE run_id = ?", (_storable(title), run_id))

        await self._used(rename)

    async def delete(self, run_id: str) -> None:
        """See `Store`."""

        def delete(connection: sqlite3.Connection) -> None:
            with writing(connection):
                number, owner = _row(connection, "SELECT number, owner FROM runs WHERE run_id = ?", run_id)
                self._check_free(run_id, owner)
                _forget(connection, [number])

        await self._used(delete)

    async def send(self, run_id: str, text: str = "") -> None:
        """See `Store`. A signal is a row that is deleted after a minute."""

        def send(connection: sqlite3.Connection) -> None:
            with writing(connection):
                now = time.time()
                connection.execute("DELETE FROM signals WHERE sent < ?", (now - _SIGNALS_KEPT_S,))
                values = (_storable(run_id), _storable(text), now)
                connection.execute("INSERT INTO signals (run_id, text, sent) VALUES (?, ?, ?)", values)

        await self._used(send)

    async def listen(self) -> AsyncIterator[Signal]:
        """See `Store`. The file is polled several times a second."""
        number, version = 0, -1
        is_first = True
        while True:
            try:
                changed, rows = await self._used(partial(_signals_after, number=number, is_first=is_first))
            except StoreUnavailableError:
                await asyncio.sleep(_LOOK_EVERY_S)
                continue
            if is_first or changed != version:
                yield Signal()
            for number, run_id, text in rows:  # noqa: B007 - the last number counts
                if not is_first:
                    yield Signal(run_id, text)
            is_first, version = False, changed
            await asyncio.sleep(_LOOK_EVERY_S)

    async def aclose(self) -> None:
        """Close the file and release any runs still held."""
        self._held.clear()
        owner = self._owners.pop(os.getpid(), None)
        if owner:
            owner.close()
        self._file.close()

    # --- statements -----------------------------------------------------------------------------------------------

    def _create(self, connection: sqlite3.Connection, run: StoredRun, entries: Sequence[str], claim: _Claim) -> int:
        now, written = time.time(), [entry.encode(*LOSSLESS) for entry in entries]
        texts = (run.run_id, run.agent, run.model, run.session, run.parent, run.owner, run.title)
        owner = claim.take(self._owner())
        shares = bool(run.session and written)
        is_one_statement = len(written) == 1 and len(written[0]) <= _SMALL and not shares  # a transaction by itself
        with nullcontext() if is_one_statement else writing(connection):
            sharing = share_beginning(connection, _storable(run.session), written[0]) if shares else Sharing()
            if shares:
                written[0] = written[0][sharing.shared :]
            size = sum(map(len, written))
            first = written.pop(0) if len(written) == 1 and size <= _SMALL else None
            values = (*map(_storable, texts), RUNNING, owner, now, now, size, first)
            values = (*values, sharing.base, sharing.shared, sharing.depth)
            held = _Held(0, 1, owner, 0, size)
            try:
                held.number = connection.execute(_BEGIN, values).lastrowid or 0
            except sqlite3.IntegrityError:
                raise StoreError(f"run {run.run_id} already exists") from None
            if written:
                _insert(connection, held, written)
        held.place = len(entries)
        claim.held = held
        return 1

    def _hold(self, connection: sqlite3.Connection, run_id: str, claim: _Claim) -> int:
        with writing(connection):
            number, owner, hold, place, size, state, last = _row(connection, _PLACE, run_id)
            self._check_free(run_id, owner)
            lasts = split_last(last)
            held = _Held(number, hold + 1, claim.take(self._owner()), place - len(lasts), size, state)
            connection.execute(
                "UPDATE runs SET owner = ?, hold = ?, last = NULL, lasts = 0 WHERE number = ?",
                (held.owner, held.hold, number),
            )
            _insert(connection, held, lasts)
            held.place = place
        claim.held = held
        return held.hold

    def _append(self, connection: sqlite3.Connection, held: _Held, written: Sequence[bytes], state: str) -> bool:
        """Append entries and set the state. Return False if the hold was lost."""
        if state == held.state == RUNNING:  # one statement, and so a transaction by itself
            is_held = _insert(connection, held, written)
        elif state == RUNNING:  # the first write of a resumed run
            with writing(connection):
                is_held = _insert(connection, held, written)
                connection.execute(_GO_ON, (state, time.time(), held.number, held.hold, held.owner))
        else:
            is_held = _write_end(connection, held, written, state)
        if is_held:  # updated here, because the caller may have been cancelled
            held.place += len(written)
            held.size += sum(map(len, written))
            held.state = state
        return is_held

    def _clean(self, connection: sqlite3.Connection) -> None:
        """Delete runs beyond the retention limits, sparing those held, interrupted or paused."""
        with writing(connection):
            if self.config.keep_days:
                before = time.time() - self.config.keep_days * _DAY_S
                query = "SELECT number, owner FROM runs WHERE changed < ? AND state NOT IN (?, ?, ?)"
                rows = connection.execute(query, (before, RUNNING, *_PAUSES)).fetchall()
                _forget(connection, [number for number, owner in rows if not self._is_held(owner)])
            if self.config.max_mb:
                # Deleting a run moves its shared prefix to later runs, which then take up more space.
                while numbers := list(self._oldest(connection, most_bytes=self.config.max_mb * 1e6)):
                    _forget(connection, numbers)

    def _oldest(self, connection: sqlite3.Connection, *, most_bytes: float) -> Iterator[int]:
        """Yield the oldest runs beyond the size limit, skipping those held, interrupted or paused."""
        (size,) = connection.execute("SELECT coalesce(sum(bytes), 0) FROM runs").fetchone()
        query = "SELECT number, bytes, owner FROM runs WHERE state NOT IN (?, ?, ?) ORDER BY number"
        for number, of_run, owner in connection.execute(query, (RUNNING, *_PAUSES)):
            if size <= most_bytes:
                return
            if not self._is_held(owner):
                yield number
                size -= of_run

    # --- holds -------------------------------------------------------------------------------------------

    def _owner(self) -> Owner:
        process = os.getpid()
        if process not in self._owners:
            self._owners[process] = Owner(self._folder)
        return self._owners[process]

    async def _claimed(self, run_id: str, work: Callable[[sqlite3.Connection, _Claim], int]) -> int:
        """Start a hold and return its number. On failure or cancellation, the hold is released."""
        claim = _Claim()
        try:
            number = await self._used(lambda connection: work(connection, claim))
        except BaseException:
            claim.give_up()
            raise
        if claim.held is not None:
            self._held[run_id] = claim.held
        return number

    def _is_held(self, owner: str | None) -> bool:
        return owner is not None and is_held(self._folder, owner)

    def _check_free(self, run_id: str, owner: str | None) -> None:
        if self._is_held(owner):
            raise RunBusyError(
                f"run {run_id} is still running, here or in another process: wait for it to finish, or stop it"
            )

    def _run(self, row: Sequence[Any]) -> StoredRun:
        run_id, agent, model, session, parent, client, title, state, owner, began, changed, entries = row
        return StoredRun(
            run_id=run_id,
            agent=agent,
            model=model,
            session=session,
            parent=parent,
            owner=client,
            title=title,
            state=state,
            is_held=self._is_held(owner),
            began=began,
            changed=changed,
            entries=entries or 0,
        )

    # --- the file -------------------------------------------------------------------------------------------------

    async def _used(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Call `work` with a connection to the file and return its result.

        This usually takes microseconds, less than switching to a thread, so a thread is used only while the file is
        busy.
        """
        try:
            return self._work(work, 0.0)
        except (sqlite3.Error, BusyFileError, OSError) as error:
            if not is_busy(error):
                raise self._failed(error) from None
        except UnusableFileError as error:
            raise self._failed(error) from None
        return await self._in_worker(work)

    async def _in_worker(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return await sync.in_worker(self._work, work, self.config.timeout_s)
        except (sqlite3.Error, BusyFileError, OSError, UnusableFileError) as error:
            raise self._failed(error) from None

    def _work(self, work: Callable[[sqlite3.Connection], T], patience_s: float) -> T:
        with self._file.use(patience_s=patience_s) as connection:
            if self.config.power_safe:
                connection.execute("PRAGMA synchronous = FULL")
            return work(connection)

    def _failed(self, error: Exception) -> StoreError:
        where = f"the store {self._file.path}"
        if is_busy(error):
            return StoreUnavailableError(
                f"{where} is locked: another process has been writing to it for {self.config.timeout_s:g} s. "
                f"Wait for that process to finish, or stop it"
            )
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        step = _NEXT_STEP.get(sqlite3.SQLITE_FULL if is_full(error) else code, "")
        if isinstance(error, OtherVersionError):
            step = ". Install the version that wrote the file, move the file away, or set a different path"
        reason: object = error
        if isinstance(error, OSError) and error.strerror:
            reason = f"{error.strerror} ({error.filename})" if error.filename else error.strerror
            step = step or ". Allow writing there, or set a different path"
        kind = StoreUnavailableError if is_full(error) or code == sqlite3.SQLITE_IOERR else StoreError
        return kind(f"{where} cannot be used: {reason}{step}")


_NEXT_STEP = {
    sqlite3.SQLITE_FULL: ". Free some disk space; existing records are kept",
    sqlite3.SQLITE_IOERR: ". The disk is failing or full: check the disk; existing records are kept",
    sqlite3.SQLITE_READONLY: ". Allow writing to the file and its folder, or set a different path",
    sqlite3.SQLITE_CANTOPEN: ". Allow writing to its folder, or set a different path",
    sqlite3.SQLITE_CORRUPT: ". The file is corrupted or truncated: move it away, or restore it from a backup",
    sqlite3.SQLITE_NOTADB: ". It is not an SQLite file: move it away, or set a different path",
}


def _insert(connection: sqlite3.Connection, held: _Held, written: Sequence[bytes]) -> bool:
    """Append entries to a run. If the hold was lost, write nothing and return False."""
    right = (held.number, held.hold, held.owner)
    if not written:
        return connection.execute(_IS_HELD, right).fetchone() is not None
    places = [value for offset, entry in enumerate(written, start=1) for value in (held.place + offset, entry)]
    return connection.execute(_inserting(len(written)), (held.number, *places, *right)).rowcount > 0


def _write_end(connection: sqlite3.Connection, held: _Held, written: Sequence[bytes], state: str) -> bool:
    """Write a run's last entries and final state. If the hold was lost, write nothing and return False."""
    size = sum(map(len, written))
    last = _packed(written) if size <= _SMALL else None
    lasts = 0 if last is None else len(written)
    small = last if written else None
    end = (state, time.time(), held.size + size, small, lasts, held.number, held.hold, held.owner)
    if last is not None:
        return connection.execute(_END, end).rowcount > 0
    with writing(connection):
        is_held = _insert(connection, held, written)
        connection.execute(_END, end)
    return is_held


@cache
def _inserting(count: int) -> str:
    values = ", ".join(["(?, ?)"] * count)
    return f"INSERT INTO entries SELECT ?, * FROM (VALUES {values}) WHERE EXISTS ({_IS_HELD})"  # noqa: S608


def _signals_after(
    connection: sqlite3.Connection, *, number: int, is_first: bool
) -> tuple[int, list[tuple[int, str, str]]]:
    """Return the data version, which changes when another process writes, and the signals after `number`.

    With `is_first`, only the latest signal is returned.
    """
    (version,) = connection.execute("PRAGMA data_version").fetchone()
    order = "DESC LIMIT 1" if is_first else ""
    query = f"SELECT number, run_id, text FROM signals WHERE number > ? ORDER BY number {order}"  # noqa: S608
    return version, connection.execute(query, (number,)).fetchall()


def _lost(run_id: str) -> RunBusyError:
    return RunBusyError(f"run {run_id} is no longer owned by this process: another process may have resumed it")


def _row(connection: sqlite3.Connection, query: str, run_id: str) -> Sequence[Any]:
    row: Sequence[Any] | None = connection.execute(query, (_storable(run_id),)).fetchone()
    if row is None:
        raise RunNotFoundError(f"no run {run_id!r}; to list existing runs, use `jackfield runs list`")
    return row


def _forget(connection: sqlite3.Connection, numbers: Sequence[int]) -> None:
    for number in numbers:
        release_base(connection, number)
        connection.execute("DELETE FROM entries WHERE run = ?", (number,))
        connection.execute("DELETE FROM runs WHERE number = ?", (number,))
    forget_texts(connection, numbers)


def _storable(text: str) -> str:
    """Return `text` in a form that SQLite can store, with each lone surrogate replaced by a question mark."""
    return text.encode("utf-8", "replace").decode()


def _packed(entries: Sequence[bytes]) -> bytes | None:
    """Join entries into one value, or return None if one contains a newline and so could not be split again."""
    return None if any(b"\n" in entry for entry in entries) else b"\n".join(entries)


def _default_path() -> Path:
    base = os.environ.get("XDG_DATA_HOME")
    folder = Path(base) if base else Path.home() / ".local" / "share"
    return folder / "jackfield" / "runs.sqlite"
