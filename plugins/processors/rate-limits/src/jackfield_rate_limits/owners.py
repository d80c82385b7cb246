"""Identify the process that holds a slot in a shared file, and check if it is still running."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def owner() -> str:
    """Return a name for the current process that other processes on this machine can check."""
    return f"{_machine()}/{os.getpid()}"


def is_gone(name: str) -> bool:
    """Return True if a process has definitely ended, or False if this cannot be determined from here."""
    machine, _, pid = name.rpartition("/")
    if os.name != "posix" or machine != _machine() or not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # it is running, for another user
        return False
    return False


def _machine() -> str:
    """Return an id for this boot of the machine and its PID namespace, since each container has its own PIDs."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:  # not Linux
        return platform.node()
