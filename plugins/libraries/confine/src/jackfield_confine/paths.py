"""Open files safely while untrusted code may be changing them: no planted link leads elsewhere, and no file blocks.

A path is checked at one moment and used at another. In between, code with write access can replace a folder with a
link, or a file with a pipe. So every path component is opened relative to its parent's descriptor, links are rejected,
and checks apply to the opened file, not its name.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

# If available, a descriptor that needs no right to list the folder. Windows has none of these flags.
_FOLDER = (
    getattr(os, "O_PATH", os.O_RDONLY)
    | getattr(os, "O_DIRECTORY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
)
# A pipe is opened without waiting for its other end, a leased file without waiting for its holder, and a terminal
# without becoming this process's.
FILE = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
)
"""Flags that open a file for reading, whatever it is, through no link and without waiting."""


@contextmanager
def open_folder(path: Path) -> Iterator[int]:
    """Open a folder component by component from the root, following no links, and yield its descriptor.

    Args:
        path: An absolute path whose links were resolved before untrusted code could change any.

    Raises:
        OSError: A component is missing, is a link, or is not a folder.
    """
    handle = os.open(path.anchor, _FOLDER)
    try:
        for name in path.parts[1:]:
            inner = os.open(name, _FOLDER, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


@contextmanager
def open_listed_folder(path: Path) -> Iterator[int]:
    """Open a folder like `open_folder`, but for listing.

    Raises:
        OSError: See `open_folder`; also if the folder may not be listed.
    """
    with open_folder(path.parent) as parent:
        handle = os.open(path.name, FILE | _FOLDER & ~getattr(os, "O_PATH", 0), dir_fd=parent)
    try:
        yield handle
    finally:
        os.close(handle)


@contextmanager
def open_regular(path: Path) -> Iterator[BufferedReader]:
    """Open a regular file for reading, with its folder opened like `open_folder`.

    Raises:
        OSError: See `open_folder`. EINVAL if the path is a pipe, a socket, a device or a folder, and EAGAIN if the file
            is leased.
    """
    with open_folder(path.parent) as folder:
        handle = os.open(path.name, FILE, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a regular file")
    with os.fdopen(handle, "rb") as file:
        yield file
