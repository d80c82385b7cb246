"""Find the files that a call created or changed, so they can be saved before the run removes its folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from jackfield_confine.paths import open_listed_folder

MOST_FILES = 200
_MOST_LOOKED_AT = 5000
_DEEPEST = 64  # levels; a path with thousands of levels would take megabytes
_NOT_RESULTS = frozenset({"__pycache__"})

State = tuple[int, int]


class FolderWatch:
    """Detects new and changed files in a folder. Hidden files are ignored and links are not followed.

    Args:
        folder: An absolute path without links.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._before: dict[str, State] = {}

    def begin(self) -> None:
        """Record the current files."""
        self._before = dict(_states(self._folder))

    def changed(self) -> tuple[str, ...]:
        """Return the sorted paths of files that are new or changed since `begin`, at most `MOST_FILES`."""
        return tuple(sorted(path for path, state in _states(self._folder) if self._before.get(path) != state))[
            :MOST_FILES
        ]


def _states(folder: Path) -> Iterator[tuple[str, State]]:
    waiting, looked_at = [folder], 0
    while waiting and looked_at < _MOST_LOOKED_AT:
        here = waiting.pop()
        try:
            with open_listed_folder(here) as handle, os.scandir(handle) as listed:
                entries = [(entry.name, _facts(entry)) for entry in islice(listed, _MOST_LOOKED_AT - looked_at)]
        except OSError:  # the code may have removed it, replaced it by a link, or changed its permissions
            continue
        looked_at += len(entries)
        for name, facts in entries:
            if facts is None or name.startswith(".") or name in _NOT_RESULTS:
                continue
            if stat.S_ISDIR(facts.st_mode) and len(here.parts) - len(folder.parts) < _DEEPEST:
                waiting.append(here / name)
            elif stat.S_ISREG(facts.st_mode):
                yield str(here / name), (facts.st_mtime_ns, facts.st_size)


def _facts(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except OSError:  # it has gone meanwhile
        return None
