"""What is installed, from metadata alone: no plugin is imported, and no neighbour's broken file matters.

It reads `*.dist-info/entry_points.txt` on `sys.path` and keeps those that name our group. That takes about 7 µs for a
distribution; the standard library's `entry_points()` needs a multiple of it and fails as a whole on one malformed file.
What lies in archives and eggs, `importlib_metadata` finds.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from jackfield.plugins._metadata import read_some

API = 1
ANY = "*"
"""The name of a row that offers components when it is asked; of a local file, the kind as well."""
GROUP = f"jackfield.v{API}"
_MENTIONS_A_GROUP = re.compile(rb"^\s*\[\s*jackfield\.v(\d+)\s*\]", re.MULTILINE)
_SECTION = re.compile(r"^\[[^\S\n]*(.*?)[^\S\n]*\]$", re.MULTILINE)
_OUR_GROUP = re.compile(r"jackfield\.v(\d+)$")
_NAME_SEPARATORS = re.compile(r"[-_.]+")
_NAME = re.compile(r"[\w.-]{1,64}$", re.ASCII)
_COMPONENT = re.compile(r"(?:[\w.-]{1,64}|\*)$", re.ASCII)
_TARGET = re.compile(r"[\w.]+$")
_DISTRIBUTION = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$")
_VERSION = re.compile(r"[\w.+!-]{0,64}$", re.ASCII)
_ARCHIVES = (".zip", ".whl", ".pyz", ".egg")
_MAX_FILE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Row:
    """One component that a distribution says it offers.

    Attributes:
        kind, name: The two parts of the entry point's name.
        module: The light module that describes it.
        distribution, version: Of the distribution, the name normalised; or `NAME@code`, `NAME@project`, `NAME@user` of
            what nobody installed, which has no version.
        api: The major of the plugin API it is for.
        location: The folder of the distribution's metadata, or what it is instead.

    The name `*` stands for whatever is offered when somebody asks.
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
        """`kind.name`."""
        return f"{self.kind}.{self.name}"

    @property
    def is_installed(self) -> bool:
        """Whether it is of a distribution: else it was registered in code, or is a local file's."""
        return "@" not in self.distribution

    @property
    def is_source(self) -> bool:
        """Whether it stands for components that are known only when somebody asks."""
        return self.name == ANY

    @property
    def address(self) -> str:
        """`distribution/name`, which is unique in its kind."""
        return f"{self.distribution}/{self.name}"


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with one distribution; nobody else is affected. Of two of one name, `used` is the other one's
    location."""

    distribution: str
    text: str
    location: str = ""
    used: str = ""


@dataclass(frozen=True)
class Catalog:
    """All rows, sorted by kind, name and distribution, and all problems."""

    rows: tuple[Row, ...]
    problems: tuple[Problem, ...]

    def named(self, kind: str, name: str) -> Sequence[Row]:
        """The rows of one name, as it is written; `*` for those that are asked."""
        return self._by_name.get((kind, name), ())

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], list[Row]]:
        found: dict[tuple[str, str], list[Row]] = {}
        for row in self.rows:
            found.setdefault((row.kind, row.name), []).append(row)
        return found


def scan(paths: Iterable[str] | None = None) -> Catalog:
    """Read what is installed on `paths`, or `sys.path`. Never raises."""
    found = _Found()
    for folder in _folders(sys.path if paths is None else paths):
        for location in _locations(folder, found.problems):
            path = f"{location}/entry_points.txt"
            raw = read_some(path, _MAX_FILE_BYTES)
            if raw and _MENTIONS_A_GROUP.search(raw):  # 1 of 100 distributions
                found.take(raw, location)
            elif raw is None and os.path.lexists(path):
                found.report("entry_points.txt cannot be read, so nothing that it offers is found", location)
            elif raw and (fault := _fault_of_garbage(raw)):
                found.report(fault, location)
    return Catalog(tuple(sorted(found.rows, key=by_name)), tuple(found.problems))


def by_name(row: Row) -> tuple[str, str, str]:
    """The order of rows in a catalog."""
    return row.kind, row.name, row.distribution


def _folders(paths: Iterable[str]) -> Iterator[str]:
    """What is on the path, each once: folders and archives."""
    seen: set[str] = set()
    for path in paths:
        try:
            folder = os.path.realpath(path or os.getcwd())  # noqa: PTH109 - pathlib costs more than the scan
        except (OSError, ValueError):  # ValueError: an entry with a NUL in it
            continue
        if folder not in seen:
            seen.add(folder)
            yield folder


def _locations(folder: str, problems: list[Problem]) -> list[str]:
    """The folders of metadata in a folder of the path, or in an archive."""
    try:
        if folder.endswith(_ARCHIVES) and os.path.exists(folder):  # noqa: PTH110 - as above
            return _locations_elsewhere(folder, problems)
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.name.endswith((".dist-info", ".egg-info"))]
    except (OSError, ValueError, TypeError):  # TypeError: it is bytes
        return []
    return [f"{folder}/{name}" for name in sorted(names)]


def _locations_elsewhere(path: str, problems: list[Problem]) -> list[str]:
    """The same in an archive or an egg: `importlib_metadata` knows the forms, and takes its time."""
    import zipfile

    import importlib_metadata

    try:
        if not os.path.isdir(path):  # noqa: PTH112
            zipfile.ZipFile(path).close()  # `importlib_metadata` passes over one that cannot be read
        # The folder of the metadata, for which there is no public name.
        folders = [getattr(one, "_path") for one in importlib_metadata.distributions(path=[path])]  # noqa: B009
    except Exception as error:  # noqa: BLE001 - a broken archive on the path costs its own names only
        problems.append(Problem(os.path.basename(path), f"cannot be read: {error}", path))  # noqa: PTH119
        return []
    return [str(folder).rstrip("/") for folder in folders]


class _Found:
    """The rows and problems of a scan, distribution by distribution."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.problems: list[Problem] = []
        self._used: dict[str, str] = {}

    def take(self, raw: bytes, location: str) -> None:
        """Add the rows of one `entry_points.txt`; `location` is the folder it is in, which names the distribution."""
        stem = _stem(location)
        distribution, version = _name_and_version(stem)
        if not (_DISTRIBUTION.match(distribution) and _VERSION.match(version)):
            self.report(f"is not a valid name and version of a package: {stem[:120]!r}", location)
            return
        used = self._used.setdefault(distribution, location)
        if used != location:  # the first on the path is the one that imports find
            self.problems.append(Problem(distribution, f"is installed twice; {used} is used", location, used))
        elif fault := _fault_of_file(raw):
            self.problems.append(Problem(distribution, fault, location))
        else:
            self._parse(raw.decode(), distribution, version.partition("-")[0], location)

    def report(self, fault: str, location: str) -> None:
        """Add a problem of a distribution of which nothing is used."""
        stem = _stem(location)
        distribution, _ = _name_and_version(stem)
        name = distribution if _DISTRIBUTION.match(distribution) else repr(stem.partition("-")[0])[1:-1][:80]
        self.problems.append(Problem(name, fault, location))

    def _parse(self, text: str, distribution: str, version: str, location: str) -> None:
        found: dict[tuple[int, str], Row] = {}
        for api, line in _lines_of_ours(text):
            entry, _, target = map(str.strip, line.partition("="))
            fault = _fault_of_entry(line, entry, target)
            if fault or (api, entry) in found:
                fault = fault or f"gives {entry} twice; the first is used"
                self.problems.append(Problem(distribution, fault, location))
            else:
                kind, _, name = entry.partition(".")
                found[api, entry] = Row(kind, name, target, distribution, version, api, location)
        self.rows += found.values()


def _stem(location: str) -> str:
    """The part of a folder's name that has the name and the version of the distribution."""
    folder, _, name = location.rpartition("/")
    return (folder.rpartition("/")[2] if name == "EGG-INFO" else name).rpartition(".")[0]


def _name_and_version(stem: str) -> tuple[str, str]:
    name, _, version = stem.partition("-")
    return _NAME_SEPARATORS.sub("-", name).lower(), version


def _fault_of_garbage(raw: bytes) -> str:
    """Why a file without our group cannot be believed to be without it, or ''."""
    if raw.isascii() and b"\0" not in raw and len(raw) <= _MAX_FILE_BYTES:
        return ""
    if b"\0" in raw:
        return "entry_points.txt has a NUL byte, so nothing that it offers is found"
    if raw.startswith(b"\xef\xbb\xbf") and b"jackfield" in raw:
        return "entry_points.txt begins with a byte order mark, so its first group is not found"
    return _fault_of_file(raw)


def _fault_of_file(raw: bytes) -> str:
    """Why a file cannot be read as entry points, or ''."""
    if len(raw) > _MAX_FILE_BYTES:
        return "entry_points.txt is larger than 1 MiB"
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        return f"entry_points.txt is not UTF-8: {error}"
    return ""


def _lines_of_ours(text: str) -> Iterator[tuple[int, str]]:
    """The entries of our groups, each with the major of the API that its group names."""
    lines = [line for line in map(str.strip, text.splitlines()) if line and line[0] not in "#;"]
    parts = _SECTION.split("\n".join(lines))
    for group, entries in zip(parts[1::2], parts[2::2], strict=True):
        if ours := _OUR_GROUP.match(group):
            yield from ((int(ours[1]), line) for line in entries.split("\n") if line)


def _fault_of_entry(line: str, entry: str, target: str) -> str:
    """Why a line is no entry of ours, or ''."""
    kind, dot, name = entry.partition(".")
    module, colon, attribute = target.partition(":")
    if dot and colon and _TARGET.match(module):
        return f"names the object {attribute!r:.80} for {entry}, but must name a module: {entry} = {module}"
    if dot and _NAME.match(kind) and _COMPONENT.match(name) and _TARGET.match(target):
        return ""
    return f"entry_points.txt has an invalid line: {line[:200]!r}"
