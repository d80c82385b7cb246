"""A pytest plugin that tries changes of the code, each in a fork of one process with the tests that reach it.

`scripts/mutants.py` loads it. Starting Python, importing everything and collecting the tests takes longer than most
tests do, so this happens once for all changes of a distribution. A first fork runs all tests and records which test
executes which lines. Then each change gets a fork of its own, in which the changed function replaces the real one in
memory.

A fork cannot show everything: subprocesses run the code on disk, and code that ran at import has already run. So a
change that no fork notices must be tried again on disk.
"""

from __future__ import annotations

import gc
import inspect
import json
import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader
from itertools import zip_longest
from pathlib import Path
from types import CodeType, FunctionType

import coverage
import pytest

TESTS_S = 30
"""Time for the tests of a change, in seconds: the quickest of those that reach it are run."""
PATIENCE_S = 120
"""Time after which tests are taken to be caught in a loop caused by the change, in seconds."""


@dataclass(frozen=True)
class Change:
    """A changed file.

    Attributes:
        file: Absolute path of the file.
        lines: The first and the last line of the changed statement.
        plain: The text of the file in the form of `text`, but unchanged.
        text: The changed text. Its lines may be numbered differently from those of the file.
    """

    file: str
    lines: tuple[int, int]
    plain: str
    text: str


@dataclass
class Measured:
    """The result of a run without a change.

    Attributes:
        durations_s: The durations of the tests that passed, by their index.
        tests_by_line: The indexes of the tests that execute a line, by file and line number.
        failed: The node ids of the tests that did not pass.
    """

    durations_s: dict[int, float] = field(default_factory=dict)
    tests_by_line: dict[str, dict[int, list[int]]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def tests_for(self, change: Change) -> list[int]:
        """Return the tests that reach a change, the quickest first, as many as run in `TESTS_S`."""
        first, last = change.lines
        by_line = self.tests_by_line.get(change.file, {})
        reaching = {test for line in range(first, last + 1) for test in by_line.get(line, ())}
        chosen: list[int] = []
        left_s = float(TESTS_S)
        for test in sorted(reaching & self.durations_s.keys(), key=self.durations_s.__getitem__):
            left_s -= self.durations_s[test]
            if chosen and left_s < 0:
                break
            chosen.append(test)
        return chosen


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this plugin."""
    parser.addoption("--changes", help="JSON file with the source folder and the changes")
    parser.addoption("--outcome", help="JSON file to write: which changes the tests noticed")
    parser.addoption("--forks", type=int, default=1, help="number of changes tried at once (%(default)s)")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Try all changes in place of the ordinary run."""
    options = session.config.option
    if not options.changes:
        return None
    job = json.loads(Path(options.changes).read_text(encoding="utf-8"))
    changes = [Change(**{**entry, "lines": tuple(entry["lines"])}) for entry in job["changes"]]
    session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined] # one for all forks
    measured = _measure(session, job["folder"])
    outcome = {"failed": measured.failed, "noticed": _try_all(session, changes, measured, options.forks)}
    Path(options.outcome).write_text(json.dumps(outcome), encoding="utf-8")
    return True


# --- running tests ---


class _Outcomes:
    """A plugin that remembers whether a test has failed or passed since the last `reset`."""

    def __init__(self, config: pytest.Config) -> None:
        config.pluginmanager.register(self)
        self.reset()

    def reset(self) -> None:
        self.has_failed = self.has_passed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.has_failed |= report.failed
        self.has_passed |= report.passed and report.when == "call"


def _run(session: pytest.Session, tests: Sequence[int]) -> Iterator[int]:
    """Run some of the collected tests, and yield the index of each when it has ended."""
    for test, following in zip_longest(tests, tests[1:]):
        item = session.items[test]
        nextitem = None if following is None else session.items[following]
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
        yield test


def _measure(session: pytest.Session, folder: str) -> Measured:
    """Run all tests in a fork. Return their outcome, and the lines that each executes in a folder."""
    reader, writer = os.pipe()
    if not (child := os.fork()):
        os.setsid()
        os.close(reader)
        try:
            with os.fdopen(writer, "w", encoding="utf-8") as stream:
                json.dump(_measure_here(session, folder), stream)
        finally:
            os._exit(0)  # a fork must never return to its caller
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as stream:
        found = json.load(stream)
    _end_group(child)
    os.waitpid(child, 0)
    lines = {file: {int(line): tests for line, tests in by_line.items()} for file, by_line in found["lines"].items()}
    return Measured(
        {test: duration_s for test, duration_s, passed in found["tests"] if passed},
        lines,
        [session.items[test].nodeid for test, _, passed in found["tests"] if passed is False],
    )


def _measure_here(session: pytest.Session, folder: str) -> dict[str, object]:
    outcomes = _Outcomes(session.config)
    measuring = coverage.Coverage(data_file=None, include=[f"{folder}/*"], config_file=False)
    measuring.start()
    measuring.switch_context("0")
    tests: list[tuple[int, float, bool | None]] = []
    start_s = time.monotonic()
    for test in _run(session, range(len(session.items))):
        end_s = time.monotonic()
        passed = None if not (outcomes.has_failed or outcomes.has_passed) else not outcomes.has_failed
        tests.append((test, end_s - start_s, passed))
        outcomes.reset()
        measuring.switch_context(str(test + 1))
        start_s = end_s
    measuring.stop()
    data = measuring.get_data()
    lines = {
        file: {
            line: [int(test) for test in contexts if test] for line, contexts in data.contexts_by_lineno(file).items()
        }
        for file in data.measured_files()
    }
    return {"tests": tests, "lines": lines}


# --- trying changes ---


def _try_all(session: pytest.Session, changes: Sequence[Change], measured: Measured, forks: int) -> list[bool]:
    """Return for each change whether the tests noticed it in a fork."""
    functions = _loaded_functions({change.file for change in changes})
    gc.freeze()  # what no fork writes to stays shared
    noticed = [False] * len(changes)
    waiting = [(number, tests) for number, change in enumerate(changes) if (tests := measured.tests_for(change))]
    running: dict[int, tuple[int, float]] = {}
    while waiting or running:
        while waiting and len(running) < forks:
            number, tests = waiting.pop(0)
            child = _start(session, changes[number], functions[changes[number].file], tests)
            running[child] = number, time.monotonic() + PATIENCE_S
        time.sleep(0.005)
        for child, (number, deadline) in list(running.items()):
            ended, status = os.waitpid(child, os.WNOHANG)
            if not ended and time.monotonic() < deadline:
                continue
            _end_group(child)
            if not ended:
                os.waitpid(child, 0)
            del running[child]
            noticed[number] = not ended or status != 0
    return noticed


def _start(session: pytest.Session, change: Change, functions: Sequence[FunctionType], tests: Sequence[int]) -> int:
    """Fork a process that makes the change and runs tests. Return its process id, which is also that of its group."""
    if child := os.fork():
        return child
    os.setsid()
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    if not _make(change, functions):
        os._exit(0)
    outcomes = _Outcomes(session.config)
    try:
        has_failed = any(outcomes.has_failed for _ in _run(session, tests))
    except BaseException:  # the change has ended the run, and a fork must never return to its caller
        has_failed = True
    os._exit(has_failed)


def _end_group(group: int) -> None:
    """Kill all processes of a group."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


# --- changing code in memory ---


def _loaded_functions(files: set[str]) -> defaultdict[str, list[FunctionType]]:
    """Return all functions in memory that were defined in one of the files."""
    found: defaultdict[str, list[FunctionType]] = defaultdict(list)
    gc.unfreeze()  # a module may have frozen them, and `get_objects` leaves frozen objects out
    for thing in gc.get_objects():
        if type(thing) is FunctionType and thing.__code__.co_filename in files:
            found[thing.__code__.co_filename].append(thing)
    return found


def _make(change: Change, functions: Sequence[FunctionType]) -> bool:
    """Make a change in this process. Return False if it would have taken effect at an import that is over."""
    _load_changed(change)
    changed = _changed_codes(change) if functions else {}
    if changed is None:
        return False
    replaced = 0
    for function in functions:
        code = changed.get((function.__code__.co_qualname, function.__code__.co_firstlineno))
        if code is None:
            continue
        if code.co_freevars != function.__code__.co_freevars:
            return False
        function.__code__ = code
        replaced += 1
    return replaced > 0 or not functions


def _changed_codes(change: Change) -> dict[tuple[str, int], CodeType] | None:
    """Return the new code of each changed function, by qualified name and first line; None if more has changed."""
    real = _codes_in(Path(change.file).read_text(encoding="utf-8"), change.file)
    plain, changed = (_codes_in(text, change.file) for text in (change.plain, change.text))
    found: dict[tuple[str, int], CodeType] = {}
    for name, befores in plain.items():
        afters = changed.get(name, [])
        here = real[name][-len(befores) :]  # overloads come first, and are not in the changed text
        if len(befores) != len(afters) or len(befores) != len(here):
            if "<locals>" in name:  # made anew by the function around it
                continue
            return None
        for old, before, after in zip(here, befores, afters, strict=True):
            if _essence(before) == _essence(after):
                continue
            if _runs_at_import(before):
                return None
            found[name, old.co_firstlineno] = after
    return found


def _codes_in(text: str, file: str) -> defaultdict[str, list[CodeType]]:
    """Return the code objects of a module by qualified name; those of one name are in the order of the text."""
    found: defaultdict[str, list[CodeType]] = defaultdict(list)
    every = [compile(text, file, "exec", dont_inherit=True)]
    for code in every:  # which grows meanwhile
        found[code.co_qualname].append(code)
        every += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
    return found


def _runs_at_import(code: CodeType) -> bool:
    """Return True for the body of a module or class, and for a comprehension in one."""
    is_comprehension = code.co_name.startswith("<") and code.co_name != "<lambda>"
    return not code.co_flags & inspect.CO_NEWLOCALS or (is_comprehension and "<locals>" not in code.co_qualname)


def _essence(code: CodeType) -> tuple[object, ...]:
    """Return what distinguishes code, besides line numbers. Functions in the body of a module or class do not count."""
    is_body = not code.co_flags & inspect.CO_NEWLOCALS
    constants: list[object] = []
    for value in code.co_consts:
        if not isinstance(value, CodeType):
            constants.append((type(value), repr(value)))
        elif not is_body:
            constants.append(_essence(value))
    return code.co_code, code.co_names, code.co_varnames, code.co_freevars, *constants


def _load_changed(change: Change) -> None:
    """Let later imports in this process load the changed text."""
    get_code = SourceFileLoader.get_code

    def get_changed(loader: SourceFileLoader, name: str) -> CodeType | None:
        if loader.path == change.file:
            return compile(change.text, change.file, "exec", dont_inherit=True)
        return get_code(loader, name)

    SourceFileLoader.get_code = get_changed  # type: ignore[method-assign, assignment]
    sys.dont_write_bytecode = True
