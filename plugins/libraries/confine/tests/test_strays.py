"""Processes with a mark in their environment are ended, and no others."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

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
