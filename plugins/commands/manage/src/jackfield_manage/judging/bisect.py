"""Find the plugins that make a command fail, by running it with fewer and fewer of them.

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
from typing import IO, Literal, TypeVar

from jackfield.errors import ConfigError

Item = TypeVar("Item")
ALLOW_VARIABLE = "JACKFIELD_PLUGINS"
_BLOCK_VARIABLE = "JACKFIELD_PLUGINS_BLOCK"
RUN_TIMEOUT_S = 300.0
_MAX_OUTPUT_BYTES = 16 << 20
# What a shell says of a command that is not there or cannot be run: no plugin is to blame for that.
_NOT_RUN = (126, 127)

Outcome = Literal["culprit", "together", "without any", "never"]


@dataclass(frozen=True, slots=True)
class Result:
    """What was found.

    Attributes:
        outcome: One `culprit`; several that fail only `together`; it fails `without any` plugin; or it `never` does.
        culprits: A smallest set that makes it fail: without any one of them, it does not.
        runs: How often the command was run.
    """

    outcome: Outcome
    culprits: tuple[str, ...]
    runs: int

    def sentence(self) -> str:
        """The result for people."""
        runs = f" ({self.runs} runs)"
        match self.outcome:
            case "culprit":
                name = self.culprits[0]
                return f"{name} makes it fail{runs}. To switch it off: jackfield plugins disable {name}"
            case "together":
                listed = ", ".join(self.culprits)
                return f"it fails only with all of these together: {listed}{runs}. Switching off one of them is enough"
            case "without any":
                return f"it also fails without any plugins{runs}: plugins are not the cause"
            case "never":
                return f"it does not fail with all plugins{runs}, so there is nothing to find"


def bisect(plugins: Sequence[str], fails: Callable[[tuple[str, ...]], bool]) -> Result:
    """Find a smallest set of plugins with which something fails.

    Args:
        plugins: The distributions that may be the cause.
        fails: Tries with some of them, in the order of `plugins`; asked once for each set.
    """
    answers: dict[tuple[str, ...], bool] = {}

    def ask(subset: tuple[str, ...]) -> bool:
        if subset not in answers:
            answers[subset] = fails(subset)
        return answers[subset]

    everything = tuple(plugins)
    if not ask(everything):
        return Result("never", (), len(answers))
    if ask(()):
        return Result("without any", (), len(answers))
    culprits = minimise(everything, ask)
    return Result("culprit" if len(culprits) == 1 else "together", culprits, len(answers))


def minimise(items: tuple[Item, ...], fails: Callable[[tuple[Item, ...]], bool]) -> tuple[Item, ...]:
    """The items without all that can be left out one by one, given that `fails(items)` and not `fails(())`.

    For a single culprit among n, about 2·log2(n) questions; n² at worst. The same question may be asked again.
    """
    parts = 2
    while len(items) > 1:
        pieces = _split(items, parts)
        # The rest of one of two is the other.
        rests = (_without(items, piece) for piece in pieces if parts > 2)
        if smaller := next(filter(fails, pieces), None):
            items, parts = smaller, 2
        elif rest := next(filter(fails, rests), None):
            items, parts = rest, max(parts - 1, 2)
        elif parts < len(items):
            parts = min(2 * parts, len(items))
        else:
            break
    return items


def _without(items: tuple[Item, ...], piece: tuple[Item, ...]) -> tuple[Item, ...]:
    return tuple(item for item in items if item not in piece)


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
    """A question for `bisect`: whether a command fails with no other plugins than these.

    Args:
        command: The program and its arguments; no shell reads them.
        keep: Distributions that are there in every run, because the command cannot do without.
        plugins: All that may be the cause. What of it a run does without is blocked there by name, too: a processor
            that is enabled and only missing from a list of what is allowed would stop the run, and look like a cause.
        match: Only a run in whose output this stands has failed; '' for any that ends with another code than 0.
        timeout_s: A run that takes longer has failed; it is ended, with all the processes it started.
        environ: In place of `os.environ`.
        tell: Takes a line for each run.

    Raises, when asked:
        ConfigError: The command cannot be started.
    """
    number = 0

    def fails(subset: tuple[str, ...]) -> bool:
        nonlocal number
        number += 1
        environment = dict(os.environ if environ is None else environ)
        environment[ALLOW_VARIABLE] = ",".join(dict.fromkeys((*keep, *subset)))
        without = [name for name in plugins if name not in subset and name not in keep]
        environment[_BLOCK_VARIABLE] = ",".join(filter(None, (environment.get(_BLOCK_VARIABLE), *without)))
        code, output = _run(command, environment, timeout_s)
        failed = match.encode() in output if match else code != 0
        ended = f"no end within {timeout_s:g} s" if code is None else f"exit code {code}"
        tell(f"run {number}: {_count(subset)}: {'fails' if failed else 'does not fail'} ({ended})")
        return failed

    return fails


def asked_fails(
    ask: Callable[[str], str] = input, *, keep: Sequence[str] = (), tell: Callable[[str], None] = print
) -> Callable[[tuple[str, ...]], bool]:
    """A question for `bisect` that a person answers, who tries it in another window.

    Raises, when asked:
        ConfigError: The person wants to stop, or has gone.
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
                raise ConfigError("stopped before anything was found")

    return fails


def _split(items: tuple[Item, ...], parts: int) -> list[tuple[Item, ...]]:
    bounds = [len(items) * number // parts for number in range(parts + 1)]
    return [items[start:end] for start, end in pairwise(bounds)]


def _count(subset: tuple[str, ...]) -> str:
    if not subset:
        return "no plugin"
    return subset[0] if len(subset) == 1 else f"{len(subset)} plugins"


def _run(command: Sequence[str], environment: Mapping[str, str], timeout_s: float) -> tuple[int | None, bytes]:
    """The exit code, None after a time-out, and what the command said."""
    # A file, because a pipe stays open as long as any process that the command leaves behind.
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
        if code in _NOT_RUN:
            raise ConfigError(f"{command[0]!r} ended with code {code}: the command itself cannot be run")
        return code, _said(output)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command that is still running, and what it has started and left behind."""
    if sys.platform == "win32":
        if process.poll() is None:
            process.kill()
    else:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return  # the last of them has ended
    process.wait()


def _said(output: IO[bytes]) -> bytes:
    output.seek(0)
    return output.read(_MAX_OUTPUT_BYTES)
