"""Store run records in a PostgreSQL database."""

from __future__ import annotations

import os
import threading
import uuid
import weakref
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import Field, SecretStr

from jackfield import sync
from jackfield.config import Config
from jackfield.errors import (
    MissingSecretError,
    RunBusyError,
    RunNotFoundError,
    StoreError,
    StoreUnavailableError,
    ToolServiceError,
)
from jackfield.plugins import Plugins, default_host
from jackfield.stores import RUNNING, Signal, StoredRun
from jackfield.streams import closing
from jackfield_postgres import Connection, Database, LostConnectionError, Row, alone_in, is_passing
from jackfield_postgres_store.listening import Listener, pack_signal
from jackfield_postgres_store.presence import IS_ALONE, IS_FREE, Presence
from jackfield_records import RecordingStore

T = TypeVar("T")

_VERSION = 3
_DAY_S = 86_400
_RUNS_BETWEEN_CLEANINGS = 100
_MOST_CLEANED = 1000  # after deleting about this many runs, leave the rest for the next cleanup
_LOSSLESS = ("utf-8", "surrogatepass")
_VARIABLE = "JACKFIELD_STORE_DSN"
_TABLES = """
CREATE TABLE {schema}.jackfield_runs (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, run_id text NOT NULL UNIQUE, agent text NOT NULL,
    model text NOT NULL, session text NOT NULL, parent text NOT NULL, client text NOT NULL, title text NOT NULL,
    state text NOT NULL,
    owner text, hold integer NOT NULL, began timestamptz NOT NULL DEFAULT now(),
    changed timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ON {schema}.jackfield_runs (session, number) WHERE session <> '';
CREATE INDEX ON {schema}.jackfield_runs (client, number) WHERE client <> '';
CREATE INDEX ON {schema}.jackfield_runs (number) WHERE state = 'running';
CREATE TABLE {schema}.jackfield_entries (
    run bigint NOT NULL REFERENCES {schema}.jackfield_runs ON DELETE CASCADE, place integer NOT NULL,
    entry bytea NOT NULL, PRIMARY KEY (run, place)
);
CREATE TABLE {schema}.jackfield_store (version integer NOT NULL);
INSERT INTO {schema}.jackfield_store VALUES (3)
"""
_LAST = "(SELECT coalesce(max(place), 0) FROM {schema}.jackfield_entries WHERE run = number)"
_COLUMNS = (
    "run_id, agent, model, session, parent, client, title, state, owner, hold, extract(epoch FROM began)::float8, "
    f"extract(epoch FROM changed)::float8, {_LAST}"
)
_BEGIN = (
    "INSERT INTO {schema}.jackfield_runs (run_id, agent, model, session, parent, client, title, state, owner, hold) "  # noqa: S608
    "VALUES (:run_id, :agent, :model, :session, :parent, :client, :title, :state, :owner, 1) "
    f"ON CONFLICT (run_id) DO NOTHING RETURNING number, {IS_ALONE}"
)
_TAKE = (
    "UPDATE {schema}.jackfield_runs SET owner = :owner, hold = :hold WHERE run_id = :run_id "  # noqa: S608
    f"RETURNING {IS_ALONE}"
)
_MOST_RENEWALS = 3


class _UnlockedError(Exception):
    """The owner name of this process is not locked, so other processes may take over its runs."""


@dataclass(slots=True)
class _Held:
    """A run held by this process.

    Attributes:
        number: The hold number.
        owner: The owner name that holds the run.
        place: The number of entries in the record.
        state: The recorded state.
        unsure: The entries and state of an interrupted write whose outcome is unknown.
    """

    number: int
    owner: str
    place: int
    state: str = RUNNING
    unsure: tuple[Sequence[str], str] | None = None
    process: int = field(default_factory=os.getpid)
    turn: threading.Lock = field(default_factory=threading.Lock)

    def has_written(self, place: int, state: str) -> bool:
        """Return True if a record with this length and state already includes the interrupted write."""
        if self.unsure is None:
            return False
        entries, new_state = self.unsure
        return (place, state) == (self.place + len(entries), new_state)


class PostgresStoreConfig(Config):
    """Connection and retention settings."""

    dsn: SecretStr | None = Field(default=None, description=f"postgresql://USER:PASSWORD@HOST/DATABASE; or {_VARIABLE}")
    db_schema: str = Field(
        default="jackfield", pattern=r"^[a-z_][a-z0-9_]{0,40}$", description="Schema of the tables; created if missing"
    )
    content: bool = Field(default=True, description="Keep the content of runs; without it, no run can be resumed")
    keep_days: float | None = Field(
        default=None,
        gt=0,
        description="Delete runs this many days after they finish, unless they are waiting for a human; unset: "
        "keep all",
    )
    connections: int = Field(default=8, ge=1, le=1000, description="Maximum number of concurrent connections, plus one")
    timeout_s: float = Field(default=30, gt=0, le=600, description="Maximum time without data from the server")
    patience_s: float = Field(default=30, ge=0, description="Maximum time that a run waits for an unavailable database")
    recover: bool = Field(default=False, description="Agents resume their interrupted runs at their first run")


class PostgresStore(RecordingStore):
    """Run store in a PostgreSQL database, shared by processes on any number of machines.

    Every hold has an owner, which is an advisory lock of an open connection. The server releases the lock when the
    process or its machine goes down. Every write checks both the hold number and the lock.
    """

    name = "postgres"
    config_class = PostgresStoreConfig
    config: PostgresStoreConfig

    def __init__(
        self,
        cfg: PostgresStoreConfig | Mapping[str, object] | None = None,
        *,
        host: Plugins | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(cfg, **settings)
        self.content, self.patience_s, self.recover = self.config.content, self.config.patience_s, self.config.recover
        given = self.config.dsn
        dsn = given.get_secret_value() if given else (host or default_host()).settings.secret(_VARIABLE)
        if not dsn:
            raise MissingSecretError(_VARIABLE, needed_by="the store postgres")
        timeout_s = self.config.timeout_s
        # Below timeout_s, so that the server reports a lock before the connection counts as dead.
        for_each = f"SET lock_timeout = {max(1, int(timeout_s * 500))}"
        count = self.config.connections
        self._database = Database(dsn, timeout_s=timeout_s, connections=count, settings=for_each)
        brief = "SET lock_timeout = 500; SET statement_timeout = 2000"
        own = Database(dsn, timeout_s=timeout_s, connections=1, settings=brief)
        self._presence = Presence(own, f"{self.config.db_schema}.jackfield_runs")
        weakref.finalize(self, _stop, self._presence, os.getpid())
        self._mark = uuid.uuid4().hex
        self._channel = f"jackfield_{self.config.db_schema}"
        self._is_prepared = False
        self._held: dict[str, _Held] = {}
        self._unsure: dict[str, str] = {}  # runs whose creation was interrupted, by their intended holder
        self._until_cleaning = 0

    async def create(self, run: StoredRun, entries: Sequence[str]) -> int:
        """See `Store`. Expired runs are deleted from time to time."""
        names = ("run_id", "agent", "model", "session", "parent", "title")
        texts = {name: _storable(getattr(run, name)) for name in names} | {"client": _storable(run.owner)}

        def create(connection: Connection) -> _Held:
            self._clean(connection)
            owner = self._presence.name()
            unsure, self._unsure[run.run_id] = self._unsure.get(run.run_id), owner
            with connection.transaction():
                rows = self._run(
                    connection,
                    _BEGIN,
                    **texts,
                    state=RUNNING,
                    owner=owner,
                )
                if rows:
                    _check_locked(rows[0][1])
                    self._insert(connection, rows[0][0], 0, entries)
                elif unsure is None or not self._is_mine(connection, run.run_id, unsure):
                    raise StoreError(f"run {run.run_id} already exists")
            return _Held(1, unsure or owner, len(entries))

        return await self._claimed(run.run_id, create)

    async def hold(self, run_id: str) -> int:
        """See `Store`."""

        def hold(connection: Connection) -> _Held:
            owner = self._presence.name()
            with connection.transaction():
                columns = f"owner, hold, state, {_LAST}"
                held_by, before, state, place = self._row(connection, columns, run_id, more="FOR UPDATE")
                self._check_free(connection, run_id, held_by, before)
                [[is_alone]] = self._run(
                    connection,
                    _TAKE,
                    owner=owner,
                    hold=before + 1,
                    run_id=_storable(run_id),
                )
                _check_locked(is_alone)
                # While the row is locked, so that another task of this process does not consider the run abandoned.
                mine.append(_Held(before + 1, owner, place, state))
                self._held[run_id] = mine[-1]
            return mine[-1]

        mine: list[_Held] = []
        try:
            return await self._claimed(run_id, hold)
        except BaseException:
            if mine and self._held.get(run_id) is mine[-1]:
                del self._held[run_id]
            raise

    async def append(self, run_id: str, hold: int, entries: Sequence[str], *, state: str = RUNNING) -> None:
        """See `Store`."""
        held, entries = self._held.get(run_id), tuple(entries)
        if held is None or held.number != hold or held.process != os.getpid():
            raise _lost(run_id)

        def append(connection: Connection) -> None:
            with held.turn:  # an abandoned write may still be in progress
                if entries or (state, held.state) != (RUNNING, RUNNING):
                    self._append(connection, run_id, held, entries, state)
                else:
                    columns = f"hold, owner, {IS_ALONE}"
                    current, owner, is_alone = self._row(connection, columns, run_id, owner=held.owner)
                    _check_right(held, current, owner, run_id)
                    _check_locked(is_alone)

        try:
            await self._used(append, again=True)
        except (RunBusyError, RunNotFoundError):
            self._held.pop(run_id, None)
            raise
        if state != RUNNING:
            self._held.pop(run_id, None)

    def _append(self, connection: Connection, run_id: str, held: _Held, entries: Sequence[str], state: str) -> None:
        with connection.transaction():
            columns = f"number, hold, owner, state, {_LAST}, {IS_ALONE}"
            number, current, owner, before, place, is_alone = self._row(
                connection, columns, run_id, more="FOR UPDATE", owner=held.owner
            )
            is_there = held.has_written(place, before) and held.unsure == (entries, state)
            if not (is_there and (current, owner, state) == (held.number, None, before)):  # not ended by that write
                _check_right(held, current, owner, run_id)
                _check_locked(is_alone)
            if not is_there:
                held.unsure = (entries, state)
                self._insert(connection, number, place, entries)
                if state != before:
                    self._run(
                        connection,
                        "UPDATE {schema}.jackfield_runs SET state = :state, owner = :owner, changed = now() "
                        "WHERE number = :number",
                        state=state,
                        owner=held.owner if state == RUNNING else None,
                        number=number,
                    )
        held.place, held.state, held.unsure = place + (0 if is_there else len(entries)), state, None

    async def release(self, run_id: str, hold: int) -> None:
        """See `Store`. A lock announces the release, and the table is updated as soon as it can be written."""
        held = self._held.get(run_id)
        if held is not None and held.number == hold and held.process == os.getpid():
            del self._held[run_id]
            await sync.in_worker(self._presence.release, _storable(run_id), hold)

    async def read(self, run_id: str, *, after: int = 0) -> tuple[StoredRun, list[str]]:
        """See `Store`."""

        def read(connection: Connection) -> tuple[StoredRun, list[str]]:
            connection.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")  # both from one snapshot
            *row, number = self._row(connection, f"{_COLUMNS}, number", run_id)
            query = "SELECT entry FROM {schema}.jackfield_entries WHERE run = :run AND place > :after ORDER BY place"
            rows = self._run(connection, query, run=number, after=after)
            connection.run("COMMIT")
            return self._shown(connection, row), [bytes(entry).decode(*_LOSSLESS) for (entry,) in rows]

        return await self._used(read, again=True)

    async def runs(
        self, *, session: str | None = None, owner: str | None = None, state: str | None = None, limit: int = 100
    ) -> list[StoredRun]:
        """See `Store`."""
        wanted = {"session": session, "client": owner, "state": state}
        values = {name: _storable(value) for name, value in wanted.items() if value is not None}
        where = " AND ".join([f"{name} = :{name}" for name in values]) or "true"
        query = f"SELECT {_COLUMNS} FROM {{schema}}.jackfield_runs WHERE {where} ORDER BY number DESC LIMIT :limit"  # noqa: S608

        def listed(connection: Connection) -> list[StoredRun]:
            return [self._shown(connection, row) for row in self._run(connection, query, limit=limit, **values)]

        return await self._used(listed, again=True)

    async def rename(self, run_id: str, title: str) -> None:
        """See `Store`."""

        def rename(connection: Connection) -> None:
            with connection.transaction():
                self._row(connection, "number", run_id, more="FOR UPDATE")
                query = "UPDATE {schema}.jackfield_runs SET title = :title WHERE run_id = :run_id"
                self._run(connection, query, title=_storable(title), run_id=_storable(run_id))

        await self._used(rename)

    async def delete(self, run_id: str) -> None:
        """See `Store`."""

        def delete(connection: Connection) -> None:
            with connection.transaction():
                owner, hold = self._row(connection, "owner, hold", run_id, more="FOR UPDATE")
                self._check_free(connection, run_id, owner, hold)
                query = "DELETE FROM {schema}.jackfield_runs WHERE run_id = :run_id"
                self._run(connection, query, run_id=_storable(run_id))

        await self._used(delete)

    async def send(self, run_id: str, text: str = "") -> None:
        """See `Store`."""

        def send(connection: Connection) -> None:
            message = pack_signal(Signal(run_id, text), self._sender)
            connection.run("SELECT pg_notify(:channel, :message)", channel=self._channel, message=message)

        await self._used(send, again=True)

    async def listen(self) -> AsyncIterator[Signal]:
        """See `Store`. A thread receives the server's notifications over a dedicated connection."""
        await self._used(lambda _: None)  # fail early if a setting is wrong or the server is down
        listener = Listener(self._database, self._channel, skip=self._sender)
        async with closing(listener.signals()) as signals:
            async for signal in signals:
                yield signal

    async def aclose(self) -> None:
        """Close all connections and release any runs still held."""
        self._held.clear()
        await sync.in_worker(self._presence.close)
        await sync.in_worker(self._database.close)

    @property
    def _sender(self) -> str:
        return f"{os.getpid()}/{id(self)}/{self._mark}"

    # --- holds -------------------------------------------------------------------------------------------

    async def _claimed(self, run_id: str, work: Callable[[Connection], _Held]) -> int:
        """Start a hold and return its number. If the caller is cancelled first, the hold is released."""
        is_given_up = threading.Event()

        def claim(connection: Connection) -> _Held:
            held = work(connection)
            self._unsure.pop(run_id, None)
            if is_given_up.is_set():
                if self._held.get(run_id) is held:
                    del self._held[run_id]
                self._presence.release(_storable(run_id), held.number)
            return held

        try:
            held = await self._used(claim)
        except BaseException as error:
            is_given_up.set()
            if not isinstance(error, StoreUnavailableError):
                self._unsure.pop(run_id, None)
            raise
        self._held[run_id] = held
        return held.number

    def _is_mine(self, connection: Connection, run_id: str, owner: str) -> bool:
        """Return True if the run was created by an earlier attempt whose outcome was unknown."""
        return [*self._row(connection, "owner, hold", run_id)] == [owner, 1]

    def _is_held(self, connection: Connection, run_id: str, owner: str | None, hold: int) -> bool:
        if owner is None:
            return False
        held = self._held.get(run_id)
        if held is not None and (held.owner, held.process) == (owner, os.getpid()):
            return True
        if owner == self._presence.current:
            return False  # released here, but not yet in the database
        [[is_free]] = connection.run(f"SELECT {IS_FREE}", owner=owner, run_id=_storable(run_id), hold=hold)
        return not is_free

    def _check_free(self, connection: Connection, run_id: str, owner: str | None, hold: int) -> None:
        if self._is_held(connection, run_id, owner, hold):
            raise RunBusyError(
                f"run {run_id} is still running, here or in another process: wait for it to finish, or stop it"
            )

    def _shown(self, connection: Connection, row: Row) -> StoredRun:
        run_id, agent, model, session, parent, client, title, state, owner, hold, began, changed, entries = row
        return StoredRun(
            run_id=run_id,
            agent=agent,
            model=model,
            session=session,
            parent=parent,
            owner=client,
            title=title,
            state=state,
            is_held=self._is_held(connection, run_id, owner, hold),
            began=began,
            changed=changed,
            entries=entries,
        )

    # --- statements -----------------------------------------------------------------------------------------------

    def _run(self, connection: Connection, sql: str, **values: object) -> list[Row]:
        return connection.run(sql.format(schema=self.config.db_schema), **values)

    def _row(self, connection: Connection, columns: str, run_id: str, *, more: str = "", **values: object) -> Row:
        query = f"SELECT {columns} FROM {{schema}}.jackfield_runs WHERE run_id = :run_id {more}"  # noqa: S608
        rows = self._run(connection, query, run_id=_storable(run_id), **values)
        if not rows:
            raise RunNotFoundError(f"no run {run_id!r}; to list existing runs, use `jackfield runs list`")
        return rows[0]

    def _insert(self, connection: Connection, number: int, place: int, entries: Sequence[str]) -> None:
        for offset, entry in enumerate(entries, start=1):
            self._run(
                connection,
                "INSERT INTO {schema}.jackfield_entries VALUES (:run, :place, :entry)",
                run=number,
                place=place + offset,
                entry=entry.encode(*_LOSSLESS),
            )

    def _clean(self, connection: Connection) -> None:
        """Delete expired runs every `_RUNS_BETWEEN_CLEANINGS` calls, sparing those held, interrupted or paused."""
        if self.config.keep_days is None:
            return
        self._until_cleaning -= 1
        if self._until_cleaning >= 0:
            return
        self._until_cleaning = _RUNS_BETWEEN_CLEANINGS
        query = (
            "SELECT number, run_id, owner, hold FROM {schema}.jackfield_runs "
            "WHERE number > :after AND changed < now() - make_interval(secs => :seconds) "
            "AND state NOT IN ('running', 'approval_needed', 'input_needed') ORDER BY number LIMIT :most"
        )
        # A process may acquire a run after it was read.
        delete = "DELETE FROM {schema}.jackfield_runs WHERE number = :number AND hold = :hold RETURNING number"
        seconds, after, deleted = self.config.keep_days * _DAY_S, 0, 0
        while deleted < _MOST_CLEANED:
            rows = self._run(connection, query, after=after, seconds=seconds, most=_MOST_CLEANED)
            if not rows:
                return
            for number, run_id, owner, hold in rows:
                after = number
                if not self._is_held(connection, run_id, owner, hold):
                    deleted += len(self._run(connection, delete, number=number, hold=hold))

    async def _used(self, work: Callable[[Connection], T], *, again: bool = False) -> T:
        """Call `work` with a connection and return its result. With `again`, retry once if the connection drops."""
        try:
            return await sync.in_worker(self._work, work, again)
        except ToolServiceError as error:
            # A server that was never reached is more likely a wrong setting than an outage.
            kind = StoreUnavailableError if self._is_prepared and is_passing(error) else StoreError
            raise kind(f"the store cannot be used: {error}") from None

    def _work(self, work: Callable[[Connection], T], again: bool) -> T:
        for _ in range(_MOST_RENEWALS):
            try:
                with self._database.use() as connection:
                    self._prepare(connection)
                    return work(connection)
            except LostConnectionError:
                if not again:
                    raise
                again = False
                self._database.close()  # the other pooled connections are broken as well
            except _UnlockedError:  # nothing was written
                self._presence.renew()
        raise LostConnectionError("the lock that shows that this process is alive keeps getting lost")

    def _prepare(self, connection: Connection) -> None:
        """Create the tables if they do not exist.

        Raises:
            StoreError: The tables belong to a version with a different schema.
        """
        if self._is_prepared:
            return
        schema = self.config.db_schema
        if not self._are_there(connection):
            with alone_in(connection, schema, "store"):
                if not self._are_there(connection):  # another process may have been first
                    if not connection.run("SELECT 1 FROM pg_namespace WHERE nspname = :name", name=schema):
                        connection.run(f"CREATE SCHEMA {schema}")
                    self._run(connection, _TABLES)
        [[version]] = self._run(connection, "SELECT max(version) FROM {schema}.jackfield_store")
        if version != _VERSION:
            raise StoreError(
                f"the tables in schema {schema!r} are version {version}, but this jackfield-postgres-store only reads "
                f"version {_VERSION}: {_step_for(version)}, or set a different db_schema"
            )
        self._is_prepared = True

    def _are_there(self, connection: Connection) -> bool:
        # Query the catalog, because to_regclass may answer from a session cache.
        query = (
            "SELECT 1 FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace "
            "WHERE n.nspname = :schema AND c.relname = 'jackfield_store'"
        )
        return bool(connection.run(query, schema=self.config.db_schema))


def _step_for(version: object) -> str:
    if not isinstance(version, int):
        return "the table jackfield_store is empty, so restore it from a backup"
    if version > _VERSION:
        return "pip install --upgrade jackfield-postgres-store"
    return f"use the release that created the tables (one that reads version {version})"


def _check_right(held: _Held, current: int, owner: str | None, run_id: str) -> None:
    if (current, owner) != (held.number, held.owner):
        raise _lost(run_id)


def _check_locked(is_alone: bool) -> None:
    if is_alone:
        raise _UnlockedError


def _stop(presence: Presence, process: int) -> None:
    if process == os.getpid():
        presence.stop()


def _lost(run_id: str) -> RunBusyError:
    return RunBusyError(f"run {run_id} is no longer owned by this process: another process may have resumed it")


def _storable(text: str) -> str:
    """Return `text` without NUL and lone surrogates, which PostgreSQL cannot store."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()
