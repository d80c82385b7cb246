"""Limit the memory and processes of a program as a whole, if the machine offers a control group. Linux only.

A limit of a process counts address space. A control group counts what all processes of a program hold together, with
shared memory, files in memory and the kernel's buffers. Root has one on most machines; other users have one if it was
delegated to them, as systemd does for a user's services.

It uses only the standard library, and nothing of this package: `guard` runs without site-packages.

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
    """A folder below which this process may make a group with a controller."""

    controller: str
    version: int
    folder: str


class ControlGroup:
    """A group of its own for one program, in one folder or two.

    Raises:
        OSError: The machine offers a group, but then refuses to create it.
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
        """Move this process into the group; the processes that it starts are in it as well."""
        for door in self._doors:
            os.write(door, b"0")

    def remove(self) -> None:
        """Kill the processes that are still in the group, and remove it."""
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
    """Find where this process may make groups: at most one folder for each of `MEMORY` and `PIDS`."""
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
    """Return the path of a group; a container may see only a part of the hierarchy."""
    if root not in ("/", path) and not path.startswith(f"{root}/"):
        return mounted_at
    return mounted_at + path[0 if root == "/" else len(root) :].rstrip("/")


def _usable(kind: str, options: list[str], folder: str, mounted_at: str) -> Iterator[Parent]:
    if kind == "cgroup":
        controllers, version = {*options} & {*_BOTH}, 1
    else:
        # A group with processes can have no children with controllers, so the new one is a sibling of ours.
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
        with suppress(OSError):  # the kernel may count neither swap nor TCP apart
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
    """Remove the empty groups of guards that were killed; a group with processes stays."""
    for name in os.listdir(parent):  # noqa: PTH208 - light
        if name.startswith(_NAME):
            pid = name.removeprefix(_NAME).partition("-")[0]
            if pid.isdigit() and not os.path.exists(f"/proc/{pid}"):  # noqa: PTH110 - light
                with suppress(OSError):
                    os.rmdir(f"{parent}/{name}")  # noqa: PTH106 - light
