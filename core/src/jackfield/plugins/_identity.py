"""Whether a plugin is of the distribution that it says it is of: what RECORDs prove, read when somebody needs to know.

The folder of a distribution's metadata can be written by anybody: a wheel may carry a second one, under a name that is
allowed. Proof is that the distribution's own RECORD lists its entry points and the files that Python would import, each
with the hash that it has; that no other RECORD lists this metadata; and that no other plugin's lists these files. An
editable distribution is proven for the folder that it was installed from, whatever stands in that.
"""

from __future__ import annotations

import hashlib
import os
from binascii import b2a_base64
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from jackfield.plugins._catalog import Row
from jackfield.plugins._imports import specs_of_import
from jackfield.plugins._metadata import read_file
from jackfield.settings import normalise

_ALGORITHMS = ("sha256", "sha384", "sha512")
_MARK = b".dist-info/"
_URL_SAFE = str.maketrans("+/", "-_")


class _Origin(NamedTuple):
    """A file that an import would run: where, and its path relative to the folder on the path it was found in."""

    path: str
    folder: str
    relative: str


class Identities:
    """What is proven of the plugins of one catalog; each RECORD is read once."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._locations = {row.distribution: row.location for row in rows}
        self._records: dict[str, Mapping[str, str] | None] = {}
        self._claims: dict[str, Mapping[str, str]] = {}
        self._unproven: dict[Row, str] = {}

    def unproven(self, row: Row) -> str:
        """Why it is not proven that a component is of its distribution, or ''; the sentence goes on after `it`."""
        found = self._unproven.get(row)
        if found is None:
            found = self._unproven[row] = self._doubt(row)
        return found

    def foreign(self, row: Row, is_denied: Callable[[str], bool]) -> str:
        """Why a component's module is not its distribution's to load, or ''; the sentence goes on after `it`.

        Args:
            row: The component.
            is_denied: Whether a distribution may not load; what lies in its files is reached through no other.
        """
        record, editable = self._record(row.location), _editable_folder(row.location)
        for file in _origins(row.module):
            others = self._others(file, row)
            if record is not None and not _is_own(file, row.location, record, editable):
                whose = f"which is a file of {others[0]}" if others else "which is not one of its files"
                return f"names the module {row.module}, which Python would load from {file.path}, {whose}"
            if denied := next((name for name in others if record is None or is_denied(name)), None):
                return f"names the module {row.module}, which is one of the files of {denied}"
        return ""

    def _doubt(self, row: Row) -> str:
        record = self._record(row.location)
        if record is None:
            return "has no RECORD, so nothing proves who it belongs to"
        editable = _editable_folder(row.location)
        of_files = (self._doubt_of_file(file, row, record, editable) for file in _origins(row.module))
        return self._doubt_of_metadata(row.location, record) or next(filter(None, of_files), "")

    def _doubt_of_metadata(self, location: str, record: Mapping[str, str]) -> str:
        site, _, metadata = location.rpartition("/")
        if not _has_hash(read_file(f"{location}/entry_points.txt"), record.get(f"{metadata}/entry_points.txt", "")):
            return "has entry points that differ from those it was installed with"
        claims = self._claimed(site)
        if metadata in claims:
            return f"is claimed by {_name_of(claims[metadata])}, whose RECORD lists this metadata as its own"
        if claimed := next((other for other, claimant in claims.items() if claimant == metadata), None):
            return f"lists the metadata of {_name_of(claimed)} in its RECORD as its own"
        return ""

    def _doubt_of_file(self, file: _Origin, row: Row, record: Mapping[str, str], editable: str) -> str:
        if not _is_own(file, row.location, record, editable):
            return f"would make Python import {file.path}, which is not one of its files"
        if not editable and not _has_hash(read_file(file.path), record[file.relative]):
            return f"has a file that was changed after installation: {file.relative}"
        others = self._others(file, row)
        return f"shares the file {file.relative} with {', '.join(others)}" if others else ""

    def _others(self, file: _Origin, row: Row) -> list[str]:
        """The other distributions with plugins whose RECORD lists a file."""
        folder = os.path.realpath(file.folder)
        return [
            name
            for name, location in self._locations.items()
            if name != row.distribution
            and location.rpartition("/")[0] == folder
            and file.relative in (self._record(location) or ())
        ]

    def _record(self, location: str) -> Mapping[str, str] | None:
        if location not in self._records:
            raw = read_file(f"{location}/RECORD")
            self._records[location] = None if raw is None else _parsed(raw)
        return self._records[location]

    def _claimed(self, site: str) -> Mapping[str, str]:
        """The folders of metadata beside each other that the RECORD of another lists, each with the other folder."""
        found = self._claims.get(site)
        if found is None:
            found = self._claims[site] = dict(_claims(site))
        return found


def _claims(site: str) -> Iterable[tuple[str, str]]:
    try:
        names = [name for name in os.listdir(site) if name.endswith(".dist-info")]  # noqa: PTH208 - many of them
    except OSError:
        return
    beside = os.path.normpath(site)
    for name in names:
        for path in _metadata_in(read_file(f"{site}/{name}/RECORD") or b"", own=os.fsencode(name)):
            folder, _, listed = os.path.normpath(f"{site}/{path}").rpartition(os.sep)
            if folder == beside and listed != name:
                yield listed, name


def _metadata_in(raw: bytes, *, own: bytes) -> Iterable[str]:
    """The folders of metadata that a RECORD has files in, but for its own; a search, because parsing takes long."""
    at = raw.find(_MARK)
    while at >= 0:
        end = at + len(_MARK)
        # Behind the end of a line: the name of another may end in this one.
        if not raw.endswith(b"\n" + own + b"/", 0, end):
            line = max(raw.rfind(b"\n", 0, at), raw.rfind(b"\r", 0, at)) + 1
            yield os.fsdecode(raw[line : end - 1]).lstrip('"')
        at = raw.find(_MARK, end)


def _name_of(metadata: str) -> str:
    return normalise(metadata.partition("-")[0])


def _origins(module: str) -> list[_Origin]:
    """The files that importing a module would run: its packages' and its own, the outermost first."""
    origins = []
    for depth, spec in enumerate(specs_of_import(module), start=1):
        if spec.origin is not None:
            parts = depth + (spec.submodule_search_locations is not None)  # one more: the package's __init__
            pieces = spec.origin.replace(os.sep, "/").split("/")
            origins.append(_Origin(spec.origin, "/".join(pieces[:-parts]) or "/", "/".join(pieces[-parts:])))
    return origins


def _is_own(file: _Origin, location: str, record: Mapping[str, str], editable: str) -> bool:
    if os.path.realpath(file.folder) == location.rpartition("/")[0] and file.relative in record:
        return True
    return bool(editable) and os.path.realpath(file.path).startswith(f"{editable}{os.sep}")


def _editable_folder(location: str) -> str:
    """The folder that an editable distribution is a link to (PEP 660), '' if it is none."""
    raw = read_file(f"{location}/direct_url.json")
    if raw is None or b'"editable"' not in raw:
        return ""
    import json
    from urllib.parse import unquote, urlsplit

    try:
        table = json.loads(raw)
        editable = table["dir_info"]["editable"] is True
        url = urlsplit(table["url"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return os.path.realpath(unquote(url.path)) if editable and url.scheme == "file" and len(url.path) > 1 else ""


def _parsed(raw: bytes) -> dict[str, str]:
    """The hash of each file; a RECORD is a table of path, hash and size, of which only the path may be quoted."""
    files = {}
    for line in raw.decode(errors="surrogateescape").splitlines():
        path, _, rest = line.rpartition(",")[0].rpartition(",")
        if path.startswith('"'):
            path = path[1:-1].replace('""', '"')
        files[path] = rest
    return files


def _has_hash(content: bytes | None, recorded: str) -> bool:
    algorithm, _, digest = recorded.partition("=")
    if content is None or algorithm not in _ALGORITHMS:
        return False
    made = b2a_base64(hashlib.new(algorithm, content).digest(), newline=False).decode()
    return made.rstrip("=").translate(_URL_SAFE) == digest.rstrip("=")
