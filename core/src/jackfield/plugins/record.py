"""What an installed distribution consists of, from the RECORD that its installer wrote; nothing is imported."""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path

from jackfield.errors import PluginError

_MAX_RECORD_BYTES = 16 << 20
_WRITTEN_BY_INSTALLERS = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json")


def content_hash(location: str) -> str:
    """A hash of a wheel's content as installed, the same on any machine and with any installer.

    Args:
        location: The folder of the distribution's metadata.

    Raises:
        PluginError: There is no RECORD, or it cannot be read.
    """
    lines = []
    for path, digest in _recorded(location):
        inside = path.rpartition(".dist-info/")[2]
        if digest and not path.startswith("..") and not path.endswith(".pyc") and inside not in _WRITTEN_BY_INSTALLERS:
            lines.append(f"{path},{digest}\n")
    return "sha256:" + hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()


def _recorded(location: str) -> list[tuple[str, str]]:
    """The path and the hash ('' if it has none) of every file."""
    path = Path(location) / "RECORD"
    try:
        raw = path.read_bytes()[: _MAX_RECORD_BYTES + 1]
        if len(raw) > _MAX_RECORD_BYTES:
            raise PluginError(f"{path} is larger than 16 MiB")
        return [(row[0], row[1] if len(row) > 1 else "") for row in csv.reader(raw.decode().splitlines()) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise PluginError(f"{path} cannot be read: {error}") from error
