"""What a run makes: pictures and files, kept in a folder before the run takes them away."""

from __future__ import annotations

import binascii
import mimetypes
import os
import re
import shutil
import stat
from base64 import b64decode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any

from jackfield.errors import ConfigError
from jackfield.events import MediaDelta, RunEvent, ToolFinished
from jackfield.messages import ContentItem
from jackfield.privatefiles import open_private, write_private
from jackfield_terminal.options import OUTPUT

FILES, TEMPORARY = "files", "files_are_temporary"
"""What a tool reports in its metadata: the paths of files it has made, and whether they go with the run."""

_DATA = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[\w.+=-]+)*;base64,", re.ASCII)
_MOST_BYTES = 1 << 30  # of one file
_ODD = re.compile(r"[^\w.()+ -]|^\.+")


class MadeFiles:
    """Keeps what the events of a run bring.

    Attributes:
        kept: The paths, in order.
        problems: Why something could not be kept, as sentences.
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        self._folder = Path(folder or OUTPUT)
        self._sources: dict[str, Path] = {}
        self.kept: list[Path] = []
        self.problems: list[str] = []

    def keep(self, event: RunEvent) -> list[Path]:
        """Keep what came with an event; gives the paths of what is new or has changed."""
        match event.event:
            case ToolFinished(message=message, metadata=metadata):
                name = message.name or "tool"
                found = [*self._media(name, message.items), *self._files(metadata)]
            case MediaDelta(item):
                found = list(self._media("answer", [item]))
            case _:
                return []
        self.kept += [path for path in found if path not in self.kept]
        return found

    def _media(self, name: str, items: list[ContentItem]) -> Iterator[Path]:
        for item in items:
            data = _data_of(item)
            if data is not None:
                extension = mimetypes.guess_extension(data[0]) or ".bin"
                yield from self._write(f"{name}-1{extension}", data[1])

    def _files(self, metadata: Mapping[str, Any]) -> Iterator[Path]:
        paths = metadata.get(FILES)
        for source in paths if isinstance(paths, list | tuple) else ():
            if isinstance(source, str):
                yield from self._copied(source) if metadata.get(TEMPORARY) else [Path(source)]

    def _write(self, name: str, data: bytes) -> Iterator[Path]:
        try:
            path = self._free(name)
            write_private(path, data)
        except OSError as error:
            self.problems.append(f"{name} could not be saved in {self._folder}: {error.strerror or error}")
            return
        yield path

    def _copied(self, source: str) -> Iterator[Path]:
        """A copy of a file that code has made, of which nothing is believed: neither its name nor what it is."""
        name = PurePath(source).name
        try:
            handle = os.open(source, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
            with os.fdopen(handle, "rb") as file:
                facts = os.fstat(handle)
                if not stat.S_ISREG(facts.st_mode) or facts.st_size > _MOST_BYTES:
                    self.problems.append(f"{name} was not saved: it is not a regular file of at most 1 GiB")
                    return
                # The same file again, changed by a later call, takes the place of what was kept of it.
                target = self._sources.get(source) or self._free(name)
                with os.fdopen(open_private(target), "wb") as copy:
                    shutil.copyfileobj(file, copy)
        except OSError as error:
            self.problems.append(f"{name} could not be saved in {self._folder}: {error.strerror or error}")
            return
        self._sources[source] = target
        yield target

    def _free(self, name: str) -> Path:
        """A path in the folder where nothing is yet."""
        self._folder.mkdir(parents=True, exist_ok=True)
        safe = PurePath(_ODD.sub("_", name)[-120:])
        # Counted on from the number that a name ends in.
        stem, number = safe.stem, 1
        if counted := re.fullmatch(r"(.+)-1", stem):
            stem = counted[1]
        path = self._folder / safe.name
        while os.path.lexists(path):
            number += 1
            path = self._folder / f"{stem}-{number}{safe.suffix}"
        return path


def check_folder(folder: str | None) -> None:
    """Raise ConfigError if a name cannot be that of a folder for what is made."""
    if folder and Path(folder).exists() and not Path(folder).is_dir():
        raise ConfigError(f"--output {folder}: that is a file; name a folder")


def _data_of(item: ContentItem) -> tuple[str, bytes] | None:
    """The media type and the bytes of what an item carries in itself."""
    value = item.value
    if isinstance(value, dict):  # sound, as OpenAI has it
        value = value.get("data")
    if item.type == "text" or not isinstance(value, str):
        return None
    with suppress(binascii.Error, ValueError):
        if found := _DATA.match(value):
            return found[1], b64decode(value[found.end() :], validate=True)
    return None
