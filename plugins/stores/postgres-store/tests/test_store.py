"""What becomes of runs when a process, a connection or the server goes away."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from jackfield.errors import MissingSecretError, RunBusyError, StoreError
from jackfield.stores import StoredRun
from jackfield_postgres import Database
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
        with pytest.raises(RunBusyError, match="run r is running, here or in another process"):
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


def test_tables_of_a_newer_version_are_refused(
    make: Make, settings: Mapping[str, Any], run_sql: Callable[[str], object]
) -> None:
    begun(make(), "r", state="finished")
    run_sql(f"UPDATE {settings['db_schema']}.jackfield_store SET version = 99")
    with pytest.raises(
        StoreError, match="have version 99, and this jackfield-postgres-store reads version 3: pip install --upgrade"
    ):
        asyncio.run(make().read("r"))


def test_old_runs_are_deleted_and_those_that_somebody_runs_are_not(
    make: Make, settings: Mapping[str, Any], run_sql: Callable[[str], object]
) -> None:
    store = make()
    begun(store, "old", state="finished")
    begun(store, "running")
    run_sql(f"UPDATE {settings['db_schema']}.jackfield_runs SET changed = now() - interval '2 days'")
    other = make(keep_days=1)
    begun(other, "new", state="finished")
    assert [run.run_id for run in asyncio.run(other.runs())] == ["new", "running"]


def test_a_user_who_may_not_write_is_told_so(make: Make, dsn: str, run_sql: Callable[[str], object]) -> None:
    run_sql("CREATE ROLE guest LOGIN")
    with pytest.raises(StoreError, match="the user may not do this: grant the right, or use another user"):
        begun(make(dsn=dsn.replace("postgres@", "guest@")), "r")


def test_a_server_that_is_not_there_is_reported_without_the_password() -> None:
    store = PostgresStore(dsn="postgresql://ada:hush-hush-hush@127.0.0.1:1/runs", host=plain_host())
    with pytest.raises(
        StoreError, match=r"the store cannot be used: PostgreSQL at 127\.0\.0\.1:1/runs cannot"
    ) as caught:
        asyncio.run(store.runs())
    assert "hush" not in str(caught.value)


def test_without_an_address_the_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JACKFIELD_STORE_DSN", raising=False)
    with pytest.raises(MissingSecretError, match="JACKFIELD_STORE_DSN"):
        PostgresStore(host=plain_host())
