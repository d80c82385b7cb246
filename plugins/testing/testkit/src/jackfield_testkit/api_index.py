"""Compare the names of the core that a plugin uses with an index of each version's names.

This checks the lowest version that a plugin requires without installing it.
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

Index: TypeAlias = Mapping[str, Sequence[str]]
"""Module → its names that have no leading underscore, modules included."""

_FLOORS = (">=", "~=", "==", ">")


@cache
def indexes() -> Mapping[Version, Index]:
    """Return the indexes of this kit, by the core's version."""
    files = resources.files("jackfield_testkit").joinpath("api").iterdir()
    read = {file.name.removesuffix(".json"): file for file in files if file.name.endswith(".json")}
    return {Version(name): json.loads(file.read_text(encoding="utf-8"))["modules"] for name, file in read.items()}


def floor_of(requirement: Requirement) -> Version | None:
    """Return the lowest version that a requirement allows; None if it has no floor."""
    bounds = [one.version.removesuffix(".*") for one in requirement.specifier if one.operator in _FLOORS]
    return max(map(Version, bounds), default=None)


def index_for(floor: Version, known: Mapping[Version, Index]) -> Index | None:
    """Return the names of the core at a floor; None if it is newer than every index.

    Raises:
        LookupError: There was no core that old.
    """
    newest = max(known)
    # 0.1.3 has what 0.1 has; only a minor version adds names.
    at = Version(f"{floor.major}.{floor.minor}")
    if at > newest:
        return None
    older = [version for version in known if version <= at]
    if not older:
        raise LookupError(f"there was no jackfield {floor}: the first is {min(known)}")
    return known[max(older)]


def unknown_names(running: Sequence[ast.AST], index: Index) -> Iterator[str]:
    """Yield the names of the core that a module uses when it runs and that the index lacks."""
    aliases: dict[str, str] = {}
    for node in running:
        if isinstance(node, ast.Import):
            aliases |= _aliases_of(node)
    for node in running:
        yield from (name for name in _used_by(node, aliases) if not _has(index, name))


def _used_by(node: ast.AST, aliases: Mapping[str, str]) -> list[str]:
    """Return the names of the core that a node uses, with their modules."""
    match node:
        case ast.ImportFrom(module=str(module), level=0) if _is_core(module):
            return [f"{module}.{one.name}" for one in node.names]
        case ast.Import():
            return [one.name for one in node.names if _is_core(one.name)]
        case ast.Attribute():
            return list(filter(None, [_dotted(node, aliases)]))
    return []


def _aliases_of(node: ast.Import) -> dict[str, str]:
    """Return the modules of the core by the names that an import gives them."""
    core = [one for one in node.names if _is_core(one.name)]
    return {one.asname or "jackfield": one.name if one.asname else "jackfield" for one in core}


def running_nodes(tree: ast.AST) -> list[ast.AST]:
    """Return all nodes except those that only type checkers read."""
    found = [tree]
    for node in found:  # it grows meanwhile
        if isinstance(node, ast.If) and _is_type_checking(node.test):
            found += node.orelse
        else:
            found += ast.iter_child_nodes(node)
    return found


def _is_type_checking(test: ast.expr) -> bool:
    """Return True if a condition is `TYPE_CHECKING`."""
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"


def _is_core(module: str) -> bool:
    return module.partition(".")[0] == "jackfield"


def _dotted(node: ast.Attribute, aliases: Mapping[str, str]) -> str:
    """Return `module.name` for an attribute of an imported module of the core; '' for anything else."""
    parts = [node.attr]
    value: ast.expr = node.value
    while isinstance(value, ast.Attribute):
        parts.append(value.attr)
        value = value.value
    if not (isinstance(value, ast.Name) and value.id in aliases):
        return ""
    return ".".join([aliases[value.id], *reversed(parts)])


def _has(index: Index, dotted: str) -> bool:
    """Return True if the index has a module or a name of a module; attributes of that name are not checked."""
    if dotted in index:
        return True
    module, _, name = dotted.rpartition(".")
    while module and module not in index:
        module, _, name = module.rpartition(".")
    return name in index.get(module, ()) or (module == "jackfield" and name == "__version__")
