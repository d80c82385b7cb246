"""`make alone` tells tests that rely on each other from those that do not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

Run: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]

RELIES = """
made = []

def test_makes(): made.append(1)
def test_needs(): assert made
"""
SPOILS = """
made = []

def test_wants_nothing(): assert not made
def test_makes(): made.append(1)
"""
ENDS = """
import os

def test_ends(): os._exit(0)
def test_the_next(): pass
"""
HANGS = """
import time, pytest

@pytest.mark.timeout(0.5)
def test_hangs(): time.sleep(600)
def test_the_next(): pass
"""
OUTCOMES = """
import pytest

def test_passes(tmp_path): (tmp_path / "file").touch()
def test_skips(): pytest.skip("not here")
@pytest.mark.xfail
def test_is_expected_to_fail(): assert 0
@pytest.mark.slow
def test_is_slow(): assert 0
"""


@pytest.fixture
def run(root: Path, tmp_path: Path) -> Run:
    """Runs the script on a file of tests."""
    # Nothing else that is installed: what pytest loads by itself takes longer than the tests.
    plugins = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "pytest_timeout"}
    env = {**os.environ, **plugins}

    def run(text: str, *options: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  slow: it is")
        (tmp_path / "test_them.py").write_text(text)
        command = [sys.executable, str(root / "scripts/alone.py"), *options, str(tmp_path / "test_them.py")]
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)

    return run


def test_a_test_that_needs_an_earlier_one_fails_alone(run: Run) -> None:
    done = run(RELIES)
    assert done.returncode == 1
    assert re.search("FAILED .*::test_needs", done.stdout)
    assert "1 failed, 1 passed" in done.stdout


def test_a_test_that_spoils_another_is_seen_backwards_only(
    run: Run,
) -> None:
    assert run(SPOILS).returncode == 0
    done = run(SPOILS, "--backwards")
    assert done.returncode == 1
    assert re.search("FAILED .*::test_wants_nothing", done.stdout)


@pytest.mark.parametrize(("text", "how"), [(ENDS, "its process ended with the status 0"), (HANGS, "Timeout")])
def test_a_test_that_ends_its_process_or_hangs_has_failed_and_the_others_run(run: Run, text: str, how: str) -> None:
    done = run(text)
    assert done.returncode == 1
    assert how in done.stdout
    assert "1 failed, 1 passed" in done.stdout


@pytest.mark.parametrize("options", [(), ("--backwards",)])
def test_outcomes_are_what_they_are_elsewhere(run: Run, options: tuple[str, ...]) -> None:
    done = run(OUTCOMES, *options)
    assert done.returncode == 0, done.stdout
    assert "1 passed, 1 skipped, 1 deselected, 1 xfailed" in done.stdout


def test_what_has_not_begun_in_time_is_skipped(run: Run) -> None:
    done = run(RELIES, "--seconds", "0")
    assert done.returncode == 0
    assert "2 skipped" in done.stdout
