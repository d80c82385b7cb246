"""Find processes that outlived their guard, by a marker in their environment. Linux only; elsewhere none are found.

Needed only on machines without a barrier (see `barriers`), where code can kill its guard. Code that also starts
processes with a custom environment can hide them from this search.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_ROUNDS = 100  # a process may start another during the search


def end_marked(variable: str, value: str) -> None:
    """Kill every process of this user that was started with the environment variable set to the value."""
    if not hasattr(os, "pidfd_open"):
        return
    mark = os.fsencode(f"{variable}={value}")
    for _ in range(_ROUNDS):
        found = [_end_if_marked(pid, mark) for pid in _processes()]
        if not any(found):
            return


def _processes() -> Iterator[int]:
    return (int(folder.name) for folder in Path("/proc").glob("[0-9]*"))


def _end_if_marked(pid: int, mark: bytes) -> bool:
    with suppress(OSError):  # another user's, or it has ended
        handle = os.pidfd_open(pid)  # first, because meanwhile the number could be reused
        try:
            if mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                return True
        finally:
            os.close(handle)
    return False
