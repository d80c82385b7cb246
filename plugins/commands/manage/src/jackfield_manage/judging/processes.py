"""Load plugins in separate processes, so that a crash, hang or exit affects only the plugin's own result."""

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
from typing import Any

from jackfield.plugins import PluginHost
from jackfield_manage.judging.results import failed, read_result

TIMEOUT_S = 30.0
FORKSERVER = "jackfield_manage.judging.forkserver"
_INTERPRETERS = 4


def probe_all(
    host: PluginHost, names: Sequence[str], *, deep: bool = False, timeout_s: float = TIMEOUT_S
) -> Generator[tuple[str, dict[str, Any]], None, None]:
    """Probe several distributions, and yield each name and result as soon as available.

    Args:
        host: The host whose rules apply.
        names: The distributions to probe.
        deep: True to also load and check their components.
        timeout_s: The time limit for each distribution.
    """
    pending = dict.fromkeys(names)
    if hasattr(os, "fork"):
        for name, result in _probe_by_forks(_silence(host), tuple(names), deep, timeout_s):
            del pending[name]
            yield name, result
    # All of them without fork support, or those left if a plugin killed the fork server.
    yield from _probe_by_interpreters(host, tuple(pending), ["--deep"] if deep else [], timeout_s)


def _probe_by_forks(*task: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    process = _start([FORKSERVER], stdout=subprocess.PIPE)
    assert process.stdin  # noqa: S101 - it is a pipe
    assert process.stdout  # noqa: S101 - as above
    try:
        with suppress(BrokenPipeError):  # the process has died, so its output has ended too
            process.stdin.write(pickle.dumps(task))
            process.stdin.flush()
        for line in process.stdout:
            name, result = json.loads(line)
            yield name, result
    finally:
        with suppress(BrokenPipeError):
            process.stdin.close()  # tells it to kill its forks and exit
        process.stdout.close()
        process.wait()


def _probe_by_interpreters(
    host: PluginHost, names: Sequence[str], options: Sequence[str], timeout_s: float
) -> Iterator[tuple[str, dict[str, Any]]]:
    if not names:
        return
    with ThreadPoolExecutor(max_workers=_INTERPRETERS) as pool:  # the threads only wait for processes
        futures = {pool.submit(probe_in_interpreter, host, name, *options, timeout_s=timeout_s): name for name in names}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def probe_in_interpreter(
    host: PluginHost, distribution: str, *options: str, timeout_s: float = TIMEOUT_S
) -> dict[str, Any]:
    """Load a distribution's plugins in a new interpreter.

    If a plugin hangs, crashes or exits, the result contains an error that says so.

    Args:
        host: The host whose rules apply.
        distribution: The distribution to probe.
        options: Command-line options of `probe`.
        timeout_s: The time limit.

    Returns:
        The result of `probe`.
    """
    # Files, because a process left behind by a plugin would keep a pipe open and block us.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as printed:
        process = _start(["jackfield_manage.judging.probe", distribution, *options], stdout=out, stderr=printed)
        try:
            process.communicate(pickle.dumps(_silence(host)), timeout=timeout_s)
        except subprocess.TimeoutExpired:
            return failed(f"loading timed out after {timeout_s:g} s")
        finally:
            _kill_session(process)
        return read_result(process.returncode, out, printed)


def _silence(host: PluginHost) -> PluginHost:
    """Return a host with tracing disabled, since traces would look like a plugin's output."""
    return PluginHost(replace(host.settings, trace=False), paths=host.paths)


def _start(words: Sequence[str], *, stdout: Any, stderr: Any = None) -> subprocess.Popen[bytes]:
    """Start one of our modules in an interpreter that leads its own session."""
    return subprocess.Popen(  # noqa: S603 - our own module, in our own interpreter
        [sys.executable, "-BP", "-m", *words],
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
    )


def _kill_session(process: subprocess.Popen[bytes]) -> None:
    """Kill a session leader and every process it left behind in the session."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
