"""Track which runs are held by processes on one machine, using byte locks that the OS releases when a process ends.

No clock is involved: a process that was suspended for a day still has its holds, and a killed process has none. Locking
a byte requires neither disk space nor a database.

Each owner has its own file. The first byte is locked while the owner is alive, and each hold locks another byte that is
never reused. The locks belong to the open file (`F_OFD_SETLK`) rather than the process, because POSIX drops all of a
process's locks on a file when it closes any handle to that file. Systems without such locks use one file per hold.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import struct
import sys
import uuid
import weakref
from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_HAS_RANGES = sys.platform == "win32" or hasattr(fcntl, "F_OFD_SETLK")
_FLOCK = "qqihh" if sys.platform == "darwin" else "hhqqi0q"


class Owner:
    """The holds of one store object in one process.

    A hold ends when it is dropped, when the owner is closed or garbage-collected, or when the process ends.

    Args:
        folder: The directory for one database's lock files, which is created if missing.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.name = uuid.uuid4().hex
        self._folder = folder
        self._numbers = itertools.count(1)
        # By hold number, on systems with one file per hold.
        self._handles = {"": _open_locked(folder / self.name)} if _HAS_RANGES else {}
        self._end = weakref.finalize(self, _end, self._handles, folder, self.name, os.getpid())

    def take(self) -> str:
        """Start a hold and return its name, which is never reused."""
        number = next(self._numbers)
        if _HAS_RANGES:
            _lock(self._handles[""], number)
        else:
            self._handles[f".{number}"] = _open_locked(self._folder / f"{self.name}.{number}")
        return f"{self.name}:{number}"

    def drop(self, hold: str) -> None:
        """End a hold. This requires no disk space and cannot fail."""
        number = int(hold.partition(":")[2])
        if not self._end.alive:
            return
        if _HAS_RANGES:
            _unlock(self._handles[""], number)
        elif (handle := self._handles.pop(f".{number}", None)) is not None:
            _remove(handle, self._folder / f"{self.name}.{number}")

    def close(self) -> None:
        """End all holds."""
        self._end()


def is_held(folder: Path, hold: str) -> bool:
    """Return True if a hold is still valid. The file of a dead owner is deleted."""
    name, _, number = hold.partition(":")
    path = folder / (name if _HAS_RANGES else f"{name}.{number}")
    try:
        handle = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        if _is_locked(handle, 0):
            return not _HAS_RANGES or _is_locked(handle, int(number))
    finally:
        os.close(handle)
    with contextlib.suppress(OSError):  # another process has removed it at the same time
        path.unlink()
    return False


def _open_locked(path: Path) -> int:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        _lock(handle, 0)
    except OSError:
        os.close(handle)
        raise
    _open_handles.add(handle)
    return handle


def _lock(handle: int, byte: int) -> None:
    """Lock one byte of a file.

    Raises:
        OSError: Another handle holds the lock.
    """
    if sys.platform == "win32":
        os.lseek(handle, byte, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    elif _HAS_RANGES:
        fcntl.fcntl(handle, fcntl.F_OFD_SETLK, _flock(fcntl.F_WRLCK, byte))
    else:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_locked(handle: int, byte: int) -> bool:
    """Return True if another handle has locked the byte. Concurrent checks do not interfere with each other."""
    if sys.platform != "win32" and _HAS_RANGES:
        known = fcntl.fcntl(handle, fcntl.F_OFD_GETLK, _flock(fcntl.F_WRLCK, byte))
        return _kind_of(known) != fcntl.F_UNLCK
    try:
        if sys.platform == "win32":
            _lock(handle, byte)
        else:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


def _unlock(handle: int, byte: int) -> None:
    if sys.platform == "win32":
        os.lseek(handle, byte, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)
    else:
        fcntl.fcntl(handle, fcntl.F_OFD_SETLK, _flock(fcntl.F_UNLCK, byte))


def _flock(kind: int, byte: int) -> bytes:
    """Pack the platform's `struct flock` for a single byte."""
    if sys.platform == "darwin":
        return struct.pack(_FLOCK, byte, 1, 0, kind, os.SEEK_SET)
    return struct.pack(_FLOCK, kind, os.SEEK_SET, byte, 1, 0)


def _kind_of(flock: bytes) -> int:
    return int(struct.unpack(_FLOCK, flock)[3 if sys.platform == "darwin" else 0])


def _end(handles: dict[str, int], folder: Path, name: str, process: int) -> None:
    if process != os.getpid():  # a copy in a child, which has closed it
        return
    while handles:
        number, handle = handles.popitem()
        _remove(handle, folder / f"{name}{number}")


def _remove(handle: int, path: Path) -> None:
    _open_handles.discard(handle)
    with contextlib.suppress(OSError):
        path.unlink()
    os.close(handle)


def _close_copies() -> None:
    """Close inherited lock files in a forked child, so that the locks end with the parent."""
    while _open_handles:
        os.close(_open_handles.pop())


_open_handles: set[int] = set()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_copies)
