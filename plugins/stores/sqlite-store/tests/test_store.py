"""The file: whose it is, what is wrong with it, and how much is kept in it."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jackfield.errors import RunBusyError, StoreError
from jackfield.stores import StoredRun
from jackfield_sqlite_store import store as module
from jackfield_sqlite_store.store import SQLiteStore
from jackfield_testkit.forks import outputs_of

Make = Callable[..., SQLiteStore]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.sqlite"


@pytest.fixture
def make(path: Path) -> Iterator[Make]:
    made: list[SQLiteStore] = []

    def store(**settings: Any) -> SQLiteStore:
        made.append(SQLiteStore(path=path, **settings))
        return made[-1]

    yield store
    for one in made:
        asyncio.run(one.aclose())


def begun(store: SQLiteStore, run_id: str, *entries: str, state: str = "") -> int:
    hold = asyncio.run(store.create(StoredRun(run_id=run_id), entries or ["first"]))
    if state:
        asyncio.run(store.append(run_id, hold, [], state=state))
    return hold


def entries_of(store: SQLiteStore, run_id: str) -> list[str]:
    return asyncio.run(store.read(run_id))[1]


# --- whose it is ---


def test_only_its_user_can_read_it(make: Make, path: Path) -> None:
    begun(make(), "r")
    for file in (path, *path.parent.glob("runs.sqlite-*")):
        assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0, file.name


def test_without_a_path_it_is_where_the_user_keeps_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    store = SQLiteStore()
    begun(store, "r")
    asyncio.run(store.aclose())
    assert (tmp_path / "data/jackfield/runs.sqlite").is_file()


HOLD = """
import asyncio, sys
from jackfield.stores import StoredRun
from jackfield_sqlite_store.store import SQLiteStore
store = SQLiteStore(path=sys.argv[1])
asyncio.run(store.create(StoredRun(run_id="r"), ["first"]))
print("held", flush=True)
sys.stdin.read()
"""


def test_a_run_is_free_when_the_process_that_held_it_was_killed(make: Make, path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout
        assert other.stdout.readline() == "held\n"
        store = make()
        with pytest.raises(RunBusyError, match="run r is running, here or in another process"):
            asyncio.run(store.hold("r"))
        other.kill()
        other.wait()
        assert asyncio.run(store.hold("r")) == 2
        left = [one.name for one in (path.parent / "runs.sqlite-owners").iterdir()]
        assert left == [store._owner().name], "what the dead has left is removed"


# --- what is wrong with it ---


def test_a_store_that_others_use_for_too_long_is_locked(make: Make, path: Path) -> None:
    store = make(timeout_s=0.01)
    hold = begun(store, "r")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match=r"runs\.sqlite is locked: another process has been writing"):
        asyncio.run(store.append("r", hold, ["second"]))
    assert entries_of(store, "r") == ["first"], "whoever reads does not wait"
    other.execute("COMMIT")
    asyncio.run(store.append("r", hold, ["second"]))
    other.close()
    assert entries_of(store, "r") == ["first", "second"]


def test_a_step_waits_for_others_without_holding_up_the_event_loop(make: Make, path: Path) -> None:
    store = make(timeout_s=300)
    hold = begun(store, "r")
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")

    async def both() -> None:
        appending = asyncio.create_task(store.append("r", hold, ["second"]))
        await asyncio.sleep(0)  # it has tried, and waits in a thread
        assert not appending.done()
        other.execute("COMMIT")
        await appending

    asyncio.run(both())
    other.close()
    assert entries_of(store, "r") == ["first", "second"]


def test_a_full_disk_is_reported_and_costs_nothing_that_is_recorded(make: Make) -> None:
    store = make()
    hold = begun(store, "r")
    with store._file.use(patience_s=60) as connection:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError, match=r"disk is full\. Make room on the disk; what is recorded stays"):
        asyncio.run(store.append("r", hold, ["x" * 100_000]))
    assert entries_of(store, "r") == ["first"]
    with pytest.raises(StoreError, match="disk is full"):
        asyncio.run(store.append("r", hold, ["x" * 100_000], state="failed"))
    asyncio.run(store.release("r", hold))
    other = make()
    assert not asyncio.run(other.read("r"))[0].is_held, "it was let go, though the disk could not say so"
    with store._file.use(patience_s=60) as connection:
        connection.execute(f"PRAGMA max_page_count = {pages + 1000}")
    assert asyncio.run(other.hold("r")) == hold + 1
    asyncio.run(other.append("r", hold + 1, ["x" * 100_000], state="finished"))
    assert [len(entry) for entry in entries_of(store, "r")] == [5, 100_000]


def test_a_read_only_file_is_reported_and_can_be_read(make: Make) -> None:
    store = make()
    begun(store, "r", state="finished")
    with store._file.use(patience_s=60) as connection:
        connection.execute("PRAGMA query_only = ON")
    with pytest.raises(StoreError, match=r"readonly database\. Allow writing to the file and its folder"):
        begun(store, "other")
    assert entries_of(store, "r") == ["first"]


def test_of_a_log_that_was_cut_short_what_is_whole_is_there(make: Make, path: Path, tmp_path: Path) -> None:
    store = make()
    hold = begun(store, "r")
    for number in range(5):
        asyncio.run(store.append("r", hold, [f"{number} " + "x" * 3000]))
    copy = tmp_path / "copy.sqlite"
    shutil.copy(path, copy)
    log = path.with_name(path.name + "-wal").read_bytes()
    copy.with_name(copy.name + "-wal").write_bytes(log[:-10])
    short = SQLiteStore(path=copy)
    assert entries_of(short, "r") == entries_of(store, "r")[:-1]
    assert asyncio.run(short.hold("r")) == hold + 1
    asyncio.run(short.aclose())


def test_a_file_that_was_cut_short_is_reported(make: Make, path: Path) -> None:
    store = make()
    begun(store, "r", *["x" * 2000 for _ in range(50)], state="finished")
    asyncio.run(store.aclose())
    path.write_bytes(path.read_bytes()[:20_000])
    with pytest.raises(StoreError, match="damaged or cut short"):
        entries_of(make(), "r")


def test_what_is_no_database_is_left_as_it_is(make: Make, path: Path) -> None:
    path.write_text("Dear diary, " * 1000)
    with pytest.raises(StoreError, match="It is not an SQLite file: move it away, or set another path"):
        begun(make(), "r")
    assert path.read_text().startswith("Dear diary")


def test_the_database_of_another_program_is_left_as_it_is(make: Make, path: Path) -> None:
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE runs (race TEXT)")
    other.close()
    with pytest.raises(StoreError, match="it is another program's database"):
        begun(make(), "r")


def test_a_store_of_a_newer_version_is_left_as_it_is(make: Make, path: Path) -> None:
    store = make()
    begun(store, "r", state="finished")
    asyncio.run(store.aclose())
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA user_version = 99")
    other.close()
    with pytest.raises(StoreError, match="it has version 99, and this jackfield-sqlite-store reads 6"):
        entries_of(make(), "r")


def test_a_clock_that_is_set_back_changes_no_order_and_no_hold(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    store = make()
    times = iter(range(2_000_000_000, 0, -100_000_000))
    monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: float(next(times))))
    for number in range(3):
        begun(store, f"r{number}", state="failed")
    assert [run.run_id for run in asyncio.run(store.runs())] == ["r2", "r1", "r0"]
    assert asyncio.run(store.hold("r0")) == 2
    with pytest.raises(RunBusyError):
        asyncio.run(make().hold("r0"))


# --- how much is kept ---


def test_old_runs_are_deleted_and_those_that_somebody_runs_are_not(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000_000.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: now[0]))
    store = make(keep_days=1)
    begun(store, "old", state="finished")
    begun(store, "running")
    now[0] += 2 * 86_400
    other = make(keep_days=1)
    begun(other, "new", state="finished")
    assert [run.run_id for run in asyncio.run(other.runs())] == ["new", "running"]


def test_the_oldest_that_have_ended_make_room(make: Make) -> None:
    store = make()
    for number, state in enumerate(["finished", "approval_needed", "failed", "finished"]):
        begun(store, f"r{number}", "x" * 1_000_000, state=state)
    other = make(max_mb=2.5)
    begun(other, "new", state="finished")
    assert [run.run_id for run in asyncio.run(other.runs())] == ["new", "r3", "r1"], "r1 waits for an answer"


@pytest.mark.parametrize("state", ["running", "approval_needed", "input_needed", "finished", "failed", "cancelled"])
def test_only_a_run_that_has_ended_makes_room(state: str, make: Make) -> None:
    store = make()
    begun(store, "first", "x" * 1_000_000, state=state)
    asyncio.run(store.aclose())  # a run of a process that has ended is held no longer
    other = make(max_mb=0.5)
    begun(other, "new", state="finished")
    left = [run.run_id for run in asyncio.run(other.runs())]
    assert left == (["new"] if state in ("finished", "failed", "cancelled") else ["new", "first"])


@pytest.mark.parametrize(("spare", "left"), [(0, ["new", "r1", "r0"]), (-1, ["new", "r1"])])
def test_no_run_makes_room_before_the_limit_is_passed(spare: int, left: list[str], make: Make) -> None:
    store = make()
    for number in range(2):
        begun(store, f"r{number}", "x" * 1000, state="finished")
    size = sum(len(entry) for number in range(2) for entry in entries_of(store, f"r{number}"))
    other = make(max_mb=(size + spare) / 1e6)
    begun(other, "new", state="finished")
    assert [run.run_id for run in asyncio.run(other.runs())] == left


@pytest.mark.parametrize(("late_s", "left"), [(0, ["new", "old"]), (1, ["new"])])
def test_a_run_is_kept_for_all_of_its_days_since_its_last_change(
    late_s: int, left: list[str], make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1_000_000.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: now[0]))
    store = make(keep_days=2)
    hold = begun(store, "old")
    now[0] += 86_400
    asyncio.run(store.append("old", hold, ["end"], state="finished"))
    now[0] += 2 * 86_400 + late_s
    other = make(keep_days=2)
    begun(other, "new", state="finished")
    assert [run.run_id for run in asyncio.run(other.runs())] == left


def test_the_record_of_one_run_has_a_limit(make: Make) -> None:
    store = make(max_run_mb=0.001)
    hold = begun(store, "r")
    with pytest.raises(StoreError, match=r"the record of run r is full: max_run_mb is 0\.001"):
        asyncio.run(store.append("r", hold, ["x" * 1000]))
    with pytest.raises(StoreError, match="is full"):
        asyncio.run(store.append("r", hold, ["x" * 1000], state="failed"))
    run, entries = asyncio.run(store.read("r"))
    assert (run.state, run.is_held, entries) == ("failed", False, ["first"])


def test_many_processes_write_at_once(make: Make, path: Path) -> None:
    program = (
        "import asyncio, sys\nfrom jackfield.stores import StoredRun\n"
        "from jackfield_sqlite_store.store import SQLiteStore\n"
        "async def main():\n"
        "    store = SQLiteStore(path=sys.argv[1])\n"
        "    for number in range(20):\n"
        "        run_id = f'{sys.argv[2]} {number}'\n"
        "        hold = await store.create(StoredRun(run_id=run_id), ['a'])\n"
        "        await store.append(run_id, hold, ['b'])\n"
        "        await store.append(run_id, hold, ['c'], state='finished')\n"
        "asyncio.run(main())\n"
    )
    outputs_of(program, [(path, str(number)) for number in range(2)])
    store = make()
    assert len(asyncio.run(store.runs(limit=1000))) == 40
    assert all(entries_of(store, f"{who} {number}") == ["a", "b", "c"] for who in range(2) for number in range(20))


# --- what the runs of a conversation share ---

SPEECHES = [f"{letter} said " + letter * 150 for letter in "abc"]


@st.composite
def conversations(draw: st.DrawFn) -> tuple[list[tuple[str, list[str]]], list[int]]:
    """Return first entries of runs with their sessions, and an order in which some are deleted."""
    speeches = st.lists(st.sampled_from(SPEECHES), max_size=5)
    runs = draw(st.lists(st.tuples(st.sampled_from(["", "s", "t"]), speeches), min_size=1, max_size=8))
    return runs, draw(st.lists(st.integers(0, len(runs) - 1), unique=True))


@settings(max_examples=settings().max_examples // 2, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(conversations())
def test_every_run_stays_whole_whichever_others_are_deleted(
    tmp_path: Path, conversation: tuple[list[tuple[str, list[str]]], list[int]]
) -> None:
    runs, deleted = conversation
    with TemporaryDirectory(dir=tmp_path) as folder:
        store = SQLiteStore(path=Path(folder) / "runs.sqlite")

        async def keep() -> None:
            expected = {}
            for number, (session, speeches) in enumerate(runs):
                entries = [f"<{''.join(speeches)}>"] * (1 + number % 2)  # also with a second entry, as of a fork
                hold = await store.create(StoredRun(run_id=f"r{number}", session=session), entries)
                await store.append(f"r{number}", hold, ["end"], state="finished")
                expected[f"r{number}"] = [*entries, "end"]
            for number in deleted:
                await store.delete(f"r{number}")
                del expected[f"r{number}"]
                for run_id, entries in expected.items():
                    assert (await store.read(run_id))[1] == entries
                    assert (await store.read(run_id, after=1))[1] == entries[1:]
            await store.aclose()

        asyncio.run(keep())


def talk(store: SQLiteStore, turns: int, session: str = "r") -> list[str]:
    """Record the runs of a conversation that grows by 1,000 bytes a turn; return their ids."""
    said = ""
    for number in range(turns):
        said += f"word{number} " + "x" * 990
        first = json.dumps({"event": "RunStarted", "messages": [{"role": "user", "content": said}]})
        hold = asyncio.run(store.create(StoredRun(run_id=f"{session}{number}", session=session), [first]))
        asyncio.run(store.append(f"{session}{number}", hold, [], state="finished"))
    return [f"{session}{number}" for number in range(turns)]


def test_a_conversation_takes_space_for_what_is_new(make: Make, path: Path) -> None:
    store = make()
    runs = talk(store, 100)  # five megabytes, if each run had all of it
    with sqlite3.connect(path) as connection:
        (size,) = connection.execute("SELECT sum(bytes) FROM runs").fetchone()
        steps = connection.execute("SELECT count(*) FROM runs WHERE depth = 0").fetchone()
    assert 100_000 < size < 300_000
    assert steps == (4,)
    assert len(entries_of(store, runs[-1])[0]) > 99_000


def test_a_search_finds_a_run_that_shares_its_beginning(make: Make) -> None:
    store = make()
    runs = talk(store, 3)
    for _ in range(2):
        assert [run.run_id for run in asyncio.run(store.search("word1"))] == ["r2", "r1"]
        asyncio.run(store.append("r2", asyncio.run(store.hold(runs[2])), ["more"], state="finished"))
    asyncio.run(store.delete("r1"))
    assert [run.run_id for run in asyncio.run(store.search("word1 word0"))] == ["r2"]


def test_the_most_megabytes_hold_for_runs_that_take_over_what_they_shared(make: Make, path: Path) -> None:
    store = make(max_mb=0.015)
    talk(store, 10, "old")
    runs = talk(store, 10, "new")
    asyncio.run(store._in_worker(store._clean))
    assert [run.run_id for run in asyncio.run(store.runs())] == runs[::-1]
    asyncio.run(store.delete(runs[0]))
    with sqlite3.connect(path) as connection:
        (size,) = connection.execute("SELECT sum(bytes) FROM runs").fetchone()
        (beside,) = connection.execute("SELECT coalesce(sum(length(first)), 0) FROM runs").fetchone()
        (among,) = connection.execute("SELECT coalesce(sum(length(entry)), 0) FROM entries").fetchone()
    assert size == beside + among
    assert len(entries_of(store, runs[-1])[0]) > 9_900
