"""Identify the owner of a place in a shared file, and check if it is still running."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def owner() -> str:
    """Return the name of this process, which is the same for all processes of this machine."""
    return f"{_machine()}/{os.getpid()}"


def is_gone(name: str) -> bool:
    """Return True if a process has surely ended; False if this cannot be known from here."""
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
    """Return an id of the machine since its last start, and of its process namespace: a container counts its own."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:  # not Linux
        return platform.node()
