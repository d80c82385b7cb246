"""Write files atomically so that only their owner can read them."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

__all__ = ["open_private", "write_private"]


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
