"""Pass the result of a probing process to its parent, however the process ends."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import IO, Any, NoReturn

_MAX_PRINTED_BYTES = 500


def failed(error: str = "") -> dict[str, object]:
    """Return a result that contains nothing except possibly an error."""
    lists: dict[str, list[Any]] = {
        key: [] for key in ("errors", "missing", "misfits", "secrets", "effects", "imported", "offered", "checks")
    }
    return {"ms": None, "waited_ms": 0.0, "specs": {}, "configs": {}, **lists, "errors": [error] if error else []}


def report_result(descriptor: int, printed: int, work: Callable[[], dict[str, Any]]) -> NoReturn:
    """Run `work`, write its result as JSON, and exit the process.

    Args:
        descriptor: The file descriptor that receives the result.
        printed: The descriptor of an empty file that receives everything the plugins print.
        work: Returns a result in the format of `probe`.
    """
    for stream in (1, 2):
        os.dup2(printed, stream)
    result = work()
    sys.stdout.flush()
    sys.stderr.flush()
    text = os.pread(printed, _MAX_PRINTED_BYTES, 0).decode(errors="replace")
    if text and not result["errors"]:
        result["effects"].append(f"it prints {text!r}")
    with os.fdopen(descriptor, "w") as out:
        json.dump(result, out)
        out.flush()
        os._exit(0)  # even if the plugin has started threads


def read_result(code: int, out: IO[bytes], printed: IO[bytes]) -> dict[str, object]:
    """Read the result of a process that exited with `code`, or return an error that describes how it ended."""
    out.seek(0)
    try:
        result: dict[str, object] = json.load(out)
    except ValueError:
        printed.seek(0)
        last_line = printed.read().decode(errors="replace").strip().rpartition("\n")[2][:300]
        cause = f"was killed by signal {-code}" if code < 0 else f"exited with code {code}"
        return failed(f"the process {cause} while loading the plugin" + (f": {last_line}" if last_line else ""))
    return result
