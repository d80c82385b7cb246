"""What holds for the run of all tests: it ends, it is the same each time, and it looks at no clock."""

from __future__ import annotations

import ast
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest

from jackfield_testkit.forks import Forks, shared_forks

INI = """
[pytest]
timeout = 60
timeout_grace = {grace_s}
addopts = --strict-markers
markers =
    nightly: in depth
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
PYTEST = "import hypothesis, multiprocessing.connection, pytest, _pytest.pytester"
RUN = "import sys, pytest; status = pytest.main(sys.argv[1:]); sys.stdout.flush(); sys.exit(status)"


@pytest.fixture
def environment(root: Path) -> dict[str, str]:
    """Of a run of made tests: with the plugins that it needs, and without those that are installed."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    plugins = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "pytest_timeout"}
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
    assert "worker 0 ended with status 1 while it ran test_stuck.py::test_it" in done.stdout
    assert "1 failed, 1 passed" in done.stdout


NIGHTLY = """
import pytest

@pytest.mark.nightly
def test_in_depth(): pass
"""


@pytest.mark.parametrize(
    ("profile", "counted"), [("always-the-same", "1 passed, 1 deselected"), ("nightly", "2 passed")]
)
def test_what_is_marked_nightly_runs_at_night_only(
    run_tests: Callable[..., subprocess.CompletedProcess[str]], profile: str, counted: str
) -> None:
    assert counted in run_tests(NIGHTLY, HYPOTHESIS_PROFILE=profile).stdout


# Each file waits for the other, so that two workers have one each. What happens is written down, with its process.
MEET = """
import os, threading
from pathlib import Path

def note(*what):
    what = " ".join(map(str, what))
    with open("noted", "a") as file:
        file.write(f"{os.getpid()} {what}\\n")

def meet(name, other):
    for one in sorted((name, other)):
        os.close(os.open(one, os.O_WRONLY if one == name else os.O_RDONLY))
"""
SCOPES = """
import pytest
from meet import meet, note

@pytest.fixture(scope="module", autouse=True)
def module(session):
    meet("NAME", "OTHER")
    note("NAME begins")
    yield
    note("NAME ends")

class TestOfAClass:
    @pytest.fixture(scope="class", autouse=True)
    def of_class(self):
        note("class begins")
        yield
        note("class ends")

    def test_one(self): note("one")
    def test_two(self): note("two")

def test_three(tmp_path_factory): note(f"in {tmp_path_factory.getbasetemp()}")
"""
SESSION = """
import pytest
from meet import note

@pytest.fixture(scope="session")
def session():
    note("session begins")
    yield
    note("session ends")
"""


@pytest.fixture
def noted(tmp_path: Path) -> Callable[[], dict[str, list[str]]]:
    """What was noted in each process, in order."""

    def read() -> dict[str, list[str]]:
        read: dict[str, list[str]] = {}
        for line in (tmp_path / "noted").read_text().splitlines():
            process, _, what = line.partition(" ")
            read.setdefault(process, []).append(what)
        return read

    return read


def test_a_worker_runs_whole_files_with_the_fixtures_that_pytest_would_make(
    write_tests: Callable[..., None],
    run_made: Callable[..., subprocess.CompletedProcess[str]],
    noted: Callable[[], dict[str, list[str]]],
    tmp_path: Path,
) -> None:
    tests = {
        f"these/test_{name}.py": SCOPES.replace("NAME", name).replace("OTHER", other)
        for name, other in (("a", "b"), ("b", "a"))
    }
    write_tests({"meet.py": MEET, "these/conftest.py": SESSION, **tests})
    for name in "ab":
        os.mkfifo(tmp_path / name)
    done = run_made("-n", "2", "--basetemp", str(tmp_path / "run"))
    assert done.returncode == 0, done.stdout
    assert "6 passed" in done.stdout
    in_each = sorted(noted().values(), key=lambda each: each[1])
    assert {each.pop(6) for each in in_each} == {f"in {tmp_path}/run/popen-gw{number}" for number in (0, 1)}
    of_class = ("class begins", "one", "two", "class ends")
    assert in_each == [
        ["session begins", f"{name} begins", *of_class, f"{name} ends", "session ends"] for name in ("a", "b")
    ]


def test_single_tests_of_a_file_share_what_it_makes_if_one_worker_runs_them(
    write_tests: Callable[..., None],
    run_made: Callable[..., subprocess.CompletedProcess[str]],
    noted: Callable[[], dict[str, list[str]]],
) -> None:
    write_tests({"meet.py": MEET, "tests/conftest.py": SESSION, "tests/test_c.py": SCOPES.replace("meet(", "note(")})
    done = run_made("-n", "1")
    assert "3 passed" in done.stdout
    (events,) = noted().values()
    assert len(events) == len(set(events))


OUTCOMES = """
import os, subprocess, sys, warnings
import pytest

class OwnWarning(UserWarning): pass

@pytest.fixture
def broken(): raise RuntimeError("in the setup")
@pytest.fixture
def ends_badly():
    yield
    assert 0, "in the end"

def test_passes(record_property): record_property("a", "b")
def test_says_and_fails():
    print("printed by NAME")
    os.write(1, b"written by NAME\\n")
    subprocess.run([sys.executable, "-IS", "-c", "print('run by NAME')"])
    print("to the other stream by NAME", file=sys.stderr)
    assert [1, 2] == [1, 3]
def test_warns():
    class LocalWarning(UserWarning): pass
    warnings.warn("of NAME", OwnWarning)
    warnings.warn("local to NAME", LocalWarning)
def test_skips(): pytest.skip("for NAME")
@pytest.mark.xfail(reason="of NAME")
def test_is_expected_to_fail(): assert 0
@pytest.mark.xfail
def test_is_not_expected_to_pass(): pass
def test_has_a_broken_fixture(broken): pass
def test_ends_badly(ends_badly): pass
"""
VARYING = re.compile(r" in \d+\.\d+s|\btime=\S+|\[ *\d+%\]|0x[0-9a-f]+")


def without_times(text: str) -> str:
    return VARYING.sub("", text)


def test_workers_report_all_that_one_process_reports(
    write_tests: Callable[..., None], run_made: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    write_tests({f"test_{name}.py": OUTCOMES.replace("NAME", name) for name in ("a", "b", "c")})
    seen = []
    for workers in ("0", "2"):
        done = run_made("-n", workers, "-vv", "-rA", "--junit-xml=them.xml")
        assert done.returncode == 1
        lines = without_times(done.stdout).splitlines()
        cases = ElementTree.parse(tmp_path / "them.xml").iter("testcase")
        xml = sorted(without_times(ElementTree.tostring(case, encoding="unicode")) for case in cases)
        seen.append((sorted(map(str.strip, lines)), xml))
    alone, with_workers = seen
    assert with_workers == alone
    assert len(alone[1]) == 3 * 8
    # Three of the warnings are about `record_property`.
    summary = "3 failed, 9 passed, 3 skipped, 3 xfailed, 3 xpassed, 9 warnings, 6 errors"
    assert any(summary in line for line in alone[0])


def test_a_module_that_cannot_be_imported_ends_the_run_before_workers_begin(
    write_tests: Callable[..., None], run_made: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    write_tests({"test_a.py": "import nothing_of_this_name", "test_b.py": "def test_it(): pass"})
    done = run_made("-n", "2")
    assert done.returncode == 2
    assert "Interrupted: 1 error during collection" in done.stdout
    done = run_made("-n", "2", "--continue-on-collection-errors")
    assert done.returncode == 1
    assert "1 passed, 1 error" in done.stdout


ENDS_ITS_PROCESS = """
import os, signal
import pytest

@pytest.fixture(scope="module", autouse=True)
def module():
    yield
    HOW_LAST

def test_one(): pass
def test_two(): HOW
def test_three(): pass
def test_four(): HOW
def test_five(): pass
"""


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("os._exit(0)", "status 0"),
        ("os._exit(3)", "status 3"),
        ("os.kill(os.getpid(), signal.SIGKILL)", r"signal 9 \(Killed\)"),
    ],
)
def test_a_test_that_ends_its_worker_has_failed_and_all_others_run(
    write_tests: Callable[..., None],
    run_made: Callable[..., subprocess.CompletedProcess[str]],
    how: str,
    said: str,
) -> None:
    text = ENDS_ITS_PROCESS.replace("HOW_LAST", how).replace("HOW", how)
    write_tests({"test_a.py": text, "test_b.py": "def test_it(): pass"})
    done = run_made("-n", "2")
    assert done.returncode == 1
    assert "3 failed, 3 passed" in done.stdout
    for test in ("two", "four", "five"):
        assert re.search(rf"worker \d ended with {said} while it ran test_a.py::test_{test}\n", done.stdout)


STARTS_A_THREAD = """
import threading

threading.Thread(target=threading.Event().wait, name="of a module", daemon=True).start()

def test_it(): pass
"""


@pytest.mark.parametrize(
    ("files", "said", "status"),
    [
        ({"conftest.py": "def pytest_runtest_logstart(): raise RuntimeError('a plugin')"}, "RuntimeError: a plugin", 3),
        ({"test_a.py": "import atexit, os\ndef test_it(): atexit.register(os._exit, 7)"}, "status 7 after its last", 3),
        ({"test_a.py": "import pytest\ndef test_it(): pytest.exit('enough', 9)"}, "Exit: enough", 9),
        ({"test_a.py": STARTS_A_THREAD}, "collecting the tests has started threads: ['of a module']", 4),
    ],
    ids=["a fault outside of tests", "a fault at the end", "the end of all", "a thread"],
)
def test_what_is_wrong_beside_the_tests_is_shown_and_the_run_is_red(
    write_tests: Callable[..., None],
    run_made: Callable[..., subprocess.CompletedProcess[str]],
    files: Mapping[str, str],
    said: str,
    status: int,
) -> None:
    write_tests({"sub/test_b.py": "def test_it(): pass", **{f"sub/{name}": text for name, text in files.items()}})
    done = run_made("-n", "2")
    assert said in done.stdout + done.stderr
    assert done.returncode == status


FAILS = "def test_one(): pass\ndef test_two(): assert 0\ndef test_three(): pass\n"


def test_the_run_stops_after_the_failures_that_it_may_have_and_begins_with_them_again(
    write_tests: Callable[..., None], run_made: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    write_tests({"test_a.py": FAILS, "test_b.py": FAILS, "test_c.py": FAILS})
    done = run_made("-n", "1", "-x")
    assert "stopping after 1 failures" in done.stdout
    assert "1 failed, 1 passed" in done.stdout
    done = run_made("-n", "2", "--maxfail=3")
    assert "3 failed" in done.stdout
    done = run_made("-n", "2", "--lf")
    assert "3 failed" in done.stdout
    assert "passed" not in done.stdout


AT_EXIT = """
import atexit, os, tempfile
from meet import note

atexit.register(note, "registered at collection")
folder = tempfile.TemporaryDirectory()

def test_it():
    note("test")
    atexit.register(note, "registered in a test")
    test_it.folder = tempfile.TemporaryDirectory(dir=folder.name)
    atexit.register(lambda: note(os.path.isdir(folder.name)))
"""


def test_a_worker_does_at_its_end_what_it_has_registered_itself(
    write_tests: Callable[..., None],
    run_made: Callable[..., subprocess.CompletedProcess[str]],
    noted: Callable[[], dict[str, list[str]]],
) -> None:
    write_tests({"meet.py": MEET, "test_a.py": AT_EXIT})
    assert "1 passed" in run_made("-n", "1").stdout
    worker, main = noted().values()
    assert worker == ["test", "True", "registered in a test"]
    assert main == ["registered at collection"]


INTERRUPTED = """
import os, pytest, signal, time
from meet import note

@pytest.fixture(scope="session")
def ends():
    yield
    os.kill(os.getpid(), signal.SIGINT)  # from the main process, which cannot know that it is the second
    note("ended")

def test_it(ends):
    held = os.open("held", os.O_WRONLY)
    os.write(held, b"NAME")
    time.sleep(600)
"""


@pytest.mark.skipif(not Forks.are_possible, reason="the programs of this test run as forks")
@pytest.mark.parametrize("by", ["the terminal", "a signal to the main process"])
def test_an_interrupt_ends_all_workers_with_their_fixtures(
    write_tests: Callable[..., None],
    noted: Callable[[], dict[str, list[str]]],
    environment: dict[str, str],
    tmp_path: Path,
    by: str,
) -> None:
    write_tests({"meet.py": MEET, **{f"test_{name}.py": INTERRUPTED.replace("NAME", name) for name in ("a", "b")}})
    os.mkfifo(tmp_path / "held")
    ours, theirs = os.openpty()
    forks = shared_forks(PYTEST)
    assert forks
    with forks.start_on(theirs, RUN, "-q", "-n", "2", cwd=tmp_path, env=environment) as run:
        os.close(theirs)
        held = os.open(tmp_path / "held", os.O_RDONLY)
        begun = os.read(held, 1) + os.read(held, 1)
        if by == "the terminal":
            os.write(ours, b"\x03")
        else:
            os.kill(run.pid, signal.SIGINT)
        assert run.wait(60) == 2
    assert sorted(begun) == list(b"ab")
    assert os.read(held, 1) == b"", "no worker is left that has it open"
    os.close(held)
    assert "KeyboardInterrupt" in os.read(ours, 100_000).decode()
    os.close(ours)
    assert list(noted().values()) == [["ended"], ["ended"]]


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
