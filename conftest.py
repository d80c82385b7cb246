"""The profiles of hypothesis, the order of tests, folders for what is kept, and a way to end a test that never ends.

`make test` tries the same 30 examples of a property each time, so that it fails for a change and never by chance.
`make nightly` tries 2,000 new ones. An example that it finds becomes an `@example` of the test, and so a part of
`make test`. A test that needs more or fewer multiplies or divides the profile's number, `settings().max_examples`.
Tests that are marked `nightly` run only at night.

A test whose time is up fails with the stacks of all threads; that is pytest-timeout's alarm, which rings once. If
nothing comes of it, the process prints the stacks again and ends itself: a worker's test counts as failed, and another
worker goes on.
"""

from __future__ import annotations

import atexit
import faulthandler
import fcntl
import gc
import os
import re
import shutil
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import hypothesis
import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key  # of pytest's standard error, which it does not capture

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "day")

# Our settings and what our commands keep are looked for in these. See `_move_out_of_the_home`.
_FOLDERS = {"XDG_CONFIG_HOME": ".config", "XDG_STATE_HOME": ".local/state", "XDG_DATA_HOME": ".local/share"}

# No test asks the hub of Hugging Face, whichever imports its client first: the client reads this once.
os.environ["HF_HUB_OFFLINE"] = "1"
# Where an embedder includes a model, search uses it. In tests it would be loaded by each process that searches; its own
# tests use hosts that read no environment.
os.environ["JACKFIELD_PLUGINS_BLOCK"] = "jackfield-multilingual-embedder"
# Threads of numpy spin while they wait for each other, and a process with threads is not one to fork.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

_DONE = pytest.StashKey[int]()
_TESTS_PER_FREEZE = 300
_UNSTABLE = re.compile(r" at 0x|\{'[^':]*', ")  # an address, or a set of texts, whose order differs by process

# No deadline: how long an example takes says more about the machine than about the code.
hypothesis.settings.register_profile("day", deadline=None, derandomize=True, max_examples=30)
hypothesis.settings.register_profile("nightly", deadline=None, print_blob=True, max_examples=2000)
hypothesis.settings.load_profile(PROFILE)


def _move_out_of_the_home() -> None:
    """Give this process, and all that it starts, empty folders in place of the developer's own.

    A test must not depend on the developer's settings, nor on which new plugins his terminal has been told about, and
    must not change either. Other programs keep their settings: without those of pip, many could install nothing.
    """
    folder = Path(tempfile.mkdtemp(prefix="jackfield-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for variable, default in _FOLDERS.items():
        theirs, ours = Path(os.environ.get(variable) or Path.home() / default), folder / variable.lower()
        ours.mkdir()
        if variable == "XDG_CONFIG_HOME" and theirs.is_dir():
            for entry in theirs.iterdir():
                if entry.name != "jackfield":
                    (ours / entry.name).symlink_to(entry)
        os.environ[variable] = str(ours)


_move_out_of_the_home()


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, None, None]:
    """Have each worker begin with its share of the slow tests, and deselect nightly ones by day.

    Raises:
        UsageError: The id of a test contains an address or a set, so workers would not agree on their tests.
    """
    if unstable := next((item.nodeid for item in items if _UNSTABLE.search(item.nodeid)), None):
        raise pytest.UsageError(f"{unstable}: the id contains an address or a set; give the cases names with ids=")
    if PROFILE != "nightly":
        deselected = [item for item in items if item.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]
    items[:] = deal_slow_tests(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))
    with _wait_for_the_first(Path(__file__)):  # hypothesis parses all sources here, and stores their constants
        yield


def deal_slow_tests(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """Return the tests in an order in which each worker begins with as many slow ones as the others.

    Each worker is sent an equal part of the list first. If all slow tests came first, one worker would run them one
    after another. Those of a file stay together, because they share fixtures.
    """
    slow, quick = defaultdict(list), []
    for item in items:
        if item.get_closest_marker("slow"):
            slow[item.path].append(item)
        else:
            quick.append(item)
    shares: list[list[pytest.Item]] = [[] for _ in range(workers)]
    for tests in sorted(slow.values(), key=len, reverse=True):
        min(shares, key=len).extend(tests)
    dealt: list[pytest.Item] = []
    for number, share in enumerate(shares):
        end = len(items) * (number + 1) // workers
        room = max(0, end - len(dealt) - len(share))
        dealt += [*share, *quick[:room]]
        del quick[:room]
    return dealt + quick


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Have one worker compile a module with its assertions, and the others load the bytecode that it writes."""
    if not isinstance(collector, pytest.Module):
        return (yield)
    with _wait_for_the_first(collector.path):
        return (yield)


@contextmanager
def _wait_for_the_first(file: Path) -> Iterator[None]:
    """Let one worker go first. The others wait for it, and then continue together. The file itself is not changed."""
    with file.open("rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(lock, fcntl.LOCK_SH)
            fcntl.flock(lock, fcntl.LOCK_UN)
        except OSError:  # a file system without locks
            pass
        yield


@pytest.fixture(scope="session", autouse=True)
def _share_forks(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Have all workers share the processes that programs of tests are forks of."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        from jackfield_testkit.forks import share_forks

        share_forks(tmp_path_factory.getbasetemp().parent / "forks")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage among the tests: all of them are needed to the end, and it took a quarter of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Number bytes instead of showing them: a generated file contains the time, so workers would not agree."""
    return argname if isinstance(val, bytes) else None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the setting for tests that do not end when their time is up."""
    help_ = "how many seconds the process goes on if a test, or a thread at the end, does not end in time"
    parser.addini("timeout_grace", help_, default="180")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """End the process if the alarm is not heard: if it is swallowed, or rings while no Python runs."""
    _end_in_time(item)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()
        _freeze_objects(item.session)


def _freeze_objects(session: pytest.Session) -> None:
    """Have the garbage collector pass over what earlier tests have left, such as imported modules.

    Looking at it again took a tenth of the CPU of 11,000 tests, and more than two seconds each time at the end of all.
    """
    done = session.stash[_DONE] = session.stash.get(_DONE, 0) + 1
    if done % _TESTS_PER_FREEZE == 0:
        gc.collect()
        gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_exception_interact(node: pytest.Item | pytest.Collector) -> None:
    """Begin again after a failure, as what ends a fixture may not end; pytest has just cancelled it for debuggers."""
    if isinstance(node, pytest.Item):
        _end_in_time(node)


def _end_in_time(item: pytest.Item) -> None:
    if seconds := _seconds_of(item):
        _end_after(item.config, seconds, item.config.stash[fault_handler_stderr_fd_key])


def _end_after(config: pytest.Config, seconds: float, stderr: int | TextIO) -> None:
    # By a thread of C: neither a deadlock nor an expression that keeps the interpreter to itself holds it up.
    faulthandler.dump_traceback_later(seconds + float(config.getini("timeout_grace")), exit=True, file=stderr)


def _seconds_of(item: pytest.Item) -> float:
    """How long a test may take, 0 for as long as it likes; a test's own mark wins, as for pytest-timeout."""
    mark = item.get_closest_marker("timeout")
    if mark and mark.args:
        return float(mark.args[0])
    named = item.config.getoption("timeout", None)
    return float(item.config.getini("timeout") or 0) if named is None else float(named)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the process if threads are left that would keep it from ending. A worker does not wait for threads."""
    left = [thread for thread in threading.enumerate() if not thread.daemon and thread is not threading.main_thread()]
    if left:
        sys.stdout.flush()  # its end flushes nothing
        _end_after(config, 0, sys.__stderr__ or sys.stderr)
