"""Names of a package that are fetched from their modules at first use, so that importing the package loads nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def fetching(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package.

    Args:
        package: Its name.
        homes: For each public name the module that has it, without `jackfield.`; a name that ends in a dot is the
            module itself.
    """

    def fetch(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"jackfield.{home.removesuffix('.')}")
        value = module if home.endswith(".") else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return fetch, lambda: sorted(homes)
