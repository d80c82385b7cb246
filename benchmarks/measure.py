"""Measure in turns: median CPU or wall time, ours and a peer's."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial


@dataclass(frozen=True)
class Row:
    """One line of the report. `ratio` is our figure divided by the peer's, or None if there is no peer."""

    name: str
    ours: str
    peer: str
    ratio: float | None = None
    target: str = ""


def cpu_ms(work: Callable[[], object]) -> float:
    """Return this process's CPU time for one call, in milliseconds."""
    started = time.process_time()
    work()
    return (time.process_time() - started) * 1000


def children_cpu_ms(work: Callable[[], object]) -> float:
    """Return the CPU time of the processes that one call starts and waits for, in milliseconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def wall_ms(work: Callable[[], object]) -> float:
    """Return the wall time of one call, in milliseconds."""
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def in_turns(
    works: Mapping[str, Callable[[], object]], *, rounds: int, clock: Callable[[Callable[[], object]], float] = cpu_ms
) -> dict[str, float]:
    """Call each function once per round, and return the median time of each. The first round is not counted."""
    samples: dict[str, list[float]] = {name: [] for name in works}
    for number in range(rounds + 1):
        for name, work in works.items():
            took = clock(work)
            if number:
                samples[name].append(took)
    return {name: statistics.median(taken) for name, taken in samples.items()}


def processes_in_turns(
    commands: Mapping[str, Sequence[str]], *, rounds: int, env: Mapping[str, str] | None = None
) -> dict[str, float]:
    """Run each command once per round, and return the median CPU time of each process in milliseconds."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}

    def once(command: Sequence[str]) -> None:
        subprocess.run(command, check=True, capture_output=True, env={**kept, **(env or {})}, timeout=120)

    works = {name: partial(once, command) for name, command in commands.items()}
    return in_turns(works, rounds=rounds, clock=children_cpu_ms)
