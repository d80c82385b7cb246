"""Which process has a place in a shared file, and whether it still runs."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def owner() -> str:
    """This process, as a name that means the same to all processes of this machine."""
    return f"{_machine()}/{os.getpid()}"


def is_gone(name: str) -> bool:
    """Whether a process is known not to run any more; False where that cannot be told from here."""
    machine, _, pid = name.rpartition("/")
    if os.name != "posix" or machine != _machine() or not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # it runs, for somebody else
        return False
    return False


def _machine() -> str:
    """The machine since its last start, and where numbers of processes are counted: a container counts its own."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:  # not Linux
        return platform.node()
