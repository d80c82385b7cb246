"""The host: finds plugins by name, loads them, and keeps a fault in one from affecting others.

A component has four levels, each reached only when it is needed: the name (metadata), the descriptor (the light module
is imported), the class (its SDK is imported) and the instance (its constructor is called).
"""

from __future__ import annotations

import importlib
import os
import threading
import weakref
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from jackfield._fitting import check_argument
from jackfield.defaults import EXPLAINED_BY, MANAGER
from jackfield.errors import BrokenPluginError, ConfigError, JackfieldError, PluginError
from jackfield.plugins._catalog import ANY, Catalog, Row, by_name, scan
from jackfield.plugins._known import known_distribution
from jackfield.plugins._loading import Loader, blaming, host_argument
from jackfield.plugins._own import CodePlugins, row_of_local
from jackfield.plugins._policy import Policy
from jackfield.plugins._protocol import Plugins
from jackfield.plugins._resolving import Resolver
from jackfield.settings import Settings, load_settings

if TYPE_CHECKING:
    from jackfield.descriptors import ComponentSpec

Spec = TypeVar("Spec", bound="ComponentSpec")
Component = TypeVar("Component")
_TRIES = 10


class PluginHost:
    """The plugins of one application.

    Readers see an immutable catalog. Plugins are imported outside of any lock, each at most once. A plugin that fails
    to load fails again with the same error, and only for those who ask for it. A host can be pickled: in another
    process it has the same policy, and finds the plugins that are installed there.

    Args:
        settings: Which plugins may load; read from the environment and the configuration files if None.
        paths: The folders searched for distributions, instead of `sys.path`.

    Both are read-only.
    """

    def __init__(self, settings: Settings | None = None, *, paths: Iterable[str] | None = None) -> None:
        if not isinstance(settings, Settings | None):
            got = type(settings).__name__
            raise ConfigError(f"settings must be jackfield.plugins.Settings, not {got}")
        if settings is None:
            settings = load_settings()
            if settings.project is not None:
                settings.project.log_ignored()
        self.settings = settings
        if isinstance(paths, str | bytes | Mapping) or not isinstance(paths, Iterable | None):
            raise ConfigError(f"paths must be a list of folders, not {type(paths).__name__}")
        self.paths = None if paths is None else tuple(paths)
        for path in self.paths or ():
            check_argument("each of paths", path, str | os.PathLike, "a folder")
        self._lock = threading.RLock()
        self._installed: Policy | None = None  # without plugins that belong to no distribution
        self._resolver: Resolver | None = None
        self._code_plugins = CodePlugins()
        self._loader = Loader(self._code_plugins, lambda: self.policy)
        _hosts.add(self)

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (self.settings, self.paths, self._code_plugins.module_names()))

    # --- which components there are ---

    @property
    def catalog(self) -> Catalog:
        """All components, whether they may load or not."""
        return self.policy.catalog

    @property
    def policy(self) -> Policy:
        """The rules in force: which components may load, and why the others may not."""
        return self._current_resolver().policy

    def _current_resolver(self) -> Resolver:
        resolver = self._resolver
        if resolver is None:
            installed = self._installed
            if installed is None:
                installed = self._installed = Policy(self.settings, scan(self.paths))
            with self._lock:
                own = [row_of_local(file) for file in self.settings.local] + self._code_plugins.rows()
                policy = installed
                if own:
                    rows = sorted([*installed.catalog.rows, *own], key=by_name)
                    policy = installed.with_catalog(Catalog(tuple(rows), installed.catalog.problems))
                resolver = self._resolver = Resolver(policy, self._loader, explain=self._explain)
        if self.settings.strict and (problems := resolver.policy.catalog.problems):
            raise BrokenPluginError(f"{problems[0].distribution} {problems[0].text} ({problems[0].location})")
        return resolver

    def names(self, kind: str) -> list[str]:
        """List the usable names of a kind, each once. Local files are asked."""
        return self._current_resolver().names(kind)

    def considered(self, kind: str) -> list[Row]:
        """List the components of a kind that may be picked although no code names them.

        These are our own packages that are proven to be ours, packages that the user's `allow`, `enabled` or `prefer`
        name, modules that code registers, and local files. `policy.left_out` has the others.

        Raises:
            PluginError: A local file cannot be asked, and the settings are strict.
        """
        return self._current_resolver().considered(kind)

    def find(self, kind: str, address: str) -> Row:
        """Return the one component that a name or `distribution/name` means. Nothing that is installed is imported.

        Local files in the settings are asked. So is a distribution that offers `kind.*`, if the address names it or the
        settings enable it, and nothing else offers the name.

        A bare name that we publish, as each default of our own code is, means our package. Another package that offers
        it, or one of ours that is not proven to be ours, has to be named: by its full address or by the user's rules.

        Raises:
            PluginNotFoundError: No plugin offers it.
            PluginBlockedError, IncompatiblePluginError: It is installed, but may not load.
            AmbiguousPluginError: Several distributions offer it.
        """
        return self._current_resolver().find(kind, address)

    def enabled(self, kind: str) -> list[Row]:
        """List the components of a kind that act without being named in code, in the order of the settings.

        Components that the user blocks are left out, and all of them in the user's own safe mode. Any other reason why
        an enabled component cannot act stops the run, because the component may protect the user.

        Raises:
            PluginNotFoundError: One is enabled and not installed.
            PluginBlockedError: The project's file or an allow-list keeps one from loading.
            AmbiguousPluginError: Several distributions offer one.
        """
        return self._current_resolver().enabled(kind)

    def find_enabled(self, name: str) -> Row | None:
        """Return the component that one entry of `enabled` means; None if the user's own rules leave it out.

        Raises:
            PluginError: As `enabled`.
        """
        return self._current_resolver().find_enabled(name)

    def _explain(self, kind: str, address: str) -> str:
        """Have the manager explain why nothing offers a name, if it is installed and may load."""
        policy = self.policy
        rows = policy.usable(row for row in policy.catalog.rows if row.distribution == MANAGER)
        if not rows or policy.unproven(rows[0]):
            return ""
        try:
            return str(self.load_target(rows[0], EXPLAINED_BY)(self, kind, address))
        except PluginError:  # the manager is of another version; the error is about something else
            return ""

    # --- descriptors and classes ---

    def spec(self, kind: str, address: str, spec_class: type[Spec]) -> Spec:
        """Return the descriptor of a component; imports its light module.

        Raises:
            PluginError: As `find`, and BrokenPluginError if the module cannot be imported or does not offer the name.
        """
        return self.spec_of(self.find(kind, address), spec_class)

    def spec_of(self, row: Row, spec_class: type[Spec]) -> Spec:
        """Return the descriptor of a row."""
        return self._loader.spec(row, spec_class)

    def specs(self, kind: str, spec_class: type[Spec]) -> list[tuple[Row, Spec]]:
        """Describe the components of a kind that may be picked without a name (`considered`).

        A component that cannot be described is left out, unless the settings are strict.
        """
        described = []
        for row in self.considered(kind):
            try:
                described.append((row, self.spec_of(row, spec_class)))
            except PluginError:
                if self.settings.strict:
                    raise
        return described

    def offers(self, source: Row, kind: str = ANY) -> list[Row]:
        """Return the components that a source offers, of one kind or all; it is loaded and asked.

        Raises:
            PluginError: It cannot be loaded, or its hook fails.
        """
        return self._loader.offers(source, kind)

    def load(self, kind: str, address: str) -> Any:
        """Return the class or function of a component; imports what it needs.

        Raises:
            PluginError: As `spec`, and BrokenPluginError if the target cannot be imported.
        """
        return self.load_row(self.find(kind, address))

    def load_row(self, row: Row) -> Any:
        """Return the class or function of a row."""
        return self._loader.load(row)

    def load_target(self, row: Row, target: str) -> Any:
        """Return an object that the descriptor of a row names as `module:name`, such as the class of its settings.

        Raises:
            PluginError: The object cannot be imported, or belongs to a package that may not load.
        """
        return self._loader.load_target(row, target)

    # --- instances ---

    def make(self, row: Row, cfg: Mapping[str, object], base: type[Component]) -> Component:
        """Make a component, with settings as keywords, and with a host if its class takes a `host`.

        A `base` with a class method `factory_of(target, spec)` says with it how to make one; otherwise, the target of
        the descriptor is the class.

        Raises:
            ConfigError: The settings do not fit the class that the descriptor names for them, or it names none.
            PluginError: As `load_row`, and BrokenPluginError if the result is not a `base`.
        """
        from jackfield._frames import ForgetLocals

        with ForgetLocals():  # a key may be among them
            target, spec = self.load_row(row), self._loader.any_spec(row)
            if cfg and not spec.config:
                raise ConfigError(f"{row.kind} {row.address!r} takes no settings; got {', '.join(map(repr, cfg))}")
            if spec.config:
                self.load_target(row, spec.config).parse(cfg, what=f"settings of {row.kind} {row.address!r}")
            factory_of = getattr(base, "factory_of", None)
            factory = factory_of(target, spec) if factory_of else target
            with blaming(row, f"making {row.id} failed", besides=JackfieldError):
                component = factory(**cfg, **host_argument(self, row, factory))
        if not isinstance(component, base):
            raise BrokenPluginError(f"{row.distribution}: {row.id} is not a {base.__module__}.{base.__name__}")
        return component

    def narrowed_to(self, row: Row) -> PluginHost:
        """Return the host that a component gets: this one, or one that gives it only the secrets it declares.

        The latter is for components with the name of one of ours from another distribution, because users who read the
        name think of ours.
        """
        if known_distribution(row.kind, row.name) in (None, row.distribution):
            return self
        other = type(self)(self.settings.with_secrets(self._loader.any_spec(row).secrets), paths=self.paths)
        other._code_plugins.adopt(self._code_plugins)
        return other

    # --- changes ---

    def register(self, plugin: object, *, name: str = "") -> str:
        """Register a module or an object as a plugin, as if it were installed. Its hooks are called now.

        The policy applies to it as to others. A name that another plugin also offers is ambiguous.

        Args:
            plugin: A module or object with functions or methods that are decorated with `hook.tools` or another hook.
            name: The plugin's name; by default that of the module or the class.

        Returns:
            The name that it has instead of a distribution's: `NAME@code`.

        Raises:
            ConfigError: The plugin, or another one of the same name, is already registered; or it has no hooks.
            BrokenPluginError: Its hooks return something that cannot be used.
        """
        with self._lock:
            source = self._code_plugins.add(plugin, name)
        try:
            rows = self._rows_of_code(source)
        except BaseException:
            self.unregister(source.distribution)
            raise
        with self._lock:
            self._code_plugins.offer(source.distribution, rows)
            self._resolver = None
        return source.distribution

    def _rows_of_code(self, source: Row) -> tuple[Row, ...]:
        rows = self._loader.offers(source)
        if not rows:
            raise ConfigError(
                f"{source.distribution} has no hooks, or they offer nothing: decorate a function with @hook.tools"
            )
        for row in rows:
            self._loader.any_spec(row)
        return tuple(rows)

    def unregister(self, name: str) -> None:
        """Undo `register`; `name` is its result. Components that were already made keep working.

        Raises:
            ConfigError: No plugin of that name is registered.
        """
        with self._lock:
            self._code_plugins.remove(name)
            self._resolver = None
        self._loader.forget_plugin(name)

    def refresh(self, settings: Settings | None = None) -> None:
        """Look again at what is installed, under new settings if any are passed. Loaded components stay loaded."""
        _forget_folders()
        with self._lock:
            self.settings = settings or self.settings
            self._installed = self._resolver = None
        self._loader.forget_failures()


def _forget_folders() -> None:
    """Have the import system look at folders again. It may stumble over imports of other threads, so it is retried."""
    for attempt in range(1, _TRIES + 1):
        try:
            importlib.invalidate_caches()
        except RuntimeError:  # its dictionary of folders changed meanwhile
            if attempt == _TRIES:
                raise
        else:
            return


def _rebuild(
    settings: Settings, paths: tuple[str, ...] | None, registered: Iterable[tuple[str, str]] = ()
) -> PluginHost:
    host = PluginHost(settings, paths=paths)
    for name, module in registered:
        host.register(importlib.import_module(module), name=name)
    return host


_hosts: weakref.WeakSet[PluginHost] = weakref.WeakSet()


def _renew_locks() -> None:
    """Replace all locks in the child of a fork: a lock that another thread held stays locked there."""
    global _default_lock  # noqa: PLW0603 - see above
    _default_lock = threading.Lock()
    for host in _hosts:
        host._lock = threading.RLock()
        host._loader.renew_locks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)

_default: PluginHost | None = None
_default_lock = threading.Lock()


def checked_host(host: Plugins | None) -> Plugins:
    """Return the host that a caller passed, or the default one.

    Raises:
        ConfigError: It is not a host.
    """
    if host is None:
        return default_host()
    if not hasattr(host, "load_row") or isinstance(host, type):
        raise ConfigError(f"host must be a PluginHost or None for the installed plugins, not {type(host).__name__}")
    return host


def default_host() -> PluginHost:
    """Return the host of the plugins that are installed with the core. It is made at the first call."""
    global _default  # noqa: PLW0603 - never needed by code that passes its own host
    if _default is None:
        with _default_lock:
            if _default is None:
                _default = PluginHost()
    return _default
