"""Who of this machine is still there: each owner has locked a file, and the system unlocks it when its process ends.

No clock is asked: a process that was stopped for a day still owns what it owned, and one that was killed does not.
"""

from __future__ import annotations

import contextlib
import os
import uuid
import weakref
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]
    import msvcrt


class Owner:
    """A name that nobody else has, for as long as this object or its process lives.

    Args:
        folder: Where the owners of one database lock their files; it is made if it is missing.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.name = uuid.uuid4().hex
        path = folder / self.name
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        _lock(handle)
        self._end = weakref.finalize(self, _end, handle, path, os.getpid())
        _handles.add(handle)

    def close(self) -> None:
        """Own nothing any more."""
        self._end()


def is_there(folder: Path, name: str) -> bool:
    """Whether an owner still lives; what a dead one has left is removed."""
    path = folder / name
    try:
        handle = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        _lock(handle)
    except OSError:
        return True
    else:
        with contextlib.suppress(OSError):  # another process has found it dead at the same time
            path.unlink()
        return False
    finally:
        os.close(handle)


def _lock(handle: int) -> None:
    """Lock a file, or raise OSError: somebody else has."""
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    else:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)


def _end(handle: int, path: Path, process: int) -> None:
    if process != os.getpid():  # a copy in a child, which has closed it
        return
    _handles.discard(handle)
    with contextlib.suppress(OSError):
        path.unlink()
    os.close(handle)


def _close_copies() -> None:
    """In a child: what its parent has locked must not stay locked after the parent."""
    while _handles:
        os.close(_handles.pop())


_handles: set[int] = set()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_copies)
