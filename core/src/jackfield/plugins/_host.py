"""The host: finds plugins by name, loads them, and keeps the fault of each to itself.

Four levels, each reached only by who asks for it: the name (metadata), the descriptor (the light module is imported),
the class (its SDK is imported), the live thing (its constructor is called).
"""

from __future__ import annotations

import importlib
import os
import threading
import weakref
from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

from jackfield.errors import ConfigError, PluginError
from jackfield.plugins._catalog import Row
from jackfield.plugins._loading import Loading
from jackfield.plugins._own import ANY, Registered, modules_by_name, name_in_code, row_in_code
from jackfield.settings import Settings, closest

T = TypeVar("T")
Key = TypeVar("Key", bound=Hashable)


class PluginHost(Loading):
    """The plugins of one application.

    Readers see an immutable catalog; plugins are imported outside of any lock, each at most once; a plugin that fails
    to load fails again with the same error, and only for who asks for it. A host may be pickled: in another process it
    has the same policy, and finds the plugins that are there.

    Args:
        settings: What may load; read from the environment and the files if None.
        paths: Where distributions are looked for, in place of `sys.path`.

    Both can be read, and not changed.
    """

    def __init__(self, settings: Settings | None = None, *, paths: Iterable[str] | None = None) -> None:
        super().__init__(settings, paths=paths)
        _hosts.add(self)

    def __reduce__(self) -> tuple[object, ...]:
        return (_made_again, (self.settings, self.paths, modules_by_name(self._own.items())))

    def register(self, plugin: object, *, name: str = "") -> str:
        """Let a module or an object offer what it answers to hooks, as if it was installed. Its hooks are asked now.

        Policy holds for it as for others. A name that somebody else offers, too, is ambiguous.

        Args:
            plugin: What has functions or methods that are decorated with `hook.tools` and its kin.
            name: What it is called; that of the module or the class if left out.

        Returns:
            What it has in place of a distribution's name: `NAME@code`.

        Raises:
            ConfigError: It is registered already, or another of its name is; or it answers no hook.
            BrokenPluginError: What it answers cannot be used.
        """
        own_name = name_in_code(plugin, name)
        with self._lock:
            if own_name in self._own:
                raise ConfigError(f"{own_name} is registered already: give another name, or unregister it first")
            if getattr(type(plugin), "__hash__", None) is None:
                raise ConfigError(f"{own_name} cannot be registered: a {type(plugin).__name__} has no hash")
            if any(one.plugin is plugin for one in self._own.values()):
                raise ConfigError(f"{plugin!r:.200} is registered already, by another name")
            self._own = {**self._own, own_name: Registered(plugin)}
        try:
            rows = self._rows_in_code(plugin, own_name)
        except BaseException:
            self.unregister(own_name)
            raise
        with self._lock:
            self._own = {**self._own, own_name: Registered(plugin, rows)}
            self._catalog = None
        return own_name

    def unregister(self, name: str) -> None:
        """Take back what `register` did; `name` is what it gave. What was made of it goes on.

        Raises:
            ConfigError: Nothing of that name is registered.
        """
        with self._lock:
            if name not in self._own:
                raise ConfigError(f"{name!r} is not registered{closest(name, list(self._own))}")
            self._own = {other: one for other, one in self._own.items() if other != name}
            self._catalog = None
            self._registered = _of_others(self._registered, name)
            self._offered = _of_others(self._offered, name)
            self._specs = _of_other_rows(self._specs, name)
            self._classes = _of_other_rows(self._classes, name)
            if self._manager is not None and self._manager.has_plugin(name):
                self._manager.unregister(name=name)

    def _rows_in_code(self, plugin: object, own_name: str) -> tuple[Row, ...]:
        rows = self.offered_by(row_in_code(plugin, own_name, ANY, ANY))
        if not rows:
            raise ConfigError(f"{own_name} answers no hook, or offers nothing: decorate a function with @hook.tools")
        for row in rows:
            self._any_spec(row)
        return tuple(rows)

    def refresh(self, settings: Settings | None = None) -> None:
        """Look again at what is installed; what is loaded stays loaded. Rules may be given anew."""
        importlib.invalidate_caches()
        with self._lock:
            self.settings = settings or self.settings
            self._scanned = self._catalog = self._identities = None
            self._offered = {}
            self._registered = _without_errors(self._registered)
            self._specs = _without_errors(self._specs)
            self._classes = _without_errors(self._classes)


def _of_others(known: Mapping[tuple[str, str], T], name: str) -> dict[tuple[str, str], T]:
    return {key: value for key, value in known.items() if key[0] != name}


def _of_other_rows(known: Mapping[Row, T], name: str) -> dict[Row, T]:
    return {row: value for row, value in known.items() if row.distribution != name}


def _without_errors(known: Mapping[Key, T]) -> dict[Key, T]:
    return {key: value for key, value in known.items() if not isinstance(value, PluginError)}


def _made_again(
    settings: Settings, paths: tuple[str, ...] | None, registered: Iterable[tuple[str, str]] = ()
) -> PluginHost:
    host = PluginHost(settings, paths=paths)
    for name, module in registered:
        host.register(importlib.import_module(module), name=name)
    return host


_hosts: weakref.WeakSet[PluginHost] = weakref.WeakSet()


def _new_locks() -> None:
    """A lock that another thread held while the process forked is held for ever in the child."""
    global _default_lock  # noqa: PLW0603 - see above
    _default_lock = threading.Lock()
    for host in _hosts:
        host._lock = threading.RLock()
        host._cells = {}


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_locks)

_default: PluginHost | None = None
_default_lock = threading.Lock()


def default_host() -> PluginHost:
    """The host that is used where none is given: the plugins installed beside the core."""
    global _default  # noqa: PLW0603 - made at first use, and never needed by who passes a host of their own
    if _default is None:
        with _default_lock:
            if _default is None:
                _default = PluginHost()
    return _default
