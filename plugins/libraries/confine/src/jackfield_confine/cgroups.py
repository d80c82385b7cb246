"""Limit a program's total memory and process count, if the machine offers control groups. Linux only.

A process limit counts address space. A control group counts what all of a program's processes hold together, including
shared memory, in-memory files and kernel buffers. Root can use one on most machines, other users only if it was
delegated to them, as systemd does for user services.

This module imports only the standard library, because `guard` runs without site-packages.

Sources: Linux, `Documentation/admin-guide/cgroup-v2.rst`, `cgroup-v1/memory.rst` and `cgroup-v1/pids.rst`.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

MEMORY, PIDS = "memory", "pids"
_NAME = "jackfield-"
_REMOVE_S = 5.0
_FILES = {
    # (controller, version): the file that must accept the limit, and those that may
    (MEMORY, 1): ("memory.limit_in_bytes", ("memory.memsw.limit_in_bytes", "memory.kmem.tcp.limit_in_bytes")),
    (MEMORY, 2): ("memory.max", ()),
    (PIDS, 1): ("pids.max", ()),
    (PIDS, 2): ("pids.max", ()),
}


class Parent(NamedTuple):
    """A folder in which this process may create a group with a given controller."""

    controller: str
    version: int
    folder: str


class ControlGroup:
    """A control group for one program, made of one or two folders.

    Raises:
        OSError: The machine offers control groups, but refuses to create this one.
    """

    def __init__(self, *, memory_bytes: int | None, processes: int | None) -> None:
        limits = {MEMORY: memory_bytes, PIDS: processes}
        wanted = [parent for parent in find_parents() if limits[parent.controller] is not None]
        self._folders: list[str] = []
        self._doors: list[int] = []
        name = f"{_NAME}{os.getpid()}-{os.urandom(4).hex()}"
        try:
            for parent in wanted:
                _remove_abandoned(parent.folder)
                folder = f"{parent.folder}/{name}"
                if folder not in self._folders:  # both controllers may be in one hierarchy
                    os.mkdir(folder)  # noqa: PTH102 - light
                    self._folders.append(folder)
                    self._doors.append(os.open(f"{folder}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC))
                _set_limit(parent, folder, limits[parent.controller])
        except BaseException:
            self.remove()
            raise

    def join(self) -> None:
        """Move this process, including any children it starts later, into the group."""
        for door in self._doors:
            os.write(door, b"0")

    def remove(self) -> None:
        """Kill all processes still in the group and remove it."""
        for door in self._doors:
            os.close(door)
        self._doors = []
        give_up = time.monotonic() + _REMOVE_S
        while self._folders and time.monotonic() < give_up:
            try:
                os.rmdir(self._folders[-1])  # noqa: PTH106 - light
            except FileNotFoundError:
                self._folders.pop()
            except OSError:
                _kill_all(self._folders[-1])
                time.sleep(0.002)
            else:
                self._folders.pop()


def find_parents() -> list[Parent]:
    """Find the folders in which this process may create groups, at most one each for `MEMORY` and `PIDS`."""
    try:
        with open("/proc/self/cgroup", encoding="utf-8") as file:  # noqa: PTH123 - light
            own = [line.rstrip("\n").split(":", 2) for line in file]
        with open("/proc/self/mountinfo", encoding="utf-8") as file:  # noqa: PTH123
            mounts = [line.split() for line in file]
    except OSError:
        return []
    found: dict[str, Parent] = {}
    for fields in mounts:
        kind, options = fields[fields.index("-") + 1], fields[-1].split(",")
        if kind not in ("cgroup", "cgroup2"):
            continue
        for _, controllers, path in own:
            is_here = not controllers if kind == "cgroup2" else bool({*controllers.split(",")} & {*options} & {*_BOTH})
            if is_here:
                folder = _below(fields[4], fields[3], path)
                found |= {one.controller: one for one in _usable(kind, options, folder, fields[4])}
    return list(found.values())


_BOTH = (MEMORY, PIDS)


def _below(mounted_at: str, root: str, path: str) -> str:
    """Return a group's folder, even in a container that sees only part of the hierarchy."""
    if root not in ("/", path) and not path.startswith(f"{root}/"):
        return mounted_at
    return mounted_at + path[0 if root == "/" else len(root) :].rstrip("/")


def _usable(kind: str, options: list[str], folder: str, mounted_at: str) -> Iterator[Parent]:
    if kind == "cgroup":
        controllers, version = {*options} & {*_BOTH}, 1
    else:
        # A group with processes cannot have children with controllers, so the new group is a sibling of ours.
        folder, version = folder if folder == mounted_at else os.path.dirname(folder), 2  # noqa: PTH120 - light
        try:
            with open(f"{folder}/cgroup.subtree_control", encoding="ascii") as file:  # noqa: PTH123 - light
                controllers = {*file.read().split()} & {*_BOTH}
        except OSError:
            return
    if os.access(folder, os.W_OK) and os.access(f"{folder}/cgroup.procs", os.W_OK):
        yield from (Parent(controller, version, folder) for controller in controllers)


def _set_limit(parent: Parent, folder: str, limit: int | None) -> None:
    needed, more = _FILES[parent.controller, parent.version]
    _write(f"{folder}/{needed}", f"{limit}")
    for name in more:
        with suppress(OSError):  # the kernel may not count swap or TCP separately
            _write(f"{folder}/{name}", f"{limit}")
    if (parent.controller, parent.version) == (MEMORY, 2):
        with suppress(OSError):
            _write(f"{folder}/memory.swap.max", "0")


def _write(path: str, text: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(file, text.encode("ascii"))
    finally:
        os.close(file)


def _kill_all(folder: str) -> None:
    with suppress(OSError), open(f"{folder}/cgroup.procs", encoding="ascii") as file:  # noqa: PTH123 - light
        for pid in map(int, file.read().split()):
            if pid:  # 0 is a process without a number in this namespace
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def _remove_abandoned(parent: str) -> None:
    """Remove empty groups left by guards that were killed. Groups with processes are kept."""
    for name in os.listdir(parent):  # noqa: PTH208 - light
        if name.startswith(_NAME):
            pid = name.removeprefix(_NAME).partition("-")[0]
            if pid.isdigit() and not os.path.exists(f"/proc/{pid}"):  # noqa: PTH110 - light
                with suppress(OSError):
                    os.rmdir(f"{parent}/{name}")  # noqa: PTH106 - light
