"""Which files a call has made or changed, so that somebody can keep them before the run takes its folder away."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

MOST_FILES = 200
_MOST_LOOKED_AT = 5000
_NOT_RESULTS = frozenset({"__pycache__"})

State = tuple[int, int]


class FolderWatch:
    """Compares a folder with what it was. Of regular files only, through no link, and not of hidden ones."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._before: dict[str, State] = {}

    def begin(self) -> None:
        """Remember the files that exist."""
        self._before = dict(_states(self._folder))

    def changed(self) -> tuple[str, ...]:
        """The paths of what is new or has changed since `begin`, sorted; the first `MOST_FILES` of them."""
        return tuple(sorted(path for path, state in _states(self._folder) if self._before.get(path) != state))[
            :MOST_FILES
        ]


def _states(folder: Path) -> Iterator[tuple[str, State]]:
    waiting, looked_at = [str(folder)], 0
    while waiting and looked_at < _MOST_LOOKED_AT:
        try:
            entries = list(os.scandir(waiting.pop()))
        except OSError:  # the code may have removed it, or closed it to others
            continue
        entries = entries[: _MOST_LOOKED_AT - looked_at]
        looked_at += len(entries)
        for entry in filter(_may_be_a_result, entries):
            with suppress(OSError):  # it has gone meanwhile
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    facts = entry.stat(follow_symlinks=False)
                    yield entry.path, (facts.st_mtime_ns, facts.st_size)


def _may_be_a_result(entry: os.DirEntry[str]) -> bool:
    return not entry.name.startswith(".") and entry.name not in _NOT_RESULTS
