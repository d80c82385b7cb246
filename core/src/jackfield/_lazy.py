"""Names of a package that are fetched from their modules at first use, so that importing the package loads nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any


def fetching(
    package: str, homes: Mapping[str, str], *, moved: Mapping[str, str] = MappingProxyType({})
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package.

    Args:
        package: Its name.
        homes: For each public name the module that has it, without `jackfield.`; a name that ends in a dot is the
            module itself.
        moved: For each name that was public here the module outside of the core that has it now.
    """

    def fetch(name: str) -> Any:
        if name in moved:
            return _moved(package, name, moved[name])
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"jackfield.{home.removesuffix('.')}")
        value = module if home.endswith(".") else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return fetch, lambda: sorted(homes)


def _moved(package: str, name: str, home: str) -> Any:
    import warnings

    moved, owner = f"{package}.{name} has moved to {home}.{name}", home.partition(".")[0]
    try:
        module = import_module(home)
    except ModuleNotFoundError as error:
        if error.name != owner:
            raise
        # Not an AttributeError: `from … import` would put a text of its own in the place of this one.
        raise ModuleNotFoundError(f"{moved}: pip install {owner.replace('_', '-')}", name=owner) from None
    warnings.warn(moved, DeprecationWarning, stacklevel=3)
    return getattr(module, name)
