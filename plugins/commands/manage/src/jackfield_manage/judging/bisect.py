"""Find the plugins that make a command fail by running it with ever smaller subsets.

Source of the method: Zeller & Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", TSE 2002 (ddmin).
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeVar

from jackfield.errors import ConfigError
from jackfield.plurals import format_count

Item = TypeVar("Item")
ALLOW_VARIABLE = "JACKFIELD_PLUGINS"
_BLOCK_VARIABLE = "JACKFIELD_PLUGINS_BLOCK"
RUN_TIMEOUT_S = 300.0
_MAX_OUTPUT_BYTES = 16 << 20
# A shell's exit codes for a missing or non-executable command, which no plugin can cause.
_CANNOT_RUN = (126, 127)

Outcome = Literal["culprit", "together", "without any", "never"]


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a search.

    Attributes:
        outcome: `culprit` if a single plugin makes the command fail, `together` if only several plugins combined do,
            `without any` if the command fails without plugins, or `never`.
        culprits: A minimal set of plugins that makes the command fail.
        runs: The number of runs.
    """

    outcome: Outcome
    culprits: tuple[str, ...]
    runs: int

    def sentence(self) -> str:
        """Describe the result in a sentence."""
        runs = f" ({format_count(self.runs, 'run')})"
        match self.outcome:
            case "culprit":
                name = self.culprits[0]
                return f"{name} causes the failure{runs}. To disable it, run: jackfield plugins disable {name}"
            case "together":
                listed = ", ".join(self.culprits)
                return f"the failure occurs only with all of these together: {listed}{runs}. Disabling one is enough"
            case "without any":
                return f"the failure also occurs without any plugins{runs}, so plugins are not the cause"
            case "never":
                return f"the failure does not occur with all plugins{runs}, so there is nothing to find"


def bisect(plugins: Sequence[str], fails: Callable[[tuple[str, ...]], bool]) -> Result:
    """Find a minimal set of plugins that makes a command fail.

    Args:
        plugins: The distributions that may be the cause.
        fails: Runs the command with a subset, in the order of `plugins`, and returns True if it fails. Called only once
            for each subset.
    """
    results: dict[tuple[str, ...], bool] = {}

    def fails_once(subset: tuple[str, ...]) -> bool:
        if subset not in results:
            results[subset] = fails(subset)
        return results[subset]

    if not fails_once(tuple(plugins)):
        return Result("never", (), len(results))
    if fails_once(()):
        return Result("without any", (), len(results))
    culprits = minimise(tuple(plugins), fails_once)
    return Result("culprit" if len(culprits) == 1 else "together", culprits, len(results))


def minimise(items: tuple[Item, ...], fails: Callable[[tuple[Item, ...]], bool]) -> tuple[Item, ...]:
    """Reduce items to a minimal failing set, given that `fails(items)` is True and `fails(())` is False.

    A single culprit among n items takes about 2·log2(n) calls, and the worst case n². A subset may be tried repeatedly.
    """
    parts = 2
    while len(items) > 1:
        pieces = _split(items, parts)
        # With two subsets, each is the complement of the other, and has been tried.
        rests = [tuple(item for item in items if item not in piece) for piece in pieces] if parts > 2 else []
        if smaller := _first_failing(pieces, fails):
            items, parts = smaller, 2
        elif rest := _first_failing(rests, fails):
            items, parts = rest, max(parts - 1, 2)
        elif parts < len(items):
            parts = min(2 * parts, len(items))
        else:
            break
    return items


def _first_failing(
    candidates: Sequence[tuple[Item, ...]], fails: Callable[[tuple[Item, ...]], bool]
) -> tuple[Item, ...] | None:
    for candidate in candidates:
        if fails(candidate):
            return candidate
    return None


def _split(items: tuple[Item, ...], parts: int) -> list[tuple[Item, ...]]:
    bounds = [len(items) * number // parts for number in range(parts + 1)]
    return [items[start:end] for start, end in pairwise(bounds)]


def command_fails(
    command: Sequence[str],
    *,
    keep: Sequence[str] = (),
    plugins: Sequence[str] = (),
    match: str = "",
    timeout_s: float = RUN_TIMEOUT_S,
    environ: Mapping[str, str] | None = None,
    tell: Callable[[str], None] = print,
) -> Callable[[tuple[str, ...]], bool]:
    """Return a function for `bisect` that runs a command with a subset of plugins and returns True if it fails.

    Args:
        command: The program and its arguments; no shell is used.
        keep: Distributions to include in every run because the command needs them.
        plugins: All candidates. Those left out of a run are also blocked, because an enabled processor that was merely
            missing from the allowed packages would stop the run and look like a cause.
        match: Text that the output of a failed run must contain. If '', a run fails by a nonzero exit code.
        timeout_s: The time limit. A run that exceeds it counts as failed and is killed along with its child processes.
        environ: The environment variables. Defaults to `os.environ`.
        tell: Receives a line for each run.

    The returned function raises:
        ConfigError: The command cannot be started.
    """
    number = 0

    def fails(subset: tuple[str, ...]) -> bool:
        nonlocal number
        number += 1
        environment = dict(os.environ if environ is None else environ)
        environment[ALLOW_VARIABLE] = ",".join(dict.fromkeys((*keep, *subset)))
        without = [name for name in plugins if name not in subset and name not in keep]
        blocked = environment.get(_BLOCK_VARIABLE)
        environment[_BLOCK_VARIABLE] = ",".join([blocked, *without] if blocked else without)
        code, output = _run(command, environment, timeout_s)
        failed = os.fsencode(match) in output if match else code != 0
        ended = f"timed out after {timeout_s:g} s" if code is None else f"exit code {code}"
        tell(f"run {number}: {_count(subset)}: {'fails' if failed else 'does not fail'} ({ended})")
        return failed

    return fails


def ask_if_fails(
    ask: Callable[[str], str] = input, *, keep: Sequence[str] = (), tell: Callable[[str], None] = print
) -> Callable[[tuple[str, ...]], bool]:
    """Return a function for `bisect` that asks the user to try each subset in another window and report the result.

    The returned function raises:
        ConfigError: The user quits, or standard input ends.
    """

    def fails(subset: tuple[str, ...]) -> bool:
        tell(f"Try it with {_count(subset)}: {ALLOW_VARIABLE}={shlex.quote(','.join(dict.fromkeys((*keep, *subset))))}")
        while True:
            try:
                answer = ask("good, bad or quit? ").strip().lower()
            except EOFError:
                answer = "quit"
            if answer in ("g", "good"):
                return False
            if answer in ("b", "bad"):
                return True
            if answer in ("q", "quit"):
                raise ConfigError("the search stopped before the cause of the failure was found")

    return fails


def _count(subset: tuple[str, ...]) -> str:
    if not subset:
        return "no plugin"
    return subset[0] if len(subset) == 1 else f"{len(subset)} plugins"


def _run(command: Sequence[str], environment: Mapping[str, str], timeout_s: float) -> tuple[int | None, bytes]:
    """Run a command, and return its exit code (None after a timeout) and its output."""
    # A file, because a process left behind by the command would keep a pipe open.
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(  # noqa: S603 - a list, and no shell
                list(command),
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise ConfigError(f"{command[0]!r} cannot be run: {error.strerror or error}") from error
        try:
            code: int | None = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _end(process)
        if code in _CANNOT_RUN:
            raise ConfigError(f"{command[0]!r} exited with code {code}: the command itself cannot be run")
        output.seek(0)
        return code, output.read(_MAX_OUTPUT_BYTES)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a command if it is still running, and any process it left behind."""
    if sys.platform == "win32":
        if process.poll() is None:
            process.kill()
    else:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return  # no process of the session is left
    process.wait()
