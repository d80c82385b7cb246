"""What holds for the run of all tests: it ends, it is the same each time, and it looks at no clock."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

from jackfield_testkit.forks import Forks, shared_forks

INI = """
[pytest]
timeout = 60
timeout_grace = {grace_s}
addopts = --strict-markers --dist worksteal
markers =
    nightly: in depth
    slow: of more than a few seconds
"""
LOCKED = """
import re, threading
import pytest

def wait_for_ever():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()

LIMITED = pytest.mark.timeout(0.5)
"""
STUCK = {
    "on the main thread": "@LIMITED\ndef test_it(): wait_for_ever()",
    "in a thread": """
@LIMITED
def test_it():
    threading.Thread(target=wait_for_ever, daemon=True).start()
    threading.Event().wait()
""",
    "in a fixture's end": """
@pytest.fixture
def stuck():
    yield
    wait_for_ever()

@LIMITED
def test_it(stuck): wait_for_ever()
""",
    "in an expression": "@LIMITED\ndef test_it(): assert re.match('(a|aa)+b', 'a' * 64), 'not wait_for_ever'",
    "in a loop that swallows all": """
@LIMITED
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
LEFT = "def test_it(): threading.Thread(target=wait_for_ever).start()"


# What the conftest and each run of pytest import first; not what is loaded as a plugin, which pytest rewrites.
PYTEST = "import hypothesis, pytest, _pytest.pytester"
RUN = "import sys, pytest; status = pytest.main(sys.argv[1:]); sys.stdout.flush(); sys.exit(status)"


@pytest.fixture
def environment(root: Path) -> dict[str, str]:
    """Of a run of made tests: with the plugins that it needs, and without those that are installed."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    plugins = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "pytest_timeout,xdist.plugin"}
    return {**env, **plugins, "PYTHONPATH": str(root)}


@pytest.fixture
def write_tests(root: Path, tmp_path: Path) -> Callable[[Mapping[str, str]], None]:
    """Writes files of tests beside the repository's conftest."""

    def write(files: Mapping[str, str], grace_s: float = 60) -> None:
        shutil.copy(root / "conftest.py", tmp_path)
        (tmp_path / "pytest.ini").write_text(INI.format(grace_s=grace_s))
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)

    return write


@pytest.fixture
def run_made(tmp_path: Path, environment: dict[str, str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs pytest on the written tests."""

    def run(*options: str, **more: str) -> subprocess.CompletedProcess[str]:
        env = environment | more
        if forks := shared_forks(PYTEST):
            return forks.run(RUN, "-q", *options, cwd=tmp_path, env=env, timeout_s=120)
        command = [sys.executable, "-c", RUN, "-q", *options]
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False)

    return run


@pytest.fixture
def run_tests(
    write_tests: Callable[..., None], run_made: Callable[..., subprocess.CompletedProcess[str]]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs tests of a module's text."""

    def run(text: str, *options: str, grace_s: float = 60, **more: str) -> subprocess.CompletedProcess[str]:
        write_tests({"test_stuck.py": f"{LOCKED}\n{text}\n\ndef test_the_next(): pass\n"}, grace_s)
        return run_made(*options, **more)

    return run


@pytest.mark.parametrize("where", STUCK)
def test_a_deadlock_fails_with_a_stack_and_the_run_ends(
    run_tests: Callable[..., subprocess.CompletedProcess[str]], where: str
) -> None:
    done = run_tests(STUCK[where], grace_s=0.5 if where in ENDS else 60)
    assert done.returncode == 1
    said = done.stdout + done.stderr
    assert "wait_for_ever" in said, "where it stands"
    assert ("1 failed, 1 passed" in said) == (where not in ENDS)
    assert ("Timeout (0:00:0" in said) == (where in ENDS)


def test_a_thread_that_is_left_is_shown_and_the_run_ends(
    run_tests: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = run_tests(LEFT, grace_s=0.5)
    assert done.returncode == 1
    assert "2 passed" in done.stdout
    assert "wait_for_ever" in done.stderr, "where it stands"
    assert run_tests(LEFT, "-n", "1").returncode == 0, "a worker waits for no thread"


@pytest.mark.parametrize("where", sorted(ENDS))
def test_a_worker_that_had_to_be_ended_fails_its_test_and_the_others_run(
    run_tests: Callable[..., subprocess.CompletedProcess[str]], where: str
) -> None:
    done = run_tests(STUCK[where], "-n", "2", grace_s=0.5)
    assert done.returncode == 1
    assert "wait_for_ever" in done.stderr, "where it stands"
    assert re.search(r"worker 'gw\d' crashed while running 'test_stuck.py::test_it'", done.stdout)
    assert "1 passed" in done.stdout


NIGHTLY = """
import pytest

@pytest.mark.nightly
def test_in_depth(): pass
"""


@pytest.mark.parametrize(("profile", "counted"), [("day", "1 passed, 1 deselected"), ("nightly", "2 passed")])
def test_what_is_marked_nightly_runs_at_night_only(
    run_tests: Callable[..., subprocess.CompletedProcess[str]], profile: str, counted: str
) -> None:
    assert counted in run_tests(NIGHTLY, HYPOTHESIS_PROFILE=profile).stdout


IN_A_HURRY = """
import time

def test_it():
    for _ in range(200):
        began = time.monotonic()
        time.sleep(0.01)
        assert time.monotonic() - began < 0.3
"""
EACH_STANDS_STILL = "from tests.support import stalls\n\nstalls.SHARE = 1.0\n"


def test_a_test_that_trusts_the_machine_fails_at_night_with_the_reason(
    write_tests: Callable[..., None], run_made: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    write_tests({"hurried/test_it.py": IN_A_HURRY, "hurried/conftest.py": EACH_STANDS_STILL})
    said = run_made("-p", "tests.support.stalls").stdout
    assert "1 failed" in said
    assert "The process stood still for 0.6 s after" in said


UNSTABLE_ID = """
import pytest

@pytest.mark.parametrize("value", [VALUE], ids=str)
def test_it(value): pass
"""


@pytest.mark.parametrize(
    ("value", "shown"),
    [("object()", "<object object at 0x"), ("{'effects': {'files', 'network'}}", "{'effects': {'")],
    ids=["an address", "a set"],
)
def test_an_id_that_differs_by_process_is_an_error_before_workers_disagree(
    write_tests: Callable[..., None], run_made: Callable[..., subprocess.CompletedProcess[str]], value: str, shown: str
) -> None:
    write_tests({"test_it.py": UNSTABLE_ID.replace("VALUE", value)})
    done = run_made()
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"test_it.py::test_it[{shown}" in done.stdout + done.stderr
    assert "give the cases names with ids=" in done.stdout + done.stderr


SLOW_LAST = """
import pytest

def test_quick(): pass

@pytest.mark.slow
def test_slow(): pass
"""


def test_slow_tests_begin_first(
    write_tests: Callable[..., None], run_made: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    write_tests({"test_it.py": SLOW_LAST})
    ran = re.findall(r"test_it.py::(\w+) PASSED", run_made("-vv").stdout)
    assert ran == ["test_slow", "test_quick"]


SLOW_AMONG_OTHERS = """
import pytest

def test_quick(): pass
def test_another(): pass

@pytest.mark.slow
@pytest.mark.parametrize("number", range(2))
def test_slow(number): pass
"""


def test_each_worker_begins_with_the_slow_tests_of_a_file(
    write_tests: Callable[..., None], run_made: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    write_tests({"test_a.py": SLOW_AMONG_OTHERS, "test_b.py": SLOW_AMONG_OTHERS, "test_c.py": "def test_it(): pass"})
    ran = re.findall(r"\[(gw\d)\] \[ *\d+%\] PASSED (\S+)", run_made("-vv", "-n", "2").stdout)
    assert len({test for _, test in ran}) == len(ran) == 9
    begun = {worker: [test for by, test in ran if by == worker][:2] for worker in ("gw0", "gw1")}
    slow = [[f"test_{file}.py::test_slow[{number}]" for number in range(2)] for file in "ab"]
    assert sorted(begun.values()) == slow


# Each test waits for the other, so that two workers have one each.
ASKS_FOR_FORKS = """
import os
import pytest
from jackfield_testkit.forks import shared_forks

@pytest.mark.parametrize(("name", "other"), [("a", "b"), ("b", "a")])
def test_it(name, other, tmp_path):
    for one in ("a", "b"):
        os.close(os.open(one, os.O_WRONLY if one == name else os.O_RDONLY))
    done = shared_forks("").run("import os; print(os.getppid())", cwd=tmp_path, env={})
    with open("servers", "a") as file:
        file.write(done.stdout)
"""


@pytest.mark.skipif(not Forks.are_possible, reason="needs forks")
def test_workers_share_the_process_that_forks(
    write_tests: Callable[..., None], run_made: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    write_tests({"test_it.py": ASKS_FOR_FORKS})
    for name in ("a", "b"):
        os.mkfifo(tmp_path / name)
    assert "2 passed" in run_made("-n", "2").stdout
    first, second = (tmp_path / "servers").read_text().split()
    assert first == second


def test_one_worker_compiles_a_module_and_the_others_wait_for_its_bytecode(
    request: pytest.FixtureRequest, root: Path
) -> None:
    conftest: Any = request.config.pluginmanager.get_plugin(str(root / "conftest.py"))
    first, second = (conftest.pytest_make_collect_report(request.node.parent) for _ in range(2))
    next(first)
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(next, second)
        assert not wait([waiting], timeout=0.1).done
        first.close()
        waiting.result(timeout=60)
    second.close()


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
    # Its subject is the processor time that a step of an event loop takes.
    texts = {path: text for path, text in texts.items() if path.stem.removeprefix("test_") != "loopwatch"}
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
