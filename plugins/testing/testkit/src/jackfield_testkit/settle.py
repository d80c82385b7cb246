"""Load all components of a distribution in threads and in other processes: run by `PluginSuite`, in a fresh process.

`python -m jackfield_testkit.settle DISTRIBUTION` writes a JSON object: what went wrong, by the way of loading.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

# All that is the core's, so that what runs at the same time is what a plugin imports.
import jackfield.agents
import jackfield.models
import jackfield.processors
import jackfield.tools  # noqa: F401
from jackfield.plugins import ComponentSpec, PluginHost, Settings, hook

THREADS = 8
PATIENCE_S = 60.0


def settle(distribution: str) -> dict[str, list[str]]:
    """Load everything in a child that is as new as a spawned one, in eight threads at once, and in a forked child."""
    if "fork" not in multiprocessing.get_all_start_methods():
        return {"threads": _in_threads(distribution), "spawn": _in_process("spawn", distribution)}
    return {
        # Nothing of the plugin is loaded yet: its child finds what a spawned one would, without a new interpreter.
        "spawn": _in_process("fork", distribution),
        "threads": _in_threads(distribution),
        "fork": _in_process("fork", distribution),
    }


def load_all(distribution: str, host: PluginHost) -> dict[str, object]:
    """Every component of a distribution, by `kind.name`; an error as its text."""
    loaded: dict[str, object] = {}
    for row in host.catalog.rows:
        if row.distribution == distribution and row.kind in hook.KINDS and not row.is_source:
            try:
                spec = host.spec_of(row, ComponentSpec)
                loaded[row.id] = host.load_row(row) if spec.target else None  # a set that names its tools
            except (Exception, SystemExit) as error:  # noqa: BLE001 - it is told to who asked
                loaded[row.id] = f"{type(error).__name__}: {error}"
    return loaded


def _in_threads(distribution: str) -> list[str]:
    """A host for each thread, so that nothing but Python's own lock stands between them."""
    start = threading.Barrier(THREADS)

    def load() -> dict[str, object]:
        host = PluginHost(Settings())
        start.wait()
        return load_all(distribution, host)

    with ThreadPoolExecutor(THREADS) as pool:
        loading = [pool.submit(load) for _ in range(THREADS)]
        results = [one.result() for one in loading]
    return [problem for name in results[0] for problem in _differences(name, [result[name] for result in results])]


def _differences(name: str, loaded: Sequence[object]) -> list[str]:
    """What is wrong with a component as the threads got it."""
    errors = sorted({f"{name}: {one}" for one in loaded if isinstance(one, str)})
    if errors or all(one is loaded[0] for one in loaded):
        return errors
    return [f"{name}: {THREADS} threads got different objects"]


def _in_process(method: str, distribution: str) -> list[str]:
    context: Any = multiprocessing.get_context(method)  # each method has a class of its own
    here, there = context.Pipe()
    child = context.Process(target=_answer, args=(there, distribution))
    child.start()
    there.close()
    try:
        answered = here.poll(PATIENCE_S)
        problems: list[str] = here.recv() if answered else [f"it did not end within {PATIENCE_S:g} s"]
    except EOFError:
        child.join(PATIENCE_S)
        problems = [f"the process ended with {child.exitcode}"]
    finally:
        child.kill()
        child.join()
    return problems


def _answer(connection: Connection, distribution: str) -> None:
    loaded = load_all(distribution, PluginHost(Settings()))
    connection.send([f"{name}: {one}" for name, one in loaded.items() if isinstance(one, str)])
    connection.close()


def quietly(work: Callable[[], Any]) -> None:
    """Do something whose result goes to standard output as JSON, and nothing else with it."""
    answer_to = os.dup(1)
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 1)
        result = work()
        sys.stdout.flush()
    with os.fdopen(answer_to, "w") as answer:
        json.dump(result, answer)


def main(arguments: Sequence[str]) -> None:
    """Settle the distribution that the first argument names."""
    quietly(lambda: settle(arguments[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
