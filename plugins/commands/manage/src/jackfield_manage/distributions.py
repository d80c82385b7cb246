"""The distributions beside the core, plugins or not: what each requires, who installed it and how. Nothing is imported.

Only metadata is read, file by file and with limits: a broken distribution is left out or loses a field, never raises.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import importlib_metadata

from jackfield.plugins import read_file
from jackfield.settings import normalise

if TYPE_CHECKING:
    from packaging.markers import Marker

CORE = "jackfield"
_HEADERS = ("METADATA", "PKG-INFO")
_REQUIRED_NAME = re.compile(r"^[A-Za-z0-9][\w.-]*", re.ASCII)
_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")


@dataclass(frozen=True, slots=True)
class Distribution:
    """What the metadata of one installed distribution says.

    Attributes:
        name: Normalised.
        location: The folder of its metadata.
        requires: Its requirements as they stand in the metadata, markers and all.
        extras: The names of its optional parts.
        requires_python: '' if it runs on any.
        licence: As it says, '' if it says nothing.
        installer: Who put it there, such as `pip` or `uv`; '' if nobody signed.
        requested: Whether somebody asked for it by name; None where the installer does not tell, as uv.
        direct: What it was installed from, if that was not an index (PEP 610); empty otherwise.
    """

    name: str
    version: str
    location: str
    requires: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    requires_python: str = ""
    licence: str = ""
    installer: str = ""
    requested: bool | None = None
    direct: Mapping[str, object] = field(default_factory=dict)

    @property
    def editable(self) -> bool:
        """Whether it is a link to a folder in which somebody works."""
        table = self.direct.get("dir_info")
        return isinstance(table, dict) and table.get("editable") is True


def installed(paths: Iterable[str] | None = None) -> dict[str, Distribution]:
    """All distributions on `paths`, or `sys.path`, by normalised name; of two with one name, the first on the path."""
    found: dict[str, Distribution] = {}
    folders = dict.fromkeys(os.path.realpath(path or ".") for path in (sys.path if paths is None else paths))
    locations = chain.from_iterable(map(_metadata_folders, folders))
    for distribution in filter(None, map(read_distribution, locations)):
        found.setdefault(distribution.name, distribution)
    return found


def read_distribution(location: str) -> Distribution | None:
    """The distribution whose metadata is in a folder, or in one in an archive; None if it has no name and version."""
    metadata = _Metadata(location)
    if not any(map(metadata.read_text, _HEADERS)):
        return None  # what `importlib_metadata` does then depends on its version
    headers = metadata.metadata
    name, version = _text(headers, "Name"), _text(headers, "Version")
    if not (name and version):
        return None
    installer, requested = _installation(metadata)
    return Distribution(
        normalise(name),
        version,
        location,
        requires=_texts(headers, "Requires-Dist"),
        extras=tuple(map(normalise, _texts(headers, "Provides-Extra"))),
        requires_python=_text(headers, "Requires-Python"),
        licence=(_text(headers, "License-Expression") or _text(headers, "License"))[:200],
        installer=installer,
        requested=requested,
        direct=_direct(metadata.read_text("direct_url.json")),
    )


def _installation(metadata: _Metadata) -> tuple[str, bool | None]:
    """Who installed a distribution, and whether somebody asked for it by name."""
    installer = (metadata.read_text("INSTALLER") or "").strip()[:64]
    return installer, metadata.read_text("REQUESTED") is not None if installer == "pip" else None


def requirements_of(distribution: Distribution, extra: str = "") -> Iterator[Any]:
    """What a distribution requires here, on this Python and machine, as `packaging` requirements.

    Args:
        distribution: Whose.
        extra: The optional part whose requirements are meant; '' for what is always required.
    """
    from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
    from packaging.requirements import InvalidRequirement, Requirement

    for text in distribution.requires:
        # An installer has read a strange one otherwise or not at all; what is installed is what counts here.
        with suppress(InvalidRequirement, UndefinedComparison, UndefinedEnvironmentName):
            requirement = Requirement(text)
            parts = filter(partial(_applies, requirement.marker), ("", extra))
            if next(parts, None) == extra:
                yield requirement


def _applies(marker: Marker | None, extra: str) -> bool:
    return marker is None or marker.evaluate({"extra": extra})


def required_by(name: str, distributions: Mapping[str, Distribution]) -> list[str]:
    """The distributions that always require one, and those that do so with an extra (`other[extra]`); sorted."""
    return requirers([name], distributions).get(name, [])


def requirers(names: Collection[str], distributions: Mapping[str, Distribution]) -> dict[str, list[str]]:
    """For each of some distributions that is required, what `required_by` says of it."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for other in distributions.values():
        for text in other.requires:
            needed = normalise("".join(_REQUIRED_NAME.findall(text)))
            if needed in names:
                found[needed].update(_requiring(other, text))
    return {name: sorted(others - {name}) for name, others in found.items()}


def _requiring(distribution: Distribution, text: str) -> Iterator[str]:
    """The name of a distribution, and with each extra, where one of its requirements counts."""
    if ";" not in text:
        # So are most, and evaluating a marker takes longer than reading all metadata of a distribution.
        yield distribution.name
        return
    one = replace(distribution, requires=(text,))
    for extra in _extras_of(text.partition(";")[2], distribution.extras):
        if any(requirements_of(one, extra)):
            yield f"{distribution.name}[{extra}]" if extra else distribution.name


def _extras_of(marker: str, extras: Sequence[str]) -> Sequence[str]:
    """The parts for which a requirement with a marker may count, '' for always."""
    if "extra" not in marker:
        return ("",)
    named = list(map(normalise, _EXTRA.findall(marker)))
    # Only if nothing else than an extra can bring it, '' need not be asked.
    return ["", *(named or extras)] if " or " in marker or not named else named


def _metadata_folders(folder: str) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.name.endswith((".dist-info", ".egg-info")))
    except (OSError, ValueError):  # ValueError: an entry with a NUL in it
        return
    for name in names:
        yield f"{folder}/{name}"


class _Metadata(importlib_metadata.Distribution):
    """What `importlib_metadata` makes of files that are read with limits, wherever they lie."""

    def __init__(self, location: str) -> None:
        self._location = location

    def read_text(self, filename: str) -> str | None:
        raw = read_file(f"{self._location}/{filename}")
        if raw is None:
            return None
        text = raw.decode(errors="replace").replace("\r\n", "\n")
        # Behind the headers stands the README, which would be most of the work.
        return text.partition("\n\n")[0] + "\n" if filename in _HEADERS else text

    def locate_file(self, path: str | os.PathLike[str]) -> importlib_metadata.SimplePath:
        return Path(self._location).parent / path


def _direct(text: str | None) -> Mapping[str, object]:
    try:
        table = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return table if isinstance(table, dict) else {}


def _text(headers: importlib_metadata.PackageMetadata, name: str) -> str:
    return str(headers.get(name) or "").strip()


def _texts(headers: importlib_metadata.PackageMetadata, name: str) -> tuple[str, ...]:
    return tuple(str(value).strip() for value in headers.get_all(name) or ())
