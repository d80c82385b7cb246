"""The host: finds plugins by name, loads them, and keeps a fault in one from affecting others.

Four levels, each reached only when needed: the name (metadata), the descriptor (the light module is imported),
the class (its SDK is imported), the live thing (its constructor is called).
"""

from __future__ import annotations

import importlib
import os
import threading
import weakref
from collections.abc import Callable, Iterable

from jackfield.errors import ConfigError, PluginError, closest
from jackfield.plugins._catalog import Row
from jackfield.plugins._loading import Key, Loading
from jackfield.plugins._own import ANY, Registered, modules_by_name, name_in_code, row_in_code
from jackfield.settings import Settings

_TRIES = 10


class PluginHost(Loading):
    """The plugins of one application.

    Readers see an immutable catalog; plugins are imported outside of any lock, each at most once; a plugin that fails
    to load fails again with the same error, and only for those who ask for it. A host may be pickled: in another
    process it has the same policy, and finds the plugins that are installed there.

    Args:
        settings: What may load; read from the environment and the files if None.
        paths: Where distributions are looked for, instead of `sys.path`.

    Both are read-only.
    """

    def __init__(self, settings: Settings | None = None, *, paths: Iterable[str] | None = None) -> None:
        super().__init__(settings, paths=paths)
        _hosts.add(self)

    def __reduce__(self) -> tuple[object, ...]:
        return (_made_again, (self.settings, self.paths, modules_by_name(self._own.items())))

    def register(self, plugin: object, *, name: str = "") -> str:
        """Register a module or an object as a plugin, as if it were installed. Its hooks are called now.

        Policy applies to it as to others. A name that another plugin also offers is ambiguous.

        Args:
            plugin: It has functions or methods that are decorated with `hook.tools` or another hook.
            name: The plugin's name; by default that of the module or the class.

        Returns:
            The name that it has instead of a distribution's: `NAME@code`.

        Raises:
            ConfigError: It, or another plugin of the same name, is already registered; or it has no hooks.
            BrokenPluginError: Its hooks return something that cannot be used.
        """
        own_name = name_in_code(plugin, name)
        with self._lock:
            if own_name in self._own:
                raise ConfigError(f"{own_name} is already registered: choose another name, or unregister it first")
            if getattr(type(plugin), "__hash__", None) is None:
                raise ConfigError(f"{own_name} cannot be registered, because a {type(plugin).__name__} has no hash")
            if any(one.plugin is plugin for one in self._own.values()):
                raise ConfigError(f"{plugin!r:.200} is already registered under another name")
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
        """Undo `register`; `name` is what that returned. Components that were already made keep working.

        Raises:
            ConfigError: Nothing of that name is registered.
        """
        with self._lock:
            if name not in self._own:
                raise ConfigError(f"{name!r} is not registered{closest(name, list(self._own))}")
            self._own = {other: one for other, one in self._own.items() if other != name}
            self._catalog = None
            self._forget(lambda key, _: key[1] == name)
            if self._manager is not None and self._manager.has_plugin(name):
                self._manager.unregister(name=name)

    def _forget(self, is_stale: Callable[[Key, object], bool]) -> None:
        known = dict(self._known)  # a copy is taken at once; meanwhile other threads add to what it is of
        self._known = {key: made for key, made in known.items() if not is_stale(key, made)}

    def _rows_in_code(self, plugin: object, own_name: str) -> tuple[Row, ...]:
        rows = self.offered_by(row_in_code(plugin, own_name, ANY, ANY))
        if not rows:
            raise ConfigError(f"{own_name} has no hooks, or they offer nothing: decorate a function with @hook.tools")
        for row in rows:
            self._any_spec(row)
        return tuple(rows)

    def refresh(self, settings: Settings | None = None) -> None:
        """Look again at what is installed; what is loaded stays loaded. New rules can be passed."""
        _forget_what_folders_hold()
        with self._lock:
            self.settings = settings or self.settings
            self._scanned = self._catalog = self._identities = None
            self._forget(lambda key, made: key[0] == "offers" or isinstance(made, PluginError))


def _forget_what_folders_hold() -> None:
    """Have the import system look at folders again, while other threads import: it may stumble over what they add."""
    for left in reversed(range(_TRIES)):
        try:
            importlib.invalidate_caches()
        except RuntimeError:  # its dictionary of folders changed meanwhile
            if not left:
                raise
        else:
            return


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
    """The host that is used by default: the plugins installed with the core."""
    global _default  # noqa: PLW0603 - made at first use, and never needed by who passes a host of their own
    if _default is None:
        with _default_lock:
            if _default is None:
                _default = PluginHost()
    return _default
