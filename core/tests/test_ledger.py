"""A ledger: one after the other, whole, shared through a file, and no other program's file is touched."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

import pytest

from jackfield.errors import ConfigError
from jackfield.ledger import BusyError, FileLedger, Ledger, MemoryLedger


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


def counts(path: Path, version: int = 1) -> FileLedger[Count]:
    return FileLedger(path, Count, application_id=7, version=version, owner="acme", what="the counts in")


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


@pytest.mark.parametrize("spoil", [_corrupt, _foreign, _newer, _garbled])
def test_a_file_that_cannot_be_used_is_named_and_left_as_it_is(path: Path, spoil: Callable[[Path], None]) -> None:
    spoil(path)
    before = path.read_bytes()
    ledger = counts(path)
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"the counts in .*counts\.sqlite cannot be used .*move it away"):
            ledger.change("a", Count.up)
    ledger.close()
    assert path.read_bytes() == before


def test_who_is_not_patient_is_told_at_once_that_another_writes(ledger: FileLedger[Count]) -> None:
    ledger.change("a", Count.up)
    other = sqlite3.connect(ledger.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(BusyError):
        ledger.change("a", Count.up, patient=False)
    other.execute("ROLLBACK")
    other.close()
    assert ledger.change("a", Count.up, patient=False) == 2


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


def test_processes_that_make_the_file_at_one_moment_lose_nothing(ledger: FileLedger[Count]) -> None:
    command = [sys.executable, "-c", PROGRAM, str(ledger.path), str(Path(__file__).parent)]
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
