"""What holds for the run of all tests: it ends, it is the same each time, and it looks at no clock."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

INI = """
[pytest]
timeout = 0.5
addopts = -p no:cacheprovider
"""
LOCKED = """
import re, threading

def wait_for_ever():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
"""
STUCK = {
    "on the main thread": "def test_it(): wait_for_ever()",
    "in a thread": """
def test_it():
    threading.Thread(target=wait_for_ever).start()
    threading.Event().wait()
""",
    "in a fixture's end": """
import pytest

@pytest.fixture
def stuck():
    yield
    wait_for_ever()

def test_it(stuck): wait_for_ever()
""",
    "in an expression": "def test_it(): assert re.match('(a|aa)+b', 'a' * 64), 'not wait_for_ever'",
    "in a loop that swallows all": """
def test_it():
    while True:
        try:
            wait_for_ever()
        except BaseException:
            pass
""",
}
# What the alarm does not end.
ENDS = {"in a fixture's end", "in a loop that swallows all"}


@pytest.fixture
def run_tests(root: Path, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs tests of a module's text with the repository's conftest, and half a second for each test."""

    def run(text: str, *options: str) -> subprocess.CompletedProcess[str]:
        shutil.copy(root / "conftest.py", tmp_path)
        (tmp_path / "pytest.ini").write_text(INI)
        (tmp_path / "test_stuck.py").write_text(f"{LOCKED}\n{text}\n\ndef test_the_next(): pass\n")
        env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        command = [sys.executable, "-m", "pytest", "-q", *options]
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False)

    return run


@pytest.mark.parametrize("where", STUCK)
def test_a_deadlock_fails_with_a_stack_and_the_run_ends(
    run_tests: Callable[..., subprocess.CompletedProcess[str]], where: str
) -> None:
    done = run_tests(STUCK[where])
    assert done.returncode != 0
    said = done.stdout + done.stderr
    assert "wait_for_ever" in said, "where it stands"
    assert ("1 failed, 1 passed" in said) == (where not in ENDS)
    # A thread that is left keeps the process from ending; so do those above, and all are ended in the same way.
    assert ("Timeout (0:00:0" in said) == (where in {*ENDS, "in a thread"})


@pytest.mark.parametrize("where", sorted(ENDS))
def test_a_worker_that_had_to_be_ended_fails_its_test_and_the_others_run(
    run_tests: Callable[..., subprocess.CompletedProcess[str]], where: str
) -> None:
    done = run_tests(STUCK[where], "-n", "2")
    assert done.returncode == 1
    assert "wait_for_ever" in done.stderr, "where it stands"
    assert re.search(r"worker 'gw\d' crashed while running 'test_stuck.py::test_it'", done.stdout)
    assert "1 passed" in done.stdout
