"""Determine from RECORD which files belong to an installed distribution. Nothing is imported.

RECORD is untrusted: paths that lead outside the distribution's directory are never followed.
"""

from __future__ import annotations

import base64
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
# Paths that leave the directory on any system (`..`, a root, a drive), and invalid ones (empty, containing NUL).
_OUTSIDE = re.compile(r"(^|/)\.\.(/|$)|^/|^$|^[^/]*:|\0")
# `hashlib.new` would also accept broken algorithms that OpenSSL still supports.
_ALGORITHMS = ("sha256", "sha384", "sha512")


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file that differs from the installed one. `path` is relative to the distribution's directory."""

    path: str
    state: Literal["changed", "missing"]


def content_hash(location: str) -> str:
    """Hash the content of an installed wheel, with the same result on any machine and with any installer.

    The hash covers the RECORD lines of files that are unpacked unchanged from the wheel. Files written by installers,
    and scripts and data outside the distribution's directory, are excluded.

    Args:
        location: The directory of the distribution's metadata.

    Returns:
        `sha256:` followed by 64 hexadecimal digits.

    Raises:
        PluginError: RECORD is missing or unreadable, or lists no file with a hash.
    """
    lines = {f"{path},{digest}\n" for path, digest in _read_record(location) if digest}
    if not lines:
        raise PluginError(f"{Path(location) / 'RECORD'} lists no files with hashes: reinstall the package")
    return "sha256:" + hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()


def is_editable(location: str) -> bool:
    """Return True for an editable installation (PEP 660), whose RECORD does not list the package's files."""
    distribution = read_distribution(location)
    return distribution is not None and distribution.editable


def changed_files(location: str) -> list[ChangedFile]:
    """Return the files edited or removed after installation, sorted by path.

    Raises:
        PluginError: RECORD is missing or unreadable.
    """
    site = Path(location).parent
    changes: list[ChangedFile] = []
    for path, recorded in sorted(_read_record(location)):
        if not recorded:
            continue
        algorithm, _, encoded = recorded.partition("=")
        digest = _hash_file(site / path, algorithm)
        if digest is None:
            changes.append(ChangedFile(path, "missing"))
        elif not digest or digest != _decode_digest(encoded):
            changes.append(ChangedFile(path, "changed"))
    return changes


def files_below(location: str, folder: str) -> list[str]:
    """Return the files that a distribution's RECORD lists below a directory (`package/`) next to its own."""
    # Searching the raw bytes first avoids parsing nearly every RECORD.
    if folder.encode() in (read_file(f"{location}/RECORD") or b""):
        with suppress(PluginError):
            return sorted(path for path, _ in _read_record(location) if path.startswith(folder))
    return []


def _read_record(location: str) -> list[tuple[str, str]]:
    """Return the path and hash ('' if unknown) of every file from the wheel."""
    record = Path(location) / "RECORD"
    try:
        rows = [row for row in csv.reader(_read_text(record).splitlines(), strict=True) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise PluginError(f"{record} is not a valid list of files ({error}): reinstall the package") from error
    metadata_folder = record.parent.name
    return [(row[0], row[1] if len(row) > 1 else "") for row in rows if _is_from_wheel(row[0], metadata_folder)]


def _read_text(record: Path) -> str:
    try:
        with record.open("rb") as file:
            raw = file.read(_MAX_RECORD_BYTES + 1)
    except FileNotFoundError as error:
        raise PluginError(
            f"{record.parent.name} has no RECORD (conda and Linux distributions omit it), so its files are "
            "unknown: reinstall it with pip or uv"
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


def _hash_file(path: Path, algorithm: str) -> bytes | None:
    """Hash a file; None if it is not a regular file, b'' if the algorithm is unknown or broken."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # reading a pipe would block
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


def _decode_digest(encoded: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
    except ValueError:
        return b"not a hash"
