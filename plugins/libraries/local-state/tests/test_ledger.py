"""A ledger: one after the other, whole, shared through a file, and no other program's file is touched."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

import pytest

from jackfield.errors import ConfigError
from jackfield_local_state.ledger import PATIENCE_S, BusyError, FileLedger, Ledger, MemoryLedger
from jackfield_local_state.ownfile import is_busy
from jackfield_testkit.forks import shared_forks


class Count:
    """A number."""

    def __init__(self, number: int = 0) -> None:
        self.number = number

    def up(self) -> int:
        self.number += 1
        return self.number

    def to_json(self) -> str:
        return str(self.number)

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(int(text))


def counts(path: Path, version: int = 1, patience_s: float = PATIENCE_S) -> FileLedger[Count]:
    return FileLedger(
        path, Count, application_id=7, version=version, owner="acme", what="the counts in", patience_s=patience_s
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "counts.sqlite"


@pytest.fixture
def ledger(path: Path) -> Iterator[FileLedger[Count]]:
    made = counts(path)
    yield made
    made.close()


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_threads_change_a_state_one_after_the_other(kind: str, path: Path) -> None:
    ledger: Ledger[Count] = MemoryLedger(Count) if kind == "memory" else counts(path)
    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(lambda _: ledger.change("a", Count.up), range(80)))
    assert sorted(seen) == list(range(1, 81))
    assert ledger.change("b", Count.up) == 1
    ledger.close()


def test_idle_states_are_forgotten_where_there_are_many() -> None:
    ledger = MemoryLedger(Count, is_idle=lambda count: count.number == 0)
    ledger.change("kept", Count.up)
    for number in range(1000):
        ledger.change(str(number), lambda count: count.number)
    assert len(ledger._states) < 100
    assert ledger.change("kept", Count.up) == 2


def test_the_file_is_made_at_first_use_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "counts.sqlite"
    ledger = counts(path)
    assert not path.parent.exists()
    ledger.change("a", Count.up)
    if os.name == "posix":
        assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}
    ledger.close()
    assert ledger.change("a", Count.up) == 2
    ledger.close()


@pytest.mark.parametrize("error", [KeyError, ValueError, KeyboardInterrupt])
def test_work_that_fails_changes_nothing_and_its_error_is_its_own(
    ledger: FileLedger[Count], error: type[BaseException]
) -> None:
    def fail(count: Count) -> None:
        count.up()
        raise error

    with pytest.raises(error) as caught:
        ledger.change("a", fail)
    assert type(caught.value) is error
    assert ledger.change("a", Count.up) == 1


def _corrupt(path: Path) -> None:
    path.write_bytes(b"this is no database, but somebody's diary " * 50)


def _foreign(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE diary (entry TEXT)")
    connection.close()


def _of_another_owner(path: Path) -> None:
    other = FileLedger(path, Count, application_id=8, version=1, owner="other", what="the counts in")
    other.change("a", Count.up)
    other.close()


def _newer(path: Path) -> None:
    newer = counts(path, version=2)
    newer.change("a", Count.up)
    newer.close()


def _garbled(path: Path) -> None:
    ledger = counts(path)
    ledger.change("a", Count.up)
    ledger.close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE states SET content = 'eleven'")
    connection.close()


@pytest.mark.parametrize("spoil", [_corrupt, _foreign, _of_another_owner, _newer, _garbled])
def test_a_file_that_cannot_be_used_is_named_and_left_as_it_is(path: Path, spoil: Callable[[Path], None]) -> None:
    spoil(path)
    before = path.read_bytes()
    ledger = counts(path)
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"the counts in .*counts\.sqlite cannot be used .*move it away"):
            ledger.change("a", Count.up)
    ledger.close()
    assert path.read_bytes() == before


def test_a_file_that_others_use_all_the_time_is_not_said_to_be_damaged(path: Path) -> None:
    ledger = counts(path, patience_s=0.05)
    ledger.change("a", Count.up)
    other = sqlite3.connect(ledger.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(BusyError, match=r"in use by other processes for 0\.05 s .*try again") as caught:
        ledger.change("a", Count.up)
    assert "move it away" not in str(caught.value)
    other.execute("ROLLBACK")
    other.close()
    with ledger._file.use(patience_s=1), ThreadPoolExecutor(1) as pool:  # another thread of this process
        assert isinstance(pool.submit(ledger.change, "a", Count.up).exception(20), BusyError)
    assert ledger.change("a", Count.up) == 2
    ledger.close()


@pytest.mark.parametrize("code", ["BUSY", "BUSY_RECOVERY", "BUSY_SNAPSHOT", "BUSY_TIMEOUT", "LOCKED_SHAREDCACHE"])
def test_whatever_sqlite_is_busy_with_it_is_busy(code: str) -> None:
    error = sqlite3.OperationalError("database is locked")
    error.sqlite_errorcode = getattr(sqlite3, f"SQLITE_{code}")
    assert is_busy(error)
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_READ
    assert not is_busy(error)
    assert not is_busy(sqlite3.ProgrammingError("closed"))  # of the module itself, which gives no code


def test_a_snapshot_that_is_too_old_is_busy_in_truth(path: Path) -> None:
    ledger = counts(path)
    ledger.change("a", Count.up)
    with ledger._file.use(patience_s=0) as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM states").fetchone()
        other = counts(path)
        other.change("a", Count.up)
        with pytest.raises(sqlite3.OperationalError) as caught:
            connection.execute("DELETE FROM states")
        connection.execute("ROLLBACK")
    assert caught.value.sqlite_errorcode == sqlite3.SQLITE_BUSY_SNAPSHOT
    assert is_busy(caught.value)
    ledger.close()
    other.close()


def test_an_event_loop_goes_on_while_another_process_writes(ledger: FileLedger[Count]) -> None:
    async def run() -> None:
        other = sqlite3.connect(ledger.path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        changing = [asyncio.ensure_future(way("a", Count.up)) for way in (ledger.achange, ledger.anote)]
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert not any(one.done() for one in changing)
        other.execute("ROLLBACK")  # by this loop: one that waited inside of SQLite would wait in vain
        other.close()
        await asyncio.gather(*changing)

    ledger.change("a", Count.up)
    asyncio.run(run())
    assert ledger.change("a", Count.up) == 4


def test_who_is_cancelled_has_changed_nothing_but_what_has_happened_is_written_down(ledger: FileLedger[Count]) -> None:
    def down(count: Count, up_to: int) -> None:
        seen.append(up_to)
        count.number -= 1

    async def run() -> None:
        other = sqlite3.connect(ledger.path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        changing = [
            asyncio.ensure_future(ledger.achange("undone", Count.up, undo=down)),
            asyncio.ensure_future(ledger.anote("noted", Count.up)),
        ]
        await asyncio.sleep(0.05)  # both wait in SQLite now
        for one in changing:
            one.cancel()
        await asyncio.wait(changing)
        assert all(one.cancelled() for one in changing)
        other.execute("ROLLBACK")
        other.close()

    seen: list[int] = []
    ledger.change("undone", Count.up)
    asyncio.run(run())
    ends = time.monotonic() + 20
    while (not seen or not ledger.change("noted", lambda count: count.number)) and time.monotonic() < ends:
        time.sleep(0.001)
    assert ledger.change("undone", lambda count: count.number) == 1
    assert ledger.change("noted", lambda count: count.number) == 1


posix = pytest.mark.skipif(os.name != "posix", reason="modes and owners are those of POSIX")


@posix
def test_a_file_that_others_could_read_is_closed_to_them(path: Path) -> None:
    first = counts(path)
    first.change("a", Count.up)
    for file in path.parent.iterdir():
        file.chmod(0o666)
    second = counts(path)
    assert second.change("a", Count.up) == 2
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}
    first.close()
    second.close()


@posix
@pytest.mark.parametrize("end", ["", "-wal", "-shm", "-journal"])
@pytest.mark.parametrize("kind", ["link", "dangling", "folder"])
def test_a_link_is_not_followed_and_nothing_but_a_file_is_taken(tmp_path: Path, end: str, kind: str) -> None:
    theirs = tmp_path / "diary"
    if kind != "dangling":
        theirs.write_text("dear diary")
        theirs.chmod(0o644)
    path = tmp_path / "counts.sqlite"
    first = counts(path)
    first.change("a", Count.up)
    first.close()  # now: SQLite removes its companions when it is closed, and that must not be what is put there
    there = path.with_name(path.name + end)
    there.unlink(missing_ok=True)
    if kind == "folder":
        there.mkdir()
    else:
        there.symlink_to(theirs)
    with pytest.raises(
        ConfigError, match="not a file" if kind == "folder" else "symbolic link, and links are not followed"
    ):
        counts(path).change("a", Count.up)
    assert theirs.exists() == (kind != "dangling")
    if kind != "dangling":
        assert (theirs.read_text(), stat.S_IMODE(theirs.stat().st_mode)) == ("dear diary", 0o644)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a file away")
def test_another_users_file_is_not_used(path: Path) -> None:
    ledger = counts(path)
    ledger.change("a", Count.up)
    ledger.close()
    os.chown(path, 54321, -1)
    with pytest.raises(ConfigError, match="is owned by another user"):
        ledger.change("a", Count.up)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_opens_the_file_for_itself_and_harms_nobody(ledger: FileLedger[Count]) -> None:
    ledger.change("a", Count.up)
    # As if another thread of the parent were using it.
    with ledger._file.use(patience_s=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads
        child = os.fork()
        if not child:
            signal.alarm(30)  # a child that waits for the parent's lock waits for ever
            os._exit(0 if ledger.change("a", Count.up) == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert ledger.change("a", Count.up) == 3


PROGRAM = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_ledger import Count, counts
ledger = counts(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
for _ in range(100):
    ledger.change("a", Count.up)
"""


def test_processes_that_make_the_file_at_one_moment_lose_nothing(ledger: FileLedger[Count], tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(ledger.path), str(Path(__file__).parent)]
    if forks := shared_forks("import pytest, jackfield_local_state.ledger"):
        forks.write_command(tmp_path / "counts", PROGRAM)
        command[:3] = [str(tmp_path / "counts")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    processes = [subprocess.Popen(command, text=True, **pipes) for _ in range(3)]
    for process in processes:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        _, complaints = process.communicate(timeout=60)
        assert (process.returncode, complaints) == (0, "")
    assert ledger.change("a", Count.up) == 301
