"""Processes with a mark in their environment are ended, and no others."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jackfield_confine import strays
from jackfield_confine.strays import end_marked

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="only Linux has process descriptors")
MARK = "JACKFIELD_TEST_MARK"
WAITING = "import os, time; print('ready', flush=True); os.unsetenv('JACKFIELD_TEST_MARK'); time.sleep(60)"


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Three processes: one with the mark, one with a longer one, and one without."""
    started = [
        subprocess.Popen([sys.executable, "-S", "-c", WAITING], env={name: value}, stdout=subprocess.PIPE)
        for name, value in ((MARK, "one"), (MARK, "one more"), ("OTHER", "one"))
    ]
    for process in started:
        assert process.stdout
        process.stdout.readline()
    yield started
    for process in started:
        process.kill()
        process.communicate()


def test_only_marked_processes_are_ended(processes: list[subprocess.Popen[bytes]]) -> None:
    end_marked(MARK, "one")
    assert processes[0].wait(20) == -9
    assert [process.poll() for process in processes[1:]] == [None, None]


def test_looking_at_processes_leaves_no_descriptor_open(processes: list[subprocess.Popen[bytes]]) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    end_marked(MARK, "one")
    end_marked(MARK, "no such mark")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize(
    ("rounds", "marked", "looked_at"),
    [
        ([[1, 2], [3], [4]], {1}, [1, 2, 3]),
        ([[1, 2], [3], [4]], {2, 3}, [1, 2, 3, 4]),
        ([[1, 2], [3]], set(), [1, 2]),
    ],
)
def test_processes_are_looked_at_again_until_none_is_marked(
    rounds: list[list[int]], marked: set[int], looked_at: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = iter(rounds)
    seen: list[int] = []

    def end_if_marked(pid: int, mark: bytes) -> bool:
        assert mark == f"{MARK}=one".encode()
        seen.append(pid)
        return pid in marked

    monkeypatch.setattr(strays, "_processes", lambda: next(found))
    monkeypatch.setattr(strays, "_end_if_marked", end_if_marked)
    end_marked(MARK, "one")
    assert seen == looked_at


def test_processes_that_start_others_for_ever_are_looked_at_a_hundred_times(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    monkeypatch.setattr(strays, "_processes", lambda: [1])
    monkeypatch.setattr(strays, "_end_if_marked", lambda pid, _: seen.append(pid) is None)
    end_marked(MARK, "one")
    assert len(seen) == 100


def test_where_there_are_no_process_descriptors_none_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strays, "_processes", lambda: pytest.fail("processes are looked at"))
    monkeypatch.delattr(os, "pidfd_open")
    end_marked(MARK, "one")
