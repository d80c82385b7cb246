"""Local files that settings list as plugins, like `conftest.py` in pytest: `local = ["./my_tools.py"]`.

A local file must be inside the directory of the settings that list it, and must not be reached through a link. A hash
of its content is recorded when the settings are read, so only code that the user has approved can run later.

This module imports only the standard library, like `settings`.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

Owner = Literal["project", "user"]

_MAX_BYTES = 1 << 20


class LocalFile(NamedTuple):
    """A local file.

    Attributes:
        name: The name that replaces a distribution name in addresses, such as `my-tools@project` or `my-tools@user`.
        path: The file's path.
        content: The hash of the file's content, or '' if it cannot be read.
        fault: The reason why the file is not used, phrased as the end of a sentence, or '' if it is used.
    """

    name: str
    path: str
    content: str
    fault: str = ""


def local_files(folder: Path, paths: Iterable[str], owner: Owner) -> tuple[LocalFile, ...]:
    """Return the local files that a directory's settings list, in the order of the settings."""
    files = [_local_file(os.path.realpath(folder), path, owner) for path in dict.fromkeys(paths)]
    names = [file.name for file in files]
    return tuple(
        file
        if names.count(file.name) == 1
        else file._replace(fault=f"has the same name as another local file: rename {file.path}")
        for file in files
    )


def source_of(file: LocalFile) -> bytes:
    """Return a file's content after checking that the file has not changed.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file has changed since the settings were read.
    """
    raw = _read(file.path)
    if _hash(raw) != file.content:
        raise ValueError(f"{file.path} has changed since the settings were read")
    return raw


def _local_file(folder: str, setting: str, owner: Owner) -> LocalFile:
    path = os.path.normpath(os.path.join(folder, setting))  # noqa: PTH118
    inside = os.path.relpath(path, folder)
    stem = re.sub(r"[^a-z0-9]+", "-", inside.removesuffix(".py").lower()).strip("-")
    name = f"{stem or 'file'}@{owner}"
    try:
        _check_path(folder, path, setting)
        return LocalFile(name, path, _hash(_read(path)))
    except OSError as error:
        return LocalFile(name, path, "", f"cannot be read ({path}: {error.strerror or error})")
    except ValueError as error:
        return LocalFile(name, path, "", str(error))


def _check_path(folder: str, path: str, setting: str) -> None:
    if "\0" in setting or not setting.endswith(".py"):
        raise ValueError(f"is not a Python file: {setting!r:.200}")
    if not path.startswith(os.path.join(folder, "")):  # noqa: PTH118
        raise ValueError(f"is outside {folder}, the only folder allowed for local files: {setting!r:.200}")
    if os.path.realpath(path) != path:
        raise ValueError(f"is or passes through a symbolic link, which local files must not: {setting!r:.200}")


def _read(path: str) -> bytes:
    # Non-blocking, so that a pipe in place of the file cannot hang.
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ValueError(f"is not a regular file: {path}")
    with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor has no path
        raw = file.read(_MAX_BYTES + 1)
    if len(raw) > _MAX_BYTES:
        raise ValueError(f"is larger than 1 MiB: {path}")
    return raw


def _hash(raw: bytes) -> str:
    import hashlib

    return hashlib.sha256(raw).hexdigest()
