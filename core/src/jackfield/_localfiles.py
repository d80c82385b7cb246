"""Local files that settings name as plugins: `local = ["./my_tools.py"]`, as `conftest.py` is for pytest.

A file lies below the folder of the file that names it, and no link leads to it. Its content is known by its hash from
the moment that the settings are read: what is run later is what was read, and what somebody has agreed to.

This module imports the standard library only, as `settings` does.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

Owner = Literal["project", "user"]

_MAX_BYTES = 1 << 20


class LocalFile(NamedTuple):
    """One such file.

    Attributes:
        name: What stands in place of a distribution's name in addresses: `my-tools@project`, `my-tools@user`.
        path: Where it is.
        content: The hash of what is in it; '' if it cannot be read.
        fault: Why it is not used, '' if it may be; the sentence goes on after its name.
    """

    name: str
    path: str
    content: str
    fault: str = ""


def local_files(folder: Path, given: Iterable[str], owner: Owner) -> tuple[LocalFile, ...]:
    """The files that settings in a folder name, in the order of the settings; what is wrong with one is its fault."""
    found = [_local_file(os.path.realpath(folder), one, owner) for one in dict.fromkeys(given)]
    names = [one.name for one in found]
    return tuple(
        one
        if names.count(one.name) == 1
        else one._replace(fault=f"has the same name as another one: rename {one.path}")
        for one in found
    )


def source_of(file: LocalFile) -> bytes:
    """What is in a file.

    Raises:
        OSError: It cannot be read.
        ValueError: It has changed since the settings were read.
    """
    raw = _read(file.path)
    if _hash(raw) != file.content:
        raise ValueError(f"{file.path} has changed since the settings were read")
    return raw


def _local_file(folder: str, given: str, owner: Owner) -> LocalFile:
    path = os.path.normpath(os.path.join(folder, given))  # noqa: PTH118
    inside = os.path.relpath(path, folder)
    stem = re.sub(r"[^a-z0-9]+", "-", inside.removesuffix(".py").lower()).strip("-")
    name = f"{stem or 'file'}@{owner}"
    try:
        _check_place(folder, path, given)
        return LocalFile(name, path, _hash(_read(path)))
    except OSError as error:
        return LocalFile(name, path, "", f"cannot be read ({path}: {error.strerror or error})")
    except ValueError as error:
        return LocalFile(name, path, "", str(error))


def _check_place(folder: str, path: str, given: str) -> None:
    if "\0" in given or not given.endswith(".py"):
        raise ValueError(f"is not a Python file: {given!r:.200}")
    if not path.startswith(os.path.join(folder, "")):  # noqa: PTH118
        raise ValueError(f"is outside of {folder}, where a local file must be: {given!r:.200}")
    if os.path.realpath(path) != path:
        raise ValueError(f"is a link or is reached through one, which is not allowed for a local file: {given!r:.200}")


def _read(path: str) -> bytes:
    # Not blocking: a pipe that somebody left there would be waited for.
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    with open(os.open(path, flags), "rb") as file:  # noqa: PTH123 - a descriptor has no path
        raw = file.read(_MAX_BYTES + 1)
    if len(raw) > _MAX_BYTES:
        raise ValueError(f"is larger than 1 MiB: {path}")
    return raw


def _hash(raw: bytes) -> str:
    import hashlib

    return hashlib.sha256(raw).hexdigest()
