"""Which names each version of the core has: an index for each, so that a plugin's floor can be checked without it.

`python -m jackfield_testkit.api_index src/jackfield_testkit/api` writes the index of the installed core. It is read
from source; the core is not imported.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TypeAlias

from packaging.requirements import Requirement
from packaging.version import Version

Index: TypeAlias = Mapping[str, Sequence[str]]
"""Module → its names that have no leading underscore, modules included."""

_FLOORS = (">=", "~=", "==", ">")


@cache
def indexes() -> Mapping[Version, Index]:
    """The indexes that this kit has, by the core's version."""
    files = resources.files("jackfield_testkit").joinpath("api").iterdir()
    read = {file.name.removesuffix(".json"): file for file in files if file.name.endswith(".json")}
    return {Version(name): json.loads(file.read_text(encoding="utf-8"))["modules"] for name, file in read.items()}


def floor_of(requirement: Requirement) -> Version | None:
    """The lowest version that a requirement lets in; None if it has no floor."""
    bounds = [one.version.removesuffix(".*") for one in requirement.specifier if one.operator in _FLOORS]
    return max(map(Version, bounds), default=None)


def index_for(floor: Version, known: Mapping[Version, Index]) -> Index | None:
    """The names of the core at a floor; None if it is newer than every index, so that nothing is known of it.

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


# --- what a plugin uses ---------------------------------------------------------------------------------------------


def unknown_names(running: Sequence[ast.AST], index: Index) -> Iterator[str]:
    """The names of the core that a module uses when it runs, and that the index does not have."""
    aliases: dict[str, str] = {}
    for node in running:
        if isinstance(node, ast.Import):
            aliases |= _aliases_of(node)
    for node in running:
        yield from (name for name in _used_by(node, aliases) if not _has(index, name))


def _used_by(node: ast.AST, aliases: Mapping[str, str]) -> list[str]:
    """The names of the core that a node uses, with their modules."""
    match node:
        case ast.ImportFrom(module=str(module), level=0) if _is_core(module):
            return [f"{module}.{one.name}" for one in node.names]
        case ast.Import():
            return [one.name for one in node.names if _is_core(one.name)]
        case ast.Attribute():
            return list(filter(None, [_dotted(node, aliases)]))
    return []


def _aliases_of(node: ast.Import) -> dict[str, str]:
    """What an import calls modules of the core."""
    core = [one for one in node.names if _is_core(one.name)]
    return {one.asname or "jackfield": one.name if one.asname else "jackfield" for one in core}


def running_nodes(tree: ast.AST) -> list[ast.AST]:
    """All nodes but those that only type checkers read."""
    found = [tree]
    for node in found:  # it grows meanwhile
        if isinstance(node, ast.If) and _is_type_checking(node.test):
            found += node.orelse
        else:
            found += ast.iter_child_nodes(node)
    return found


def _is_type_checking(test: ast.expr) -> bool:
    """Whether a condition is `TYPE_CHECKING`."""
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"


def _is_core(module: str) -> bool:
    return module.partition(".")[0] == "jackfield"


def _dotted(node: ast.Attribute, aliases: Mapping[str, str]) -> str:
    """`module.name` for an attribute of an imported module of the core; '' for anything else."""
    parts = [node.attr]
    value: ast.expr = node.value
    while isinstance(value, ast.Attribute):
        parts.append(value.attr)
        value = value.value
    if not (isinstance(value, ast.Name) and value.id in aliases):
        return ""
    return ".".join([aliases[value.id], *reversed(parts)])


def _has(index: Index, dotted: str) -> bool:
    """Whether the index has a module or a name of a module; what follows a name is not looked at."""
    if dotted in index:
        return True
    module, _, name = dotted.rpartition(".")
    while module and module not in index:
        module, _, name = module.rpartition(".")
    return name in index.get(module, ()) or (module == "jackfield" and name == "__version__")


# --- making an index ------------------------------------------------------------------------------------------------


def make_index(package: str = "jackfield") -> dict[str, list[str]]:
    """The index of an installed package. A module with `__all__` has the names of it; else, those it defines."""
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise LookupError(f"the package {package!r} is not installed")
    home = Path(next(iter(found.submodule_search_locations)))
    index: dict[str, set[str]] = {}
    for path in sorted(home.rglob("*.py")):
        parts = path.relative_to(home).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if not any(part.startswith("_") for part in parts):
            name = ".".join([package, *parts])
            index.setdefault(name, set()).update(_names_of(ast.parse(path.read_bytes())))
            if parts:
                index.setdefault(name.rpartition(".")[0], set()).add(parts[-1])
    return {module: sorted(names) for module, names in sorted(index.items())}


def _names_of(tree: ast.Module) -> set[str]:
    defined = set(_defined(tree.body))
    listed = next((_texts(value) for name, value in _assigned(tree.body) if name == "__all__"), None)
    names = defined if listed is None else defined & {"__version__"} | set(listed)
    return {name for name in names if not name.startswith("_")}


def _defined(body: Sequence[ast.stmt]) -> Iterator[str]:
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.If(test=test, body=then, orelse=otherwise):
                yield from _defined(otherwise if _is_type_checking(test) else [*then, *otherwise])
            case ast.Try(body=then, handlers=handlers):
                yield from _defined([*then, *(one for handler in handlers for one in handler.body)])
    yield from (name for name, _ in _assigned(body))


def _assigned(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.expr | None]]:
    for node in body:
        if isinstance(node, ast.Assign):
            yield from ((target.id, node.value) for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node.value


def _texts(value: ast.expr | None) -> list[str]:
    return [str(text) for text in ast.literal_eval(value)] if value is not None else []


def write_index(folder: Path, core: str) -> Path:
    """Write the index of the installed core, under its minor version, and give the file's path."""
    version = Version(core)
    path = folder / f"{version.major}.{version.minor}.json"
    lines = [f"  {json.dumps(module)}: {json.dumps(names)}" for module, names in make_index().items()]
    text = '{\n "core": "%s",\n "modules": {\n%s\n }\n}\n' % (path.stem, ",\n".join(lines))  # noqa: UP031 - braces
    path.write_text(text, encoding="utf-8")
    return path


if __name__ == "__main__":
    from importlib.metadata import version

    sys.stdout.write(f"{write_index(Path(sys.argv[1]), version('jackfield'))}\n")
