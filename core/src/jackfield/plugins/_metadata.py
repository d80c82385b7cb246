"""Read what lies beside installed packages, which anybody may have written: with limits, and never for ever."""

from __future__ import annotations

import os

_MAX_FILE_BYTES = 16 << 20


def read_file(path: str) -> bytes | None:
    """A file, or an entry of the archive that stands where its folder should; None if it cannot be."""
    try:
        # Not blocking: a pipe that somebody left there would be waited for.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
    except NotADirectoryError:
        return _read_entry(path)
    except (OSError, ValueError):
        return None
    try:
        # One read of what there should be: a buffer for the largest permitted file costs more than most files.
        size = os.fstat(descriptor).st_size
        raw = os.read(descriptor, min(size, _MAX_FILE_BYTES) + 1)
        if len(raw) != size:
            while len(raw) <= _MAX_FILE_BYTES and (more := os.read(descriptor, 1 << 20)):
                raw += more
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return raw if len(raw) <= _MAX_FILE_BYTES else None


def _read_entry(path: str) -> bytes | None:
    import zipfile

    archive, name = path, ""
    while archive and not os.path.isfile(archive):  # noqa: PTH113
        archive, _, last = archive.rpartition("/")
        name = f"{last}/{name}" if name else last
    try:
        with zipfile.ZipFile(archive) as file, file.open(name) as entry:
            raw = entry.read(_MAX_FILE_BYTES + 1)
    except (OSError, KeyError, ValueError, RuntimeError, NotImplementedError, EOFError, zipfile.BadZipFile):
        return None
    return raw if len(raw) <= _MAX_FILE_BYTES else None
