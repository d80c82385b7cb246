"""Check the core names that a plugin uses against an index of names in each core version.

This verifies the lowest version that a plugin requires without installing it.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import TypeAlias

from packaging.requirements import Requirement
from packaging.version import Version

from jackfield_manage.judging.used_names import used_names

Index: TypeAlias = Mapping[str, Sequence[str]]
"""Each module's names without a leading underscore, including submodules."""

_FLOORS = (">=", "~=", "==", ">")


@cache
def indexes() -> Mapping[Version, Index]:
    """Return the bundled indexes by core version."""
    files = resources.files("jackfield_testkit").joinpath("api").iterdir()
    read = {file.name.removesuffix(".json"): file for file in files if file.name.endswith(".json")}
    return {Version(name): json.loads(file.read_text(encoding="utf-8"))["modules"] for name, file in read.items()}


def floor_of(requirement: Requirement) -> Version | None:
    """Return the lowest version that a requirement allows, or None if it sets no lower bound."""
    bounds = [one.version.removesuffix(".*") for one in requirement.specifier if one.operator in _FLOORS]
    return max(map(Version, bounds), default=None)


def next_series(version: Version) -> str:
    """Return the first version that may be incompatible: the next minor version before 1.0, else the next major."""
    return f"{version.major + 1}" if version.major else f"0.{version.minor + 1}"


def index_for(floor: Version, known: Mapping[Version, Index]) -> Index | None:
    """Return the core's names at a given version, or None if the version is newer than every index.

    Raises:
        LookupError: The version is older than every core.
    """
    newest = max(known)
    # 0.1.3 has the names of 0.1, because only minor versions add names.
    at = Version(f"{floor.major}.{floor.minor}")
    if at > newest:
        return None
    older = [version for version in known if version <= at]
    if not older:
        raise LookupError(f"jackfield {floor} does not exist: the first version is {min(known)}")
    return known[max(older)]


def unknown_names(running: Sequence[ast.AST], index: Index) -> Iterator[str]:
    """Yield the core names that a module uses at run time but the index does not contain."""
    yield from (name for name in used_names(running, _is_core) if not _has(index, name))


def _is_core(module: str) -> bool:
    return module.partition(".")[0] == "jackfield"


def _has(index: Index, dotted: str) -> bool:
    """Return True if the index has a module or a name in a module. Attributes of that name are not checked."""
    if dotted in index:
        return True
    module, _, name = dotted.rpartition(".")
    while module and module not in index:
        module, _, name = module.rpartition(".")
    return name in index.get(module, ()) or (module == "jackfield" and name == "__version__")
