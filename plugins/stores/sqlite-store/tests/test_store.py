"""The file: whose it is, what is wrong with it, and how much is kept in it."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from jackfield.errors import RunBusyError, RunNotFoundError, StoreError, StoreUnavailableError
from jackfield.stores import Signal, StoredRun
from jackfield_sqlite_store import owners
from jackfield_sqlite_store import store as module
from jackfield_sqlite_store.owners import Owner, is_held
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
    before = os.umask(0)
    try:
        begun(make(), "r")
    finally:
        os.umask(before)
    files = [path, *path.parent.glob("runs.sqlite-*"), *path.parent.glob("runs.sqlite-owners/*")]
    assert len(files) == 5
    for file in files:
        assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0, file.name


@pytest.mark.parametrize(
    ("data_home", "setting", "file"),
    [
        ("data", None, "data/jackfield/runs.sqlite"),
        ("", None, ".local/share/jackfield/runs.sqlite"),
        ("data", "~/mine.sqlite", "mine.sqlite"),
    ],
)
def test_the_file_is_where_the_setting_says_or_where_the_user_keeps_data(
    data_home: str, setting: str | None, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / data_home) if data_home else "")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    store = SQLiteStore(path=setting)
    begun(store, "r")
    asyncio.run(store.aclose())
    assert (tmp_path / file).is_file()
    assert (tmp_path / "config").exists() is (setting is not None), "only a file elsewhere needs a note of its creator"


def test_a_file_is_foreign_unless_this_user_created_it(
    make: Make, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    store, other = make(), SQLiteStore(path=tmp_path / "other.sqlite")
    for one in (store, other):
        begun(one, "r", state="finished")
        assert asyncio.run(one.foreign_file()) is None
        asyncio.run(one.aclose())
    shutil.copy(tmp_path / "other.sqlite", tmp_path / "copy.sqlite")
    copy = SQLiteStore(path=tmp_path / "copy.sqlite")
    assert asyncio.run(copy.foreign_file()) == tmp_path / "copy.sqlite"
    asyncio.run(copy.aclose())
    (tmp_path / "other.sqlite").replace(path)
    assert asyncio.run(make().foreign_file()) == path, "another file at the place of one that this user created"
    (tmp_path / "data/jackfield").mkdir(parents=True)
    (tmp_path / "copy.sqlite").replace(tmp_path / "data/jackfield/runs.sqlite")
    of_user = SQLiteStore()
    assert asyncio.run(of_user.foreign_file()) is None, "the user's own data is never foreign"
    asyncio.run(of_user.aclose())


def test_runs_are_recorded_where_consent_cannot_be(
    make: Make, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    store = make()
    begun(store, "r")
    assert entries_of(store, "r") == ["first"]
    assert asyncio.run(store.foreign_file()) == path


@pytest.mark.parametrize(
    ("settings", "expected"),
    [({}, (True, 30, False)), ({"content": False, "patience_s": 0, "recover": True}, (False, 0, True))],
    ids=["defaults", "settings"],
)
def test_its_settings_decide_what_is_kept_and_how_long_a_run_waits(
    settings: dict[str, Any], expected: tuple[object, ...], make: Make
) -> None:
    store = make(**settings)
    assert (store.content, store.patience_s, store.recover) == expected
    unset = {"path": None, "keep_days": None, "max_mb": None, "max_run_mb": 256, "timeout_s": 10, "power_safe": False}
    assert SQLiteStore().config.model_dump() == {**unset, "content": True, "patience_s": 30, "recover": False}


@pytest.mark.parametrize(("power_safe", "mode"), [(False, 1), (True, 2)])
def test_only_a_power_safe_store_waits_for_the_disk_at_each_step(power_safe: bool, mode: int, make: Make) -> None:
    store = make(power_safe=power_safe)
    begun(store, "r")
    with store._file.use(patience_s=60) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (mode,)


# One child of it ends at once; another lives as long as stdin is open, and so longer than its parent.
HOLD = """
import asyncio, os, sys
from jackfield.stores import StoredRun
from jackfield_sqlite_store.store import SQLiteStore
store = SQLiteStore(path=sys.argv[1])
asyncio.run(store.create(StoredRun(run_id="r"), ["first"]))
if hasattr(os, "fork"):
    if not os.fork():
        sys.exit()
    os.wait()
if not hasattr(os, "fork") or not os.fork():
    print("held", flush=True)
    sys.stdin.read()
    os._exit(0)
sys.stdin.read()
"""


def test_a_run_is_free_when_the_process_that_held_it_was_killed(make: Make, path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout
        assert other.stdout.readline() == "held\n"
        store = make()
        with pytest.raises(RunBusyError, match="run r is still running, here or in another process"):
            asyncio.run(store.hold("r"))
        other.kill()
        other.wait()
        assert asyncio.run(store.hold("r")) == 2
        left = [one.name for one in (path.parent / "runs.sqlite-owners").iterdir()]
        assert left == [store._owner().name], "what the dead has left is removed"


@pytest.mark.parametrize("has_ranges", [owners._HAS_RANGES, False], ids=["this system", "without locks of ranges"])
def test_a_lock_ends_with_its_hold_and_after_the_last_one_nothing_is_left(
    has_ranges: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owners, "_HAS_RANGES", has_ranges)
    owner = Owner(tmp_path / "owners")
    one, other = owner.take(), owner.take()
    handles = Path("/proc/self/fd")
    count = len([*handles.iterdir()]) if handles.exists() else 0
    for _ in range(20):
        assert is_held(tmp_path / "owners", one)
    assert not count or len([*handles.iterdir()]) == count
    owner.drop(one)
    assert [is_held(tmp_path / "owners", hold) for hold in (one, other)] == [False, True]
    owner.close()
    owner.drop(other)  # late, and nothing is left to drop
    assert list((tmp_path / "owners").iterdir()) == []
    assert not is_held(tmp_path / "owners", other)


def test_a_child_holds_nothing_of_its_parent_and_releases_nothing(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    store, parent = make(), os.getpid()
    hold = begun(store, "r")
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: parent + 1)
        with pytest.raises(RunBusyError, match="no longer owned by this process"):
            asyncio.run(store.append("r", hold, ["of the child"]))
        asyncio.run(store.release("r", hold))
        assert asyncio.run(store.read("r"))[0].is_held
        store._owner().close()
        store._file.close()
    asyncio.run(store.append("r", hold, ["second"]))
    assert entries_of(store, "r") == ["first", "second"]


FORKS = """
import os, sys
from pathlib import Path
from jackfield_sqlite_store.owners import Owner, is_held

folder = Path(sys.argv[1])

def run_in_child(work):
    if not (child := os.fork()):
        work()
        os._exit(0)
    os.waitpid(child, 0)

owner = Owner(folder)
hold = owner.take()
run_in_child(owner.close)
print("after a child closed its copy:", is_held(folder, hold))

reader, writer = os.pipe()
has_begun, beginning = os.pipe()
if not os.fork():
    os.close(writer)
    os.write(beginning, b"x")
    os.read(reader, 1)  # until the parent closes its end
    os._exit(0)
os.read(has_begun, 1)
os.close(owner._handles[""])  # as at the end of the parent, which a child survives
print("after the parent ended:", is_held(folder, hold))
os.close(writer)

other = Owner(folder)
number = other._handles[""]
other.close()
os.dup2(os.open(os.devnull, os.O_WRONLY), number)
def write():
    os.write(number, b"x")
    print("the child of a closed owner keeps other files of that number", flush=True)
run_in_child(write)
"""


def test_a_forked_child_neither_ends_nor_prolongs_the_locks_of_its_parent(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-u", "-c", FORKS, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.splitlines() == [
        "after a child closed its copy: True",
        "after the parent ended: False",
        "the child of a closed owner keeps other files of that number",
    ]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ("UPDATE runs SET hold = hold + 1", RunBusyError),
        ("UPDATE runs SET owner = 'another:1'", RunBusyError),
        ("DELETE FROM runs", RunNotFoundError),
    ],
)
@pytest.mark.parametrize("resumed", [False, True], ids=["from its beginning", "after a pause"])
@pytest.mark.parametrize("state", ["running", "finished"])
@pytest.mark.parametrize("late", [["late"], []], ids=["an entry", "nothing"])
def test_a_run_that_was_lost_to_another_process_gets_no_entry_and_its_lock_ends(
    change: str, error: type[StoreError], resumed: bool, state: str, late: list[str], make: Make
) -> None:
    store = make()
    hold = begun(store, "r", state="approval_needed" if resumed else "")
    if resumed:
        hold = asyncio.run(store.hold("r"))
    before = [run.state for run in asyncio.run(store.runs())]
    locks = [held.owner for held in store._held.values()]
    with store._file.use(patience_s=60) as connection:
        connection.execute(change)
    with pytest.raises(error):
        asyncio.run(store.append("r", hold, late, state=state))
    with store._file.use(patience_s=60) as connection:
        assert connection.execute("SELECT count(*) FROM entries").fetchone() == (0,)
    if error is RunBusyError:
        run, entries = asyncio.run(make().read("r"))
        assert ([run.state], entries) == (before, ["first"])
    assert [is_held(store._folder, lock) for lock in locks] == [False]
    with pytest.raises(RunBusyError, match="no longer owned by this process"):
        asyncio.run(store.append("r", hold, ["later"]))


@pytest.mark.parametrize("cancelled", [False, True], ids=["waits", "gives up"])
@pytest.mark.parametrize("work", ["create", "hold"])
def test_a_wait_for_the_file_ends_with_one_hold_or_none_if_its_caller_gives_up(
    cancelled: bool, work: str, make: Make, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, began, done = make(timeout_s=300), threading.Event(), threading.Event()
    begun(store, "r", state="finished")
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    in_thread = store._work

    def observed(work: Any, patience_s: float) -> Any:
        if patience_s:
            began.set()
        try:
            return in_thread(work, patience_s)
        finally:
            if patience_s:
                done.set()

    monkeypatch.setattr(store, "_work", observed)

    async def main() -> None:
        waiting = store.hold("r") if work == "hold" else store.create(StoredRun(run_id="new"), ["first"])
        task = asyncio.create_task(waiting)
        assert await asyncio.to_thread(began.wait, 60)
        if cancelled:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        other.execute("COMMIT")
        assert await asyncio.to_thread(done.wait, 60)
        if not cancelled:
            await task

    asyncio.run(main())
    other.close()
    run, _ = asyncio.run(make().read("r" if work == "hold" else "new"))
    assert run.is_held is not cancelled
    owner = store._owner()
    taken = int(owner.take().partition(":")[2])
    held = [number for number in range(1, taken) if is_held(store._folder, f"{owner.name}:{number}")]
    assert len(held) == (0 if cancelled else 1), "the attempt that found the file locked keeps no lock"


def test_signals_are_kept_for_a_minute(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000_000.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: now[0]))
    store = make()
    counts = []
    for seconds in (0, 60, 1):
        now[0] += seconds
        asyncio.run(store.send("r", "text"))
        with store._file.use(patience_s=60) as connection:
            counts += connection.execute("SELECT count(*) FROM signals").fetchone()
    assert counts == [1, 2, 2]


def test_a_listener_hears_of_each_write_of_others_also_after_an_outage(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        store, other = make(), make()
        signals = store.listen()
        async with asyncio.timeout(60):
            assert await anext(signals) == Signal()
            hold = await other.create(StoredRun(run_id="r"), ["first"])
            assert await anext(signals) == Signal()
            used, outages = store._used, iter(range(2))

            async def failing(work: Any) -> Any:
                if next(outages, None) is not None:
                    raise StoreUnavailableError("locked")
                return await used(work)

            monkeypatch.setattr(store, "_used", failing)
            await other.append("r", hold, ["second"])
            assert await anext(signals) == Signal()
            await other.send("r", "text")
            assert [await anext(signals), await anext(signals)] == [Signal(), Signal("r", "text")]
            assert next(outages, None) is None
        await signals.aclose()  # type: ignore[attr-defined]

    asyncio.run(main())


# --- what is wrong with it ---


def failed_as(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("it failed")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("error", "kind", "step"),
    [
        (OSError(errno.ENOSPC, "no room"), StoreUnavailableError, ". Free some disk space; existing records are kept"),
        (OSError(errno.EDQUOT, "no room"), StoreUnavailableError, ". Free some disk space; existing records are kept"),
        (failed_as(sqlite3.SQLITE_FULL), StoreUnavailableError, ". Free some disk space; existing records are kept"),
        (failed_as(sqlite3.SQLITE_IOERR | 3 << 8), StoreUnavailableError, "check the disk; existing records are kept"),
        (
            failed_as(sqlite3.SQLITE_READONLY),
            StoreError,
            ". Allow writing to the file and its folder, or set a different",
        ),
        (failed_as(sqlite3.SQLITE_CANTOPEN), StoreError, ". Allow writing to its folder, or set a different path"),
        (failed_as(sqlite3.SQLITE_CORRUPT), StoreError, "corrupted or truncated: move it away, or restore it"),
        (
            failed_as(sqlite3.SQLITE_NOTADB),
            StoreError,
            ". It is not an SQLite file: move it away, or set a different path",
        ),
        (OSError(errno.EACCES, "no"), StoreError, "cannot be used: no. Allow writing there, or set a different path"),
        (OSError(errno.ENOTDIR, "no", "/srv/x"), StoreError, "cannot be used: no (/srv/x). Allow writing there"),
    ],
    ids=[
        "no space",
        "quota",
        "full",
        "input/output",
        "read-only",
        "cannot open",
        "corrupt",
        "no database",
        "no right",
        "no folder",
    ],
)
def test_only_what_may_pass_is_an_outage_and_each_failure_names_a_step(
    error: Exception, kind: type[StoreError], step: str, make: Make
) -> None:
    def work(_connection: sqlite3.Connection) -> None:
        raise error

    with pytest.raises(StoreError) as caught:
        asyncio.run(make()._used(work))
    assert type(caught.value) is kind
    assert step in str(caught.value)


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
    with pytest.raises(StoreError, match=r"disk is full\. Free some disk space; existing records are kept"):
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
    with pytest.raises(StoreError, match="corrupted or truncated"):
        entries_of(make(), "r")


def test_what_is_no_database_is_left_as_it_is(make: Make, path: Path) -> None:
    path.write_text("Dear diary, " * 1000)
    with pytest.raises(StoreError, match="It is not an SQLite file: move it away, or set a different path"):
        begun(make(), "r")
    assert path.read_text().startswith("Dear diary")


def test_the_database_of_another_program_is_left_as_it_is(make: Make, path: Path) -> None:
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE runs (race TEXT)")
    other.close()
    with pytest.raises(StoreError, match="it is a database of another program"):
        begun(make(), "r")


def test_a_store_of_a_newer_version_is_left_as_it_is(make: Make, path: Path) -> None:
    store = make()
    begun(store, "r", state="finished")
    asyncio.run(store.aclose())
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA user_version = 99")
    other.close()
    with pytest.raises(
        StoreError, match=r"version 99, but this jackfield-sqlite-store only reads version 6\. Install the version"
    ):
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


def test_a_run_has_the_times_of_its_beginning_and_of_its_last_change_of_state(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: now[0]))
    store = make()
    hold, times = begun(store, "r"), []
    for entries, state in ((["a"], "running"), (["b"], "approval_needed"), (["c"], "running"), (["d"], "running")):
        now[0] += 1
        asyncio.run(store.append("r", hold, entries, state=state))
        run, _ = asyncio.run(store.read("r"))
        times.append((run.began, run.changed))
        if state != "running":
            hold = asyncio.run(store.hold("r"))
    assert times == [(100, 100), (100, 102), (100, 103), (100, 103)]


# --- how much is kept ---


def test_the_oldest_that_have_ended_make_room(make: Make) -> None:
    store = make()
    for number, state in enumerate(["finished", "approval_needed", "failed", "finished"]):
        begun(store, f"r{number}", "x" * 1_000_000, state=state)
    other = make(max_mb=2.5)
    begun(other, "new", state="finished")
    assert [run.run_id for run in asyncio.run(other.runs())] == ["new", "r3", "r1"], "r1 waits for an answer"


@pytest.mark.parametrize("limit", [{"max_mb": 0.5}, {"keep_days": 1}], ids=["size", "age"])
def test_only_a_run_that_has_ended_is_deleted(
    limit: dict[str, Any], make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1_000_000.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: now[0]))
    store, holding = make(), make()
    states = ("", "approval_needed", "input_needed", "finished", "failed", "cancelled")
    for state in states:
        begun(store, state or "interrupted", "x" * 1_000_000, state=state)
    asyncio.run(store.aclose())  # a run of a process that has ended is held no longer
    begun(holding, "resumed", "x" * 1_000_000, state="finished")
    asyncio.run(holding.hold("resumed"))
    now[0] += 2 * 86_400
    other = make(**limit)
    begun(other, "new", state="finished")
    left = [run.run_id for run in asyncio.run(other.runs())]
    assert left == ["new", "resumed", "input_needed", "approval_needed", "interrupted"]


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


def test_limits_are_enforced_at_the_first_run_and_after_each_hundred(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1_000_000.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: now[0]))
    store = make(keep_days=1)
    begun(store, "old", state="finished")
    now[0] += 2 * 86_400
    for number in range(100):
        begun(store, f"r{number}", state="finished")
    assert entries_of(store, "old") == ["first"]
    begun(store, "last", state="finished")
    with pytest.raises(RunNotFoundError):
        entries_of(store, "old")


def test_nothing_is_kept_of_a_run_that_has_ended_or_of_a_closed_store(make: Make) -> None:
    store = make()
    ended, held = begun(store, "ended"), begun(store, "held")
    locks = [one.owner for one in store._held.values()]
    asyncio.run(store.append("ended", ended, [], state="finished"))
    assert ([*store._held], [is_held(store._folder, lock) for lock in locks]) == (["held"], [False, True])
    asyncio.run(store.release("held", held + 1))  # of a hold that it does not have
    asyncio.run(store.append("held", held, ["second"]))
    asyncio.run(store.aclose())
    assert ([*store._held], [is_held(store._folder, lock) for lock in locks]) == ([], [False, False])


def test_a_run_without_entries_has_none(make: Make) -> None:
    store = make()
    hold = asyncio.run(store.create(StoredRun(run_id="r"), []))
    assert (asyncio.run(store.read("r"))[0].entries, entries_of(store, "r")) == (0, [])
    asyncio.run(store.append("r", hold, ["first"], state="finished"))
    assert (asyncio.run(store.read("r"))[0].entries, entries_of(store, "r")) == (1, ["first"])


def test_a_deleted_run_leaves_no_entry(make: Make) -> None:
    store = make()
    hold = begun(store, "r")
    asyncio.run(store.append("r", hold, ["second", "third"]))
    asyncio.run(store.append("r", hold, [], state="finished"))
    asyncio.run(store.delete("r"))
    with store._file.use(patience_s=60) as connection:
        assert connection.execute("SELECT count(*) FROM entries").fetchone() == (0,)


@pytest.mark.parametrize(("size", "is_full"), [(300, False), (301, True)])
@pytest.mark.parametrize("resumed", [False, True], ids=["at once", "after a pause"])
def test_all_entries_of_a_run_count_up_to_its_limit(size: int, is_full: bool, resumed: bool, make: Make) -> None:
    store = make(max_run_mb=0.001)
    hold = begun(store, "r", "x" * 400)
    asyncio.run(store.append("r", hold, ["x" * 300], state="finished" if resumed else "running"))
    if resumed:
        hold = asyncio.run(store.hold("r"))
    if is_full:
        with pytest.raises(StoreError, match="the record of run r is full"):
            asyncio.run(store.append("r", hold, ["x" * size]))
    else:
        asyncio.run(store.append("r", hold, ["x" * size]))
    assert sum(map(len, entries_of(store, "r"))) == (700 if is_full else 1000)


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
# The last run shares less with the one that is deleted than that one shares with the first.
@example(([("s", SPEECHES), ("s", [*SPEECHES, SPEECHES[0]]), ("s", [*SPEECHES[:2], SPEECHES[0]])], [1]))
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
            for number in (None, *deleted):
                if number is not None:
                    await store.delete(f"r{number}")
                    del expected[f"r{number}"]
                for run_id, entries in expected.items():
                    assert (await store.read(run_id))[1] == entries
                    assert (await store.read(run_id, after=1))[1] == entries[1:]
            await store.aclose()

        asyncio.run(keep())


def talk(store: SQLiteStore, turns: int, session: str = "r", *, step: int = 990) -> list[str]:
    """Record the runs of a conversation that grows by about `step` bytes a turn; return their ids."""
    said = ""
    for number in range(turns):
        said += f"word{number} " + "x" * step
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


@pytest.mark.parametrize("step", [990, 2000], ids=["in the run's row", "among the entries"])
def test_a_search_finds_a_run_that_shares_its_beginning(step: int, make: Make) -> None:
    store = make()
    runs = talk(store, 3, step=step)
    for _ in range(2):
        assert [run.run_id for run in asyncio.run(store.search("word1"))] == ["r2", "r1"]
        asyncio.run(store.append("r2", asyncio.run(store.hold(runs[2])), ["more"], state="finished"))
    asyncio.run(store.delete("r1"))
    assert [run.run_id for run in asyncio.run(store.search("word1 word0"))] == ["r2"]
    with store._file.use(patience_s=60) as connection:
        texts = [text for (text,) in connection.execute("SELECT text FROM texts")]
    assert [[text.count(f"word{number}") for number in range(3)] for text in texts] == [[1, 0, 0], [1, 1, 1]]


def test_a_search_finds_every_later_step_of_a_run_that_shares_its_beginning(make: Make) -> None:
    store = make()
    hold = asyncio.run(store.hold(talk(store, 3)[-1]))
    for word in ("zebra", "yak"):
        said = {"event": "TurnFinished", "messages": [{"role": "assistant", "content": word}]}
        asyncio.run(store.append("r2", hold, [json.dumps(said)]))
    for word in ("word2", "zebra", "yak"):
        assert [run.run_id for run in asyncio.run(store.search(word))] == ["r2"]


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
