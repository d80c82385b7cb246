"""Find the modules that an import would load, without importing them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec, PathFinder


def specs_of_import(module: str, paths: Sequence[str] | None = None) -> list[ModuleSpec]:
    """Return the specs of a module and its parent packages, outermost first, or [] if one is missing."""
    specs: list[ModuleSpec] = []
    where = None if paths is None else list(paths)
    parts = module.split(".")
    for depth in range(1, len(parts) + 1):
        spec = _spec(".".join(parts[:depth]), where)
        if spec is None or (depth < len(parts) and spec.submodule_search_locations is None):
            return []
        specs.append(spec)
        try:
            where = list(spec.submodule_search_locations or ())
        except KeyError:  # a namespace package inside a package that is not imported
            return []
    return specs


def _spec(name: str, where: list[str] | None) -> ModuleSpec | None:
    loaded: ModuleSpec | None = getattr(sys.modules.get(name), "__spec__", None)
    if loaded is not None:
        return loaded  # an import would return it as well
    for finder in sys.meta_path if where is None else (PathFinder,):
        with suppress(ImportError, ValueError, OSError, AttributeError, KeyError):
            if spec := finder.find_spec(name, where):
                return spec
    return None if where is None else _namespace(name, where)


def _namespace(name: str, where: list[str]) -> ModuleSpec | None:
    """Return the spec of a namespace package. `PathFinder` cannot make one before the parent package is imported."""
    from pkgutil import get_importer  # rarely needed

    spec = ModuleSpec(name, None, is_package=True)
    with suppress(ImportError, ValueError, OSError, AttributeError):
        portions = [finder.find_spec(name) for folder in where if (finder := get_importer(folder)) is not None]
        locations = [one.submodule_search_locations for one in portions if one is not None and one.loader is None]
        spec.submodule_search_locations = [folder for folders in locations for folder in folders or ()]
    return spec if spec.submodule_search_locations else None
