"""What a process that examines a plugin answers, and how its answer comes back, however the process ends."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import IO, Any, NoReturn

_MAX_PRINTED_BYTES = 500


def failed(error: str = "") -> dict[str, object]:
    """An answer in which nothing is known but an error."""
    lists: dict[str, list[Any]] = {
        key: [] for key in ("errors", "missing", "secrets", "effects", "imported", "offered", "checks")
    }
    return {"ms": None, "waited_ms": 0.0, "specs": {}, "configs": {}, **lists, "errors": [error] if error else []}


def answer_to(descriptor: int, said: int, work: Callable[[], dict[str, Any]]) -> NoReturn:
    """Do the work, write its answer as JSON, and end this process.

    Args:
        descriptor: Where the answer goes.
        said: An empty file, for what is printed meanwhile.
        work: Gives an answer, in the form of `probe`'s.
    """
    for stream in (1, 2):
        os.dup2(said, stream)
    result = work()
    sys.stdout.flush()
    sys.stderr.flush()
    printed = os.pread(said, _MAX_PRINTED_BYTES, 0).decode(errors="replace")
    if printed and not result["errors"]:
        result["effects"].append(f"it prints {printed!r}")
    with os.fdopen(descriptor, "w") as answer:
        json.dump(result, answer)
        answer.flush()
        os._exit(0)  # whatever threads the plugin has started


def read_answer(code: int, out: IO[bytes], said: IO[bytes]) -> dict[str, object]:
    """The answer of a process that has ended with a code, or an error that says how it ended."""
    out.seek(0)
    try:
        answer: dict[str, object] = json.load(out)
    except ValueError:
        said.seek(0)
        last = said.read().decode(errors="replace").strip().rpartition("\n")[2][:300]
        ended = f"by signal {-code}" if code < 0 else f"with code {code}"
        return failed(f"loading it ended the process {ended}" + (f": {last}" if last else ""))
    return answer
