"""Find names that a plugin uses from the core or libraries but that the installed versions lack."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from jackfield.plugins import Misfit, misfit_between
from jackfield_manage.judging.used_names import required_nodes, used_names


def misfits_of_package(package: str) -> Iterator[Misfit]:
    """Yield a misfit for each name that a package uses, in any function, but another package lacks.

    The package's own code is not run. Modules that it uses from the core and from packages that start with `jackfield_`
    are imported.
    """
    spec = find_spec(package)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    files = [file for folder in folders for file in sorted(Path(folder).rglob("*.py"))]
    if spec and spec.origin and not folders:
        files.append(Path(spec.origin))
    names: dict[str, None] = {}
    for file in files:
        try:
            tree = ast.parse(file.read_bytes())
        except (OSError, SyntaxError, ValueError, RecursionError):
            continue  # loading the plugin reports this
        names |= dict.fromkeys(used_names(required_nodes(tree), lambda module: _is_ours(module, package)))
    missing: dict[str, None] = {}
    for name in names:
        if owner := _module_without(name):
            missing[".".join(name.split(".")[: owner.count(".") + 2])] = None
    for name in missing:
        if misfit := misfit_between(package, name.partition(".")[0], name):
            yield misfit


def _is_ours(module: str, package: str) -> bool:
    top = module.partition(".")[0]
    return top != package and (top == "jackfield" or top.startswith("jackfield_"))


def _module_without(name: str) -> str:
    """Return the module that lacks the next part of a dotted name, or '' if none does or this is unknown."""
    module_name, *rest = name.split(".")
    try:
        value: object = importlib.import_module(module_name)
        for part in rest:
            if not isinstance(value, ModuleType):
                return ""
            if not hasattr(value, part):
                importlib.import_module(f"{module_name}.{part}")
            module_name, value = f"{module_name}.{part}", getattr(value, part)
    except ModuleNotFoundError as error:
        is_missing_here = (error.name or "").startswith(f"{module_name}.")
        return module_name if is_missing_here else ""
    except Exception:  # noqa: BLE001 - the module is broken in some other way, which loading reports
        return ""
    return ""
