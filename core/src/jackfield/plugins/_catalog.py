"""What is installed, from metadata alone: no plugin is imported, and no neighbour's broken file matters.

It reads `*.dist-info/entry_points.txt` on `sys.path` and keeps those that name our group. That takes about 7 µs for a
distribution; the standard library's `entry_points()` needs a multiple of it and fails as a whole on one malformed file.
What lies in archives and eggs, `importlib_metadata` finds.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

API = 1
GROUP = f"jackfield.v{API}"
_MENTIONS_A_GROUP = re.compile(rb"^\s*\[\s*jackfield\.v(\d+)\s*\]", re.MULTILINE)
_SECTION = re.compile(r"\[\s*(.*?)\s*\]$")
_OUR_SECTION = re.compile(r"jackfield\.v(\d+)$")
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
        return self.name == "*"

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


@dataclass(frozen=True, slots=True)
class Catalog:
    """All rows, sorted by kind, name and distribution, and all problems."""

    rows: tuple[Row, ...]
    problems: tuple[Problem, ...]


def scan(paths: Iterable[str] | None = None) -> Catalog:
    """Read what is installed on `paths`, or `sys.path`. Never raises."""
    rows: list[Row] = []
    problems: list[Problem] = []
    seen: dict[str, str] = {}
    folders: set[str] = set()
    for path in sys.path if paths is None else paths:
        try:
            folder = os.path.realpath(path or os.getcwd())  # noqa: PTH109 - pathlib costs more than the scan
            if folder in folders:
                continue
            folders.add(folder)
            if folder.endswith(_ARCHIVES) and os.path.exists(folder):  # noqa: PTH110 - as above
                _read_elsewhere(folder, seen, rows, problems)
                continue
            with os.scandir(folder) as entries:
                names = [entry.name for entry in entries if entry.name.endswith((".dist-info", ".egg-info"))]
        except (OSError, ValueError, TypeError):  # ValueError: an entry with a NUL in it; TypeError: one that is bytes
            continue
        for name in sorted(names):
            _read_distribution(f"{folder}/{name}", seen, rows, problems)
    rows.sort(key=lambda row: (row.kind, row.name, row.distribution))
    return Catalog(tuple(rows), tuple(problems))


def _read_distribution(location: str, seen: dict[str, str], rows: list[Row], problems: list[Problem]) -> None:
    try:
        raw = _read(location + "/entry_points.txt")
    except OSError:
        return
    if _MENTIONS_A_GROUP.search(raw):  # 99 of 100 distributions end here
        _take(raw, location, seen, rows, problems)


def _take(raw: bytes, location: str, seen: dict[str, str], rows: list[Row], problems: list[Problem]) -> None:
    """Add the rows of one `entry_points.txt`; `location` is the folder it is in, which names the distribution."""
    folder, _, name = location.rpartition("/")
    stem = (folder.rpartition("/")[2] if name == "EGG-INFO" else name).rpartition(".")[0]
    name, _, version = stem.partition("-")
    distribution = _NAME_SEPARATORS.sub("-", name).lower()
    if not (_DISTRIBUTION.match(distribution) and _VERSION.match(version)):
        problems.append(
            Problem(repr(name)[1:81], f"is not a valid name and version of a package: {stem[:120]!r}", location)
        )
        return
    if distribution in seen:
        # The first on the path is the one that imports find.
        problems.append(
            Problem(distribution, f"is installed twice; {seen[distribution]} is used", location, seen[distribution])
        )
        return
    seen[distribution] = location
    if len(raw) > _MAX_FILE_BYTES:
        problems.append(Problem(distribution, "entry_points.txt is larger than 1 MiB", location))
        return
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        problems.append(Problem(distribution, f"entry_points.txt is not UTF-8: {error}", location))
        return
    _parse(text, (distribution, version.partition("-")[0], location), rows, problems)


def _read(path: str) -> bytes:
    """The file, or a little more than its permitted size of it."""
    # os.read: a file object, and a buffer for the largest permitted file, would double the time of the scan.
    # Not blocking: a pipe that somebody left there would be waited for.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        raw = os.read(descriptor, 8192)
        if len(raw) == 8192:
            while len(raw) <= _MAX_FILE_BYTES and (more := os.read(descriptor, 65_536)):
                raw += more
        return raw
    finally:
        os.close(descriptor)


def _parse(text: str, of: tuple[str, str, str], rows: list[Row], problems: list[Problem]) -> None:
    """Add the rows of one file; `of` is whose it is: the distribution, its version and its location."""
    distribution, version, location = of
    found: dict[tuple[int, str], Row] = {}
    for api, line in _lines_of_ours(text):
        entry, _, target = map(str.strip, line.partition("="))
        fault = _fault_of_entry(line, entry, target)
        if fault or (api, entry) in found:
            problems.append(Problem(distribution, fault or f"gives {entry} twice; the first is used", location))
        else:
            kind, _, name = entry.partition(".")
            found[api, entry] = Row(kind, name, target, distribution, version, api, location)
    rows += found.values()


def _lines_of_ours(text: str) -> Iterator[tuple[int, str]]:
    """The entries of our groups, each with the major of the API that its group names."""
    api: int | None = None
    for line in map(str.strip, text.splitlines()):
        if not line or line[0] in "#;":
            continue
        if line[0] == "[" and (section := _SECTION.match(line)):
            ours = _OUR_SECTION.match(section[1])
            api = int(ours[1]) if ours else None
        elif api is not None:
            yield api, line


def _fault_of_entry(line: str, entry: str, target: str) -> str:
    """Why a line is no entry of ours, or ''."""
    kind, dot, name = entry.partition(".")
    module, colon, attribute = target.partition(":")
    if dot and colon and _TARGET.match(module):
        return f"names the object {attribute!r:.80} for {entry}, but must name a module: {entry} = {module}"
    if dot and _NAME.match(kind) and _COMPONENT.match(name) and _TARGET.match(target):
        return ""
    return f"entry_points.txt has an invalid line: {line[:200]!r}"


def _read_elsewhere(path: str, seen: dict[str, str], rows: list[Row], problems: list[Problem]) -> None:
    """Read what lies in an archive, or in an egg: `importlib_metadata` knows the forms, and takes its time."""
    import zipfile

    import importlib_metadata

    try:
        if not os.path.isdir(path):  # noqa: PTH112
            zipfile.ZipFile(path).close()  # `importlib_metadata` passes over one that cannot be read
        for distribution in importlib_metadata.distributions(path=[path]):
            # The folder of the metadata, for which there is no public name.
            folder: Any = getattr(distribution, "_path")  # noqa: B009 - no type says that it is there
            raw = _read_entry_points(folder)
            if _MENTIONS_A_GROUP.search(raw):
                _take(raw, str(folder).rstrip("/"), seen, rows, problems)
    except Exception as error:  # noqa: BLE001 - a broken archive on the path costs its own names only
        problems.append(Problem(os.path.basename(path), f"cannot be read: {error}", path))  # noqa: PTH119


def _read_entry_points(folder: Any) -> bytes:
    """As much as may be; it may inflate to any size."""
    try:
        with (folder / "entry_points.txt").open("rb") as file:
            return bytes(file.read(_MAX_FILE_BYTES + 1))
    except (FileNotFoundError, KeyError):
        return b""
