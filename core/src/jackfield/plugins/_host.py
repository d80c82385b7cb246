"""The plugin host, which finds plugins by name, loads them and isolates their faults.

Components are loaded in four steps, each only when needed: the name (read from metadata), the descriptor (imports the
light module), the class (imports its SDK) and the instance (calls its constructor).
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

    The catalog is immutable. Each plugin is imported at most once, without holding a lock. If a plugin fails to load,
    the same error is raised each time, but only to code that requests the plugin. Hosts can be pickled. In another
    process, a host has the same policy and finds the plugins that are installed there.

    Args:
        settings: The rules for which plugins may load. If None, the rules are read from the environment and
            configuration files.
        paths: The directories to search for distributions instead of `sys.path`.

    Both arguments are also available as read-only attributes.
    """

    def __init__(self, settings: Settings | None = None, *, paths: Iterable[str] | None = None) -> None:
        if not isinstance(settings, Settings | None):
            got = type(settings).__name__
            raise ConfigError(f"settings must be jackfield.plugins.Settings, got {got}")
        if settings is None:
            settings = load_settings()
            if settings.project is not None:
                settings.project.log_ignored()
        self.settings = settings
        if isinstance(paths, str | bytes | Mapping) or not isinstance(paths, Iterable | None):
            raise ConfigError(f"paths must be a list of folders, got {type(paths).__name__}")
        self.paths = None if paths is None else tuple(paths)
        for path in self.paths or ():
            check_argument("each of paths", path, str | os.PathLike, "a folder")
        self._lock = threading.RLock()
        self._installed: Policy | None = None  # without plugins from code and local files
        self._resolver: Resolver | None = None
        self._code_plugins = CodePlugins()
        self._loader = Loader(self._code_plugins, lambda: self.policy)
        _hosts.add(self)

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (self.settings, self.paths, self._code_plugins.module_names()))

    # --- which components there are ---

    @property
    def catalog(self) -> Catalog:
        """All components, including those that must not load."""
        return self.policy.catalog

    @property
    def policy(self) -> Policy:
        """The current rules for which components may load, with the reasons why others must not."""
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
        """List the usable component names of a kind, without duplicates, including names from local files."""
        return self._current_resolver().names(kind)

    def considered(self, kind: str) -> list[Row]:
        """List the components of a kind that may be selected without being named in code.

        Such components come from packages that are proven to be Jackfield's own, packages listed in the user's `allow`,
        `enabled` or `prefer` settings, modules registered in code, and local files. `policy.left_out` returns the
        others.

        Raises:
            PluginError: A local file cannot be queried, and the settings are strict.
        """
        return self._current_resolver().considered(kind)

    def find(self, kind: str, address: str) -> Row:
        """Resolve a name or `distribution/name` to one component, without importing installed plugins.

        Local files from the settings are queried. A distribution that provides `kind.*` is only queried if no other
        plugin provides the name, and if the address names the distribution or the settings enable it.

        If Jackfield publishes a component with this name, the bare name always resolves to Jackfield's package. All
        defaults in Jackfield's code are such names. To use another package that provides the name, or a package that is
        not proven to be Jackfield's own, pass the full address or add a rule.

        Raises:
            PluginNotFoundError: No plugin provides the component.
            PluginBlockedError, IncompatiblePluginError: The component is installed but must not load.
            AmbiguousPluginError: Several distributions provide the component.
        """
        return self._current_resolver().find(kind, address)

    def enabled(self, kind: str) -> list[Row]:
        """List the components of a kind that are active without being named in code, in the order of the settings.

        Components that the user blocks are left out. If the user has turned on safe mode, the list is empty. If an
        enabled component cannot be used for any other reason, the run stops, because the component may protect the
        user.

        Raises:
            PluginNotFoundError: An enabled component is not installed.
            PluginBlockedError: The project's file or an allowlist prevents an enabled component from loading.
            AmbiguousPluginError: Several distributions provide an enabled component.
        """
        return self._current_resolver().enabled(kind)

    def find_enabled(self, name: str) -> Row | None:
        """Resolve an entry of `enabled` to its component. Return None if the user's own rules exclude it.

        Raises:
            PluginError: As for `enabled`.
        """
        return self._current_resolver().find_enabled(name)

    def _explain(self, kind: str, address: str) -> str:
        """Ask the plugin manager why no plugin provides a name.

        Return '' if the manager is missing or must not load.
        """
        policy = self.policy
        rows = policy.usable(row for row in policy.catalog.rows if row.distribution == MANAGER)
        if not rows or policy.unproven(rows[0]):
            return ""
        try:
            return str(self.load_target(rows[0], EXPLAINED_BY)(self, kind, address))
        except PluginError:  # the manager has another version, which this error is not about
            return ""

    # --- descriptors and classes ---

    def spec(self, kind: str, address: str, spec_class: type[Spec]) -> Spec:
        """Return a component's descriptor, importing its light module.

        Raises:
            PluginError: As for `find`, and BrokenPluginError if the module cannot be imported or does not provide the
                name.
        """
        return self.spec_of(self.find(kind, address), spec_class)

    def spec_of(self, row: Row, spec_class: type[Spec]) -> Spec:
        """Return a row's descriptor."""
        return self._loader.spec(row, spec_class)

    def specs(self, kind: str, spec_class: type[Spec]) -> list[tuple[Row, Spec]]:
        """Return the descriptors of all components that `considered` lists.

        Components without a usable descriptor are skipped unless the settings are strict.
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
        """Load and query a source. Return the source's components of one kind or of all kinds.

        Raises:
            PluginError: The source cannot be loaded, or its hook fails.
        """
        return self._loader.offers(source, kind)

    def load(self, kind: str, address: str) -> Any:
        """Import a component's module and return its class or function.

        Raises:
            PluginError: As for `spec`, and BrokenPluginError if the target cannot be imported.
        """
        return self.load_row(self.find(kind, address))

    def load_row(self, row: Row) -> Any:
        """Return the class or function of a row's component."""
        return self._loader.load(row)

    def load_target(self, row: Row, target: str) -> Any:
        """Import an object that a row's descriptor names as `module:name`, such as its settings class.

        Raises:
            PluginError: The object cannot be imported, or belongs to a package that must not load.
        """
        return self._loader.load_target(row, target)

    # --- instances ---

    def make(self, row: Row, cfg: Mapping[str, object], base: type[Component]) -> Component:
        """Create a component. Settings are passed as keyword arguments, as is `host` if the class accepts it.

        If `base` has a class method `factory_of(target, spec)`, this method returns the factory. Otherwise, the factory
        is the descriptor's target.

        Raises:
            ConfigError: The settings do not match the descriptor's settings class, or the descriptor has no settings
                class.
            PluginError: As for `load_row`, and BrokenPluginError if the result is not a `base`.
        """
        from jackfield._frames import ForgetLocals

        with ForgetLocals():  # arguments may include an API key
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
        """Return the host to pass to a component: this host, or a copy limited to the component's declared secrets.

        Components from other distributions that use the name of one of Jackfield's components get the restricted host,
        because users expect Jackfield's component under that name.
        """
        if known_distribution(row.kind, row.name) in (None, row.distribution):
            return self
        other = type(self)(self.settings.with_secrets(self._loader.any_spec(row).secrets), paths=self.paths)
        other._code_plugins.adopt(self._code_plugins)
        return other

    # --- changes ---

    def register(self, plugin: object, *, name: str = "") -> str:
        """Register a module or object as a plugin, as if it were installed. The plugin's hooks are called immediately.

        The policy applies as it does to any other plugin. If another plugin provides the same name, the name is
        ambiguous.

        Args:
            plugin: A module or object with functions or methods decorated with `hook.tools` or another hook.
            name: The plugin's name. Defaults to the name of the module or class.

        Returns:
            The plugin's full name, `NAME@code`, which is used in place of a distribution name.

        Raises:
            ConfigError: The plugin or its name is already registered, or the plugin has no hooks.
            BrokenPluginError: The plugin's hooks fail or return unusable values.
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
                f"{source.distribution} defines no hooks, or its hooks provide nothing: decorate a function with "
                "@hook.tools"
            )
        for row in rows:
            self._loader.any_spec(row)
        return tuple(rows)

    def unregister(self, name: str) -> None:
        """Remove a registered plugin. Existing components keep working.

        Args:
            name: The name that `register` returned.

        Raises:
            ConfigError: No plugin with this name is registered.
        """
        with self._lock:
            self._code_plugins.remove(name)
            self._resolver = None
        self._loader.forget_plugin(name)

    def refresh(self, settings: Settings | None = None) -> None:
        """Scan for installed plugins again, optionally with new settings. Loaded components stay loaded."""
        _forget_folders()
        with self._lock:
            self.settings = settings or self.settings
            self._installed = self._resolver = None
        self._loader.forget_failures()


def _forget_folders() -> None:
    """Invalidate the import system's caches. Retry if imports in other threads interfere."""
    for attempt in range(1, _TRIES + 1):
        try:
            importlib.invalidate_caches()
        except RuntimeError:  # another thread changed the cache of folders
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
    """Replace all locks in a forked child process. Locks held by other threads would never be released there."""
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
    """Return the caller's host, or the default host if None.

    Raises:
        ConfigError: `host` is not a plugin host.
    """
    if host is None:
        return default_host()
    if not hasattr(host, "load_row") or isinstance(host, type):
        raise ConfigError(f"host must be a PluginHost or None (for the installed plugins), got {type(host).__name__}")
    return host


def default_host() -> PluginHost:
    """Return the shared host for the plugins installed with the core. The host is created on first use."""
    global _default  # noqa: PLW0603 - never needed by code that passes its own host
    if _default is None:
        with _default_lock:
            if _default is None:
                _default = PluginHost()
    return _default
