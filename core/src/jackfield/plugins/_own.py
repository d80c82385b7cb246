"""Plugins without a distribution: modules and objects registered in code, and local files named in settings.

In place of a distribution name, such plugins have a name that no distribution can have, such as `my-tools@code` or
`my-tools@project`, so neither kind can impersonate the other. Otherwise, such plugins are treated like installed
plugins.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from jackfield._localfiles import LocalFile, source_of
from jackfield.errors import ConfigError
from jackfield.plugins._catalog import ANY, API, Row
from jackfield.suggestions import suggest


class _Registered(NamedTuple):
    plugin: object
    rows: tuple[Row, ...] = ()


class CodePlugins:
    """Plugins registered in code, keyed by `NAME@code`.

    Readers need no lock, because each change replaces the table. Writers hold the host's lock.
    """

    def __init__(self) -> None:
        self._plugins: dict[str, _Registered] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._plugins

    def adopt(self, other: CodePlugins) -> None:
        """Copy the current plugins from another table."""
        self._plugins = other._plugins

    def object_of(self, name: str) -> object:
        """Return the module or object registered under a name."""
        return self._plugins[name].plugin

    def rows(self) -> list[Row]:
        """List the components of all plugins."""
        return [row for entry in self._plugins.values() for row in entry.rows]

    def add(self, plugin: object, name: str) -> Row:
        """Add a plugin that has no components yet.

        Args:
            plugin: A module or object.
            name: The plugin's name. If '', the name of the module or class is used.

        Returns:
            A row that represents all components of the plugin.

        Raises:
            ConfigError: The name is invalid or taken, or the plugin is already registered under another name.
        """
        name = _name_in_code(plugin, name)
        if name in self._plugins:
            raise ConfigError(f"{name} is already registered: choose another name, or unregister it first")
        if getattr(type(plugin), "__hash__", None) is None:
            raise ConfigError(f"{name} cannot be registered, because {type(plugin).__name__} objects are not hashable")
        if any(entry.plugin is plugin for entry in self._plugins.values()):
            raise ConfigError(f"{plugin!r:.200} is already registered under another name")
        self._plugins = {**self._plugins, name: _Registered(plugin)}
        module = plugin.__name__ if isinstance(plugin, ModuleType) else type(plugin).__module__
        return Row(ANY, ANY, module, name, "", API, "registered in code")

    def offer(self, name: str, rows: tuple[Row, ...]) -> None:
        """Replace a plugin's components."""
        self._plugins = {**self._plugins, name: _Registered(self._plugins[name].plugin, rows)}

    def remove(self, name: str) -> None:
        """Remove a plugin.

        Raises:
            ConfigError: There is no plugin with this name.
        """
        if name not in self._plugins:
            raise ConfigError(f"{name!r} is not registered{suggest(name, list(self._plugins))}")
        self._plugins = {other: entry for other, entry in self._plugins.items() if other != name}

    def module_names(self) -> tuple[tuple[str, str], ...]:
        """Return (plugin name, module name) pairs with which another process can register the same plugins.

        Raises:
            ConfigError: A plugin is not an importable module.
        """
        pairs = []
        for name, entry in self._plugins.items():
            module = entry.plugin
            if not isinstance(module, ModuleType) or sys.modules.get(module.__name__) is not module:
                raise ConfigError(
                    f"a host with {name} cannot be pickled: the registered object is not an importable module. "
                    "Register a module, or register the object again in the other process"
                )
            pairs.append((name.removesuffix("@code"), module.__name__))
        return tuple(pairs)


def _name_in_code(plugin: object, name: str) -> str:
    label = name or (plugin.__name__ if isinstance(plugin, ModuleType) else type(plugin).__name__)
    normal = re.sub(r"[-_.]+", "-", label).strip("-").lower()
    if not re.fullmatch(r"[a-z0-9-]{1,64}", normal):
        raise ConfigError(f"{label[:80]!r} is not a valid plugin name: use letters, digits, '-' and '_'")
    return f"{normal}@code"


def row_of_local(file: LocalFile) -> Row:
    """Return a row that represents all components of a local file. Only the file itself can list its components."""
    import hashlib  # local files are rare

    # The content is part of the name, so a changed file is a new module, and the old components keep working.
    mark = hashlib.sha256(f"{file.path}\n{file.content}".encode(errors="surrogateescape")).hexdigest()[:12]
    stem = re.sub(r"\W+", "_", Path(file.path).stem, flags=re.ASCII)
    return Row(ANY, ANY, f"_jackfield_local_{stem}_{mark}", file.name, "", API, file.path)


def module_of_local(file: LocalFile, name: str) -> ModuleType:
    """Execute a local file as a module called `name`, once per process.

    Raises:
        Exception: The file's code raised an error.
        OSError, ValueError: The file is missing or has changed.
    """
    loaded = sys.modules.get(name)
    if loaded is not None:
        return loaded
    code = compile(source_of(file), file.path, "exec", dont_inherit=True)
    module = ModuleType(name)
    module.__file__ = file.path
    sys.modules[name] = module  # its classes and functions are looked up by this name
    try:
        exec(code, module.__dict__)  # noqa: S102 - the user named the file, or agreed to it
    except BaseException:
        del sys.modules[name]
        raise
    return module
