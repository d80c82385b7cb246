"""Level 0: which components there are, by their metadata alone, and which of them may be used."""

from __future__ import annotations

import fnmatch
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from jackfield.defaults import EXPLAINED_BY, MANAGER
from jackfield.errors import (
    AmbiguousPluginError,
    BrokenPluginError,
    IncompatiblePluginError,
    PluginBlockedError,
    PluginError,
    PluginNotFoundError,
    closest,
)
from jackfield.plugins._catalog import Catalog, Problem, Row, by_name, scan
from jackfield.plugins._known import install_hint, known_distribution
from jackfield.plugins._own import ANY, Registered, row_of_local
from jackfield.plugins._policy import is_blocked, is_incompatible, why_not
from jackfield.settings import Settings, normalise

if TYPE_CHECKING:
    from jackfield.plugins._identity import Identities


class Names(ABC):
    """What is installed, registered or named in settings. Readers see an immutable catalog."""

    def __init__(self, settings: Settings, paths: Iterable[str] | None) -> None:
        self.settings = settings
        self.paths = None if paths is None else tuple(paths)
        self._lock = threading.RLock()
        self._scanned: Catalog | None = None
        self._catalog: Catalog | None = None
        self._identities: Identities | None = None
        self._own: dict[str, Registered] = {}
        self._told: dict[Row, PluginError] = {}

    @abstractmethod
    def offered_by(self, source: Row, kind: str = ANY) -> list[Row]:
        """Done by `Loading`, which knows how to ask."""

    @abstractmethod
    def load_target(self, row: Row, target: str) -> Any: ...

    @property
    def catalog(self) -> Catalog:
        """What is installed, allowed or not."""
        catalog = self._catalog
        if catalog is None:
            installed = self._scanned
            if installed is None:
                installed = self._scanned = scan(self.paths)
            with self._lock:
                catalog = self._catalog = self._with_own(installed)
        if self.settings.strict and catalog.problems:
            first = catalog.problems[0]
            raise BrokenPluginError(f"{first.distribution} {first.text} ({first.location})")
        return catalog

    def _with_own(self, installed: Catalog) -> Catalog:
        """The catalog with what nobody installed."""
        own = [*map(row_of_local, self.settings.local), *(row for one in self._own.values() for row in one.rows)]
        if not own:
            return installed
        return Catalog(tuple(sorted([*installed.rows, *own], key=by_name)), installed.problems)

    def rows(self, kind: str | None = None) -> list[Row]:
        """What may be used, of one kind or all, as far as that is known without asking anybody."""
        return self._usable(row for row in self.catalog.rows if kind in (None, row.kind) and not row.is_source)

    def _usable(self, rows: Iterable[Row]) -> list[Row]:
        return [row for row in rows if not self.why_not(row)]

    def sources(self, kind: str) -> list[Row]:
        """What may be asked for components of a kind: local files first, then `kind.*` of distributions."""
        return self._usable((*self.catalog.named(ANY, ANY), *self.catalog.named(kind, ANY)))

    def names(self, kind: str) -> list[str]:
        """The names of a kind that may be used, without duplicates. Local files are asked."""
        return list(dict.fromkeys(row.name for row in (*self.rows(kind), *self._of_local_files(kind))))

    def considered(self, kind: str) -> list[Row]:
        """List the components of a kind that may be picked although no code names them.

        These are our own packages that are proven to be ours, packages that the user's `allow`, `enabled` or `prefer`
        name, modules that code registers, and local files. A package that is only installed is not among them:
        `left_out` has it.

        Raises:
            PluginError: A local file cannot be asked, and the settings are strict.
        """
        left_out = self.left_out(kind)
        return [*(row for row in self.rows(kind) if row not in left_out), *self._of_local_files(kind)]

    def left_out(self, kind: str) -> dict[Row, str]:
        """Map each installed component of a kind that `considered` leaves out to the reason. Nothing is imported.

        The sentence goes on after the component's address, and ends with the command that enables it.
        """
        return {row: reason for row in self.rows(kind) if (reason := self.why_unconsidered(row))}

    def why_unconsidered(self, row: Row) -> str:
        """Say why a component is not picked without a name, or ''; the sentence goes on after its address."""
        if not row.is_installed or self._is_chosen(row):
            return ""
        remedy = f"to use it: jackfield plugins enable {row.kind}.{row.address}"
        if known_distribution(row.kind, row.name) != row.distribution:
            return f"is not used unless it is named, because {row.distribution} is not one of our packages; {remedy}"
        doubt = self.unproven(row)
        return f"is not used unless it is named, because it {doubt}; {remedy}" if doubt else ""

    def _is_chosen(self, row: Row) -> bool:
        """True if the user's rules name the component or its package; a project's `allow` only takes away."""
        rules = self.settings.unnarrowed or self.settings
        preferred = {name for key, name in rules.prefer.items() if key.partition(".")[0] == row.kind}
        return (
            row.distribution in (rules.allow or ())
            or f"{row.kind}.{row.address}" in rules.enabled
            or f"{row.kind}.{row.distribution}/{ANY}" in rules.enabled
            or row.distribution in set(map(normalise, preferred))
        )

    def _of_local_files(self, kind: str) -> list[Row]:
        """What local files offer of a kind and may be used; a broken one offers nothing."""
        sources = [source for source in self.sources(kind) if not source.is_installed]
        return self._usable(chain.from_iterable(self._rows_of(source, kind) for source in sources))

    def _rows_of(self, source: Row, kind: str, *, named: str = "") -> list[Row]:
        """What a source offers of a kind, if it may be asked; what is wrong with it is told to who names it, and else
        logged once."""
        if reason := self.why_not(source):
            if named:
                raise PluginBlockedError(f"{kind} {named} {reason}")
            return []
        try:
            return self.offered_by(source, kind)
        except PluginError as error:
            if named or self.settings.strict:
                raise
            self._tell_once(source, error)
            return []

    def _tell_once(self, source: Row, error: PluginError) -> None:
        if self._told.setdefault(source, error) is error:  # atomic: of two threads, one tells
            import logging  # few have a broken file

            logging.getLogger("jackfield").warning("jackfield: %s", error)

    def why_not(self, row: Row) -> str:
        """Why a component may not load, or '' if it may; the sentence goes on after its name.

        A list of what is allowed names distributions, so it lets in what is proven to be of one of them. The
        manager repairs an installation, so if it is proven to be ours, only a rule that names it keeps it from loading.
        """
        reason = why_not(row, self.settings) or self._fault_of_local(row) or self._doubt_of_allowed(row)
        if reason and row.distribution == MANAGER and not self.unproven(row):
            return why_not(row, replace(self.settings, safe=False, allow=None))
        return reason

    def _fault_of_local(self, row: Row) -> str:
        for file in self.settings.local:
            if file.name == row.distribution:
                return file.fault
        return ""

    def _doubt_of_allowed(self, row: Row) -> str:
        if self.settings.allow is None or not (doubt := self.unproven(row)):
            return ""
        return (
            f"{doubt}, so it does not count as the {row.distribution} that is allowed "
            f"({self.settings.origins.get('allow', '`allow`')}): pip install --force-reinstall {row.distribution}"
        )

    def unproven(self, row: Row) -> str:
        """Why nothing proves that a component is of its distribution, or ''; the sentence goes on after its name.

        What nobody installed has a name that no distribution can have, and needs no proof.
        """
        return self._identity.unproven(row) if row.is_installed else ""

    @property
    def _identity(self) -> Identities:
        found = self._identities
        if found is None:
            from jackfield.plugins._identity import Identities

            found = self._identities = Identities(row for row in self.catalog.rows if row.is_installed)
        return found

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
        try:
            return self.find(kind, address)
        except (PluginNotFoundError, PluginBlockedError) as error:
            remedy = f"jackfield plugins disable {name}"
            if isinstance(error, PluginBlockedError):
                remedy = (
                    f"allow it there, leave it out of this run with --block {kind}.{address.rpartition('/')[2]}, "
                    f"or for good: {remedy}"
                )
            origin = self.settings.origins.get(f"enabled:{name}", "`enabled`")
            text = f"{name!r} is enabled ({origin}), but {error}. Nothing runs without it; to go on: {remedy}"
            raise type(error)(text) from None

    def _is_left_out(self, kind: str, address: str, rules: Settings) -> bool:
        candidates = self._candidates(kind, address)
        return bool(candidates) and all(is_blocked(row, rules) for row in candidates)

    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the metadata of installed distributions."""
        return self.catalog.problems

    def find(self, kind: str, address: str) -> Row:
        """The one component that a name or `distribution/name` means; nothing that is installed is imported for it.

        Local files that the settings name are asked; and a distribution that offers `kind.*`, if its name is given or
        it is enabled, and nobody else offers the name.

        A bare name that we publish, as each default of our own code is, means our package. Another package that offers
        it, or one of ours that nothing proves to be ours, has to be named: by its full address or by the user's rules.

        Raises:
            PluginNotFoundError: No plugin offers it.
            PluginBlockedError, IncompatiblePluginError: It is installed, but may not load.
            AmbiguousPluginError: Several distributions offer it.
        """
        rules = self.settings.unnarrowed or self.settings
        candidates = self._candidates(kind, address)
        squatters: dict[Row, str] = {}
        if known_distribution(kind, address):
            squatters = {row: reason for row in candidates if (reason := self.why_unconsidered(row))}
            candidates = [row for row in candidates if row not in squatters]
        allowed = _preferred([row for row in candidates if not why_not(row, rules)], rules)
        if len(allowed) > 1:
            raise AmbiguousPluginError(_ambiguity(kind, allowed[0].name, allowed))
        if not candidates:
            raise PluginNotFoundError(self._absence(kind, address, squatters))
        # What a project takes away does not choose what is left: that may be the one nobody meant.
        row = (allowed or candidates)[0]
        reason = self.why_not(row)
        if reason:
            error = IncompatiblePluginError if is_incompatible(row) else PluginBlockedError
            raise error(f"{kind} {row.address!r} {reason}")
        return row

    def _candidates(self, kind: str, address: str) -> list[Row]:
        """What a name may mean: local files are asked, too, and if nobody has it, packages that offer `kind.*`."""
        distribution, slash, name = address.rpartition("/")
        wanted = normalise(distribution) if slash else None
        found = [row for row in self.catalog.named(kind, name) if wanted in (None, row.distribution)]
        if name == ANY:
            return found
        found += self._asked(self.catalog.named(ANY, ANY), kind, name, wanted)
        return found or self._asked(self.catalog.named(kind, ANY), kind, name, wanted)

    def _asked(self, sources: Iterable[Row], kind: str, name: str, wanted: str | None) -> list[Row]:
        """What sources answer that may be asked: those of the distribution, or without one local files and enabled
        ones."""
        named = f"{wanted}/{name}" if wanted else ""
        asked = (source for source in sources if self._is_asked(source, wanted))
        return [row for source in asked for row in self._rows_of(source, kind, named=named) if row.name == name]

    def _is_asked(self, source: Row, wanted: str | None) -> bool:
        if wanted is not None:
            return source.distribution == wanted
        return not source.is_installed or f"{source.kind}.{source.address}" in self.settings.enabled

    def _absence(self, kind: str, address: str, squatters: Mapping[Row, str]) -> str:
        if self.settings.safe:
            return f"no {kind} {address!r}: plugins do not load in safe mode (JACKFIELD_SAFE)"
        broken = [problem for problem in self.problems() if kind in problem.text and address in problem.text]
        told = f". {broken[0].distribution} {broken[0].text}" if broken else ""
        told += "".join(f". {row.address} {reason}" for row, reason in squatters.items())
        told += "".join(self._unasked(kind)) + self._explained(kind, address)
        install = install_hint(kind, address.rpartition("/")[2])
        others = [name for name in self.names(kind) if name != address]
        return f"no {kind} {address!r} is installed{closest(address, others)}{told}{install}"

    def _unasked(self, kind: str) -> Iterator[str]:
        """Who might offer it, and was not asked."""
        yield from (f". {file.name} {file.fault}" for file in self.settings.local if file.fault)
        sources = {f"{kind}.{row.address}" for row in self.sources(kind) if row.is_installed}
        enabled = set(fnmatch.filter(self.settings.enabled, f"{kind}.*/[*]"))
        for name in sorted(sources ^ enabled):
            unasked = f". {name} was not asked: write its full address, or enable {name!r}"
            yield unasked if name in sources else f". {name!r} is enabled, but not installed"

    def _explained(self, kind: str, address: str) -> str:
        """What the manager finds out about a name that nobody offers, where it is installed and may load."""
        rows = self._usable(row for row in self.catalog.rows if row.distribution == MANAGER)
        if not rows or self.unproven(rows[0]):
            return ""
        try:
            return str(self.load_target(rows[0], EXPLAINED_BY)(self, kind, address))
        except PluginError:  # one of another version: the error is about something else
            return ""


def _preferred(rows: list[Row], rules: Settings) -> list[Row]:
    """Of several, those of the distribution that the settings prefer for the name, if it is among them."""
    if len(rows) < 2:
        return rows
    preferred = normalise(rules.prefer.get(rows[0].id, ""))
    return [row for row in rows if row.distribution == preferred] or rows


def _ambiguity(kind: str, name: str, rows: list[Row]) -> str:
    addresses = " or ".join(repr(row.address) for row in rows)
    return (
        f"{kind} {name!r} is offered by {len(rows)} packages: write {addresses}; "
        f'or prefer one, in your config.toml: [prefer] "{kind}.{name}" = "{rows[0].distribution}"'
    )
