"""What an installed distribution consists of, from the RECORD that its installer wrote; nothing is imported.

A RECORD comes from anybody: paths that leave the folder the distribution lies in are never followed.
"""

from __future__ import annotations

import base64
import binascii
import csv
import hashlib
import re
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from jackfield.errors import PluginError
from jackfield.plugins import read_file
from jackfield_manage.distributions import read_distribution

_MAX_RECORD_BYTES = 16 << 20
_BLOCK_BYTES = 1 << 20
_WRITTEN_BY_INSTALLERS = frozenset(
    ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "provenance_url.json", "uv_build.json", "uv_cache.json")
)
# What leads out of the folder, on whichever system: a step upwards, a root, a drive; and what no path may have.
_OUTSIDE = re.compile(r"(^|/)\.\.(/|$)|^/|^$|^[^/]*:|\0")
# Only these: `hashlib.new` would take whatever OpenSSL has, also what anybody can collide.
_ALGORITHMS = ("sha256", "sha384", "sha512")


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file that is not what was installed; `path` is relative to the folder the distribution lies in."""

    path: str
    state: Literal["changed", "missing"]


def content_hash(location: str) -> str:
    """A hash of a wheel's content as installed, the same on any machine and with any installer.

    It is over the lines of RECORD for the files that come out of the wheel as they are: neither what installers write
    themselves, nor scripts and data outside the folder the distribution lies in.

    Args:
        location: The folder of the distribution's metadata.

    Returns:
        `sha256:` and 64 hexadecimal digits.

    Raises:
        PluginError: There is no RECORD, it cannot be read, or it lists no file with a hash.
    """
    lines = {f"{path},{digest}\n" for path, digest in _recorded(location) if digest}
    if not lines:
        raise PluginError(f"{Path(location) / 'RECORD'} lists no file with a hash: install the package again")
    return "sha256:" + hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()


def is_editable(location: str) -> bool:
    """Whether the distribution is a link to a folder in which somebody works (PEP 660); its RECORD says little then."""
    distribution = read_distribution(location)
    return distribution is not None and distribution.editable


def changed_files(location: str) -> list[ChangedFile]:
    """The files that were edited or removed after the installation, sorted by path.

    Raises:
        PluginError: There is no RECORD, or it cannot be read.
    """
    site = Path(location).parent
    changes = (_change(site, path, digest) for path, digest in sorted(_recorded(location)) if digest)
    return list(filter(None, changes))


def _change(site: Path, path: str, digest: str) -> ChangedFile | None:
    found = _digest_of(site / path, digest.partition("=")[0])
    if found is None:
        return ChangedFile(path, "missing")
    return None if found and found == _decoded(digest) else ChangedFile(path, "changed")


def files_below(location: str, folder: str) -> list[str]:
    """The files that a distribution has put below a folder (`package/`) of the place it lies in, by its RECORD."""
    # As it is written: a table of all files is made for the few that have it.
    if folder.encode() in (read_file(f"{location}/RECORD") or b""):
        with suppress(PluginError):
            return sorted(path for path, _ in _recorded(location) if path.startswith(folder))
    return []


def _recorded(location: str) -> list[tuple[str, str]]:
    """The path and the hash ('' if it has none) of every file that is the wheel's own."""
    record = Path(location) / "RECORD"
    try:
        rows = list(filter(None, csv.reader(_text_of(record).splitlines(), strict=True)))
    except (UnicodeDecodeError, csv.Error) as error:
        raise PluginError(f"{record} is not a table of files: {error}; install the package again") from error
    own = record.parent.name
    return [(path, "".join(rest[:1])) for path, *rest in rows if _is_from_wheel(path, own)]


def _text_of(record: Path) -> str:
    try:
        with record.open("rb") as file:
            raw = file.read(_MAX_RECORD_BYTES + 1)
    except FileNotFoundError as error:
        raise PluginError(
            f"{record.parent.name} has no RECORD (conda and Linux distributions leave it out), so its files are "
            "unknown; install it with pip or uv"
        ) from error
    except OSError as error:
        raise PluginError(f"{record} cannot be read: {error.strerror or error}") from error
    if len(raw) > _MAX_RECORD_BYTES:
        raise PluginError(f"{record} is larger than 16 MiB")
    return raw.decode()


def _is_from_wheel(path: str, metadata_folder: str) -> bool:
    path = path.replace("\\", "/")
    if _OUTSIDE.search(path) or path.endswith(".pyc"):
        return False
    folder, _, name = path.rpartition("/")
    return folder != metadata_folder or name not in _WRITTEN_BY_INSTALLERS


def _digest_of(path: Path, algorithm: str) -> bytes | None:
    """The hash of a file, None if it is no file; b'' if the algorithm is none that can be trusted."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for
            return None
        if algorithm not in _ALGORITHMS:
            return b""
        hasher = hashlib.new(algorithm)
        with path.open("rb") as file:
            while block := file.read(_BLOCK_BYTES):
                hasher.update(block)
    except OSError:
        return None
    return hasher.digest()


def _decoded(digest: str) -> bytes:
    encoded = digest.partition("=")[2]
    try:
        return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
    except (binascii.Error, ValueError):
        return b"not a hash"
