"""Read untrusted metadata from installed packages, with limits on size and time."""

from __future__ import annotations

import os

_MAX_FILE_BYTES = 16 << 20
_SMALL_BYTES = 4096
# Non-blocking, so that a pipe in place of the file cannot hang the scan.
_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)


def read_file(path: str) -> bytes | None:
    """Return the content of a file or archive entry, or None if it is too large or cannot be read."""
    raw = read_some(path, _MAX_FILE_BYTES)
    return None if raw is None or len(raw) > _MAX_FILE_BYTES else raw


def read_some(path: str, most: int) -> bytes | None:
    """Read a file as `read_file` does, but return no more than `most` + 1 bytes."""
    try:
        descriptor = os.open(path, _FLAGS)
    except NotADirectoryError:
        return _read_entry(path, most)
    except (OSError, ValueError):
        return None
    try:
        # Use one small read. A file object, a large buffer or a stat call would cost more than reading most files.
        raw = os.read(descriptor, _SMALL_BYTES)
        if len(raw) == _SMALL_BYTES:
            while len(raw) <= most and (more := os.read(descriptor, min(most + 1 - len(raw), 1 << 20))):
                raw += more
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return raw


def _read_entry(path: str, most: int) -> bytes | None:
    import zipfile

    archive, name = path, ""
    while archive and not os.path.isfile(archive):  # noqa: PTH113
        archive, _, last = archive.rpartition("/")
        name = f"{last}/{name}" if name else last
    try:
        with zipfile.ZipFile(archive) as file, file.open(name) as entry:
            return entry.read(most + 1)
    except (OSError, KeyError, ValueError, RuntimeError, NotImplementedError, EOFError, zipfile.BadZipFile):
        return None
