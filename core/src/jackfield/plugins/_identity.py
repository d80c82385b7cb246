"""Use RECORD files to prove that a plugin belongs to the distribution that it names.

Any wheel can write a metadata directory, and can add a second one under the name of an allowed distribution. A plugin
is proven if three conditions are met: its distribution's RECORD lists the entry points and the files that Python would
import, each with its current hash; no other RECORD lists this metadata; and no other plugin's RECORD lists these files.
For an editable distribution, all files in its source directory count as its own.
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
    """A file that an import would run.

    `relative` is the file's path within `folder`, a directory on the module search path.
    """

    path: str
    folder: str
    relative: str


class Identities:
    """Proofs of identity for the plugins in a catalog. Each RECORD is read at most once."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._locations = {row.distribution: row.location for row in rows}
        self._records: dict[str, Mapping[str, str] | None] = {}
        self._claims: dict[str, Mapping[str, str]] = {}
        self._owners: dict[str, Mapping[str, list[str]]] = {}
        self._unproven: dict[Row, str] = {}

    def unproven(self, row: Row) -> str:
        """Return the reason why a component is not proven to belong to its distribution, or '' if it is.

        The reason is phrased as the end of a sentence.
        """
        doubt = self._unproven.get(row)
        if doubt is None:
            doubt = self._unproven[row] = self._doubt(row)
        return doubt

    def foreign(self, row: Row, is_denied: Callable[[str], bool]) -> str:
        """Return the reason why a component's module does not belong to its distribution, or '' if it does.

        The reason is phrased as the end of a sentence.

        Args:
            row: The component.
            is_denied: A function that returns True if a distribution must not load. The files of a denied distribution
                must not be loaded through another distribution either.
        """
        record, editable = self._record(row.location), _editable_folder(row.location)
        for file in _origins(row.module):
            others = self._others(file, row)
            if record is not None and not _is_own(file, row.location, record, editable):
                owner = f"which belongs to {others[0]}" if others else "which is not one of its files"
                return f"specifies module {row.module}, but Python would load the module from {file.path}, {owner}"
            for name in others:
                if record is None or is_denied(name):
                    return f"specifies module {row.module}, which belongs to {name}"
        return ""

    def _doubt(self, row: Row) -> str:
        record = self._record(row.location)
        if record is None:
            return "has no RECORD, so its owner cannot be verified"
        if doubt := self._doubt_of_metadata(row.location, record):
            return doubt
        editable = _editable_folder(row.location)
        for file in _origins(row.module):
            if doubt := self._doubt_of_file(file, row, record, editable):
                return doubt
        return ""

    def _doubt_of_metadata(self, location: str, record: Mapping[str, str]) -> str:
        site, _, metadata = location.rpartition("/")
        if not _has_hash(read_file(f"{location}/entry_points.txt"), record.get(f"{metadata}/entry_points.txt", "")):
            return "has entry points that were changed after installation"
        claims = self._claims_in(site)
        if metadata in claims:
            return f"is claimed by {_name_of(claims[metadata])}, whose RECORD lists this metadata as its own"
        for other, claimant in claims.items():
            if claimant == metadata:
                return f"lists the metadata of {_name_of(other)} in its RECORD as its own"
        return ""

    def _doubt_of_file(self, file: _Origin, row: Row, record: Mapping[str, str], editable: str) -> str:
        if not _is_own(file, row.location, record, editable):
            return f"would make Python import {file.path}, which is not one of its files"
        if not editable and not _has_hash(read_file(file.path), record[file.relative]):
            return f"has a file that was changed after installation: {file.relative}"
        others = self._others(file, row)
        return f"shares the file {file.relative} with {', '.join(others)}" if others else ""

    def _others(self, file: _Origin, row: Row) -> list[str]:
        """List the other plugin distributions whose RECORD lists a file."""
        owners = self._owners_in(os.path.realpath(file.folder)).get(file.relative, ())
        return [name for name in owners if name != row.distribution]

    def _owners_in(self, folder: str) -> Mapping[str, list[str]]:
        """Map each file in the RECORDs of a directory's plugins to the distributions that list it."""
        owners = self._owners.get(folder)
        if owners is None:
            owners = {}
            for name, location in self._locations.items():
                if location.rpartition("/")[0] == folder:
                    for path in self._record(location) or ():
                        owners.setdefault(path, []).append(name)
            self._owners[folder] = owners
        return owners

    def _record(self, location: str) -> Mapping[str, str] | None:
        if location not in self._records:
            raw = read_file(f"{location}/RECORD")
            self._records[location] = None if raw is None else _parse_record(raw)
        return self._records[location]

    def _claims_in(self, site: str) -> Mapping[str, str]:
        """Map each metadata directory listed in another directory's RECORD to that other directory."""
        claims = self._claims.get(site)
        if claims is None:
            claims = self._claims[site] = dict(_claims(site))
        return claims


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
    """Yield other distributions' metadata directories listed in a RECORD. Searching is faster than parsing."""
    at = raw.find(_MARK)
    while at >= 0:
        end = at + len(_MARK)
        # Match only after a line break, because another folder's name may end with this one.
        if not raw.endswith(b"\n" + own + b"/", 0, end):
            line = max(raw.rfind(b"\n", 0, at), raw.rfind(b"\r", 0, at)) + 1
            yield os.fsdecode(raw[line : end - 1]).lstrip('"')
        at = raw.find(_MARK, end)


def _name_of(metadata: str) -> str:
    return normalise(metadata.partition("-")[0])


def _origins(module: str) -> list[_Origin]:
    """Return the files that importing a module would run, starting with the files of its parent packages."""
    origins = []
    for depth, spec in enumerate(specs_of_import(module), start=1):
        if spec.origin is not None:
            parts = depth + (spec.submodule_search_locations is not None)  # one more part for the package's __init__
            pieces = spec.origin.replace(os.sep, "/").split("/")
            origins.append(_Origin(spec.origin, "/".join(pieces[:-parts]) or "/", "/".join(pieces[-parts:])))
    return origins


def _is_own(file: _Origin, location: str, record: Mapping[str, str], editable: str) -> bool:
    if os.path.realpath(file.folder) == location.rpartition("/")[0] and file.relative in record:
        return True
    return bool(editable) and os.path.realpath(file.path).startswith(f"{editable}{os.sep}")


def _editable_folder(location: str) -> str:
    """Return the source directory of an editable distribution (PEP 660), or '' for other distributions."""
    raw = read_file(f"{location}/direct_url.json")
    if raw is None or b'"editable"' not in raw:
        return ""
    import json
    from urllib.parse import unquote, urlsplit

    try:
        table = json.loads(raw)
        editable = table["dir_info"]["editable"] is True
        url = urlsplit(table["url"])
        is_folder = editable and url.scheme == "file" and len(url.path) > 1
        return os.path.realpath(unquote(url.path)) if is_folder else ""
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):  # e.g. a NUL in the address
        return ""


def _parse_record(raw: bytes) -> dict[str, str]:
    """Map the files in a RECORD to their hashes.

    Each line contains a path, a hash and a size. Only paths may be quoted.
    """
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
    actual = b2a_base64(hashlib.new(algorithm, content).digest(), newline=False).decode()
    return actual.rstrip("=").translate(_URL_SAFE) == digest.rstrip("=")
