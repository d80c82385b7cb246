"""Read files from an untrusted folder: only regular files, and no name that leads out of the folder."""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from jackfield.errors import ToolArgumentError
from jackfield.tools import Workspace

MAX_BYTES = 1 << 20
_MAX_ENTRIES = 5000


def read_text(folder: Path, name: str, *, most_bytes: int | None = None) -> str:
    """Return the text of a file in a folder.

    Args:
        folder: The folder.
        name: The file's path relative to the folder.
        most_bytes: The number of bytes to read from the start. If None, the whole file is read.

    Raises:
        ToolArgumentError: The name leads out of the folder, or the file is missing, binary or larger than 1 MiB.
    """
    path = Workspace(folder).resolve(name)
    # Non-blocking, because opening a pipe would wait; and no links, because a file may have been replaced by one.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(path, flags), "rb") as file:
            facts = os.fstat(file.fileno())
            _check(name, facts)
            data = file.read(MAX_BYTES if most_bytes is None else most_bytes)
    except OSError as error:
        raise ToolArgumentError(f"{name!r} cannot be read: {error.strerror or error}") from error
    return _decoded(name, data, size=facts.st_size, is_cut=most_bytes is not None)


def files_below(folder: Path, *, most: int) -> tuple[list[str], bool]:
    """Return up to `most` sorted file names, and True if there are more. Links are not followed."""
    found: list[str] = []
    for name in _walk(folder):
        if len(found) == most:
            return found, True
        found.append(name)
    return found, False


def _walk(folder: Path) -> Iterator[str]:
    entries = 0
    for place, folders, names in os.walk(folder):
        folders.sort()
        entries += len(folders) + len(names)
        for name in sorted(names):
            yield (Path(place) / name).relative_to(folder).as_posix()
        if entries > _MAX_ENTRIES:
            return


def _check(name: str, facts: os.stat_result) -> None:
    if not stat.S_ISREG(facts.st_mode):
        raise ToolArgumentError(f"{name!r} is not a file")
    if facts.st_size > MAX_BYTES:
        raise ToolArgumentError(f"{name!r} is larger than 1 MiB ({facts.st_size:,} bytes)")


def _decoded(name: str, data: bytes, *, size: int, is_cut: bool) -> str:
    data = data.removeprefix(codecs.BOM_UTF8)  # not with `utf-8-sig`, whose errors do not count these bytes
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        # The beginning of a file may end in the middle of a character.
        if not (is_cut and error.start > len(data) - 4):
            raise ToolArgumentError(f"{name!r} is not a text file ({size:,} bytes)") from None
        text = data[: error.start].decode()
    if "\0" in text:
        raise ToolArgumentError(f"{name!r} is not a text file ({size:,} bytes)")
    return text
