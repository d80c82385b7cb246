"""Probe plugins in forks of a process that has already imported everything probing needs.

`python -B -m jackfield_manage.judging.forkserver` reads the pickled fields of a `Task` from standard input. For each
distribution, it writes a line of JSON with the name and the result of `probe`. When its input ends, it kills its forks
and exits.

Each fork has its own session, timeout and output, so anything its plugin starts ends with it.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pickle
import select
import signal
import sys
import tempfile
import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import pairwise
from typing import IO, Any

from jackfield.defaults import MANAGER
from jackfield.errors import PluginError
from jackfield.plugins import ComponentSpec, PluginHost
from jackfield_manage.judging.probe import BASES, LOAD_KEYS, describe, load_and_check
from jackfield_manage.judging.results import failed, read_result, report_result

# Concurrent forks, more than most machines have cores, because plugins may wait.
_FORKS = 4
_INPUT, _OUTPUT = 0, 1


@dataclass(frozen=True)
class Task:
    """The input of the fork server.

    Attributes:
        host: The host whose rules apply.
        names: The distributions to probe.
        deep: True to also load and check their components.
        timeout_s: The time limit for each fork.
    """

    host: PluginHost
    names: tuple[str, ...]
    deep: bool
    timeout_s: float


@dataclass(frozen=True)
class _Fork:
    """A running fork: its process, its deadline, its files, and the callback for its result."""

    name: str
    pid: int
    deadline: float
    out: IO[bytes] = field(repr=False)
    printed: IO[bytes] = field(repr=False)
    on_result: Callable[[str, dict[str, Any]], None]


class _Forks:
    """Running and pending forks. All distributions are described before any component is loaded."""

    def __init__(self, task: Task, wakeup: int) -> None:
        self._task, self._wakeup = task, wakeup
        self._pending = deque(partial(self._describe, name) for name in task.names)
        self._running: list[_Fork] = []

    def run(self) -> None:
        """Run until all results are written or the parent closes the input."""
        try:
            while self._pending or self._running:
                while self._pending and len(self._running) < _FORKS:
                    self._pending.popleft()()
                if not self._wait():
                    return
                self._collect()
        finally:
            for fork in self._running:
                _end(fork.pid)

    def _describe(self, name: str) -> None:
        self._start(name, describe, self._take_description)

    def _load(self, description: Mapping[str, object], name: str) -> None:
        _import_bases()  # not earlier, because a describing fork must see everything its plugin imports
        self._start(name, load_and_check, partial(self._take_load_result, description))

    def _start(
        self,
        name: str,
        work: Callable[[PluginHost, str], dict[str, Any]],
        on_result: Callable[[str, dict[str, Any]], None],
    ) -> None:
        out, printed = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - `_collect` closes them
        pid = os.fork()
        if pid == 0:
            try:
                _detach(keep=(out.fileno(), printed.fileno()))
                report_result(out.fileno(), printed.fileno(), partial(work, self._task.host, name))
            except BaseException:  # noqa: BLE001 - it must not reach `run`, which would kill the other forks
                sys.stderr.write(traceback.format_exc())
                sys.stderr.flush()
            finally:
                os._exit(1)
        self._running.append(_Fork(name, pid, time.monotonic() + self._task.timeout_s, out, printed, on_result))

    def _wait(self) -> bool:
        """Wait until a fork ends or exceeds its deadline; return False if the parent closes the input."""
        timeout_s = max(0.0, min(fork.deadline for fork in self._running) - time.monotonic())
        ready, _, _ = select.select([_INPUT, self._wakeup], [], [], timeout_s)
        if self._wakeup in ready:
            os.read(self._wakeup, 4096)
        return _INPUT not in ready

    def _collect(self) -> None:
        for fork in tuple(self._running):
            pid, status = os.waitpid(fork.pid, os.WNOHANG)
            if not pid and time.monotonic() < fork.deadline:
                continue
            _end(fork.pid, is_gone=bool(pid))
            self._running.remove(fork)
            result = failed(f"loading timed out after {self._task.timeout_s:g} s")
            with fork.out, fork.printed:
                if pid:
                    result = read_result(os.waitstatus_to_exitcode(status), fork.out, fork.printed)
            fork.on_result(fork.name, result)

    def _take_description(self, name: str, result: dict[str, Any]) -> None:
        if self._task.deep and not result["errors"]:
            self._pending.append(partial(self._load, result, name))
        else:
            _write(name, result)

    def _take_load_result(self, description: Mapping[str, object], name: str, result: Mapping[str, object]) -> None:
        _write(name, {**description, **{key: result[key] for key in LOAD_KEYS}})


def _write(name: str, result: Mapping[str, object]) -> None:
    line = json.dumps([name, result]).encode() + b"\n"
    while line:
        line = line[os.write(_OUTPUT, line) :]


def _detach(keep: tuple[int, ...]) -> None:
    """Leave the parent's session, reset its signal handlers, and close its files."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    ends = sorted((_INPUT, _OUTPUT, 2, *keep, os.sysconf("SC_OPEN_MAX")))
    for before, after in pairwise(ends):
        os.closerange(before + 1, after)
    os.dup2(os.open(os.devnull, os.O_RDONLY), _INPUT)


def _end(pid: int, *, is_gone: bool = False) -> None:
    """Kill a fork and every process it left behind in its session."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    if not is_gone:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)  # the fork may not lead its session yet
        os.waitpid(pid, 0)


@cache
def _import_bases() -> None:
    for base in BASES.values():
        with suppress(ModuleNotFoundError):  # without its library, no class can be a subclass of it
            importlib.import_module(base.partition(":")[0])


def main() -> None:
    """Run the task read from standard input."""
    task = Task(*pickle.load(sys.stdin.buffer))  # noqa: S301 - written by our parent
    for row in task.host.policy.rows():
        task.host.policy.unproven(row)  # caches the RECORDs for every fork
    task.host.catalog.in_package("")  # builds the index for every fork
    # Describing our own package does the setup that each fork would otherwise repeat.
    with suppress(PluginError):
        for row in task.host.catalog.of(MANAGER):
            task.host.spec_of(row, ComponentSpec)
    wakeup, signalled = os.pipe()
    os.set_blocking(signalled, False)
    signal.set_wakeup_fd(signalled, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # without a handler, nothing is written to the pipe
    gc.freeze()  # a garbage collection in a fork would copy all shared memory
    _Forks(task, wakeup).run()


if __name__ == "__main__":
    main()
    sys.exit()
