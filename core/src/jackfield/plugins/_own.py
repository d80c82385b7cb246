"""Plugins that nobody installed: a module or an object that code registers, and local files that settings name.

In place of a distribution they have a name that no distribution can have, `my-tools@code` or `my-tools@project`, so
that neither can pass for the other. Everything else is as for installed plugins.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from jackfield._localfiles import LocalFile, source_of
from jackfield.errors import ConfigError
from jackfield.plugins._catalog import API, Row

ANY = "*"
"""The name (and of a local file, the kind) of what is known only when it is asked."""


@dataclass(frozen=True, slots=True, eq=False)
class Registered:
    """A plugin that was registered in code, with what it offers."""

    plugin: object
    rows: tuple[Row, ...] = ()


def name_in_code(plugin: object, name: str) -> str:
    """What a registered plugin has in place of a distribution's name.

    Raises:
        ConfigError: The name cannot be one.
    """
    given = name or (plugin.__name__ if isinstance(plugin, ModuleType) else type(plugin).__name__)
    normal = re.sub(r"[-_.]+", "-", given).strip("-").lower()
    if not re.fullmatch(r"[a-z0-9-]{1,64}", normal):
        raise ConfigError(f"{given[:80]!r} is not a valid name for a plugin: use letters, digits, '-' and '_'")
    return f"{normal}@code"


def row_in_code(plugin: object, own_name: str, kind: str, name: str) -> Row:
    """The row of a component of a registered plugin."""
    module = plugin.__name__ if isinstance(plugin, ModuleType) else type(plugin).__module__
    return Row(kind, name, module, own_name, "", API, "registered in code")


def row_of_local(file: LocalFile) -> Row:
    """The row that stands for a local file: what it offers is known when it is asked."""
    import hashlib  # few have a local file

    # The name is of the content, too: a changed file is another module, and what was made by the old one goes on.
    mark = hashlib.sha256(f"{file.path}\n{file.content}".encode(errors="surrogateescape")).hexdigest()[:12]
    stem = re.sub(r"\W+", "_", Path(file.path).stem, flags=re.ASCII)
    return Row(ANY, ANY, f"_jackfield_local_{stem}_{mark}", file.name, "", API, file.path)


def module_of_local(file: LocalFile, name: str) -> ModuleType:
    """Run a local file as a module of a name of its own; once in a process.

    Raises:
        Exception: Whatever the file raises; OSError or ValueError if it is not what it was.
    """
    loaded = sys.modules.get(name)
    if loaded is not None:
        return loaded
    code = compile(source_of(file), file.path, "exec", dont_inherit=True)
    module = ModuleType(name)
    module.__file__ = file.path
    sys.modules[name] = module  # its classes and functions are found by this name
    try:
        exec(code, module.__dict__)  # noqa: S102 - it is what the user, or whoever was asked, wants to be run
    except BaseException:
        del sys.modules[name]
        raise
    return module


def modules_by_name(registered: Iterable[tuple[str, Registered]]) -> tuple[tuple[str, str], ...]:
    """What another process can register again: the names of plugins, each with that of its module.

    Raises:
        ConfigError: One is not a module that can be imported.
    """
    found = []
    for own_name, one in registered:
        module = one.plugin
        if not isinstance(module, ModuleType) or sys.modules.get(module.__name__) is not module:
            raise ConfigError(
                f"a host with {own_name} cannot be pickled: the registered object is not a module that can be "
                f"imported. Register a module, or register it again in the other process"
            )
        found.append((own_name.removesuffix("@code"), module.__name__))
    return tuple(found)
