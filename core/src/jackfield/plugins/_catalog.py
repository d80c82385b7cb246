"""List installed components from package metadata. No plugin is imported, and a broken plugin does not affect others.

The scan reads `*.dist-info/entry_points.txt` on `sys.path` and keeps the files that contain Jackfield's entry point
group. The scan takes about 7 µs per distribution. The standard library's `entry_points()` takes several times as long
and fails completely if a single file is malformed. Archives and eggs are read with `importlib_metadata`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from jackfield.plugins._metadata import read_some

API = 1
ANY = "*"
"""The name of a row that represents a source; also the kind of a local file's row."""
GROUP = f"jackfield.v{API}"
_MENTIONS_A_GROUP = re.compile(rb"^\s*\[\s*jackfield\.v(\d+)\s*\]", re.MULTILINE)
_OUR_GROUP = re.compile(r"\[\s*jackfield\.v(\d+)\s*\]$")
_ENTRY = re.compile(r"([A-Za-z0-9_-]{1,64})\.([A-Za-z0-9_.-]{1,64}|\*)\s*=\s*([\w.]+)$")  # kind.name = module
_MODULE = re.compile(r"[\w.]+$")
_NAME_SEPARATORS = re.compile(r"[-.]+")
_DISTRIBUTION = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$")
_VERSION = re.compile(r"[\w.+!-]{0,64}$", re.ASCII)
_ARCHIVES = (".zip", ".whl", ".pyz", ".egg")
_MAX_FILE_BYTES = 1 << 20


class Row(NamedTuple):
    """A component that a distribution declares.

    A row with the name `*` is a source, which represents all components of a plugin that must be queried to list them.

    Attributes:
        kind, name: The two parts of the entry point's name.
        module: The light module that describes the component.
        distribution, version: The distribution's normalised name and its version. For a plugin without a distribution,
            the name is `NAME@code`, `NAME@project` or `NAME@user`, and there is no version.
        api: The major version of the plugin API that the component uses.
        location: The distribution's metadata directory. For a plugin without a distribution, a description of its
            origin.
    """

    kind: str
    name: str
    module: str
    distribution: str
    version: str
    api: int
    location: str

    @property
    def id(self) -> str:
        """The component's kind and name, as `kind.name`."""
        return f"{self.kind}.{self.name}"

    @property
    def is_installed(self) -> bool:
        """True if the component belongs to a distribution rather than to registered code or a local file."""
        return "@" not in self.distribution

    @property
    def is_source(self) -> bool:
        """True if the row is a source. Its components are unknown until the source is queried."""
        return self.name == ANY

    @property
    def address(self) -> str:
        """The address `distribution/name`, which is unique within the kind."""
        return f"{self.distribution}/{self.name}"


class Problem(NamedTuple):
    """A fault in one distribution. Other distributions are not affected.

    Attributes:
        used: The location of the copy in use, if the distribution is installed twice.
        is_authors_fault: True if only the distribution's authors can fix the fault.
    """

    distribution: str
    text: str
    location: str = ""
    used: str = ""
    is_authors_fault: bool = False


@dataclass(frozen=True)
class Catalog:
    """All rows, sorted by kind, name and distribution, and all problems that the scan found."""

    rows: tuple[Row, ...]
    problems: tuple[Problem, ...]

    def named(self, kind: str, name: str) -> Sequence[Row]:
        """Return the rows with exactly this name, or `*` for sources."""
        return self._by_name.get((kind, name), ())

    def of(self, distribution: str) -> Sequence[Row]:
        """Return the rows of the distribution with this normalised name."""
        return self._by_distribution.get(distribution, ())

    def in_package(self, package: str) -> Sequence[Row]:
        """Return the rows whose modules belong to a top-level package."""
        return self._by_package.get(package, ())

    @cached_property
    def _by_distribution(self) -> dict[str, list[Row]]:
        rows: dict[str, list[Row]] = {}
        for row in self.rows:
            rows.setdefault(row.distribution, []).append(row)
        return rows

    @cached_property
    def _by_package(self) -> dict[str, list[Row]]:
        rows: dict[str, list[Row]] = {}
        for row in self.rows:
            rows.setdefault(row.module.partition(".")[0], []).append(row)
        return rows

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], list[Row]]:
        rows: dict[tuple[str, str], list[Row]] = {}
        for row in self.rows:
            rows.setdefault((row.kind, row.name), []).append(row)
        return rows


def scan(paths: Iterable[str] | None = None) -> Catalog:
    """Scan the distributions on `paths`. Defaults to `sys.path`. This function never raises."""
    results = _Scan()
    for folder in _folders(sys.path if paths is None else paths):
        for location in _locations(folder, results.problems):
            path = f"{location}/entry_points.txt"
            raw = read_some(path, _MAX_FILE_BYTES)
            if raw and _MENTIONS_A_GROUP.search(raw):  # about 1 in 100 distributions
                results.add(raw, location)
            elif raw is None and os.path.lexists(path):
                results.report("entry_points.txt cannot be read, so its components were skipped", location)
            elif raw and (fault := _fault_of_garbage(raw)):
                results.report(fault, location)
    return Catalog(tuple(sorted(results.rows, key=by_name)), tuple(results.problems))


def by_name(row: Row) -> tuple[str, str, str]:
    """Return a row's sort key for use in a catalog."""
    return row.kind, row.name, row.distribution


def _folders(paths: Iterable[str]) -> Iterator[str]:
    """Yield the directories and archives on the path, without duplicates."""
    seen: set[str] = set()
    for path in paths:
        try:
            folder = os.path.realpath(path or os.getcwd())  # noqa: PTH109 - pathlib costs more than the scan
        except (OSError, ValueError):  # ValueError: the path contains a NUL
            continue
        if folder not in seen:
            seen.add(folder)
            yield folder


def _locations(folder: str, problems: list[Problem]) -> list[str]:
    """List the metadata directories in a directory or archive on the path."""
    try:
        if folder.endswith(_ARCHIVES) and os.path.exists(folder):  # noqa: PTH110 - as above
            return _locations_in_archive(folder, problems)
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.name.endswith((".dist-info", ".egg-info"))]
    except (OSError, ValueError, TypeError):  # TypeError: the entry is bytes
        return []
    return [f"{folder}/{name}" for name in sorted(names)]


def _locations_in_archive(path: str, problems: list[Problem]) -> list[str]:
    """List the metadata directories in an archive or egg using `importlib_metadata`, which is complete but slow."""
    import zipfile

    import importlib_metadata

    try:
        if not os.path.isdir(path):  # noqa: PTH112
            zipfile.ZipFile(path).close()  # raises for a broken archive, which `importlib_metadata` skips
        # There is no public name for the metadata folder.
        folders = [getattr(distribution, "_path") for distribution in importlib_metadata.distributions(path=[path])]  # noqa: B009
    except Exception as error:  # noqa: BLE001 - a broken archive on the path affects only its own names
        problems.append(Problem(os.path.basename(path), f"cannot be read: {error}", path))  # noqa: PTH119
        return []
    return [str(folder).rstrip("/") for folder in folders]


class _Scan:
    """The rows and problems of a scan, collected one distribution at a time."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.problems: list[Problem] = []
        self._used: dict[str, str] = {}

    def add(self, raw: bytes, location: str) -> None:
        """Add the rows of one `entry_points.txt`. The distribution's name is taken from the directory name."""
        stem = _stem(location)
        distribution, version = _name_and_version(stem)
        if not (_DISTRIBUTION.match(distribution) and _VERSION.match(version)):
            self.report(f"is not a valid package name and version: {stem[:120]!r}", location)
            return
        used = self._used.setdefault(distribution, location)
        if used != location:  # imports use the first one on the path
            self.problems.append(Problem(distribution, f"is installed twice; using {used}", location, used))
        elif fault := _fault_of_file(raw):
            self.problems.append(Problem(distribution, fault, location))
        else:
            self._parse(raw.decode(), distribution, version.partition("-")[0], location)

    def report(self, fault: str, location: str) -> None:
        """Record a problem with a distribution that is skipped entirely."""
        stem = _stem(location)
        distribution, _ = _name_and_version(stem)
        name = distribution if _DISTRIBUTION.match(distribution) else repr(stem.partition("-")[0])[1:-1][:80]
        self.problems.append(Problem(name, fault, location))

    def _parse(self, text: str, distribution: str, version: str, location: str) -> None:
        seen: set[tuple[int, str, str]] = set()
        for api, line in _lines_of_ours(text):
            match = _ENTRY.match(line)
            if match is None:
                self.problems.append(_problem_of_entry(line, distribution, location))
                continue
            kind, name, module = match.groups()
            if (api, kind, name) in seen:
                fault = f"declares {kind}.{name} twice; using the first"
                self.problems.append(Problem(distribution, fault, location))
            else:
                seen.add((api, kind, name))
                self.rows.append(Row(kind, name, module, distribution, version, api, location))


def _stem(location: str) -> str:
    """Return the part of a directory name that contains the distribution's name and version."""
    folder, _, name = location.rpartition("/")
    return (folder.rpartition("/")[2] if name == "EGG-INFO" else name).rpartition(".")[0]


def _name_and_version(stem: str) -> tuple[str, str]:
    name, _, version = stem.partition("-")
    plain = name.lower().replace("_", "-")
    if "." in plain or "--" in plain:  # rare in names; the regex costs as much as reading the file
        plain = _NAME_SEPARATORS.sub("-", plain)
    return plain, version


def _fault_of_garbage(raw: bytes) -> str:
    """Return the reason why a malformed file may still contain Jackfield's entry point group, or ''."""
    if raw.isascii() and b"\0" not in raw and len(raw) <= _MAX_FILE_BYTES:
        # A valid file begins with a group or a comment. Metadata of other packages may be empty.
        return (
            ""
            if raw.lstrip()[:1] in b"[#;"
            else "entry_points.txt does not start with a group, so its components were skipped"
        )
    if b"\0" in raw:
        return "entry_points.txt contains a NUL byte, so its components were skipped"
    if raw.startswith(b"\xef\xbb\xbf") and b"jackfield" in raw:
        return "entry_points.txt starts with a byte order mark, so its first group was skipped"
    return _fault_of_file(raw)


def _fault_of_file(raw: bytes) -> str:
    """Return the reason why a file cannot be read as entry points, or ''."""
    if len(raw) > _MAX_FILE_BYTES:
        return "entry_points.txt is larger than 1 MiB"
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        return f"entry_points.txt is not valid UTF-8: {error}"
    return ""


def _lines_of_ours(text: str) -> Iterator[tuple[int, str]]:
    """Yield the entries in Jackfield's entry point groups, each with the API version from the group name."""
    api = None
    for line in map(str.strip, text.splitlines()):
        if not line or line[0] in "#;":
            continue
        if line[0] == "[" and line[-1] == "]":
            group = _OUR_GROUP.match(line)
            api = int(group[1]) if group else None
        elif api is not None:
            yield api, line


def _problem_of_entry(line: str, distribution: str, location: str) -> Problem:
    """Return the reason why a line is not a valid entry."""
    entry, _, target = map(str.strip, line.partition("="))
    module, colon, attribute = target.partition(":")
    if "." in entry and colon and _MODULE.match(module):
        fault = f"specifies the object {attribute!r:.80} for {entry}, but must specify a module: {entry} = {module}"
        return Problem(distribution, fault, location, is_authors_fault=True)
    return Problem(distribution, f"entry_points.txt contains an invalid line: {line[:200]!r}", location)
