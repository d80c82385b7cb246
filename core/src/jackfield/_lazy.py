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
            module itself, and one that begins with `jackfield_` a module of a package beside the core.
    """

    def fetch(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if home.startswith("jackfield_"):
            value = _beside(home, name, f"{package}.{name} needs {_owner_of(home)}")
        else:
            module = import_module(f"jackfield.{home.removesuffix('.')}")
            value = module if home.endswith(".") else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return fetch, lambda: sorted(homes)


def needed(home: str, name: str, why: str) -> Any:
    """What a package beside the core has, for the few runs that need it.

    Args:
        home: Its module.
        name: Its name there.
        why: What needs it: the beginning of the error.

    Raises:
        ConfigError: The package is not installed; the text says what to install.
    """
    try:
        return getattr(import_module(home), name)
    except ModuleNotFoundError as error:
        from jackfield.errors import ConfigError

        raise ConfigError(_to_install(home, error, why)) from None


def installed(home: str) -> Any:
    """A module of a package beside the core; None if the package is not installed."""
    try:
        return import_module(home)
    except ModuleNotFoundError as error:
        if error.name != home.partition(".")[0]:
            raise
        return None


def is_in_reach(home: str) -> bool:
    """Whether a module is the core's, or of a package beside it that is installed; nothing is imported."""
    package = home.partition(".")[0]
    if not package.startswith("jackfield_"):
        return True
    try:  # as `importlib.util.find_spec` does, which is two modules more to load
        return any(finder.find_spec(package, None) for finder in sys.meta_path)
    except ImportError:  # of a finder that keeps packages from being imported
        return False


def method_of(home: str, name: str, *, of: str = "") -> Callable[..., Any]:
    """A method that is a function of a package beside the core, which is loaded when the method is called.

    `of` is what a user writes to have it called; its own name if ''.
    """

    why = f"`{of or name}` needs {_owner_of(home)}"

    def method(*args: Any, **kwargs: Any) -> Any:
        return needed(home, name, why)(*args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"See `{home}.{name}`."
    return method


def _beside(home: str, name: str, why: str) -> Any:
    """What a package beside the core has under a public name of the core."""
    try:
        return getattr(import_module(home), name)
    except ModuleNotFoundError as error:
        # Not an AttributeError: `from … import` would put a text of its own in the place of this one.
        raise ModuleNotFoundError(_to_install(home, error, why), name=error.name) from None


def _owner_of(home: str) -> str:
    return home.partition(".")[0].replace("_", "-")


def _to_install(home: str, error: ModuleNotFoundError, why: str) -> str:
    """What to install; raises the error if something else is missing."""
    if error.name != home.partition(".")[0]:
        raise error
    return f"{why}: pip install {_owner_of(home)}"
