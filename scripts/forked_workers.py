"""Run tests in several processes, forks of one that has collected them: `pytest -n 4`, where the conftest loads this.

A fork has all tests and all that their modules import, so no worker collects or imports anew. Each asks for a unit of
work when it has none left, runs its tests as pytest does, and sends what pytest reports of a test at the test's end.
The main process reports that as if it had run the test itself: what listens there to reports works as without workers.

A worker that ends fails the test that it was at, and another is forked for the rest of its unit. Where a process cannot
be forked, `-n` has no effect.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import gc
import os
import select
import selectors
import signal
import sys
import threading
import time
import traceback
import warnings
import weakref
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, TypeAlias, cast

import pytest

Event: TypeAlias = tuple[str, dict[str, Any]]
"""What pytest reports of a test: the name of a hook, and what is to be made the hook's arguments."""

REPORTERS = ("terminalreporter", "junitxml")  # of the main process only
# How long a worker may take to end by itself, when interrupted, and for the functions of its exit.
END_S, INTERRUPTED_S, EXIT_S = 5.0, 30.0, 30.0


class Hooks:
    """What a conftest may say."""

    @pytest.hookspec(firstresult=True)
    def pytest_unit_of_work(self, item: pytest.Item) -> str | None:
        """Name the unit of a test: tests of one unit run in one worker, in their order. By default, its file."""

    @pytest.hookspec
    def pytest_before_workers(self, folder: Path) -> None:
        """Prepare what the workers are to share. It must start no thread; the folder is that of the run."""


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the option and the hooks."""
    pluginmanager.add_hookspecs(Hooks)
    add = parser.getgroup("workers")._addoption
    add("-n", "--workers", type=int, default=0, help="how many forks run the tests; by default, this process does")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests in workers, if some are asked for; else pytest itself runs them."""
    option = session.config.option
    if option.workers < 1 or option.collectonly or option.usepdb or not hasattr(os, "fork"):
        return None
    if session.testsfailed and not option.continue_on_collection_errors:
        return None
    Workers(session).run(option.workers)
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)
    return True


def _refuse_threads() -> None:
    """A lock that a thread holds when its process is forked is never released in the fork."""
    threads = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    if threads:
        raise pytest.UsageError(f"cannot fork workers: collecting the tests has started threads: {threads}")


def units_of(items: Sequence[pytest.Item]) -> list[list[int]]:
    """The places of the tests of each unit, the units with most tests first."""
    units: dict[str, list[int]] = {}
    for place, item in enumerate(items):
        name = item.ihook.pytest_unit_of_work(item=item) or item.nodeid.partition("::")[0]
        units.setdefault(name, []).append(place)
    return sorted(units.values(), key=len, reverse=True)


class WorkerError(Exception):
    """A worker failed outside of all tests."""


@dataclass
class _Worker:
    """What the main process knows of a worker. `left` are the tests that it has and has not reported, in order."""

    number: int
    pid: int
    channel: Connection
    left: deque[int] = field(default_factory=deque)


class Workers:
    """The workers, as the main process sees them."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._units = deque(units_of(session.items))
        self._workers: list[_Worker] = []
        self._events = selectors.DefaultSelector()
        self._forked = 0
        self._faults: list[str] = []

    def run(self, count: int) -> None:
        """Run all tests. No worker is left, however this ends."""
        factory = self._session.config._tmp_path_factory  # type: ignore[attr-defined]
        self._session.config.hook.pytest_before_workers(folder=factory.getbasetemp())
        reporter = self._session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter:
            reporter.showfspath = False  # the tests of several files arrive in turns
        _refuse_threads()
        gc.freeze()  # no worker looks for garbage among what it shares with the others
        try:
            for _ in range(min(count, len(self._units))):
                self._fork()
            while self._workers:
                for key, _ in self._events.select():
                    self._hear(key.data)
        finally:
            self._end_all()
        if self._faults:
            raise WorkerError("\n".join(self._faults))

    def _fork(self) -> None:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()  # what is left in it would be written by the fork, too
        ours, theirs = Pipe()
        number, self._forked = self._forked, self._forked + 1
        pid = os.fork()
        if not pid:
            self._events.close()
            for channel in (ours, *(worker.channel for worker in self._workers)):
                channel.close()
            _Fork(self._session, number, theirs).live()
        theirs.close()
        self._workers.append(_Worker(number, pid, ours))
        self._events.register(ours, selectors.EVENT_READ, self._workers[-1])

    def _hear(self, worker: _Worker) -> None:
        try:
            kind, *what = worker.channel.recv()
        except (EOFError, OSError):
            self._bury(worker)
            return
        match kind:
            case "next":
                self._hand_out(worker)
            case "ran":
                self._replay(worker, *what)
            case "ends":
                worker.left.clear()
            case "fails":
                raise WorkerError(f"worker {worker.number}: {what[0]}")
            case "exits":
                raise pytest.exit.Exception(*what)

    def _hand_out(self, worker: _Worker) -> None:
        unit = self._units.popleft() if self._units else []
        worker.left.extend(unit)
        self._send(worker, unit)

    def _replay(self, worker: _Worker, events: Sequence[Event], shouldfail: bool | str, shouldstop: bool | str) -> None:
        session = self._session
        worker.left.popleft()
        for name, arguments in events:
            _REPEAT[name](session.config, arguments)
        session.shouldfail = session.shouldfail or shouldfail
        session.shouldstop = session.shouldstop or shouldstop
        if session.shouldfail or session.shouldstop:
            self._stop()

    def _bury(self, worker: _Worker) -> None:
        status = self._reap(worker)
        how = f"signal {-status} ({signal.strsignal(-status)})" if status < 0 else f"status {status}"
        if not worker.left:
            if status:
                self._faults.append(f"worker {worker.number} ended with {how} after its last test")
            return
        item = self._session.items[worker.left[0]]
        text = f"worker {worker.number} ended with {how} while it ran {item.nodeid}"
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", text, "call")
        place = {"nodeid": item.nodeid, "location": item.location}
        events = [("logstart", place), ("logreport", _serialized(item.config, report)), ("logfinish", place)]
        self._replay(worker, events, shouldfail=False, shouldstop=False)
        if worker.left and not (self._session.shouldfail or self._session.shouldstop):
            self._units.appendleft(list(worker.left))
        if self._units:
            self._fork()

    def _reap(self, worker: _Worker) -> int:
        self._events.unregister(worker.channel)
        worker.channel.close()
        self._workers.remove(worker)
        return os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])

    def _stop(self) -> None:
        """Have each worker end after the test that it is at."""
        self._units.clear()
        for worker in self._workers:
            self._send(worker, [])

    def _send(self, worker: _Worker, unit: Sequence[int]) -> None:
        with contextlib.suppress(OSError):  # it has ended, which is seen when it is listened to
            worker.channel.send(unit)

    def _end_all(self) -> None:
        try:
            self._stop()
            self._wait(END_S)
            for worker in self._workers:
                os.kill(worker.pid, signal.SIGINT)
            self._wait(INTERRUPTED_S)
        finally:
            for worker in list(self._workers):
                os.kill(worker.pid, signal.SIGKILL)
                self._reap(worker)
            self._events.close()

    def _wait(self, seconds: float) -> None:
        """Listen to the workers for some seconds, or until all have ended; what they say has no effect any more."""
        ends_at = time.monotonic() + seconds
        while self._workers and (left := ends_at - time.monotonic()) > 0:
            for key, _ in self._events.select(left):
                try:
                    key.data.channel.recv_bytes()
                except (EOFError, OSError):
                    self._reap(key.data)


class _Fork:
    """A worker, in its own process."""

    def __init__(self, session: pytest.Session, number: int, channel: Connection) -> None:
        self._session = session
        self._number = number
        self._channel = channel
        self._news = select.poll()
        self._news.register(channel, select.POLLIN)
        self._places: deque[int] = deque()
        self._is_over = False
        self._heard: list[Event] = []

    def live(self) -> NoReturn:
        """Run tests until there are none, and end the process."""
        status = 1
        try:
            self._become()
            self._run()
            self._channel.send(["ends"])
            status = 0
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process cannot know that this one has heard it
        except pytest.exit.Exception as error:
            self._channel.send(["exits", error.msg, error.returncode])
        except BaseException:  # noqa: BLE001 - reported by the main process, whatever it is
            self._channel.send(["fails", traceback.format_exc()])
        finally:
            self._end(status)

    def _become(self) -> None:
        """Make of a copy of the main process a worker."""
        os.register_at_fork(after_in_child=self._channel.close)  # its end is seen, even if a fork of it goes on
        # What the main process does at its end is none of this process's business.
        atexit._clear()
        weakref.finalize._registry.clear()  # type: ignore[attr-defined]
        weakref.finalize._registered_with_atexit = False  # type: ignore[attr-defined]
        config, name = self._session.config, f"gw{self._number}"
        # By the names of xdist, which plugins look at.
        os.environ["PYTEST_XDIST_WORKER"] = name
        config.workerinput = {"workerid": name}  # type: ignore[attr-defined]
        factory = config._tmp_path_factory  # type: ignore[attr-defined]
        factory._basetemp = factory.getbasetemp() / f"popen-{name}"
        factory._basetemp.mkdir(mode=0o700)
        capture: Any = config.pluginmanager.get_plugin("capturemanager")
        capture.stop_global_capturing()  # the files of the main process
        capture.start_global_capturing()
        capture.suspend_global_capture()
        writer = config.get_terminal_writer()
        for name in REPORTERS:
            config.pluginmanager.unregister(name=name)
        # For the time limit's stacks, and the colours of differences.
        config.pluginmanager.register(SimpleNamespace(_tw=writer), "terminalreporter")
        config.pluginmanager.register(self)
        self._heard.clear()  # warnings from before are told to each new plugin; the main process has counted them

    def _run(self) -> None:
        session = self._session
        while self.peek() is not None and not (session.shouldfail or session.shouldstop):
            item = session.items[self._places.popleft()]
            item.ihook.pytest_runtest_protocol(item=item, nextitem=cast("pytest.Item", _Next(self)))
            self._channel.send(["ran", self._heard, session.shouldfail, session.shouldstop])
            self._heard = []

    def peek(self) -> pytest.Item | None:
        """The next test, if there is one. The main process is asked if this process has none left."""
        # Unasked it says only that the run stops; or it is gone.
        if self._is_over or (self._places and self._news.poll(0)):
            self._is_over = True
            return None
        if not self._places:
            self._channel.send(["next"])
            self._places.extend(self._channel.recv())
            self._is_over = not self._places
        return self._session.items[self._places[0]] if self._places else None

    def _end(self, status: int) -> NoReturn:
        try:
            faulthandler.dump_traceback_later(EXIT_S, exit=True, file=sys.__stderr__ or sys.stderr)
            self._session._setupstate.teardown_exact(None)
            atexit._run_exitfuncs()
        except BaseException:  # noqa: BLE001 - there is nobody to whom it could be raised
            traceback.print_exc()
            status = 1
        finally:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            os._exit(status)

    def pytest_runtest_logstart(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        """Keep for the main process that a test begins."""
        self._heard.append(("logstart", {"nodeid": nodeid, "location": location}))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep a report for the main process."""
        self._heard.append(("logreport", _serialized(self._session.config, report)))

    def pytest_runtest_logfinish(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        """Keep for the main process that a test has ended."""
        self._heard.append(("logfinish", {"nodeid": nodeid, "location": location}))

    def pytest_warning_recorded(
        self,
        warning_message: warnings.WarningMessage,
        when: str,
        nodeid: str,
        location: tuple[str, int, str] | None,
    ) -> None:
        """Keep a warning for the main process: its text, as its class may be known in this process only."""
        told = {name: getattr(warning_message, name) for name in ("filename", "lineno", "line")}
        told |= {"message": str(warning_message.message), "category": warning_message.category.__name__}
        self._heard.append(("warning", {"told": told, "when": when, "nodeid": nodeid, "location": location}))


class _Next:
    """What pytest takes for the next test when it ends the fixtures that this does not need.

    Only then is the main process asked for another unit, and not before a long test: another worker may be free.
    """

    def __init__(self, fork: _Fork) -> None:
        self._fork = fork

    def __bool__(self) -> bool:
        return self._fork.peek() is not None

    def listchain(self) -> list[Any]:
        """The nodes around the test, and itself."""
        item = self._fork.peek()
        return item.listchain() if item else []


def _serialized(config: pytest.Config, report: pytest.TestReport) -> dict[str, Any]:
    return cast("dict[str, Any]", config.hook.pytest_report_to_serializable(config=config, report=report))


def _start(config: pytest.Config, place: dict[str, Any]) -> None:
    config.hook.pytest_runtest_logstart(**place)


def _report(config: pytest.Config, data: dict[str, Any]) -> None:
    report = config.hook.pytest_report_from_serializable(config=config, data=data)
    config.hook.pytest_runtest_logreport(report=report)


def _finish(config: pytest.Config, place: dict[str, Any]) -> None:
    config.hook.pytest_runtest_logfinish(**place)


def _warn(config: pytest.Config, data: dict[str, Any]) -> None:
    told = data.pop("told")
    category = type(told.pop("category"), (Warning,), {})
    message = warnings.WarningMessage(category=category, **told)
    config.hook.pytest_warning_recorded.call_historic(kwargs={"warning_message": message, **data})


# How the main process repeats what a worker has heard.
_REPEAT = {"logstart": _start, "logreport": _report, "logfinish": _finish, "warning": _warn}
