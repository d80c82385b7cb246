"""The store: records of runs in a PostgreSQL database."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import Field, SecretStr

from jackfield import sync
from jackfield.config import Config
from jackfield.errors import MissingSecretError, RunBusyError, RunNotFoundError, StoreError, ToolServiceError
from jackfield.plugins import PluginHost, default_host
from jackfield_postgres import Connection, Database, LostConnectionError, Row, alone_in
from jackfield_records.stores import RUNNING, Store, StoredRun

T = TypeVar("T")

_VERSION = 1
_DAY_S = 86_400
_RUNS_BETWEEN_CLEANINGS = 100
_LOSSLESS = ("utf-8", "surrogatepass")
_VARIABLE = "JACKFIELD_STORE_DSN"
_TABLES = """
CREATE TABLE {schema}.jackfield_runs (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, run_id text NOT NULL UNIQUE, agent text NOT NULL,
    session text NOT NULL, parent text NOT NULL, title text NOT NULL, state text NOT NULL, owner text,
    hold integer NOT NULL, began timestamptz NOT NULL DEFAULT now(), changed timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ON {schema}.jackfield_runs (session, number) WHERE session <> '';
CREATE TABLE {schema}.jackfield_entries (
    run bigint NOT NULL REFERENCES {schema}.jackfield_runs ON DELETE CASCADE, place integer NOT NULL,
    entry bytea NOT NULL, PRIMARY KEY (run, place)
);
CREATE TABLE {schema}.jackfield_store (version integer NOT NULL);
INSERT INTO {schema}.jackfield_store VALUES (1)
"""
_LAST = "(SELECT coalesce(max(place), 0) FROM {schema}.jackfield_entries WHERE run = number)"
_COLUMNS = (
    "run_id, agent, session, parent, title, state, owner, extract(epoch FROM began)::float8, "
    f"extract(epoch FROM changed)::float8, {_LAST}"
)
# An owner is a lock of the session that took it: the server lets go of it when the connection ends, however that was.
_LOCK = "hashtextextended(:owner, 0)"


@dataclass(slots=True)
class _Held:
    """A run that this process holds: the number of the hold, the owner, and how far its record goes."""

    number: int
    owner: str
    place: int


class PostgresStoreConfig(Config):
    """Where runs are kept, and how many."""

    dsn: SecretStr | None = Field(default=None, description=f"postgresql://USER:PASSWORD@HOST/DATABASE; or {_VARIABLE}")
    db_schema: str = Field(
        default="jackfield", pattern=r"^[a-z_][a-z0-9_]{0,40}$", description="The schema of the tables; made if missing"
    )
    content: bool = Field(default=True, description="Whether what is said in runs is kept; without it, none is resumed")
    keep_days: float | None = Field(
        default=None, gt=0, description="Runs that did not change for so many days are deleted; unset: kept"
    )
    connections: int = Field(default=8, ge=1, le=1000, description="Connections at the same time, and one more")
    timeout_s: float = Field(default=30, gt=0, le=600, description="How long the server may be silent")


class PostgresStore(Store):
    """Keeps runs in a database, which processes of any number of machines may use at once.

    A hold is the owner's, and the owner is a lock of one connection that stays open: the server takes it back when the
    process or its machine is gone.
    """

    name = "postgres"
    config_class = PostgresStoreConfig
    config: PostgresStoreConfig

    def __init__(
        self,
        cfg: PostgresStoreConfig | Mapping[str, object] | None = None,
        *,
        host: PluginHost | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(cfg, **settings)
        self.content = self.config.content
        given = self.config.dsn
        dsn = given.get_secret_value() if given else (host or default_host()).settings.secret(_VARIABLE)
        if not dsn:
            raise MissingSecretError(_VARIABLE, needed_by="the store postgres")
        self._database = Database(dsn, timeout_s=self.config.timeout_s, connections=self.config.connections)
        self._presence = _Presence(dsn, self.config.timeout_s)
        self._is_prepared = False
        self._held: dict[str, _Held] = {}
        self._until_cleaning = 0

    async def create(self, run: StoredRun, entries: Sequence[str]) -> int:
        """See `Store`; now and then it also deletes what is over the limits."""
        texts = {name: _storable(getattr(run, name)) for name in ("run_id", "agent", "session", "parent", "title")}

        def create(connection: Connection) -> _Held:
            self._clean(connection)
            owner = self._presence.name()
            with connection.transaction():
                rows = self._run(
                    connection,
                    "INSERT INTO {schema}.jackfield_runs (run_id, agent, session, parent, title, state, owner, hold) "
                    "VALUES (:run_id, :agent, :session, :parent, :title, :state, :owner, 1) "
                    "ON CONFLICT (run_id) DO NOTHING RETURNING number",
                    **texts,
                    state=RUNNING,
                    owner=owner,
                )
                if not rows:
                    raise StoreError(f"there is already a run {run.run_id}")
                self._insert(connection, rows[0][0], 0, entries)
            return _Held(1, owner, len(entries))

        self._held[run.run_id] = await self._used(create)
        return 1

    async def hold(self, run_id: str) -> int:
        """See `Store`."""

        def hold(connection: Connection) -> _Held:
            owner = self._presence.name()
            with connection.transaction():
                held_by, before, place = self._row(connection, f"owner, hold, {_LAST}", run_id, more="FOR UPDATE")
                self._check_free(connection, run_id, held_by)
                self._run(
                    connection,
                    "UPDATE {schema}.jackfield_runs SET owner = :owner, hold = :hold, state = :state, changed = now() "
                    "WHERE run_id = :run_id",
                    owner=owner,
                    hold=before + 1,
                    state=RUNNING,
                    run_id=_storable(run_id),
                )
            return _Held(before + 1, owner, place)

        held = self._held[run_id] = await self._used(hold)
        return held.number

    async def append(self, run_id: str, hold: int, entries: Sequence[str], *, state: str = RUNNING) -> None:
        """See `Store`."""
        held = self._held.get(run_id)
        if held is None or held.number != hold:
            raise _lost(run_id)
        if state != RUNNING:
            del self._held[run_id]

        def append(connection: Connection) -> None:
            with connection.transaction():
                columns = f"number, hold, owner, {_LAST}"
                number, current, owner, place = self._row(connection, columns, run_id, more="FOR UPDATE")
                if (current, owner) != (hold, held.owner):
                    raise _lost(run_id)
                if place == held.place:  # else an attempt whose connection broke has done it
                    self._insert(connection, number, place, entries)
                if state != RUNNING:
                    self._run(
                        connection,
                        "UPDATE {schema}.jackfield_runs SET state = :state, owner = NULL, changed = now() "
                        "WHERE number = :number",
                        state=state,
                        number=number,
                    )

        await self._used(append, again=state == RUNNING)
        held.place += len(entries)

    async def read(self, run_id: str) -> tuple[StoredRun, list[str]]:
        """See `Store`."""

        def read(connection: Connection) -> tuple[StoredRun, list[str]]:
            connection.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")  # both as they were at one time
            *row, number = self._row(connection, f"{_COLUMNS}, number", run_id)
            query = "SELECT entry FROM {schema}.jackfield_entries WHERE run = :run ORDER BY place"
            rows = self._run(connection, query, run=number)
            connection.run("COMMIT")
            return self._shown(connection, row), [bytes(entry).decode(*_LOSSLESS) for (entry,) in rows]

        return await self._used(read, again=True)

    async def runs(self, *, session: str | None = None, limit: int = 100) -> list[StoredRun]:
        """See `Store`."""
        where = "" if session is None else "WHERE session = :session "
        values: dict[str, object] = {"limit": limit} if session is None else {"limit": limit, "session": session}
        query = f"SELECT {_COLUMNS} FROM {{schema}}.jackfield_runs {where}ORDER BY number DESC LIMIT :limit"  # noqa: S608

        def listed(connection: Connection) -> list[StoredRun]:
            return [self._shown(connection, row) for row in self._run(connection, query, **values)]

        return await self._used(listed, again=True)

    async def delete(self, run_id: str) -> None:
        """See `Store`."""

        def delete(connection: Connection) -> None:
            with connection.transaction():
                (owner,) = self._row(connection, "owner", run_id, more="FOR UPDATE")
                self._check_free(connection, run_id, owner)
                query = "DELETE FROM {schema}.jackfield_runs WHERE run_id = :run_id"
                self._run(connection, query, run_id=_storable(run_id))

        await self._used(delete)

    async def aclose(self) -> None:
        """Close the connections; runs that are still held are let go."""
        self._held.clear()
        await sync.in_worker(self._presence.close)
        await sync.in_worker(self._database.close)

    # --- who holds what -------------------------------------------------------------------------------------------

    def _is_held(self, connection: Connection, run_id: str, owner: str | None) -> bool:
        if owner is None:
            return False
        held = self._held.get(run_id)
        if held is not None and held.owner == owner:
            return True
        if owner == self._presence.current:
            return False  # this process could not let go of it in the database, and has done so here
        # Shared, so that those who ask at the same time do not take each other for the owner.
        [[is_free]] = connection.run(f"SELECT pg_try_advisory_xact_lock_shared({_LOCK})", owner=owner)
        return not is_free

    def _check_free(self, connection: Connection, run_id: str, owner: str | None) -> None:
        if self._is_held(connection, run_id, owner):
            raise RunBusyError(
                f"run {run_id} is running, here or in another process: wait until it has ended, or end it"
            )

    def _shown(self, connection: Connection, row: Row) -> StoredRun:
        run_id, agent, session, parent, title, state, owner, began, changed, entries = row
        return StoredRun(
            run_id=run_id,
            agent=agent,
            session=session,
            parent=parent,
            title=title,
            state=state,
            is_held=self._is_held(connection, run_id, owner),
            began=began,
            changed=changed,
            entries=entries,
        )

    # --- statements -----------------------------------------------------------------------------------------------

    def _run(self, connection: Connection, sql: str, **values: object) -> list[Row]:
        return connection.run(sql.format(schema=self.config.db_schema), **values)

    def _row(self, connection: Connection, columns: str, run_id: str, *, more: str = "") -> Row:
        query = f"SELECT {columns} FROM {{schema}}.jackfield_runs WHERE run_id = :run_id {more}"  # noqa: S608
        rows = self._run(connection, query, run_id=_storable(run_id))
        if not rows:
            raise RunNotFoundError(f"there is no run {run_id!r}: jackfield runs list shows those that there are")
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
        """Now and then, delete the runs that are too old and that nobody runs."""
        if self.config.keep_days is None:
            return
        self._until_cleaning -= 1
        if self._until_cleaning >= 0:
            return
        self._until_cleaning = _RUNS_BETWEEN_CLEANINGS
        query = (
            "SELECT number, run_id, owner FROM {schema}.jackfield_runs "
            "WHERE changed < now() - make_interval(secs => :seconds) LIMIT 1000"
        )
        for number, run_id, owner in self._run(connection, query, seconds=self.config.keep_days * _DAY_S):
            if not self._is_held(connection, run_id, owner):
                self._run(connection, "DELETE FROM {schema}.jackfield_runs WHERE number = :number", number=number)

    async def _used(self, work: Callable[[Connection], T], *, again: bool = False) -> T:
        """What some work with a connection gives; `again` if it may be done twice where the connection breaks."""
        try:
            return await sync.in_worker(self._work, work, again)
        except ToolServiceError as error:
            raise StoreError(f"the store cannot be used: {error}") from error

    def _work(self, work: Callable[[Connection], T], again: bool) -> T:
        try:
            with self._database.use() as connection:
                self._prepare(connection)
                return work(connection)
        except LostConnectionError:
            if not again:
                raise
        return self._work(work, again=False)

    def _prepare(self, connection: Connection) -> None:
        """Make the tables, unless they are there.

        Raises:
            StoreError: A newer version made them.
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
                f"the tables in schema {schema!r} have version {version}, and this jackfield-postgres-store reads "
                f"{_VERSION}: upgrade it, or set another db_schema"
            )
        self._is_prepared = True

    def _are_there(self, connection: Connection) -> bool:
        # Not by to_regclass: it may answer from a cache of its session.
        query = (
            "SELECT 1 FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace "
            "WHERE n.nspname = :schema AND c.relname = 'jackfield_store'"
        )
        return bool(connection.run(query, schema=self.config.db_schema))


class _Presence:
    """A connection that stays open, and with it a lock whose name is the owner of what this process holds."""

    def __init__(self, dsn: str, timeout_s: float) -> None:
        self._database = Database(dsn, timeout_s=timeout_s, connections=1)
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._connection: Connection | None = None
        self._process = 0
        self.current = ""

    def name(self) -> str:
        """The name of the lock; another one if the connection broke, or in a child."""
        with self._lock:
            if self._process != os.getpid():
                self._connection, self._stack = None, ExitStack()  # what there is belongs to the parent
            if self._connection is not None:
                try:
                    self._connection.run("SELECT 1")
                except LostConnectionError:
                    self._end()
            if self._connection is None:
                self._begin()
            return self.current

    def _begin(self) -> None:
        self._process, self.current = os.getpid(), uuid.uuid4().hex
        self._connection = self._stack.enter_context(self._database.use_for_long(timeout_s=self._timeout_s))
        self._connection.run(f"SELECT pg_advisory_lock({_LOCK})", owner=self.current)

    def _end(self) -> None:
        self._connection, self.current = None, ""
        self._stack.close()

    def close(self) -> None:
        """Own nothing any more."""
        with self._lock:
            if self._process == os.getpid():
                self._end()


def _lost(run_id: str) -> RunBusyError:
    return RunBusyError(f"somebody else has taken run {run_id} over: what it does here is not recorded any more")


def _storable(text: str) -> str:
    """PostgreSQL's texts are UTF-8 without NUL."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()
