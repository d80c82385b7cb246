"""What Python would import for a module's name, found without importing anything."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder


def files_of_import(module: str) -> list[tuple[str, int]]:
    """The files that importing a module would run: its packages' and its own, the outermost first.

    Returns:
        Each file with the number of its path's last parts that follow the folder on `sys.path`; nothing if Python would
        not find the module.
    """
    files = []
    for depth, spec in enumerate(specs_of_import(module), start=1):
        if spec.origin is not None and spec.submodule_search_locations is None:
            files.append((spec.origin, depth))
        elif spec.origin is not None:
            files.append((spec.origin, depth + 1))  # the package's __init__
    return files


def specs_of_import(module: str, paths: Sequence[str] | None = None) -> list[ModuleSpec]:
    """What Python's import system finds for the packages of a module and for itself; empty if one is missing."""
    found: list[ModuleSpec] = []
    where = None if paths is None else list(paths)
    parts = module.split(".")
    for depth in range(1, len(parts) + 1):
        spec = _spec(".".join(parts[:depth]), where)
        if spec is None or (depth < len(parts) and spec.submodule_search_locations is None):
            return []
        found.append(spec)
        try:
            where = list(spec.submodule_search_locations or ())
        except KeyError:  # a part of a package without __init__, whose own package is not imported
            return []
    return found


def _spec(name: str, where: list[str] | None) -> ModuleSpec | None:
    loaded = sys.modules.get(name)
    if loaded is not None and loaded.__spec__ is not None:
        return loaded.__spec__  # an import takes what is there
    for finder in sys.meta_path if where is None else (PathFinder,):
        try:
            spec = finder.find_spec(name, where)
        except (ImportError, ValueError, OSError, AttributeError, KeyError):
            continue
        if spec is not None:
            return spec
    return None
