"""Decide which components may be used, based on metadata and before any import. Deny rules always win."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from jackfield.defaults import MANAGER
from jackfield.hookspecs import KINDS
from jackfield.plugins._catalog import ANY, API, Catalog, Row
from jackfield.plugins._known import known_distribution
from jackfield.settings import Settings, block_forms, normalise
from jackfield.suggestions import close_names

if TYPE_CHECKING:
    from jackfield.plugins._identity import Identities


class Policy:
    """An application's rules, applied to the installed components.

    Methods return reasons as strings that complete a sentence that starts with the component's name. '' means that
    there is no reason.
    """

    def __init__(self, settings: Settings, catalog: Catalog) -> None:
        self.settings = settings
        self.catalog = catalog

    def with_catalog(self, catalog: Catalog) -> Policy:
        """Return the same rules for another catalog with the same installed components. The proofs are reused."""
        other = copy(self)
        other.catalog = catalog
        return other

    @property
    def rules(self) -> Settings:
        """The user's own rules, without the rules from the project's file."""
        return self.settings.unnarrowed or self.settings

    def rows(self, kind: str | None = None) -> list[Row]:
        """List the usable components of one kind, or of all kinds, except sources, which would have to be queried."""
        return self.usable(row for row in self.catalog.rows if kind in (None, row.kind) and not row.is_source)

    def sources(self, kind: str) -> list[Row]:
        """List the usable sources of a kind: local files first, then distributions that provide `kind.*`."""
        return self.usable((*self.catalog.named(ANY, ANY), *self.catalog.named(kind, ANY)))

    def usable(self, rows: Iterable[Row]) -> list[Row]:
        """Return the rows that may load."""
        return [row for row in rows if not self.why_not(row)]

    def why_not(self, row: Row) -> str:
        """Return the reason why a component must not load.

        `allow` lists distributions, so it only admits components that are proven to belong to one of these. A plugin
        manager that is proven to be Jackfield's own can repair installations, so only a rule that names it prevents it
        from loading.
        """
        reason = why_not(row, self.settings) or self._fault_of_local_file(row) or self._doubt_of_allowed(row)
        if reason and row.distribution == MANAGER and not self.unproven(row):
            return why_not(row, replace(self.settings, safe=False, allow=None))
        return reason

    def _fault_of_local_file(self, row: Row) -> str:
        for file in self.settings.local:
            if file.name == row.distribution:
                return file.fault
        return ""

    def _doubt_of_allowed(self, row: Row) -> str:
        if self.settings.allow is None or not (doubt := self.unproven(row)):
            return ""
        return (
            f"{doubt}, so it is not accepted as the allowed package {row.distribution} "
            f"({self.settings.origins.get('allow', '`allow`')}): pip install --force-reinstall {row.distribution}"
        )

    def unproven(self, row: Row) -> str:
        """Return the reason why a component is not proven to belong to its distribution.

        Plugins without a distribution need no proof, because no distribution can have their names.
        """
        return self._identities.unproven(row) if row.is_installed else ""

    def foreign(self, row: Row) -> str:
        """Return the reason why an installed component's module does not belong to its distribution."""
        return self._identities.foreign(row, self._is_denied)

    def _is_denied(self, distribution: str) -> bool:
        return any(self.why_not(row) for row in self.catalog.of(distribution))

    @cached_property
    def _identities(self) -> Identities:
        from jackfield.plugins._identity import Identities

        return Identities(row for row in self.catalog.rows if row.is_installed)

    def left_out(self, kind: str) -> dict[Row, str]:
        """Map each usable component of a kind that must be named explicitly to the reason why."""
        return {row: reason for row in self.rows(kind) if (reason := self.why_unconsidered(row))}

    def why_unconsidered(self, row: Row) -> str:
        """Return the reason why a component must be named explicitly, and the command that changes this."""
        if not row.is_installed or self._is_chosen(row):
            return ""
        remedy = f"to use it, run: jackfield plugins enable {row.kind}.{row.address}"
        if known_distribution(row.kind, row.name) != row.distribution:
            return f"is only used if named explicitly, because {row.distribution} is a third-party package; {remedy}"
        doubt = self.unproven(row)
        return f"is only used if named explicitly, because it {doubt}; {remedy}" if doubt else ""

    def unmatched(self, name: str) -> str:
        """Explain why a name to block matches no installed plugin, and suggest similar names. Return '' if it matches.

        Components that a source might provide count as matches, because sources are not queried.
        """
        names = {form for row in self.catalog.rows for form in (row.distribution, row.id, row.address)}
        names |= {problem.distribution for problem in self.catalog.problems}
        full = {f"{row.kind}.{row.address}" for row in self.catalog.rows}
        if not (names | full).isdisjoint(block_forms([name])) or self._may_be_of_source(name):
            return ""
        short = name.rpartition("/")[2]
        close = sorted({row.id for row in self.catalog.rows if short in (row.name, row.id)}) or close_names(name, names)
        hint = (
            f"; did you mean {' or '.join(map(repr, close[:3]))}?"
            if close
            else "; to list them, run: jackfield plugins list"
        )
        return f"matches no installed plugin{hint}"

    def _may_be_of_source(self, name: str) -> bool:
        kind = name.partition(".")[0]
        distribution, slash, _ = name.removeprefix(f"{kind}." if kind in KINDS else "").partition("/")
        if slash:
            return any(row.is_source for row in self.catalog.of(normalise(distribution)))
        return kind in KINDS and bool(self.catalog.named(kind, ANY) or self.catalog.named(ANY, ANY))

    def _is_chosen(self, row: Row) -> bool:
        """Return True if the user's rules name the component or its package. A project's `allow` does not count."""
        preferred = {name for key, name in self.rules.prefer.items() if key.partition(".")[0] == row.kind}
        return (
            row.distribution in (self.rules.allow or ())
            or f"{row.kind}.{row.address}" in self.rules.enabled
            or f"{row.kind}.{row.distribution}/{ANY}" in self.rules.enabled
            or row.distribution in {normalise(name) for name in preferred}
        )


def why_not(row: Row, settings: Settings) -> str:
    """Return the reason why the settings prevent a component from loading. For other reasons, see `Policy.why_not`."""
    if reason := _misfit(row):
        return reason
    if settings.safe:
        return f"does not load in safe mode ({settings.origins.get('safe', 'safe')})"
    if name := is_blocked(row, settings):
        return f"is blocked ({name!r} in {settings.origins.get(f'block:{name}', '`block`')})"
    if settings.allow is not None and row.distribution not in settings.allow:
        return f"is not in the list of allowed packages ({settings.origins.get('allow', '`allow`')})"
    return ""


def _misfit(row: Row) -> str:
    if row.api != API:
        return f"requires plugin API v{row.api}, but this core provides v{API}"
    if row.kind in KINDS or not row.is_installed:  # plugins without a distribution implement existing hooks
        return ""
    close = close_names(row.kind, KINDS)
    hint = f": did its authors mean {' or '.join(map(repr, close))}?" if close else ""
    return f"is of kind {row.kind!r}, which this core does not know{hint}"


def is_blocked(row: Row, settings: Settings) -> str:
    """Return the entry in `block` that names a component or its entire distribution, or '' if there is none."""
    if settings.block:  # rarely set; this runs for every row
        for name in (row.distribution, row.id, row.address, f"{row.kind}.{row.address}"):
            if name in settings.block:
                return name
    return ""


def is_incompatible(row: Row) -> bool:
    """Return True if a component was built for another version of the core, regardless of any rules."""
    return bool(_misfit(row))
