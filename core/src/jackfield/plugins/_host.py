"""The host: finds plugins by name, loads them, and keeps the fault of each to itself.

Four levels, each reached only by who asks for it: the name (metadata), the descriptor (the light module is imported),
the class (its SDK is imported), the live thing (its constructor is called).
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from jackfield.defaults import MANAGER
from jackfield.errors import (
    AmbiguousPluginError,
    BrokenPluginError,
    ConfigError,
    IncompatiblePluginError,
    JackfieldError,
    PluginBlockedError,
    PluginError,
    PluginNotFoundError,
)
from jackfield.hookspecs import KINDS
from jackfield.plugins._catalog import Catalog, Problem, Row, misspelt_groups, scan
from jackfield.plugins._known import install_hint, known_distribution
from jackfield.plugins._own import (
    ANY,
    Registered,
    module_of_local,
    modules_by_name,
    name_in_code,
    row_in_code,
    row_of_local,
)
from jackfield.plugins._policy import is_blocked, is_incompatible, why_not
from jackfield.settings import Settings, closest, load_settings, normalise, some_of
from jackfield.tracebacks import LocalsForgotten

if TYPE_CHECKING:
    from jackfield.descriptors import ComponentSpec
    from jackfield.plugins._identity import Identities

Spec = TypeVar("Spec", bound="ComponentSpec")


class PluginHost:
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
        if settings is None:
            settings = load_settings()
            if settings.project is not None:
                settings.project.tell()
        self.settings = settings
        self.paths = None if paths is None else tuple(paths)
        self._scanned: Catalog | None = None
        self._catalog: Catalog | None = None
        self._sources: tuple[Row, ...] = ()  # those of the catalog
        self._identities: Identities | None = None
        self._manager: Any = None
        self._registered: dict[tuple[str, str], str | PluginError] = {}
        self._offered: dict[tuple[str, str], list[ComponentSpec]] = {}
        self._own: dict[str, Registered] = {}
        self._told: set[Row] = set()
        self._specs: dict[Row, ComponentSpec | PluginError] = {}
        self._classes: dict[Row, Any] = {}
        self._lock = threading.RLock()
        self._cells: dict[object, Any] = {}
        _hosts.add(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_made_again, (self.settings, self.paths, modules_by_name(self._own.items())))

    # --- what nobody installed ---

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
            self._registered = {key: value for key, value in self._registered.items() if key[0] != name}
            self._offered = {key: value for key, value in self._offered.items() if key[0] != name}
            self._specs = {row: spec for row, spec in self._specs.items() if row.distribution != name}
            self._classes = {row: made for row, made in self._classes.items() if row.distribution != name}
            if self._manager is not None and self._manager.has_plugin(name):
                self._manager.unregister(name=name)

    def _rows_in_code(self, plugin: object, own_name: str) -> tuple[Row, ...]:
        rows = self.offered_by(row_in_code(plugin, own_name, ANY, ANY))
        if not rows:
            raise ConfigError(f"{own_name} answers no hook, or offers nothing: decorate a function with @hook.tools")
        for row in rows:
            self._any_spec(row)
        return tuple(rows)

    def offered_by(self, source: Row, kind: str = ANY) -> list[Row]:
        """What a source offers, of one kind or all; it is asked, and loaded if need be.

        Raises:
            PluginError: It cannot be loaded, or its hook fails.
        """
        kinds = [one for one in KINDS if one in (kind, source.kind) or kind == source.kind == ANY]
        return [replace(source, kind=one, name=str(spec.name)) for one in kinds for spec in self._answers(source, one)]

    # --- level 0: names ---

    @property
    def catalog(self) -> Catalog:
        """What is installed, allowed or not."""
        catalog = self._catalog
        if catalog is None:
            installed = self._scanned
            if installed is None:
                installed = self._scanned = scan(self.paths)
            with self._lock:
                catalog = self._with_own(installed)
                self._sources = tuple(row for row in catalog.rows if row.is_source)
                self._catalog = catalog
        if self.settings.strict and catalog.problems:
            first = catalog.problems[0]
            raise BrokenPluginError(f"{first.distribution} {first.text} ({first.location})")
        return catalog

    def _with_own(self, installed: Catalog) -> Catalog:
        """The catalog with what nobody installed."""
        own = [*map(row_of_local, self.settings.local), *(row for one in self._own.values() for row in one.rows)]
        if not own:
            return installed
        rows = sorted([*installed.rows, *own], key=lambda row: (row.kind, row.name, row.distribution))
        return Catalog(tuple(rows), installed.problems)

    def refresh(self, settings: Settings | None = None) -> None:
        """Look again at what is installed; what is loaded stays loaded. Rules may be given anew."""
        importlib.invalidate_caches()
        with self._lock:
            self.settings = settings or self.settings
            self._scanned = self._catalog = self._identities = None
            self._registered = {key: value for key, value in self._registered.items() if isinstance(value, str)}
            self._offered = {}
            self._specs = {row: spec for row, spec in self._specs.items() if not isinstance(spec, PluginError)}
            self._classes = {row: made for row, made in self._classes.items() if not isinstance(made, PluginError)}

    def rows(self, kind: str | None = None) -> list[Row]:
        """What may be used, of one kind or all, as far as that is known without asking anybody."""
        rows = [row for row in self.catalog.rows if kind in (None, row.kind) and not self.why_not(row)]
        return [row for row in rows if not row.is_source]

    def sources(self, kind: str) -> list[Row]:
        """What may be asked for components of a kind: local files first, then `kind.*` of distributions."""
        self.catalog  # noqa: B018 - it knows them
        return [row for row in self._sources if row.kind in (kind, ANY) and not self.why_not(row)]

    def why_not(self, row: Row) -> str:
        """Why a component may not load, or '' if it may; the sentence goes on after its name.

        A list of what is allowed names distributions, so it lets in what is proven to be of one of them. What is proven
        to be the manager's is what mends an installation, so only a rule that names it keeps that from loading.
        """
        reason = why_not(row, self.settings) or (self._fault_of_local(row) if self.settings.local else "")
        if reason and row.distribution == MANAGER and not self.unproven(row):
            return why_not(row, replace(self.settings, safe=False, allow=None))
        if reason or self.settings.allow is None:
            return reason
        doubt = self.unproven(row)
        return doubt and (
            f"{doubt}; so it is not taken for the {row.distribution} that is allowed "
            f"({self.settings.origins.get('allow', '`allow`')}): pip install --force-reinstall {row.distribution}"
        )

    def unproven(self, row: Row) -> str:
        """Why nothing proves that a component is of its distribution, or ''; the sentence goes on after its name.

        What nobody installed has a name that no distribution can have, and needs no proof.
        """
        return self._identity.unproven(row) if row.is_installed else ""

    def _fault_of_local(self, row: Row) -> str:
        return next((file.fault for file in self.settings.local if file.name == row.distribution), "")

    def remarks(self, row: Row) -> list[str]:
        """What somebody who is shown a component should know of who offers it, as ends of sentences after `it`."""
        owner = known_distribution(row.kind, row.name)
        borrowed = f"has the name of a component of {owner}, and is of {row.distribution}"
        return [*([borrowed] if owner not in (None, row.distribution) else []), *filter(None, [self.unproven(row)])]

    @property
    def _identity(self) -> Identities:
        found = self._identities
        if found is None:
            from jackfield.plugins._identity import Identities

            found = self._identities = Identities(row for row in self.catalog.rows if row.is_installed)
        return found

    def names(self, kind: str) -> list[str]:
        """The names of a kind that may be used, without duplicates. Local files are asked."""
        return list(dict.fromkeys(row.name for row in (*self.rows(kind), *self._of_local_files(kind))))

    def _of_local_files(self, kind: str) -> list[Row]:
        """What local files offer of a kind and may be used; a broken one offers nothing, and that is logged once."""
        rows: list[Row] = []
        for source in self.sources(kind):
            if not source.is_installed:
                try:
                    rows += [row for row in self.offered_by(source, kind) if not self.why_not(row)]
                except PluginError as error:
                    if self.settings.strict:
                        raise
                    self._tell_once(source, error)
        return rows

    def _tell_once(self, source: Row, error: PluginError) -> None:
        with self._lock:
            if source in self._told:
                return
            self._told.add(source)
        import logging  # few have a broken file

        logging.getLogger("jackfield").warning("jackfield: %s", error)

    def enabled(self, kind: str) -> list[Row]:
        """The components of a kind that act without being named in code, in the order of the settings.

        What the user has blocked by name is left out, and all of it in the user's own safe mode. Any other reason why
        something that is enabled cannot act stops the run: it may protect somebody.

        Raises:
            PluginNotFoundError: One is enabled and not installed.
            PluginBlockedError: The project's file, or a list of what is allowed, keeps one from loading.
            AmbiguousPluginError: It is not clear which one is meant.
        """
        found = [self.enabled_as(name) for name in self.settings.enabled if name.partition(".")[0] == kind]
        return list(dict.fromkeys(row for row in found if row is not None))

    def enabled_as(self, name: str) -> Row | None:
        """The component that one entry of `enabled` means; None if the user's own rules leave it out.

        Raises:
            PluginError: As `enabled`.
        """
        rules = self.settings.unnarrowed or self.settings
        kind, _, address = name.partition(".")
        if rules.safe or (not self.settings.strict and self._is_left_out(kind, address, rules)):
            return None
        return self._enabled_row(name, kind, address)

    def _is_left_out(self, kind: str, address: str, rules: Settings) -> bool:
        candidates = self._candidates(kind, address)
        return bool(candidates) and all(is_blocked(row, rules) for row in candidates)

    def _enabled_row(self, name: str, kind: str, address: str) -> Row:
        origin = self.settings.origins.get(f"enabled:{name}", "`enabled`")
        try:
            return self.find(kind, address)
        except PluginNotFoundError as error:
            raise PluginNotFoundError(
                f"{name!r} is enabled ({origin}), but {error}; or: jackfield plugins disable {name}"
            ) from None
        except PluginBlockedError as error:
            raise PluginBlockedError(
                f"{name!r} is enabled ({origin}), but {error}. Nothing runs without it: allow it there, "
                f"leave it out of this run with --block {kind}.{address.rpartition('/')[2]}, "
                f"or for good: jackfield plugins disable {name}"
            ) from None

    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the metadata of installed distributions."""
        return self.catalog.problems

    def find(self, kind: str, address: str) -> Row:
        """The one component that a name or `distribution/name` means; nothing that is installed is imported for it.

        Local files that the settings name are asked; and a distribution that offers `kind.*`, if its name is given or
        it is enabled, and nobody else offers the name.

        Raises:
            PluginNotFoundError: Nobody offers it.
            PluginBlockedError, IncompatiblePluginError: It is there, but may not load.
            AmbiguousPluginError: Several distributions offer it.
        """
        rules = self.settings.unnarrowed or self.settings
        candidates = self._candidates(kind, address)
        allowed = [row for row in candidates if not why_not(row, rules)]
        if len(allowed) > 1:
            preferred = normalise(rules.prefer.get(f"{kind}.{allowed[0].name}", ""))
            chosen = [row for row in allowed if row.distribution == preferred]
            allowed = chosen or allowed
        if len(allowed) > 1:
            raise AmbiguousPluginError(_ambiguity(kind, allowed[0].name, allowed))
        if not candidates:
            raise PluginNotFoundError(self._absence(kind, address))
        # What a project takes away does not choose what is left: that may be the one nobody meant.
        row = (allowed or candidates)[0]
        reason = self.why_not(row)
        if reason:
            error = IncompatiblePluginError if is_incompatible(row) else PluginBlockedError
            raise error(f"{kind} {row.address!r} {reason}")
        return row

    def _candidates(self, kind: str, address: str) -> list[Row]:
        distribution, slash, name = address.rpartition("/")
        wanted = normalise(distribution) if slash else None
        found = [
            row
            for row in self.catalog.rows
            if row.kind == kind and row.name == name and wanted in (None, row.distribution)
        ]
        return found if name == ANY else found + self._from_sources(kind, name, wanted, is_found=bool(found))

    def _from_sources(self, kind: str, name: str, wanted: str | None, *, is_found: bool) -> list[Row]:
        """What sources offer of a name: local files always; others where they are named, or enabled and needed."""
        sources = [row for row in self._sources if wanted in (None, row.distribution)]
        local = [source for source in sources if source.kind == ANY]
        found = [row for source in local for row in self._asked(source, kind, name, is_named=wanted is not None)]
        if found or is_found:
            return found
        enabled = self.settings.enabled
        others = [one for one in sources if one.kind == kind and (wanted or f"{kind}.{one.address}" in enabled)]
        return [row for source in others for row in self._asked(source, kind, name, is_named=wanted is not None)]

    def _asked(self, source: Row, kind: str, name: str, *, is_named: bool) -> list[Row]:
        """The component of a name that a source offers, if it does; what is wrong with it is told to who names it."""
        if reason := self.why_not(source):
            if is_named:
                raise PluginBlockedError(f"{kind} {source.distribution}/{name} {reason}")
            return []
        try:
            return [row for row in self.offered_by(source, kind) if row.name == name]
        except PluginError as error:
            if is_named or self.settings.strict:
                raise
            self._tell_once(source, error)
            return []

    def _absence(self, kind: str, address: str) -> str:
        if self.settings.safe:
            return f"no {kind} {address!r}: plugins do not load in safe mode (JACKFIELD_SAFE)"
        broken = [problem for problem in self.problems() if kind in problem.text and address in problem.text]
        told = f". {broken[0].distribution} {broken[0].text}" if broken else ""
        told += "".join(f". {problem.distribution} {problem.text}" for problem in self._silent(kind, address))
        told += "".join(self._unasked(kind))
        install = install_hint(kind, address.rpartition("/")[2])
        return f"no {kind} {address!r} is installed{closest(address, self.names(kind))}{told}{install}"

    def _unasked(self, kind: str) -> Iterator[str]:
        """Who might offer it, and was not asked."""
        yield from (f". {file.name} {file.fault}" for file in self.settings.local if file.fault)
        sources = {f"{kind}.{row.address}" for row in self.sources(kind) if row.is_installed}
        enabled = {name for name in self.settings.enabled if name.startswith(f"{kind}.") and name.endswith("/*")}
        for name in sorted(sources - enabled):
            yield f". {name} was not asked: write its whole address, or enable {name!r}"
        for name in sorted(enabled - sources):
            yield f". {name!r} is enabled, and is not there to be asked"

    def _silent(self, kind: str, address: str) -> list[Problem]:
        """Who would offer it, if the group of entry points was not misspelt."""
        entry = f"{kind}.{address.rpartition('/')[2]}"
        return [problem for problem in misspelt_groups(self.paths) if entry in problem.text.split("'")]

    # --- level 1: descriptors ---

    def spec(self, kind: str, address: str, spec_class: type[Spec]) -> Spec:
        """The descriptor of a component; imports its light module.

        Raises:
            PluginError: As `find`, and BrokenPluginError if the module cannot be imported or does not offer the name.
        """
        return self.spec_of(self.find(kind, address), spec_class)

    def spec_of(self, row: Row, spec_class: type[Spec]) -> Spec:
        """The descriptor of a row."""
        found = self._specs.get(row)
        if found is None:
            try:
                found = self._describe(row)
            except PluginError as error:
                found = error
            found = self._specs.setdefault(row, found)  # another thread may have been faster
        if isinstance(found, PluginError):
            raise _again(found)
        if not isinstance(found, spec_class):
            raise BrokenPluginError(f"{row.address} describes {row.id} as a {type(found).__name__}")
        return found

    def _any_spec(self, row: Row) -> ComponentSpec:
        from jackfield.descriptors import ComponentSpec

        return self.spec_of(row, ComponentSpec)

    def specs(self, kind: str, spec_class: type[Spec]) -> list[tuple[Row, Spec]]:
        """The descriptors of all components of a kind that may be used and can be described."""
        described = []
        for row in (*self.rows(kind), *self._of_local_files(kind)):
            try:
                described.append((row, self.spec_of(row, spec_class)))
            except PluginError:
                if self.settings.strict:
                    raise
        return described

    def offered(self, row: Row, kind: str) -> list[str]:
        """The names of a kind that a distribution's light module offers, declared or not; [] if that cannot be told."""
        try:
            return [spec.name for spec in self._offers(self._register(row), kind)]
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001 - who asks for one of them is told
            return []

    def _describe(self, row: Row) -> ComponentSpec:
        from jackfield.plugins._faults import fault_of

        offers = self._answers(row, row.kind)
        meant = [spec for spec in offers if spec.name == row.name]
        if len(meant) > 1:
            raise BrokenPluginError(f"{row.distribution} describes {row.id} {len(meant)} times; tell its authors")
        for spec in meant:
            fault = fault_of(spec)
            if fault:
                raise BrokenPluginError(f"{row.distribution} describes {row.id} wrongly: {fault}")
            return spec
        offered = some_of([str(spec.name)[:80] for spec in offers]) or "none"
        raise BrokenPluginError(
            f"{row.distribution} declares {row.id}, but its module {row.module} does not offer it "
            f"(it offers: {offered}); tell its authors, or: pip uninstall {row.distribution}"
        )

    def _answers(self, row: Row, kind: str) -> list[ComponentSpec]:
        """What the plugin of a row offers of a kind.

        Raises:
            PluginError: It cannot be loaded, or its hook fails.
        """
        plugin_name = self._register(row)
        try:
            return self._offers(plugin_name, kind)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise _broken(row, f"its hook for {kind}s failed", error) from error

    def _offers(self, plugin_name: str, kind: str) -> list[ComponentSpec]:
        """What a registered plugin offers of a kind; it is asked once."""
        key = (plugin_name, kind)
        found = self._offered.get(key)
        if found is None:
            found = self._offered.setdefault(key, self._manager.offers(plugin_name, kind))
        return found

    def _register(self, row: Row) -> str:
        """Import a light module and register its hooks; gives the name it has in pluggy."""
        key = (row.distribution, row.module)
        known = self._registered.get(key)
        if known is None:
            with self._cell(key):
                known = self._registered.get(key)
                if known is None:
                    known = self._registered[key] = self._try_to_register(row)
        if isinstance(known, PluginError):
            raise _again(known)
        return known

    def _cell(self, key: object) -> Any:
        """A lock for one thing that is loaded once; others are loaded meanwhile."""
        with self._lock:
            return self._cells.setdefault(key, threading.RLock())

    def _try_to_register(self, row: Row) -> str | PluginError:
        try:
            plugin = self._plugin_of(row)  # outside of the host's lock: it may wait for another import
        except PluginError as error:
            return error
        with self._lock:
            if self._manager is None:
                from jackfield.plugins._registration import RegistrationManager

                self._manager = RegistrationManager()
            # Two distributions may name one module, which has its hooks only once.
            if self._manager.is_registered(plugin):
                return str(self._manager.get_name(plugin))
            name = row.distribution if row.distribution in self._own else row.module
            try:
                self._manager.register(plugin, name)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 - it is told to whoever asks for the plugin
                return _broken(row, "its hooks do not fit", error)
        return name

    def _plugin_of(self, row: Row) -> object:
        """What has the hooks of a row: its light module, or what nobody installed."""
        if row.distribution in self._own:
            return self._own[row.distribution].plugin
        for file in self.settings.local:
            if file.name == row.distribution:
                try:
                    return module_of_local(file, row.module)
                except KeyboardInterrupt:
                    raise
                except BaseException as error:
                    raise _broken(row, f"{file.path} cannot be run", error) from error
        foreign = self._identity.foreign(row, self._is_denied)
        if foreign:
            raise BrokenPluginError(f"{row.address} {foreign}. It is not loaded; pip uninstall {row.distribution}")
        return self._import(row, row.module)

    # --- level 2: classes ---

    def load(self, kind: str, address: str) -> Any:
        """The class (or function) of a component; imports what it needs.

        Raises:
            PluginError: As `spec`, and BrokenPluginError if the target cannot be imported.
        """
        return self.load_row(self.find(kind, address))

    def load_row(self, row: Row) -> Any:
        """The class of a row."""
        found = self._classes.get(row)
        if found is None:
            with self._cell(row):
                found = self._classes.get(row)
                if found is None:
                    try:
                        found = self._load_target(row, self._any_spec(row).target)
                    except PluginError as error:
                        found = error
                    self._classes[row] = found
        if isinstance(found, PluginError):
            raise _again(found)
        return found

    def _made_by(self, row: Row) -> Any:
        """What makes the component: its target, or what the class of its descriptor makes of that."""
        target, spec = self.load_row(row), self._any_spec(row)
        if not spec.made_by:
            return target
        module, _, name = spec.made_by.partition(":")
        return partial(getattr(importlib.import_module(module), name), target, spec)

    def make(self, row: Row, cfg: Mapping[str, Any], base: type) -> Any:
        """A new component of a row's class, made with settings as keywords, and with this host if it takes a `host`.

        Raises:
            ConfigError: The settings do not fit the class that the descriptor names for them, or it names none.
            PluginError: As `load_row`, and BrokenPluginError if what is made is no `base`.
        """
        with LocalsForgotten():  # a key may be among them
            return self._made(row, cfg, base)

    def _made(self, row: Row, cfg: Mapping[str, Any], base: type) -> Any:
        made_by = self._made_by(row)
        if cfg:
            spec = self._any_spec(row)
            if not spec.config:
                raise ConfigError(f"{row.kind} {row.address!r} takes no settings; got {', '.join(map(repr, cfg))}")
            self.load_target(row, spec.config).parse(cfg, what=f"settings of {row.kind} {row.address!r}")
        try:
            made = made_by(**cfg, **({"host": self.handed_to(row)} if takes_host(made_by) else {}))
        except JackfieldError:
            raise
        except Exception as error:
            raise _broken(row, f"making {row.id} failed", error) from error
        if not isinstance(made, base):
            raise BrokenPluginError(f"{row.distribution}: {row.id} is no {base.__module__}.{base.__name__}")
        return made

    def _is_denied(self, distribution: str) -> bool:
        return any(row.distribution == distribution and self.why_not(row) for row in self.catalog.rows)

    def handed_to(self, row: Row) -> PluginHost:
        """The host that a component is given: this one, or, if it has the name of one of ours and is of another
        distribution, one that tells it no key but those it declares. Whoever reads the name thinks of the other.
        """
        if known_distribution(row.kind, row.name) in (None, row.distribution):
            return self
        other = PluginHost(self.settings.with_secrets(self._any_spec(row).secrets), paths=self.paths)
        other._own = self._own
        return other

    def load_target(self, row: Row, target: str) -> Any:
        """Something else a descriptor names, such as its configuration class."""
        return self._load_target(row, target)

    def _load_target(self, row: Row, target: str) -> Any:
        module_name, _, attribute = target.partition(":")
        package = module_name.partition(".")[0]
        for other in self.catalog.rows:
            if other.module.partition(".")[0] == package != row.module.partition(".")[0] and (
                reason := why_not(other, self.settings)
            ):
                raise PluginBlockedError(f"{row.address} is made of {target}, and {other.address} {reason}")
        module = self._import(row, module_name)
        try:
            return getattr(module, attribute)
        except AttributeError as error:
            raise BrokenPluginError(
                f"{row.distribution}: {module_name} has no {attribute!r}, the target of {row.id}"
            ) from error

    def _import(self, row: Row, module_name: str) -> Any:
        started = time.perf_counter()
        try:
            return importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            if error.name and error.name != module_name and not module_name.startswith(error.name + "."):
                raise BrokenPluginError(
                    f"{row.distribution} cannot be loaded: it needs the package {error.name!r}, "
                    f"which is not installed: pip install --upgrade {row.distribution}"
                ) from error
            raise _broken(row, f"{module_name} cannot be imported", error) from error
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise _broken(row, f"{module_name} cannot be imported", error) from error
        finally:
            if self.settings.trace:
                milliseconds = (time.perf_counter() - started) * 1000
                sys.stderr.write(f"jackfield: {row.distribution} loads {module_name} ({milliseconds:.1f} ms)\n")


def takes_host(made_by: Any) -> bool:
    """Whether a class or function has a parameter `host`: it asks for other components, and gets the host for that."""
    from inspect import signature

    try:
        return "host" in signature(made_by).parameters
    except (TypeError, ValueError):  # written in C, or no callable: making it says which
        return False


def _again(error: PluginError) -> PluginError:
    """A remembered error to raise once more: a new one, because each raising adds to the traceback of an old one."""
    fresh = type(error)(*error.args)
    fresh.__cause__ = error.__cause__
    return fresh


def _broken(row: Row, what: str, error: BaseException) -> BrokenPluginError:
    cause = f"{type(error).__name__}: {_text_of(error)}".strip().rstrip(":")
    advice = f"Try: pip install --upgrade {row.distribution}" if row.is_installed else f"Mend it ({row.location})"
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


def _ambiguity(kind: str, name: str, rows: list[Row]) -> str:
    addresses = " or ".join(repr(row.address) for row in rows)
    return (
        f"{kind} {name!r} is offered by {len(rows)} distributions: write {addresses}; "
        f'or prefer one, in your config.toml: [prefer] "{kind}.{name}" = "{rows[0].distribution}"'
    )


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
