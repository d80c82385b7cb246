"""What a run makes: pictures and files, kept in a folder before the run takes them away."""

from __future__ import annotations

import binascii
import mimetypes
import os
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath
from typing import IO, Any

from jackfield.errors import ConfigError
from jackfield.events import MediaDelta, RunEvent, ToolFinished
from jackfield.messages import ContentItem
from jackfield.privatefiles import open_private, write_private
from jackfield_confine.paths import open_regular
from jackfield_terminal.options import OUTPUT

FILES, TEMPORARY = "files", "files_are_temporary"
"""What a tool reports in its metadata: the paths of files it has made, and whether they go with the run."""

_DATA = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[\w.+=-]+)*;base64,", re.ASCII)
_MOST_BYTES = 1 << 30  # of one file
_MOST_BYTES_OF_ALL = 4 << 30  # a file with holes takes no room where it was made
_PIECE_BYTES = 1 << 20
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
        self._copied_bytes = 0
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
            with _open(Path(source)) as file:
                size_bytes = os.fstat(file.fileno()).st_size
                if size_bytes > min(_MOST_BYTES, _MOST_BYTES_OF_ALL - self._copied_bytes):
                    self.problems.append(
                        f"{name} was not saved: files may have {_MOST_BYTES >> 30} GiB each and "
                        f"{_MOST_BYTES_OF_ALL >> 30} GiB together"
                    )
                    return
                # The same file again, changed by a later call, takes the place of what was kept of it.
                target = self._sources.get(source) or self._free(name)
                with os.fdopen(open_private(target), "wb") as copy:
                    # The code may still be writing: no more than was there when it was looked at.
                    self._copied_bytes += _copy(file, copy, size_bytes)
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


@contextmanager
def _open(source: Path) -> Iterator[IO[bytes]]:
    """Open a file that code has made; on the way to it no folder may be a link by now."""
    if os.open in os.supports_dir_fd:
        with open_regular(source) as file:
            yield file
    else:  # Windows
        with source.open("rb") as file:
            yield file


def _copy(source: IO[bytes], target: IO[bytes], size_bytes: int) -> int:
    copied = 0
    while piece := source.read(min(_PIECE_BYTES, size_bytes - copied)):
        copied += target.write(piece)
    return copied


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
