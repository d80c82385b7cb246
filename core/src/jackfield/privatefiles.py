"""Write files atomically so that only their owner can read them."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["lock_changes", "open_private", "write_private"]

_WITHOUT_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}  # as of NFS without its lock service


def write_private(path: Path, content: str | bytes) -> None:
    """Write or replace a file atomically, with mode 0600 regardless of the umask.

    If the directory is missing, it is created with mode 0700. Lone surrogates are written as question marks.

    Raises:
        OSError: The file cannot be written. An existing file is left intact.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.")  # created with mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode(errors="replace") if isinstance(content, str) else content)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


@contextlib.contextmanager
def lock_changes(path: Path) -> Iterator[None]:
    """Hold a lock while the block reads, changes and writes a file, so that no other change is lost.

    All who change the file must use this lock, the file `.NAME.lock` next to it. On systems and file systems without
    `flock`, there is no lock.

    Raises:
        OSError: The lock file cannot be opened.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle = open_private(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in _WITHOUT_LOCKS:
                raise
        yield
    finally:
        os.close(handle)


def open_private(path: Path, flags: int = os.O_WRONLY | os.O_CREAT | os.O_TRUNC) -> int:
    """Open a file and return its descriptor. The mode is set to 0600, even for an existing file. Links are rejected.

    Raises:
        OSError: The file cannot be opened.
    """
    handle = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)
    if hasattr(os, "fchmod"):
        try:
            os.fchmod(handle, 0o600)
        except OSError:
            os.close(handle)
            raise
    return handle
