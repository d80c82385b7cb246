"""Which files a call has made or changed, so that somebody can keep them before the run takes its folder away."""

from __future__ import annotations

import os
from collections.abc import Iterator
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
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except OSError:  # the code may have removed it, or closed it to others
            continue
        for entry in entries:
            looked_at += 1
            if looked_at > _MOST_LOOKED_AT:
                return
            if entry.name.startswith(".") or entry.name in _NOT_RESULTS:
                continue
            try:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    facts = entry.stat(follow_symlinks=False)
                    yield entry.path, (facts.st_mtime_ns, facts.st_size)
            except OSError:  # it has gone meanwhile
                continue
