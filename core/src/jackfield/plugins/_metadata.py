"""Read what lies beside installed packages, which anybody may have written: with limits, and never for ever."""

from __future__ import annotations

import os

_MAX_FILE_BYTES = 16 << 20


def read_file(path: str) -> bytes | None:
    """A file, or an entry of the archive that stands where its folder should; None if it cannot be."""
    raw = read_some(path, _MAX_FILE_BYTES)
    return None if raw is None or len(raw) > _MAX_FILE_BYTES else raw


def read_some(path: str, most: int) -> bytes | None:
    """The same of any length, but not much more than `most` bytes of it."""
    try:
        # Not blocking: a pipe that somebody left there would be waited for.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
    except NotADirectoryError:
        return _read_entry(path, most)
    except (OSError, ValueError):
        return None
    try:
        # One read of what there should be: a file object, or a buffer for the most, costs more than most files.
        size = os.fstat(descriptor).st_size
        raw = os.read(descriptor, min(size, most) + 1)
        if len(raw) != size:
            while len(raw) <= most and (more := os.read(descriptor, 1 << 20)):
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
