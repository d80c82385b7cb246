"""Load plugins in processes of their own: one that crashes, hangs or leaves the program costs only its own answer."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from jackfield.plugins import PluginHost
from jackfield_manage.judging.results import failed, read_answer

TIMEOUT_S = 30.0
PRELOADED = "jackfield_manage.judging.forkserver"
_INTERPRETERS = 4


def probe_all(
    host: PluginHost, names: Sequence[str], *, deep: bool = False, timeout_s: float = TIMEOUT_S
) -> Generator[tuple[str, dict[str, Any]], None, None]:
    """What `probe` answers for each of some distributions, as soon as it is known.

    Args:
        host: By whose rules plugins load.
        names: The distributions.
        deep: Load and check their components, too.
        timeout_s: For each.
    """
    waiting = dict.fromkeys(names)
    if hasattr(os, "fork"):
        for name, answer in _by_forks(_quiet(host), tuple(names), deep, timeout_s):
            del waiting[name]
            yield name, answer
    # All, where there are no forks; none, unless a plugin has ended the process that makes them.
    yield from _by_interpreters(host, tuple(waiting), ["--deep"] if deep else [], timeout_s)


def _by_forks(*task: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    process = _start([PRELOADED], stdout=subprocess.PIPE)
    assert process.stdin  # noqa: S101 - it is a pipe
    assert process.stdout  # noqa: S101 - as above
    try:
        with suppress(BrokenPipeError):  # it has ended, and so has its output
            process.stdin.write(pickle.dumps(task))
            process.stdin.flush()
        for line in process.stdout:
            name, answer = json.loads(line)
            yield name, answer
    finally:
        with suppress(BrokenPipeError):
            process.stdin.close()  # at which it ends what it has started, and itself
        process.stdout.close()
        process.wait()


def _by_interpreters(
    host: PluginHost, names: Sequence[str], options: Sequence[str], timeout_s: float
) -> Iterator[tuple[str, dict[str, Any]]]:
    if not names:
        return
    with ThreadPoolExecutor(max_workers=_INTERPRETERS) as pool:  # the threads only wait for processes
        probe = partial(probe_apart, host, timeout_s=timeout_s)
        asked = {pool.submit(probe, name, *options): name for name in names}
        try:
            for future in as_completed(asked):
                yield asked[future], future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def probe_apart(host: PluginHost, distribution: str, *options: str, timeout_s: float = TIMEOUT_S) -> dict[str, object]:
    """Load a distribution's plugins in an interpreter of its own, by the host's rules.

    A plugin that hangs, crashes or leaves the program is an answer, too: an error that says so.

    Args:
        host: By whose rules.
        distribution: Whose plugins.
        options: Those of `probe`, whose answer this gives.
        timeout_s: How long it may take.
    """
    # Files and not pipes: a process that a plugin leaves behind would hold a pipe open, and us up.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as said:
        process = _start(["jackfield_manage.judging.probe", distribution, *options], stdout=out, stderr=said)
        try:
            process.communicate(pickle.dumps(_quiet(host)), timeout=timeout_s)
        except subprocess.TimeoutExpired:
            return failed(f"loading it did not end within {timeout_s:g} s")
        finally:
            _end_all_of(process)
        return read_answer(process.returncode, out, said)


def _quiet(host: PluginHost) -> PluginHost:
    """A host that does not trace what it loads: that would be taken for what a plugin prints."""
    return PluginHost(replace(host.settings, trace=False), paths=host.paths)


def _start(words: Sequence[str], *, stdout: Any, stderr: Any = None) -> subprocess.Popen[bytes]:
    """A module of ours in an interpreter, which leads a session."""
    return subprocess.Popen(  # noqa: S603 - our own module, in our own interpreter
        [sys.executable, "-BP", "-m", *words],
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
    )


def _end_all_of(process: subprocess.Popen[bytes]) -> None:
    """End a process that leads a session, and whatever it has left behind there."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
