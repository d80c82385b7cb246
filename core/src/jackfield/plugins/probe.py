"""Load the plugins of one distribution and say what happened: run by `doctor`, in a process of its own.

`python -m jackfield.plugins.probe DISTRIBUTION [--deep]` writes one JSON object to standard output. What a plugin
prints goes to standard error, so that it cannot spoil the answer.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from jackfield.errors import PluginError
from jackfield.plugins.descriptors import ComponentSpec
from jackfield.plugins.host import PluginHost


def probe(distribution: str, *, deep: bool) -> dict[str, Any]:
    """Describe (and, if deep, load) all components of a distribution.

    Returns:
        `ms`: the CPU to describe them, in milliseconds; `secrets`: the variables they read keys from; `errors`: one
        text for each component that fails.
    """
    host = PluginHost()
    rows = [row for row in host.rows() if row.distribution == distribution]
    import jackfield.plugins  # paid once by all plugins, so not counted for this one

    assert jackfield.plugins.hook is not None  # noqa: S101 - the import is what counts
    errors: list[str] = []
    secrets: set[str] = set()
    started = time.process_time()
    for row in rows:
        try:
            secrets |= set(host.spec_of(row, ComponentSpec).secrets)
        except PluginError as error:
            errors.append(str(error))
    milliseconds = (time.process_time() - started) * 1000
    for row in rows if deep and not errors else ():
        try:
            host.load_row(row)
        except PluginError as error:
            errors.append(str(error))
    return {"ms": round(milliseconds, 1), "secrets": sorted(secrets), "errors": errors}


def main(arguments: list[str]) -> None:
    """Probe the distribution that the first argument names."""
    answer_to = os.dup(1)
    os.dup2(2, 1)
    result = probe(arguments[0], deep="--deep" in arguments[1:])
    with os.fdopen(answer_to, "w") as answer:
        json.dump(result, answer)


if __name__ == "__main__":
    main(sys.argv[1:])
