"""A process that has imported what examining plugins needs, and forks for each: the interpreter starts once.

`python -B -m jackfield_manage.judging.forkserver` reads the pickled fields of a `Task` from standard input. For each
distribution, it writes a line of JSON with its name and the answer of `probe`. When its input ends, it ends, too, with
all that it has started.

A fork has a session, a time-out and an output of its own, so whatever its plugin does ends with it.
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
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import pairwise
from typing import IO, Any

from jackfield.plugins import PluginHost
from jackfield_manage.judging.probe import BASES, describe, look_deep
from jackfield_manage.judging.results import answer_to, failed, read_answer

# At the same time. A plugin may wait, so it is more than there are processors.
_FORKS = 4
_INPUT, _OUTPUT = 0, 1


@dataclass(frozen=True)
class Task:
    """What is to be done.

    Attributes:
        host: By whose rules plugins load.
        names: The distributions.
        deep: Load and check their components, too.
        timeout_s: For each fork.
    """

    host: PluginHost
    names: tuple[str, ...]
    deep: bool
    timeout_s: float


@dataclass(frozen=True)
class _Fork:
    """One that runs: its process, until when it may, where it writes, and what to do with its answer."""

    name: str
    pid: int
    deadline: float
    out: IO[bytes] = field(repr=False)
    said: IO[bytes] = field(repr=False)
    done: Callable[[str, dict[str, Any]], None]


class _Forks:
    """What runs, and what waits for its turn: all are described before anything heavier is imported."""

    def __init__(self, task: Task, woken: int) -> None:
        self._task, self._woken = task, woken
        self._waiting = deque(partial(self._describe, name) for name in task.names)
        self._running: list[_Fork] = []

    def run(self) -> None:
        """Until all is answered, or nobody wants to know any more."""
        try:
            while self._waiting or self._running:
                self._start_some()
                if not self._wait():
                    return
                self._collect()
        finally:
            for fork in self._running:
                _end(fork.pid)

    def _start_some(self) -> None:
        while self._waiting and len(self._running) < _FORKS:
            self._waiting.popleft()()

    def _describe(self, name: str) -> None:
        self._start(name, describe, self._described)

    def _look_deep(self, light: Mapping[str, object], name: str) -> None:
        _import_bases()  # in no fork that describes: what comes with a plugin would not be seen there
        self._start(name, look_deep, partial(self._looked_deep, light))

    def _start(
        self,
        name: str,
        work: Callable[[PluginHost, str], dict[str, Any]],
        done: Callable[[str, dict[str, Any]], None],
    ) -> None:
        out, said = (tempfile.TemporaryFile() for _ in range(2))  # noqa: SIM115 - closed when it has ended
        pid = os.fork()
        if pid == 0:
            try:
                _become_a_process_of_its_own(keep=(out.fileno(), said.fileno()))
                answer_to(out.fileno(), said.fileno(), partial(work, self._task.host, name))
            finally:
                os._exit(1)  # or else what a plugin raises would end the other forks, as it does in `run`
        self._running.append(_Fork(name, pid, time.monotonic() + self._task.timeout_s, out, said, done))

    def _wait(self) -> bool:
        """Until something has ended or is overdue; whether somebody still wants to know."""
        patience = max(0.0, min(fork.deadline for fork in self._running) - time.monotonic())
        ready, _, _ = select.select([_INPUT, self._woken], [], [], patience)
        if self._woken in ready:
            os.read(self._woken, 4096)
        return _INPUT not in ready

    def _collect(self) -> None:
        for fork in tuple(self._running):
            pid, status = os.waitpid(fork.pid, os.WNOHANG)
            if not pid and time.monotonic() < fork.deadline:
                continue
            _end(fork.pid, is_gone=bool(pid))
            self._running.remove(fork)
            answer = failed(f"loading it did not end within {self._task.timeout_s:g} s")
            with fork.out, fork.said:
                if pid:
                    answer = read_answer(os.waitstatus_to_exitcode(status), fork.out, fork.said)
            fork.done(fork.name, answer)

    def _described(self, name: str, answer: dict[str, Any]) -> None:
        if self._task.deep and not answer["errors"]:
            self._waiting.append(partial(self._look_deep, answer, name))
        else:
            _write(name, answer)

    def _looked_deep(self, light: Mapping[str, object], name: str, answer: Mapping[str, object]) -> None:
        _write(name, {**light, **{key: answer[key] for key in ("errors", "missing", "checks")}})


def _write(name: str, answer: Mapping[str, object]) -> None:
    line = json.dumps([name, answer]).encode() + b"\n"
    while line:
        line = line[os.write(_OUTPUT, line) :]


def _become_a_process_of_its_own(keep: tuple[int, ...]) -> None:
    """What a fork does first: it leaves the session, the signals and the files of the process that it came from."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    ends = sorted((_INPUT, _OUTPUT, 2, *keep, os.sysconf("SC_OPEN_MAX")))
    for before, after in pairwise(ends):
        os.closerange(before + 1, after)
    os.dup2(os.open(os.devnull, os.O_RDONLY), _INPUT)


def _end(pid: int, *, is_gone: bool = False) -> None:
    """End a fork, and what it has left behind in its session."""
    # Both: it may not have its session yet.
    for end in (os.killpg, os.kill) if not is_gone else (os.killpg,):
        with suppress(ProcessLookupError, PermissionError):
            end(pid, signal.SIGKILL)
    if not is_gone:
        os.waitpid(pid, 0)


@cache
def _import_bases() -> None:
    for base in BASES.values():
        with suppress(ModuleNotFoundError):  # where its library is not installed, nothing can be a subclass of it
            importlib.import_module(base.partition(":")[0])


def main() -> None:
    """Do the task on standard input."""
    task = Task(*pickle.load(sys.stdin.buffer))  # noqa: S301 - from the process that has started this one
    for row in task.host.policy.rows():
        task.host.policy.unproven(row)  # reads the RECORDs, which every fork would have to
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # with none, the system would not wake anybody
    gc.freeze()  # a collection in a fork would copy all that is shared
    _Forks(task, woken).run()


if __name__ == "__main__":
    main()
    sys.exit()
