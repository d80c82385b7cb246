"""Open files that code may be changing at the same time, so that no link it plants leads elsewhere and no file blocks.

A path is checked at one moment and used at another. Between the two, code that may write there can put a link in the
place of a folder, or a pipe in the place of a file. So every part of a path is opened below the descriptor of the part
before it, none may be a link, and checks look at the opened file, not at its name.
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
    """Open a folder name by name from the root, through no link, and yield its descriptor.

    Args:
        path: Absolute, with the links in it resolved before the code could change any.

    Raises:
        OSError: A part is missing, is a link, or is something other than a folder.
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
    """Open a folder as `open_folder` does, so that it can be listed.

    Raises:
        OSError: As `open_folder`, or the folder may not be listed.
    """
    with open_folder(path.parent) as parent:
        handle = os.open(path.name, FILE | _FOLDER & ~getattr(os, "O_PATH", 0), dir_fd=parent)
    try:
        yield handle
    finally:
        os.close(handle)


@contextmanager
def open_regular(path: Path) -> Iterator[BufferedReader]:
    """Open a regular file as `open_folder` does its folder, and yield it for reading.

    Raises:
        OSError: As `open_folder`; EINVAL if it is a pipe, a socket, a device or a folder; EAGAIN if it is leased.
    """
    with open_folder(path.parent) as folder:
        handle = os.open(path.name, FILE, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is not a regular file")
    with os.fdopen(handle, "rb") as file:
        yield file
