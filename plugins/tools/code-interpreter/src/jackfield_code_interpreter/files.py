"""The files of a conversation, copied to where the code runs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path


class BroughtFiles:
    """Copies files into a folder: each once, and again when it has changed, so that what the code does to it stays.

    A file that was in the folder before is never overwritten.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._copies: dict[str, Path] = {}
        self._seen: dict[str, tuple[float, int]] = {}

    def bring(self, paths: Sequence[str]) -> list[str]:
        """Copy what is new. What is no local file (a URL, a folder) is left out.

        Returns:
            Sentences about files that are not where one would look for them.
        """
        return [note for path in paths for note in self._bring(path)]

    def _bring(self, path: str) -> Iterator[str]:
        source = Path(path)
        if not _is_local_file(source):
            return
        try:
            facts = source.stat()
            state = (facts.st_mtime, facts.st_size)
            if self._seen.get(path) == state:
                return
            copy = self._copies.get(path) or self._free_name(source)
            if copy != source.resolve():
                shutil.copyfile(source, copy)
        except OSError as error:
            yield f"Note: the file {source.name!r} could not be copied to the working directory: {error.strerror}."
            return
        if copy.name != source.name and path not in self._copies:
            yield f"Note: a file {source.name!r} was there already; that of the conversation is {copy.name!r}."
        self._copies[path], self._seen[path] = copy, state

    def _free_name(self, source: Path) -> Path:
        candidate, number = self._folder / source.name, 1
        while candidate.exists() and not candidate.samefile(source):
            number += 1
            candidate = self._folder / f"{source.stem}-{number}{source.suffix}"
        return source.resolve() if candidate.exists() else candidate


def _is_local_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False  # a data: URI is longer than any file's name
