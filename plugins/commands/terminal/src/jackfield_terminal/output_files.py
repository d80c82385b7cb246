"""Save images and files created by a run before the run deletes them."""

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
"""Keys in a tool result's metadata: the paths of created files, and True if they are deleted with the run."""

_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[\w.+=-]+)*;base64,", re.ASCII)
_MAX_FILE_BYTES = 1 << 30
_MAX_TOTAL_BYTES = 4 << 30  # a sparse file may be larger than the space it takes up
_PIECE_BYTES = 1 << 20
_UNSAFE = re.compile(r"[^\w.()+ -]|^\.+")


class OutputFiles:
    """Saves the images and files found in a run's events.

    Attributes:
        saved: The paths of saved files, in order.
        problems: Sentences that explain why files could not be saved.
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        self._folder = Path(folder or OUTPUT)
        self._copies: dict[str, Path] = {}
        self._copied_bytes = 0
        self.saved: list[Path] = []
        self.problems: list[str] = []

    def save(self, event: RunEvent) -> list[Path]:
        """Save an event's files and images, and return the paths of new and changed files."""
        match event.event:
            case ToolFinished(message=message, metadata=metadata):
                paths = [*self._save_media(message.name or "tool", message.items), *self._save_files(metadata)]
            case MediaDelta(item):
                paths = list(self._save_media("answer", [item]))
            case _:
                return []
        self.saved += [path for path in paths if path not in self.saved]
        return paths

    def _save_media(self, name: str, items: list[ContentItem]) -> Iterator[Path]:
        for item in items:
            media = _decode(item)
            if media is None:
                continue
            media_type, content = media
            file_name = f"{name}-1{mimetypes.guess_extension(media_type) or '.bin'}"
            try:
                path = self._free_path(file_name)
                write_private(path, content)
            except OSError as error:
                self._add_problem(file_name, error)
            else:
                yield path

    def _save_files(self, metadata: Mapping[str, Any]) -> Iterator[Path]:
        sources = metadata.get(FILES)
        for source in sources if isinstance(sources, list | tuple) else ():
            if isinstance(source, str):
                path = self._copy(source) if metadata.get(TEMPORARY) else Path(source)
                if path is not None:
                    yield path

    def _copy(self, source: str) -> Path | None:
        """Copy a file created by code, trusting neither its name nor its type."""
        name = PurePath(source).name
        try:
            with _open(Path(source)) as file:
                size_bytes = os.fstat(file.fileno()).st_size
                if size_bytes > min(_MAX_FILE_BYTES, _MAX_TOTAL_BYTES - self._copied_bytes):
                    self.problems.append(
                        f"{name} was not saved: the limit is {_MAX_FILE_BYTES >> 30} GiB per file and "
                        f"{_MAX_TOTAL_BYTES >> 30} GiB in total"
                    )
                    return None
                # If a later call changed the file, the first copy is replaced.
                target = self._copies.get(source) or self._free_path(name)
                with os.fdopen(open_private(target), "wb") as copy:
                    # The code may still be writing, so copy no more than the size that was checked.
                    self._copied_bytes += _copy_bytes(file, copy, size_bytes)
        except OSError as error:
            self._add_problem(name, error)
            return None
        self._copies[source] = target
        return target

    def _add_problem(self, name: str, error: OSError) -> None:
        self.problems.append(f"{name} could not be saved in {self._folder}: {error.strerror or error}")

    def _free_path(self, name: str) -> Path:
        """Return an unused path in the output directory."""
        self._folder.mkdir(parents=True, exist_ok=True)
        safe = PurePath(_UNSAFE.sub("_", name)[-120:])
        # A name that already ends in -1 is numbered from there.
        stem, number = safe.stem.removesuffix("-1") or safe.stem, 1
        path = self._folder / safe.name
        while os.path.lexists(path):
            number += 1
            path = self._folder / f"{stem}-{number}{safe.suffix}"
        return path


@contextmanager
def _open(source: Path) -> Iterator[IO[bytes]]:
    """Open a file created by code, unless it or a directory on its path is a symbolic link."""
    if os.open in os.supports_dir_fd:
        with open_regular(source) as file:
            yield file
    else:  # Windows
        with source.open("rb") as file:
            yield file


def _copy_bytes(source: IO[bytes], target: IO[bytes], size_bytes: int) -> int:
    copied = 0
    while piece := source.read(min(_PIECE_BYTES, size_bytes - copied)):
        copied += target.write(piece)
    return copied


def check_folder(folder: str | None) -> None:
    """Raise ConfigError if the output directory is a file."""
    if folder and Path(folder).exists() and not Path(folder).is_dir():
        raise ConfigError(f"--output {folder} is a file: specify a folder")


def _decode(item: ContentItem) -> tuple[str, bytes] | None:
    """Return the media type and content of an item with inline data, or None."""
    value = item.value
    if isinstance(value, dict):  # audio in OpenAI's format
        value = value.get("data")
    if item.type == "text" or not isinstance(value, str):
        return None
    with suppress(binascii.Error, ValueError):
        if match := _DATA_URL.match(value):
            return match[1], b64decode(value[match.end() :], validate=True)
    return None
