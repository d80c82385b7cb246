"""Read the metadata of installed distributions: requirements, installer and origin. Nothing is imported.

Metadata files are read with a size limit. Broken metadata never raises: the distribution or the field is omitted.
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
    """Metadata of an installed distribution.

    Attributes:
        name: The normalised name.
        location: The directory that contains the metadata.
        requires: The requirements as written in the metadata, including markers.
        extras: The names of the extras.
        requires_python: The supported Python versions, or '' for any.
        licence: The licence, or '' if none is stated.
        installer: The program that installed the distribution, such as `pip` or `uv`, or '' if unknown.
        requested: True if a user requested the distribution by name; None if the installer does not record this (uv).
        direct: The origin of a distribution not installed from an index (PEP 610), otherwise empty.
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
        """True if the distribution is a link to a source directory."""
        table = self.direct.get("dir_info")
        return isinstance(table, dict) and table.get("editable") is True


def installed(paths: Iterable[str] | None = None) -> dict[str, Distribution]:
    """Return all distributions on `paths` or `sys.path`, by normalised name. Earlier paths take precedence."""
    distributions: dict[str, Distribution] = {}
    for folder in dict.fromkeys(os.path.realpath(path or ".") for path in (sys.path if paths is None else paths)):
        for location in _metadata_folders(folder):
            distribution = read_distribution(location)
            if distribution is not None:
                distributions.setdefault(distribution.name, distribution)
    return distributions


def read_distribution(location: str) -> Distribution | None:
    """Read the metadata in a directory, possibly inside an archive; None if it lacks a name or version."""
    metadata = _Metadata(location)
    if not any(metadata.read_text(name) for name in _HEADERS):
        return None  # versions of `importlib_metadata` behave differently without headers
    headers = metadata.metadata
    name, version = _text(headers, "Name"), _text(headers, "Version")
    if not (name and version):
        return None
    installer = (metadata.read_text("INSTALLER") or "").strip()[:64]
    return Distribution(
        normalise(name),
        version,
        location,
        requires=_texts(headers, "Requires-Dist"),
        extras=tuple(normalise(extra) for extra in _texts(headers, "Provides-Extra")),
        requires_python=_text(headers, "Requires-Python"),
        licence=(_text(headers, "License-Expression") or _text(headers, "License"))[:200],
        installer=installer,
        requested=metadata.read_text("REQUESTED") is not None if installer == "pip" else None,
        direct=_parse_direct_url(metadata.read_text("direct_url.json")),
    )


def requirements_of(distribution: Distribution, extra: str = "") -> Iterator[Any]:
    """Yield the requirements that apply to this Python and platform, as `packaging` requirements.

    Args:
        distribution: The distribution.
        extra: Yield only the additional requirements of this extra. If '', yield those that always apply.
    """
    from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
    from packaging.requirements import InvalidRequirement, Requirement

    for text in distribution.requires:
        # Installers cope with invalid requirements in different ways, so they are skipped.
        with suppress(InvalidRequirement, UndefinedComparison, UndefinedEnvironmentName):
            requirement = Requirement(text)
            applies = _applies(requirement.marker, "")
            if extra:
                applies = not applies and _applies(requirement.marker, extra)
            if applies:
                yield requirement


def _applies(marker: Marker | None, extra: str) -> bool:
    return marker is None or marker.evaluate({"extra": extra})


def required_by(name: str, distributions: Mapping[str, Distribution]) -> list[str]:
    """Return the distributions that require `name`, either always (`other`) or with an extra (`other[extra]`)."""
    return requirers([name], distributions).get(name, [])


def requirers(names: Collection[str], distributions: Mapping[str, Distribution]) -> dict[str, list[str]]:
    """Return `required_by` for each of the names that is required at all."""
    requiring: defaultdict[str, set[str]] = defaultdict(set)
    for distribution in distributions.values():
        for text in distribution.requires:
            match = _REQUIRED_NAME.match(text)
            required = normalise(match[0]) if match else ""
            if required in names:
                requiring[required].update(_requiring_parts(distribution, text))
    # An extra such as `all` often names the other extras of its own distribution.
    return {
        name: sorted(other for other in others if other.partition("[")[0] != name) for name, others in requiring.items()
    }


def _requiring_parts(distribution: Distribution, requirement: str) -> Iterator[str]:
    """Yield `name`, or `name[extra]` for each extra, under which a requirement applies."""
    if ";" not in requirement:
        # The common case. Evaluating a marker takes longer than reading a distribution's metadata.
        yield distribution.name
        return
    with_this_one = replace(distribution, requires=(requirement,))
    for extra in _candidate_extras(requirement.partition(";")[2], distribution.extras):
        if any(requirements_of(with_this_one, extra)):
            yield f"{distribution.name}[{extra}]" if extra else distribution.name


def _candidate_extras(marker: str, extras: Sequence[str]) -> Sequence[str]:
    """Return the extras for which a marker may be true; '' means without any extra."""
    if "extra" not in marker:
        return ("",)
    named = [normalise(extra) for extra in _EXTRA.findall(marker)]
    # '' can be left out only if the marker requires an extra in any case.
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
    """Metadata for `importlib_metadata`, read with a size limit from files or archives."""

    def __init__(self, location: str) -> None:
        self._location = location

    def read_text(self, filename: str) -> str | None:
        raw = read_file(f"{self._location}/{filename}")
        if raw is None:
            return None
        text = raw.decode(errors="replace").replace("\r\n", "\n")
        # The README follows the headers, and parsing it would take most of the time.
        return text.partition("\n\n")[0] + "\n" if filename in _HEADERS else text

    def locate_file(self, path: str | os.PathLike[str]) -> importlib_metadata.SimplePath:
        return Path(self._location).parent / path


def _parse_direct_url(text: str | None) -> Mapping[str, object]:
    try:
        table = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return table if isinstance(table, dict) else {}


def _text(headers: importlib_metadata.PackageMetadata, name: str) -> str:
    return str(headers.get(name) or "").strip()


def _texts(headers: importlib_metadata.PackageMetadata, name: str) -> tuple[str, ...]:
    return tuple(str(value).strip() for value in headers.get_all(name) or ())
