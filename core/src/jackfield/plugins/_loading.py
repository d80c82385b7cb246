"""Levels 1 and 2: what components say of themselves, and what they are; each is imported when somebody asks for it."""

from __future__ import annotations

import importlib
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from jackfield.errors import (
    BrokenPluginError,
    ConfigError,
    JackfieldError,
    LocalsForgotten,
    PluginBlockedError,
    PluginError,
    some_of,
)
from jackfield.hookspecs import KINDS
from jackfield.plugins._catalog import Row
from jackfield.plugins._known import known_distribution
from jackfield.plugins._names import Names
from jackfield.plugins._own import ANY, module_of_local
from jackfield.plugins._policy import why_not
from jackfield.settings import Settings, load_settings

if TYPE_CHECKING:
    from jackfield.descriptors import ComponentSpec

Spec = TypeVar("Spec", bound="ComponentSpec")
Key = tuple[str, str, object]  # what is made, of whose distribution, and of what
Found = TypeVar("Found")


class Loading(Names):
    """What loads plugins: outside of any lock, each at most once. One that fails fails again with the same error."""

    def __init__(self, settings: Settings | None = None, *, paths: Iterable[str] | None = None) -> None:
        if settings is None:
            settings = load_settings()
            if settings.project is not None:
                settings.project.tell()
        super().__init__(settings, paths)
        self._manager: Any = None
        self._known: dict[Key, object] = {}
        self._cells: dict[Key, threading.RLock] = {}

    # --- level 1: descriptors ---

    def spec(self, kind: str, address: str, spec_class: type[Spec]) -> Spec:
        """The descriptor of a component; imports its light module.

        Raises:
            PluginError: As `find`, and BrokenPluginError if the module cannot be imported or does not offer the name.
        """
        return self.spec_of(self.find(kind, address), spec_class)

    def spec_of(self, row: Row, spec_class: type[Spec]) -> Spec:
        """The descriptor of a row."""
        found = self._once(("spec", row.distribution, row), lambda: self._describe(row))
        if not isinstance(found, spec_class):
            raise BrokenPluginError(f"{row.address} describes {row.id} as a {type(found).__name__}")
        return found

    def _any_spec(self, row: Row) -> ComponentSpec:
        from jackfield.descriptors import ComponentSpec

        return self.spec_of(row, ComponentSpec)

    def specs(self, kind: str, spec_class: type[Spec]) -> list[tuple[Row, Spec]]:
        """Describe the components of a kind that may be picked without a name (`considered`).

        One that cannot be described is left out, unless the settings are strict. A package that is only installed is
        never imported for it; `left_out` says which those are.
        """
        described = []
        for row in self.considered(kind):
            try:
                described.append((row, self.spec_of(row, spec_class)))
            except PluginError:
                if self.settings.strict:
                    raise
        return described

    def offered_by(self, source: Row, kind: str = ANY) -> list[Row]:
        """What a source offers, of one kind or all; it is asked, and loaded if need be.

        Raises:
            PluginError: It cannot be loaded, or its hook fails.
        """
        kinds = [one for one in KINDS if one in (kind, source.kind) or kind == source.kind == ANY]
        return [replace(source, kind=one, name=str(spec.name)) for one in kinds for spec in self._answers(source, one)]

    def _describe(self, row: Row) -> ComponentSpec:
        from jackfield.plugins._faults import fault_of

        offers = self._answers(row, row.kind)
        meant = [spec for spec in offers if spec.name == row.name]
        if not meant:
            raise BrokenPluginError(
                f"{row.distribution} declares {row.id}, but its module {row.module} does not offer it (it offers: "
                f"{_names_of(offers)}); report this to its authors, or: pip uninstall {row.distribution}"
            )
        if len(meant) > 1:
            raise BrokenPluginError(
                f"{row.distribution} describes {row.id} {len(meant)} times; report this to its authors"
            )
        if fault := fault_of(meant[0]):
            raise BrokenPluginError(f"{row.distribution} describes {row.id} wrongly: {fault}")
        return meant[0]

    def _answers(self, row: Row, kind: str) -> list[ComponentSpec]:
        """What the plugin of a row offers of a kind; it is imported, registered and asked once."""
        plugin = self._once(("plugin", row.distribution, row.module), lambda: self._registered(row))
        with _blaming(row, f"its hook for {kind}s failed"):
            return self._once(("offers", plugin, kind), lambda: self._manager.offers(plugin, kind))

    def _once(self, key: Key, make: Callable[[], Found]) -> Found:
        """What is made once, while others are made; whoever asks again for what failed gets the same error."""
        found = self._known.get(key)
        if found is None:
            with self._lock:
                cell = self._cells.setdefault(key, threading.RLock())
            with cell:
                found = self._known.get(key)
                if found is None:
                    try:
                        found = make()
                    except PluginError as error:
                        found = error
                    self._known[key] = found
        if isinstance(found, PluginError):
            raise _again(found)
        return cast("Found", found)

    def _registered(self, row: Row) -> str:
        """The name that the plugin of a row has in pluggy, where it is registered now."""
        plugin = self._plugin_of(row)  # outside of the host's lock: it may wait for another import
        with self._lock:
            if self._manager is None:
                from jackfield.plugins._registration import RegistrationManager

                self._manager = RegistrationManager()
            # Two distributions may name one module, which has its hooks only once.
            if self._manager.is_registered(plugin):
                return str(self._manager.get_name(plugin))
            name = row.distribution if row.distribution in self._own else row.module
            with _blaming(row, "its hooks are not valid"):
                self._manager.register(plugin, name)
        return name

    def _plugin_of(self, row: Row) -> object:
        """What has the hooks of a row: its light module, or what nobody installed."""
        if row.distribution in self._own:
            return self._own[row.distribution].plugin
        for file in self.settings.local:
            if file.name == row.distribution:
                with _blaming(row, f"{file.path} cannot be run"):
                    return module_of_local(file, row.module)
        foreign = self._identity.foreign(row, self._is_denied)
        if foreign:
            raise BrokenPluginError(
                f"{row.address} {foreign}. It is not loaded; remove it: pip uninstall {row.distribution}"
            )
        return self._import(row, row.module)

    def _is_denied(self, distribution: str) -> bool:
        return any(row.distribution == distribution and self.why_not(row) for row in self.catalog.rows)

    # --- level 2: classes ---

    def load(self, kind: str, address: str) -> Any:
        """The class (or function) of a component; imports what it needs.

        Raises:
            PluginError: As `spec`, and BrokenPluginError if the target cannot be imported.
        """
        return self.load_row(self.find(kind, address))

    def load_row(self, row: Row) -> Any:
        """The class of a row."""
        return self._once(("class", row.distribution, row), lambda: self.load_target(row, self._any_spec(row).target))

    def make(self, row: Row, cfg: Mapping[str, object], base: type) -> Any:
        """A new component of a row's class, made with settings as keywords, and with this host if it takes a `host`.

        Raises:
            ConfigError: The settings do not fit the class that the descriptor names for them, or it names none.
            PluginError: As `load_row`, and BrokenPluginError if the result is not a `base`.
        """
        with LocalsForgotten():  # a key may be among them
            made_by = self._made_by(row)
            self._check_settings(row, cfg)
            with _blaming(row, f"making {row.id} failed", besides=JackfieldError):
                made = made_by(**cfg, **self.for_parameters(row, made_by))
        if not isinstance(made, base):
            raise BrokenPluginError(f"{row.distribution}: {row.id} is not a {base.__module__}.{base.__name__}")
        return made

    def _check_settings(self, row: Row, cfg: Mapping[str, object]) -> None:
        config = self._any_spec(row).config if cfg else ""
        if cfg and not config:
            raise ConfigError(f"{row.kind} {row.address!r} takes no settings; got {', '.join(map(repr, cfg))}")
        if config:
            self.load_target(row, config).parse(cfg, what=f"settings of {row.kind} {row.address!r}")

    def _made_by(self, row: Row) -> Any:
        """What makes the component: its target, or what the class of its descriptor makes of that."""
        target, spec = self.load_row(row), self._any_spec(row)
        if not spec.made_by:
            return target
        module, _, name = spec.made_by.partition(":")
        return partial(getattr(importlib.import_module(module), name), target, spec)

    def for_parameters(self, row: Row, made_by: Any) -> dict[str, Self]:
        """`host`, if what makes a component has a parameter of that name, because it asks for others; else nothing."""
        from inspect import signature

        try:
            return {"host": self.handed_to(row)} if "host" in signature(made_by).parameters else {}
        except (TypeError, ValueError):  # written in C, or no callable: making it says which
            return {}

    def handed_to(self, row: Row) -> Self:
        """The host that a component is given: this one, or, if it has the name of one of ours and is of another
        distribution, one that tells it no key but those it declares. Whoever reads the name thinks of the other.
        """
        if known_distribution(row.kind, row.name) in (None, row.distribution):
            return self
        other = type(self)(self.settings.with_secrets(self._any_spec(row).secrets), paths=self.paths)
        other._own = self._own
        return other

    def load_target(self, row: Row, target: str) -> Any:
        """What a descriptor names as `module:name`: its class, or that of its settings."""
        module_name, _, attribute = target.partition(":")
        package = module_name.partition(".")[0]
        for other in self.catalog.rows:
            if other.module.partition(".")[0] == package != row.module.partition(".")[0] and (
                reason := why_not(other, self.settings)
            ):
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
            with _blaming(row, f"{module_name} cannot be imported", besides=ModuleNotFoundError):
                return importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            if error.name and error.name != module_name and not module_name.startswith(error.name + "."):
                raise BrokenPluginError(
                    f"{row.distribution} cannot be loaded: it needs the package {error.name!r}, "
                    f"which is not installed: pip install --upgrade {row.distribution}"
                ) from error
            raise _broken(row, f"{module_name} cannot be imported", error) from error
        finally:
            if self.settings.trace:
                milliseconds = (time.perf_counter() - started) * 1000
                sys.stderr.write(f"jackfield: {row.distribution} loads {module_name} ({milliseconds:.1f} ms)\n")


def _names_of(offers: Iterable[ComponentSpec]) -> str:
    return some_of([str(spec.name)[:80] for spec in offers]) or "none"


@contextmanager
def _blaming(row: Row, what: str, *, besides: type[BaseException] = KeyboardInterrupt) -> Iterator[None]:
    """Whatever a plugin raises is its fault, `SystemExit` too; but for Ctrl-C, and one more class of errors."""
    try:
        yield
    except (besides, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise _broken(row, what, error) from error


def _again(error: PluginError) -> PluginError:
    """A remembered error to raise once more: a new one, because each raising adds to the traceback of an old one."""
    fresh = type(error)(*error.args)
    fresh.__cause__ = error.__cause__
    return fresh


def _broken(row: Row, what: str, error: BaseException) -> BrokenPluginError:
    cause = f"{type(error).__name__}: {_text_of(error)}".strip().rstrip(":")
    advice = f"Try: pip install --upgrade {row.distribution}" if row.is_installed else f"Fix it ({row.location})"
    return BrokenPluginError(
        f"{row.distribution} is broken, {what} ({cause}). {advice}; everything else works without it"
    )


def _text_of(error: BaseException) -> str:
    """What an error of a plugin says, in a line that fits a terminal and cannot command it."""
    try:
        text = str(error)[:500]
    except Exception:  # noqa: BLE001 - it is the plugin's own code that makes the text
        return "(it has no text)"
    return "".join(char if char.isprintable() else " " for char in text)
