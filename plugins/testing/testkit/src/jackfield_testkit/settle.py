"""Load all components of a distribution in threads and in other processes. `PluginSuite` runs this module.

`python -m jackfield_testkit.settle DISTRIBUTION` writes a JSON object with the problems found, by loading method. It
must run in a fresh process.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import pkgutil
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any, TypeAlias, TypeVar

# The whole core, so that only the plugin's imports run concurrently.
import jackfield.agents
import jackfield.models
import jackfield.processors
import jackfield.tools  # noqa: F401
from jackfield.errors import PluginError
from jackfield.plugins import ComponentSpec, PluginHost, Settings, hook

THREADS = 8
PATIENCE_S = 60.0  # for each way

Problems: TypeAlias = dict[str, list[str]]
"""Problems by loading method."""

Given = TypeVar("Given")

_FORKS = "fork" in multiprocessing.get_all_start_methods()


def settle(distribution: str) -> Problems:
    """Load all components in a fresh child process, in eight threads at once, and again in a fork of that process."""
    ways = ["spawn", "threads", *(["fork"] if _FORKS else [])]
    # No part of the plugin is loaded yet, so a fork is like a spawned process without a new interpreter.
    return _in_process("fork" if _FORKS else "spawn", _load_as_new, distribution, ways)


def _load_as_new(distribution: str) -> Problems:
    targets = _targets_of(distribution)
    start = threading.Barrier(THREADS)

    def load() -> dict[str, object]:
        start.wait()
        return _loaded(targets)

    with ThreadPoolExecutor(THREADS) as pool:
        loading = [pool.submit(load) for _ in range(THREADS)]
        results = [one.result() for one in loading]
    found = {
        "spawn": _errors(results[0]),
        "threads": [text for name in results[0] for text in _differences(name, [one[name] for one in results])],
    }
    return found | (_in_process("fork", _load_again, targets, ["fork"]) if _FORKS else {})


def _load_again(targets: Mapping[str, str]) -> Problems:
    return {"fork": _errors(_loaded(targets))}


def _targets_of(distribution: str) -> dict[str, str]:
    """Return each component's target by `kind.name`, or '' for a toolset that names its tools."""
    host = PluginHost(Settings())
    rows = [row for row in host.catalog.rows if row.distribution == distribution and row.kind in hook.KINDS]
    return {row.id: host.spec_of(row, ComponentSpec).target for row in rows if not row.is_source}


def _loaded(targets: Mapping[str, str]) -> dict[str, object]:
    """Load every component. If loading fails, the result is the error message."""
    return {name: _resolved(target) for name, target in targets.items() if target}


def _resolved(target: str) -> object:
    try:
        # Without a host, which loads each target once, because only Python's own import lock may protect the threads.
        return pkgutil.resolve_name(target)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it is reported to the suite
        return f"{type(error).__name__}: {error}"


def _errors(loaded: Mapping[str, object]) -> list[str]:
    return [f"{name}: {one}" for name, one in loaded.items() if isinstance(one, str)]


def _differences(name: str, loaded: Sequence[object]) -> list[str]:
    """Compare a component as loaded by the threads, and return errors and differences."""
    errors = sorted({f"{name}: {one}" for one in loaded if isinstance(one, str)})
    if errors or all(one is loaded[0] for one in loaded):
        return errors
    return [f"{name}: {THREADS} threads got different objects"]


def _in_process(method: str, work: Callable[[Given], Problems], given: Given, ways: Sequence[str]) -> Problems:
    """Run `work` in a child process and return the problems found. If the child does not answer, all ways fail."""
    context: Any = multiprocessing.get_context(method)  # each method has a class of its own
    here, there = context.Pipe()
    child = context.Process(target=_answer, args=(there, work, given))
    child.start()
    there.close()
    patience_s = PATIENCE_S * len(ways)
    try:
        answer = here.recv() if here.poll(patience_s) else f"the process did not finish within {patience_s:g} s"
    except EOFError:
        child.join(PATIENCE_S)
        answer = f"the process exited with {child.exitcode}"
    finally:
        child.kill()
        child.join()
    return {way: [answer] for way in ways} if isinstance(answer, str) else answer


def _answer(connection: Connection, work: Callable[[Given], Problems], given: Given) -> None:
    try:
        connection.send(work(given))
    except PluginError as error:
        connection.send(str(error))
    connection.close()


def main(arguments: Sequence[str]) -> None:
    """Check the distribution named in the first argument. Only the result is written to standard output."""
    answer_to = os.dup(1)
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 1)
        problems = settle(arguments[0])
        sys.stdout.flush()
    with os.fdopen(answer_to, "w") as answer:
        json.dump(problems, answer)


if __name__ == "__main__":
    main(sys.argv[1:])
