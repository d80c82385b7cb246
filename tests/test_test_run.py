"""What holds for the run of all tests: it ends, it is the same each time, and it looks at no clock."""

from __future__ import annotations

import ast
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
addopts = -p no:cacheprovider --strict-markers
markers =
    nightly: in depth
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
        env["PYTHONPATH"] = str(root)
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
    assert ", 1 passed" in done.stdout
    assert done.stdout.count("node down") == 1, "another worker was ended by the same test"


SECOND_TRY = ("-p", "scripts.second_try")
AT_FIRST = """
from pathlib import Path
import pytest

def is_first(name):
    Path(name).touch()
    Path(name).write_text(Path(name).read_text() + "x")
    return len(Path(name).read_text()) == 1

@pytest.fixture
def ends_badly():
    yield
    assert not is_first("in a fixture"), "the fixture"

class TestOfAClass:
    def test_with_a_fixture(self, ends_badly): pass
"""
ALWAYS = "\n".join(f"def test_always_{number}(): assert not is_first('{number}') and False" for number in range(4))


def test_a_test_that_passes_at_the_second_try_is_named_with_its_first_failure(
    run_tests: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = run_tests(AT_FIRST, *SECOND_TRY)
    assert done.returncode == 0
    assert "2 passed, 1 unsteady" in done.stdout
    assert "unsteady: test_stuck.py::TestOfAClass::test_with_a_fixture" in done.stdout
    assert "AssertionError: the fixture" in done.stdout


def test_what_fails_twice_fails(run_tests: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    done = run_tests(AT_FIRST.partition("@")[0] + ALWAYS, *SECOND_TRY)
    assert done.returncode == 1
    assert "4 failed, 1 passed" in done.stdout
    assert "unsteady" not in done.stdout
    tries = [(tmp_path / str(number)).read_text() for number in range(4)]
    assert tries == ["xx", "xx", "x", "x"], "many failures are no chance"


def test_nothing_is_tried_twice_unless_asked(run_tests: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = run_tests(AT_FIRST)
    assert done.returncode == 1
    assert "unsteady" not in done.stdout


NIGHTLY = """
import pytest

@pytest.mark.nightly
def test_in_depth(): pass
"""


@pytest.mark.parametrize(
    ("profile", "counted"), [("always-the-same", "1 passed, 1 deselected"), ("nightly", "2 passed")]
)
def test_what_is_marked_nightly_runs_at_night_only(
    run_tests: Callable[..., subprocess.CompletedProcess[str]],
    monkeypatch: pytest.MonkeyPatch,
    profile: str,
    counted: str,
) -> None:
    monkeypatch.setenv("HYPOTHESIS_PROFILE", profile)
    assert counted in run_tests(NIGHTLY).stdout


CLOCKS = re.compile(r"(process_time|perf_counter|thread_time)(_ns)?|register_profile|load_profile|deadline=None")


def test_no_test_measures_time_and_none_has_rules_of_its_own_for_examples(root: Path) -> None:
    """The monotonic clock may say when to give up waiting. What has to be measured is measured in benchmarks/."""
    folders = [
        root / "tests",
        root / "core/tests",
        *root.glob("plugins/*/*/tests"),
        root / "plugins/testing/testkit/src",
    ]
    texts = {path: path.read_text(encoding="utf-8") for folder in folders for path in folder.rglob("*.py")}
    looking = {path: named for path, text in texts.items() if CLOCKS.search(text) and (named := clocks_of(text))}
    assert not looking, "count steps instead; the root conftest.py alone has profiles"


def clocks_of(code: str) -> set[str]:
    """What code itself names; not what stands in a text, such as that of a plugin which is made to be slow."""
    nodes = list(ast.walk(ast.parse(code)))
    named = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    named |= {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
    named |= {ast.unparse(node) for node in nodes if isinstance(node, ast.keyword)}
    return {name for name in named if CLOCKS.fullmatch(name)}


@pytest.mark.parametrize("code", ["time.process_time()", "from time import perf_counter_ns", "settings(deadline=None)"])
def test_a_look_at_the_clock_is_noticed_in_code_and_not_in_a_text(code: str) -> None:
    assert clocks_of(code)
    assert not clocks_of(repr(code))
