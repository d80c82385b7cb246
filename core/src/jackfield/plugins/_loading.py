"""Import plugins: first a component's lightweight module, then its class. Each module is imported at most once."""

from __future__ import annotations

import importlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

from jackfield.errors import BrokenPluginError, PluginBlockedError, PluginError
from jackfield.hookspecs import KINDS
from jackfield.plugins._catalog import ANY, Row
from jackfield.plugins._own import CodePlugins, module_of_local
from jackfield.plugins._policy import Policy, why_not
from jackfield.suggestions import list_names

if TYPE_CHECKING:
    from jackfield.descriptors import ComponentSpec
    from jackfield.plugins._protocol import Plugins
    from jackfield.plugins._registration import RegistrationManager

Spec = TypeVar("Spec", bound="ComponentSpec")
Value = TypeVar("Value")
Key = tuple[str, str, object]  # the step, the distribution of the plugin, and the subject


class Loader:
    """Imports plugins, calls their hooks and translates all their errors.

    Args:
        code_plugins: The plugins registered in code.
        current_policy: A function that returns the current policy. Loaded components stay loaded if the policy changes.
    """

    def __init__(self, code_plugins: CodePlugins, current_policy: Callable[[], Policy]) -> None:
        self._code_plugins = code_plugins
        self._policy = current_policy
        self._once = Once()
        self._lock = threading.Lock()
        self._manager: RegistrationManager | None = None
        self._logged: dict[Row, PluginError] = {}

    # --- level 1: descriptors ---

    def spec(self, row: Row, spec_class: type[Spec]) -> Spec:
        """Return a component's descriptor.

        Raises:
            BrokenPluginError: The light module cannot be imported, does not provide the component, or describes it with
                something other than a `spec_class`.
        """
        spec = self._once.get(("spec", row.distribution, row), lambda: self._describe(row))
        if not isinstance(spec, spec_class):
            raise BrokenPluginError(f"{row.address} describes {row.id} as a {type(spec).__name__}")
        return spec

    def any_spec(self, row: Row) -> ComponentSpec:
        """Return a component's descriptor, regardless of its kind; see `spec`."""
        from jackfield.descriptors import ComponentSpec

        return self.spec(row, ComponentSpec)

    def _describe(self, row: Row) -> ComponentSpec:
        from jackfield.plugins._faults import fault_of

        offers = self._answers(row, row.kind)
        candidates = [spec for spec in offers if spec.name == row.name]
        if not candidates:
            names = list_names([str(spec.name)[:80] for spec in offers]) or "none"
            raise BrokenPluginError(
                f"{row.distribution} declares {row.id}, but its module {row.module} does not provide {row.id} "
                f"(provided: {names}); report this to its authors, or run: pip uninstall {row.distribution}"
            )
        if len(candidates) > 1:
            raise BrokenPluginError(
                f"{row.distribution} declares {row.id} {len(candidates)} times; report this to its authors"
            )
        if fault := fault_of(candidates[0]):
            raise BrokenPluginError(f"{row.distribution} has an incorrect description of {row.id}: {fault}")
        return candidates[0]

    def offers(self, source: Row, kind: str = ANY) -> list[Row]:
        """Load and query a source. Return the source's components of one kind or of all kinds.

        Raises:
            PluginError: The source cannot be loaded, or its hook fails.
        """
        kinds = [one for one in KINDS if one in (kind, source.kind) or kind == source.kind == ANY]
        return [source._replace(kind=one, name=str(spec.name)) for one in kinds for spec in self._answers(source, one)]

    def offers_or_log(self, source: Row, kind: str) -> list[Row]:
        """Return the components that a source provides.

        If the source fails, log the error once and return an empty list.

        Raises:
            PluginError: The source failed and the settings are strict.
        """
        try:
            return self.offers(source, kind)
        except PluginError as error:
            if self._policy().settings.strict:
                raise
            if self._logged.setdefault(source, error) is error:  # atomic, so only one of two threads logs
                import logging  # broken sources are rare

                logging.getLogger("jackfield").warning("jackfield: %s", error)
            return []

    def _answers(self, row: Row, kind: str) -> list[ComponentSpec]:
        """Return the descriptors that a plugin's hooks provide for a kind.

        Each plugin is imported and called only once.
        """
        manager, name = self._once.get(("plugin", row.distribution, row.module), lambda: self._register(row))
        with blaming(row, f"its hook for {kind}s failed"):
            return self._once.get(("offers", name, kind), lambda: manager.offers(name, kind))

    def _register(self, row: Row) -> tuple[RegistrationManager, str]:
        """Register a row's plugin with pluggy. Return the manager and the plugin's name in the manager."""
        plugin = self._plugin_of(row)  # outside the lock, because this may wait for another import
        with self._lock:
            if self._manager is None:
                from jackfield.plugins._registration import RegistrationManager

                self._manager = RegistrationManager()
            # Two distributions may name the same module, which has its hooks only once.
            if self._manager.is_registered(plugin):
                return self._manager, str(self._manager.get_name(plugin))
            name = row.distribution if row.distribution in self._code_plugins else row.module
            with blaming(row, "its hooks are not valid"):
                self._manager.register(plugin, name)
        return self._manager, name

    def _plugin_of(self, row: Row) -> object:
        """Return the object with a row's hooks: a registered object, a local file's module or a light module."""
        if row.distribution in self._code_plugins:
            return self._code_plugins.object_of(row.distribution)
        policy = self._policy()
        for file in policy.settings.local:
            if file.name == row.distribution:
                with blaming(row, f"{file.path} cannot be run"):
                    return module_of_local(file, row.module)
        if reason := policy.foreign(row):
            raise BrokenPluginError(
                f"{row.address} {reason}. It was not loaded; to remove it, run: pip uninstall {row.distribution}"
            )
        return self._import(row, row.module)

    # --- level 2: classes ---

    def load(self, row: Row) -> Any:
        """Return a component's class or function.

        Raises:
            PluginError: As for `spec`, and BrokenPluginError if the target cannot be imported.
        """
        return self._once.get(
            ("class", row.distribution, row), lambda: self.load_target(row, self.any_spec(row).target)
        )

    def load_target(self, row: Row, target: str) -> Any:
        """Import an object that a row's descriptor names as `module:name`.

        Raises:
            PluginBlockedError: The object belongs to a package that may not load.
            BrokenPluginError: The object cannot be imported.
        """
        policy = self._policy()
        module_name, _, attribute = target.partition(":")
        package = module_name.partition(".")[0]
        is_own = package == row.module.partition(".")[0]
        for other in () if is_own else policy.catalog.in_package(package):
            if reason := why_not(other, policy.settings):
                raise PluginBlockedError(f"{row.address} uses {target}, but {other.address} {reason}")
        module = self._import(row, module_name)
        try:
            return getattr(module, attribute)
        except AttributeError as error:
            raise BrokenPluginError(
                f"{row.distribution}: {module_name} has no {attribute!r}, the target of {row.id}"
            ) from error

    def _import(self, row: Row, module_name: str) -> object:
        started = time.perf_counter()
        try:
            with blaming(row, f"{module_name} cannot be imported", besides=ModuleNotFoundError):
                return importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            from jackfield.plugins._misfits import misfit_of  # only needed for errors

            missing = error.name or ""
            is_other_package = missing != module_name and not module_name.startswith(f"{missing}.")
            if missing and is_other_package and misfit_of(error) is None:
                raise BrokenPluginError(
                    f"{row.distribution} cannot be loaded: it needs the package {missing!r}, "
                    f"which is not installed: pip install --upgrade {row.distribution}"
                ) from error
            raise _broken(row, f"{module_name} cannot be imported", error) from error
        finally:
            if self._policy().settings.trace:
                milliseconds = (time.perf_counter() - started) * 1000
                sys.stderr.write(f"jackfield: {row.distribution} loads {module_name} ({milliseconds:.1f} ms)\n")

    # --- changes ---

    def forget_plugin(self, name: str) -> None:
        """Drop everything loaded from a plugin that was registered in code."""
        self._once.forget(lambda key, _: key[1] == name)
        with self._lock:
            if self._manager is not None and self._manager.has_plugin(name):
                self._manager.unregister(name=name)

    def forget_failures(self) -> None:
        """Forget failures, so that they are retried, and query all plugins for their components again."""
        self._once.forget(lambda key, result: key[0] == "offers" or isinstance(result, PluginError))

    def renew_locks(self) -> None:
        """Replace all locks in a forked child."""
        self._lock = threading.Lock()
        self._once.renew_locks()


class Once:
    """Cache for the results of steps. Each step runs at most once.

    A step may import modules, so it runs without holding any lock that another step needs. If a step fails with a
    `PluginError`, the same error is raised the next time.
    """

    def __init__(self) -> None:
        self._results: dict[Key, object] = {}
        self._step_locks: dict[Key, threading.RLock] = {}
        self._lock = threading.Lock()

    def get(self, key: Key, step: Callable[[], Value]) -> Value:
        """Return a step's result, running the step if there is none yet.

        Raises:
            PluginError: The step failed, now or earlier.
        """
        result = self._results.get(key)
        if result is None:
            with self._lock:
                step_lock = self._step_locks.setdefault(key, threading.RLock())
            with step_lock:
                result = self._results.get(key)
                if result is None:
                    try:
                        result = step()
                    except PluginError as error:
                        result = error
                    self._results[key] = result
        if isinstance(result, PluginError):
            # Raise a copy, because each raise would extend the traceback of the cached error.
            copy = type(result)(*result.args)
            copy.__cause__ = result.__cause__
            raise copy
        return cast("Value", result)

    def forget(self, is_stale: Callable[[Key, object], bool]) -> None:
        """Drop the results for which `is_stale` returns True, so that the corresponding steps run again."""
        results = dict(self._results)  # an atomic copy, since other threads may add results
        self._results = {key: result for key, result in results.items() if not is_stale(key, result)}

    def renew_locks(self) -> None:
        """Replace all locks in a forked child process. Locks held by other threads would never be released there."""
        self._lock = threading.Lock()
        self._step_locks = {}


def host_argument(plugins: Plugins, row: Row, factory: Any) -> dict[str, Plugins]:
    """Return `host` as a keyword argument if the factory has a parameter with that name, otherwise an empty dict."""
    from inspect import signature

    try:
        return {"host": plugins.narrowed_to(row)} if "host" in signature(factory).parameters else {}
    except (TypeError, ValueError):  # written in C, or not callable, which the call will report
        return {}


@contextmanager
def blaming(row: Row, failure: str, *, besides: type[BaseException] = KeyboardInterrupt) -> Iterator[None]:
    """Convert every error that a plugin raises, including `SystemExit`, to `BrokenPluginError`.

    Ctrl-C and errors of the type `besides` are not converted.
    """
    try:
        yield
    except (besides, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise _broken(row, failure, error) from error


def _broken(row: Row, failure: str, error: BaseException) -> BrokenPluginError:
    from jackfield.plugins._misfits import misfit_of  # only needed for errors

    if misfit := misfit_of(error):
        return BrokenPluginError(
            f"{row.distribution} is broken, {failure}: {misfit}. To fix it, run: {misfit.command}. Everything else "
            f"works without {row.distribution}"
        )
    cause = f"{type(error).__name__}: {_line_of(error)}".strip().rstrip(":")
    advice = f"Try: pip install --upgrade {row.distribution}" if row.is_installed else f"Fix it ({row.location})"
    return BrokenPluginError(
        f"{row.distribution} is broken, {failure} ({cause}). {advice}; everything else works without it"
    )


def _line_of(error: BaseException) -> str:
    """Return the text of a plugin's error as one short line that is safe for terminals."""
    try:
        text = str(error)[:500]
    except Exception:  # noqa: BLE001 - the plugin's own code produces the text
        return "(no message)"
    return "".join(char if char.isprintable() else " " for char in text)
