"""What becomes of runs when a process, a connection or the server goes away."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

import pytest

from jackfield.errors import (
    MissingSecretError,
    RunBusyError,
    RunNotFoundError,
    StoreError,
    StoreUnavailableError,
    ToolServiceError,
)
from jackfield.stores import RUNNING, Signal, StoredRun
from jackfield_postgres import Connection, Database, LostConnectionError
from jackfield_postgres_store import presence as presence_module
from jackfield_postgres_store import store as store_module
from jackfield_postgres_store.presence import Presence
from jackfield_postgres_store.store import PostgresStore
from jackfield_testkit.installed import plain_host

Make = Callable[..., PostgresStore]


@pytest.fixture
def make(settings: Mapping[str, Any]) -> Iterator[Make]:
    made: list[PostgresStore] = []

    def store(**more: Any) -> PostgresStore:
        made.append(PostgresStore(host=plain_host(), **{**settings, **more}))
        return made[-1]

    yield store
    for one in made:
        asyncio.run(one.aclose())


@pytest.fixture
def run_sql(dsn: str) -> Iterator[Callable[[str], object]]:
    database = Database(dsn, timeout_s=60)

    def run(sql: str) -> object:
        with database.use() as connection:
            return connection.run(sql)

    yield run
    database.close()


@pytest.fixture
def locked(settings: Mapping[str, Any]) -> Callable[[], Any]:
    """A context in which the runs cannot be written; gives the session that has locked them."""

    @contextmanager
    def locked() -> Iterator[int]:
        with closing(Database(settings["dsn"], timeout_s=60).connect()) as connection:
            connection.run(f"BEGIN; LOCK TABLE {settings['db_schema']}.jackfield_runs IN EXCLUSIVE MODE")
            [[pid]] = connection.run("SELECT pg_backend_pid()")
            yield pid
            connection.run("ROLLBACK")

    return locked


def wait_until(is_so: Callable[[], object]) -> None:
    """Wait for a thread or the server, for a minute at most."""

    async def look() -> None:
        async with asyncio.timeout(60):
            while not await asyncio.to_thread(is_so):
                await asyncio.sleep(0.02)

    asyncio.run(look())


def begun(store: PostgresStore, run_id: str, *, state: str = "") -> int:
    hold = asyncio.run(store.create(StoredRun(run_id=run_id), ["first"]))
    if state:
        asyncio.run(store.append(run_id, hold, [], state=state))
    return hold


HOLD = """
import asyncio, sys
from jackfield.stores import StoredRun
from jackfield_postgres_store.store import PostgresStore
store = PostgresStore(dsn=sys.argv[1], db_schema=sys.argv[2])
asyncio.run(store.create(StoredRun(run_id="r"), ["first"]))
print("held", flush=True)
sys.stdin.read()
"""


def test_a_run_is_free_when_the_process_that_held_it_was_killed(make: Make, settings: Mapping[str, Any]) -> None:
    command = [sys.executable, "-c", HOLD, settings["dsn"], settings["db_schema"]]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout
        assert other.stdout.readline() == "held\n"
        store = make()
        with pytest.raises(RunBusyError, match="run r is still running, here or in another process"):
            asyncio.run(store.hold("r"))
        other.kill()
        other.wait()
        while asyncio.run(store.read("r"))[0].is_held:
            pass  # until the server has noticed
        assert asyncio.run(store.hold("r")) == 2


def test_a_step_is_written_once_though_the_connections_broke(make: Make, run_sql: Callable[[str], object]) -> None:
    store = make()
    hold = begun(store, "r")
    run_sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname IS NOT NULL"
    )
    asyncio.run(store.append("r", hold, ["second"]))
    run, entries = asyncio.run(store.read("r"))
    assert entries == ["first", "second"]
    assert run.is_held, "whoever still has it knows it"
    with pytest.raises(RunBusyError):
        asyncio.run(make().hold("r"))
    asyncio.run(store.append("r", hold, ["third"]))
    assert begun(store, "another") == 1, "and it can begin others"
    with pytest.raises(RunBusyError):
        asyncio.run(make().hold("another"))


def test_a_step_is_written_though_every_kept_connection_broke(make: Make, run_sql: Callable[[str], Any]) -> None:
    store = make()
    hold = begun(store, "r")
    with store._database.use(), store._database.use():
        pass
    pids = [
        database_pid for one in store._database._idle for [database_pid] in one.driver.run("SELECT pg_backend_pid()")
    ]
    assert run_sql(f"SELECT count(pg_terminate_backend(pid)) FROM unnest(ARRAY{pids}) AS pid") == [[2]]
    wait_until(lambda: not run_sql(f"SELECT 1 FROM pg_stat_activity WHERE pid = ANY(ARRAY{pids})"))
    asyncio.run(store.append("r", hold, ["second"]))
    assert asyncio.run(store.read("r"))[1] == ["first", "second"]


def test_a_run_and_its_entries_are_read_as_they_were_at_one_time(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    store, reader = make(), make()
    hold = begun(store, "r")
    run, ends = Connection.run, iter(range(1))

    def end_in_between(self: Connection, sql: str, **values: object) -> Any:
        if sql.startswith("SELECT entry") and next(ends, None) is not None:
            asyncio.run(store.append("r", hold, ["second"], state="finished"))
        return run(self, sql, **values)

    monkeypatch.setattr(Connection, "run", end_in_between)
    before, after = asyncio.run(reader.read("r")), asyncio.run(reader.read("r"))
    assert (before[0].state, before[0].entries, before[1]) == (RUNNING, 1, ["first"])
    assert (after[0].state, after[0].entries, after[1]) == ("finished", 2, ["first", "second"])


def lose_next_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the connection break after the server has committed a transaction, and before it says so."""
    run, losses = Connection.run, iter(range(1))

    def loses_the_answer(self: Connection, sql: str, **values: object) -> Any:
        rows = run(self, sql, **values)
        if sql == "COMMIT" and next(losses, None) is not None:
            raise LostConnectionError("the answer did not come")
        return rows

    monkeypatch.setattr(Connection, "run", loses_the_answer)


@pytest.mark.parametrize("state", [RUNNING, "finished", "approval_needed"])
@pytest.mark.parametrize("entries", [[], ["second", "third"]], ids=["nothing", "entries"])
def test_a_step_is_written_once_though_the_servers_answer_was_lost(
    state: str, entries: list[str], make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make()
    hold = begun(store, "r")
    lose_next_commit(monkeypatch)
    asyncio.run(store.append("r", hold, entries, state=state))
    run, written = asyncio.run(make().read("r"))
    assert (run.state, run.is_held, written) == (state, state == RUNNING, ["first", *entries])
    if state == RUNNING:
        asyncio.run(store.append("r", hold, entries, state="finished"))
        assert asyncio.run(store.read("r"))[1] == ["first", *entries, *entries], "the same entries may come again"


def test_a_run_whose_beginning_was_written_without_an_answer_begins_once(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make()
    begun(store, "other")
    lose_next_commit(monkeypatch)
    with pytest.raises(StoreUnavailableError):
        begun(store, "r")
    assert begun(store, "r") == 1, "the same beginning again"
    asyncio.run(store.append("r", 1, ["second"]))
    assert asyncio.run(make().read("r"))[1] == ["first", "second"]
    with pytest.raises(StoreError, match="run r already exists"):
        begun(make(), "r")


@pytest.mark.parametrize("work", ["create", "hold"])
def test_a_caller_that_gives_up_while_the_server_is_busy_holds_nothing(
    work: str, make: Make, locked: Callable[[], Any], run_sql: Callable[[str], object]
) -> None:
    store = make(timeout_s=300)
    begun(store, "r", state="finished")

    async def give_up() -> None:
        waiting = store.hold("r") if work == "hold" else store.create(StoredRun(run_id="new"), ["first"])
        task = asyncio.create_task(waiting)
        async with asyncio.timeout(60):
            while not await asyncio.to_thread(run_sql, "SELECT 1 FROM pg_locks WHERE NOT granted"):
                await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    with locked():
        asyncio.run(give_up())
    other = make()

    def is_free() -> bool:
        try:
            run, _ = asyncio.run(other.read("r" if work == "hold" else "new"))
        except RunNotFoundError:
            return False
        return not run.is_held

    wait_until(is_free)
    with pytest.raises(StoreError, match="already exists"):
        begun(store, "r" if work == "hold" else "new")
    for hold, one in enumerate((store, other), start=3 if work == "hold" else 2):
        assert asyncio.run(one.hold("r" if work == "hold" else "new")) == hold
        asyncio.run(one.release("r" if work == "hold" else "new", hold))


def test_a_released_run_stays_free_after_its_process_has_connected_again(
    make: Make, locked: Callable[[], Any], run_sql: Callable[[str], Any]
) -> None:
    store, other = make(), make()
    asyncio.run(other.runs())
    hold = begun(store, "r")
    is_locked = (
        f"SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND mode = 'ExclusiveLock' "
        f"AND ((classid::bigint << 32) | objid::bigint) = hashtextextended('{store._presence.current}', 0)"
    )
    [[before]] = run_sql(is_locked)
    with locked():  # so that only the locks say that it is free
        asyncio.run(store.release("r", hold))
        assert not asyncio.run(store.read("r"))[0].is_held, "whoever has let go of it knows it"
        run_sql(f"SELECT pg_terminate_backend({before})")
        wait_until(lambda: run_sql(is_locked) not in ([], [[before]]))
        assert not asyncio.run(other.read("r"))[0].is_held
    assert asyncio.run(other.hold("r")) == hold + 1


def test_released_runs_are_locked_before_the_name_is_when_its_process_connects_again(
    make: Make, run_sql: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make()
    asyncio.run(store.release("r", begun(store, "r")))
    name, run, locks = store._presence.current, Connection.run, []

    def watched(self: Connection, sql: str, **values: object) -> Any:
        if sql.startswith("SELECT pg_try_advisory_lock(") and values["owner"] == name:
            locks.append(values.get("run_id", "the name"))
        return run(self, sql, **values)

    monkeypatch.setattr(Connection, "run", watched)
    run_sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname IS NOT NULL"
    )
    wait_until(lambda: "the name" in locks)
    assert locks[:2] == ["r", "the name"], "between the two, others would see it held"


def test_a_release_that_is_written_late_ends_no_later_hold(
    make: Make, settings: Mapping[str, Any], run_sql: Callable[[str], Any]
) -> None:
    store, table = make(), f"{settings['db_schema']}.jackfield_runs"
    hold = begun(store, "r")
    with closing(Database(settings["dsn"], timeout_s=60).connect()) as other:
        other.run(f"BEGIN; LOCK TABLE {table} IN EXCLUSIVE MODE")
        asyncio.run(store.release("r", hold))
        other.run(f"UPDATE {table} SET hold = hold + 1")  # as if this process had taken hold of it again
        other.run("COMMIT")
    [release] = store._presence._releases
    wait_until(lambda: release.written_at)
    assert run_sql(f"SELECT owner FROM {table}") == [[store._presence.current]]


def test_nothing_is_kept_of_a_run_that_has_ended(
    make: Make, settings: Mapping[str, Any], run_sql: Callable[[str], object]
) -> None:
    store = make()
    hold = begun(store, "lost")
    run_sql(f"DELETE FROM {settings['db_schema']}.jackfield_runs")
    with pytest.raises(RunNotFoundError):
        asyncio.run(store.append("lost", hold, ["second"]))
    for number, state in enumerate(["finished", "approval_needed"]):
        begun(store, f"r{number}", state=state)
    asyncio.run(store.release("r", begun(store, "r")))
    assert (store._held, store._unsure) == ({}, {})


def test_the_locks_of_released_runs_end_once_the_table_says_that_they_are_free(
    make: Make, run_sql: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence_module, "_KEPT_S", 0.0)
    store = make()
    asyncio.run(store.release("r", begun(store, "r")))
    wait_until(lambda: not store._presence._releases)
    assert run_sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock'") == [[1]]
    assert not asyncio.run(make().read("r"))[0].is_held


def test_a_server_that_refuses_a_connection_is_asked_again(
    make: Make, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = make(), make()
    begun(store, "r")
    connect, is_refused = Database.connect, threading.Event()

    def watched(self: Database) -> Any:
        try:
            return connect(self)
        except ToolServiceError as error:
            if not isinstance(error, LostConnectionError):
                is_refused.set()
            raise

    monkeypatch.setattr(Database, "connect", watched)
    with closing(Database(dsn.replace("/postgres?", "/template1?"), timeout_s=60)) as elsewhere:
        elsewhere.ask("ALTER DATABASE postgres ALLOW_CONNECTIONS false")
        try:
            elsewhere.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'postgres'")
            assert is_refused.wait(60)
        finally:
            elsewhere.ask("ALTER DATABASE postgres ALLOW_CONNECTIONS true")
    wait_until(lambda: asyncio.run(other.read("r"))[0].is_held)


def test_the_session_of_an_owner_is_used_at_each_look_because_idle_ones_may_be_ended(dsn: str) -> None:
    statements: list[str] = []

    class Watched:
        def run(self, sql: str, **_: object) -> list[Any]:
            statements.append(sql)
            return []

    presence, watched = Presence(Database(dsn, timeout_s=60), "unused"), Watched()
    for _ in range(2):
        presence._publish(watched)  # type: ignore[arg-type]
    assert statements == ["SELECT 1"] * 2


@pytest.mark.parametrize(("timeout_s", "shown"), [(4, "2s"), (0.5, "250ms")])
def test_a_lock_is_waited_for_half_as_long_as_a_silent_server(timeout_s: float, shown: str, make: Make) -> None:
    assert make(timeout_s=timeout_s)._database.ask("SHOW lock_timeout") == [[shown]]


def test_a_closed_store_has_no_connection(make: Make) -> None:
    store = make()
    begun(store, "r")
    assert store._database._idle
    asyncio.run(store.aclose())
    assert (store._database._idle, store._presence._connection) == ([], None)
    assert begun(store, "s") == 1, "the next call opens it again"


def test_an_old_session_of_the_same_owner_is_ended(dsn: str) -> None:
    database = Database(dsn, timeout_s=60)
    old, presence = database.connect(), Presence(database, "unused")
    presence.current = "me"
    old.run("SELECT pg_advisory_lock(hashtextextended('me', 0))")
    presence.renew()
    with pytest.raises(LostConnectionError):
        old.run("SELECT 1")
    presence._disconnect()
    database.close()


def test_a_child_has_a_name_of_its_own(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    presence = Presence(Database(dsn, timeout_s=60), "unused")
    others = threading.enumerate()
    mine = presence.name()
    assert presence.name() == mine
    parent, end_of_parents_thread = os.getpid(), presence._is_closed
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    theirs = presence.name()
    assert theirs != mine
    presence.close()
    assert presence.name() not in (mine, theirs), "and after it was closed"
    presence.close()
    end_of_parents_thread.set()  # a real child has no thread of its parent
    for thread in {*threading.enumerate()} - {*others}:
        thread.join(60)
        assert not thread.is_alive()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            "UPDATE {} SET version = 99",
            "are version 99, but this jackfield-postgres-store only reads version 3: pip install --upgrade",
        ),
        (
            "UPDATE {} SET version = 2",
            r"are version 2, .*: use the release that created the tables \(one that reads version 2\)",
        ),
        (
            "DELETE FROM {}",
            "the table jackfield_store is empty, so restore it from a backup, or set a different db_schema",
        ),
    ],
    ids=["newer", "older", "empty"],
)
def test_tables_of_another_version_are_refused(
    change: str, text: str, make: Make, settings: Mapping[str, Any], run_sql: Callable[[str], object]
) -> None:
    begun(make(), "r", state="finished")
    run_sql(change.format(f"{settings['db_schema']}.jackfield_store"))
    with pytest.raises(StoreError, match=text):
        asyncio.run(make().read("r"))


@pytest.mark.parametrize(
    ("hours", "left"),
    [
        (25, ["new", "ended", "input", "approval", "interrupted"]),
        (23, ["new", "ended", "input", "approval", "interrupted", "old"]),
    ],
)
def test_runs_are_deleted_days_after_their_end_unless_they_wait_for_a_person(
    hours: int, left: list[str], make: Make, settings: Mapping[str, Any], run_sql: Callable[[str], object]
) -> None:
    store = make()
    begun(store, "old", state="finished")
    asyncio.run(store.release("interrupted", begun(store, "interrupted")))
    begun(store, "approval", state="approval_needed")
    begun(store, "input", state="input_needed")
    hold = begun(store, "ended")
    run_sql(f"UPDATE {settings['db_schema']}.jackfield_runs SET changed = now() - interval '{hours} hours'")
    asyncio.run(store.append("ended", hold, [], state="finished"))
    other = make(keep_days=1)
    begun(other, "new", state="finished")
    assert [run.run_id for run in asyncio.run(other.runs())] == left


@pytest.mark.parametrize(
    ("others", "left"),
    [(0, ["old4", "old0"]), (3, ["old4", "old3", "old0", "held2", "held1", "held0"])],
    ids=["alone", "behind held ones"],
)
def test_a_run_that_is_held_is_kept_and_hides_no_other_from_the_cleaning(
    others: int,
    left: list[str],
    make: Make,
    settings: Mapping[str, Any],
    run_sql: Callable[[str], object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(store_module, "_MOST_CLEANED", 2)
    store, cleaner = make(), make(keep_days=1)
    for number in range(others):
        begun(store, f"held{number}", state="finished")
        asyncio.run(store.hold(f"held{number}"))
    for number in range(5):
        begun(store, f"old{number}", state="finished")
    run_sql(f"UPDATE {settings['db_schema']}.jackfield_runs SET changed = now() - interval '25 hours'")
    look = cleaner._is_held

    def overtaken(connection: Connection, run_id: str, owner: str | None, hold: int) -> bool:
        is_held = look(connection, run_id, owner, hold)
        if run_id == "old0" and not is_held:  # another process takes hold of it after the look
            asyncio.run(store.hold(run_id))
        return is_held

    monkeypatch.setattr(cleaner, "_is_held", overtaken)
    monkeypatch.setattr(store_module, "_RUNS_BETWEEN_CLEANINGS", 2)
    begun(cleaner, "new", state="finished")
    assert [run.run_id for run in asyncio.run(store.runs())] == ["new", *left], "about two are deleted at once"
    if others:
        return
    for run_id, runs in (("n2", 4), ("n3", 5), ("n4", 5)):  # the third one cleans again
        begun(cleaner, run_id, state="finished")
        assert len(asyncio.run(store.runs())) == runs, run_id


@pytest.mark.parametrize("work", ["hold", "delete"])
def test_a_run_is_locked_while_it_is_looked_at(
    work: str,
    make: Make,
    settings: Mapping[str, Any],
    run_sql: Callable[[str], object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = make()
    begun(store, "r", state="finished")
    look, free = store._is_held, list[object]()

    def watched(*looked_at: Any) -> bool:
        free.append(run_sql(f"SELECT 1 FROM {settings['db_schema']}.jackfield_runs FOR UPDATE SKIP LOCKED"))
        return look(*looked_at)

    monkeypatch.setattr(store, "_is_held", watched)
    asyncio.run(getattr(store, work)("r"))
    assert free == [[]], "no other process can take hold of it meanwhile"


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, (True, 30, False)),
        ({"content": False, "patience_s": 0, "recover": True}, (False, 0, True)),
    ],
    ids=["defaults", "settings"],
)
def test_its_settings_decide_what_is_kept_and_how_long_a_run_waits(
    more: dict[str, Any], expected: tuple[object, ...], make: Make
) -> None:
    store = make(**more)
    assert (store.content, store.patience_s, store.recover) == expected
    unset = {"dsn": None, "db_schema": "jackfield", "keep_days": None, "connections": 8, "timeout_s": 30}
    defaults = {**unset, "content": True, "patience_s": 30, "recover": False}
    assert store_module.PostgresStoreConfig().model_dump() == defaults
    assert [store._database._free.acquire(blocking=False) for _ in range(5)] == [True] * 4 + [False]


# --- signals ---


async def next_of(signals: Any) -> Signal:
    """Return the next signal that says something."""
    async with asyncio.timeout(60):
        while not (signal := await anext(signals)).run_id:
            pass
        return signal


def test_a_listener_hears_others_of_its_schema_and_nothing_else(
    make: Make, settings: Mapping[str, Any], run_sql: Callable[[str], Any]
) -> None:
    async def main() -> None:
        store, other, foreign = make(), make(), make(db_schema=f"{settings['db_schema']}_b")
        before = {*threading.enumerate()}
        signals = store.listen()
        assert await anext(signals) == Signal()
        [listening] = [one for one in {*threading.enumerate()} - before if one.name == "jackfield-postgres-signals"]
        await store.send("mine", "x")
        await foreign.send("foreign", "x")
        await asyncio.to_thread(run_sql, f"NOTIFY jackfield_{settings['db_schema']}, 'of another program'")
        await other.send("theirs", "text")
        assert await next_of(signals) == Signal("theirs", "text")
        # The thread has one connection, whose session listens.
        ended = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
        await asyncio.to_thread(run_sql, f"{ended} AND datname IS NOT NULL")
        async with asyncio.timeout(60):
            assert await anext(signals) == Signal(), "it has connected again"
        await other.send("theirs", "after an outage")
        assert await next_of(signals) == Signal("theirs", "after an outage")
        await signals.aclose()  # type: ignore[attr-defined]
        await asyncio.to_thread(listening.join, 60)
        assert not listening.is_alive()

    asyncio.run(main())


def test_a_user_who_may_not_write_is_told_so(make: Make, dsn: str, run_sql: Callable[[str], object]) -> None:
    run_sql("CREATE ROLE guest LOGIN")
    with pytest.raises(StoreError, match="the user lacks a privilege: grant it, or use another user"):
        begun(make(dsn=dsn.replace("postgres@", "guest@")), "r")


def test_a_server_that_is_not_there_is_reported_without_the_password() -> None:
    store = PostgresStore(dsn="postgresql://ada:hush-hush-hush@127.0.0.1:1/runs", host=plain_host())
    with pytest.raises(
        StoreError, match=r"the store cannot be used: PostgreSQL at 127\.0\.0\.1:1/runs cannot"
    ) as caught:
        asyncio.run(store.runs())
    assert type(caught.value) is StoreError, "what was never reached is no outage"
    assert "hush" not in str(caught.value)


def test_without_an_address_the_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JACKFIELD_STORE_DSN", raising=False)
    with pytest.raises(MissingSecretError, match="JACKFIELD_STORE_DSN"):
        PostgresStore(host=plain_host())
