"""What acts in every run without being named in code, and why: one answer for runs and for whoever reports on them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal

from jackfield.defaults import DEFAULT_CHAIN
from jackfield.errors import PluginError
from jackfield.plugins._catalog import Row
from jackfield.plugins._host import PluginHost
from jackfield.settings import ENABLED_KINDS

Because = Literal["enabled", "default chain", ""]


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether a component acts in every run.

    Attributes:
        row: The component.
        because: What makes it act, '' if nothing does.
        why: The reason why it acts or does not, as the end of a sentence about it.
    """

    row: Row
    because: Because
    why: str

    @property
    def acts(self) -> bool:
        """Whether it acts without being named in code."""
        return bool(self.because)


def acting(host: PluginHost, kind: str, *, named: Collection[Row] = ()) -> list[Standing]:
    """What acts besides what code names, enabled ones first.

    Args:
        host: Whose plugins and settings.
        kind: `processor` or `observer`.
        named: What code names; a default of the same name gives way to it.

    Raises:
        PluginError: Something that is enabled cannot act. It may protect somebody, so nothing runs without it.
    """
    found: dict[Row, Standing] = {}
    for name, row in _enabled(host, kind):
        if isinstance(row, PluginError):
            raise row
        if row not in named:
            found.setdefault(row, _by_settings(row, name, host))
    taken = {row.name for row in (*named, *found)}
    defaults = [_of_default_chain(row, taken, host) for row in host.rows(kind) if _is_default(row)]
    return [*found.values(), *(one for one in defaults if one.acts)]


def standings(host: PluginHost) -> dict[Row, Standing]:
    """The same for every installed processor and observer, where code names none. Nothing is loaded or raised."""
    return {row: one for kind in ENABLED_KINDS for row, one in _standings_of(host, kind).items()}


def standing(row: Row, host: PluginHost) -> Standing:
    """The same for one component, of whichever kind."""
    if row.kind in ENABLED_KINDS:
        return _standings_of(host, row.kind)[row]
    return Standing(row, "", host.why_not(row) or "may be loaded by name")


def acting_by_default(host: PluginHost) -> frozenset[str]:
    """The names, short and whole, of what the default chain lets act here. Nothing is loaded."""
    rows = [row for row, one in standings(host).items() if one.because == "default chain"]
    return frozenset(name for row in rows for name in (row.id, f"{row.kind}.{row.address}"))


def acts_by_default(row: Row) -> bool:
    """Whether a component belongs to the default chain, whatever the settings say."""
    return _is_default(row)


def _standings_of(host: PluginHost, kind: str) -> dict[Row, Standing]:
    enabled: dict[Row, str] = {}
    for name, row in _enabled(host, kind):
        if not isinstance(row, PluginError):
            enabled.setdefault(row, name)
    taken = {row.name for row in enabled}
    return {row: _standing(row, enabled.get(row, ""), taken, host) for row in host.catalog.rows if row.kind == kind}


def _enabled(host: PluginHost, kind: str) -> Iterator[tuple[str, Row | PluginError]]:
    """What the settings enable, each with the name it is enabled by, or with the reason why it cannot act."""
    for name in host.settings.enabled:
        if name.partition(".")[0] == kind:
            try:
                row = host.enabled_as(name)
            except PluginError as error:
                yield name, error
            else:
                if row is not None:
                    yield name, row


def _standing(row: Row, enabled_as: str, taken: Collection[str], host: PluginHost) -> Standing:
    if reason := host.why_not(row):
        return Standing(row, "", reason)
    if enabled_as:
        return _by_settings(row, enabled_as, host)
    if _is_default(row):
        return _of_default_chain(row, taken, host)
    return Standing(row, "", "acts only if it is named in code or enabled")


def _by_settings(row: Row, name: str, host: PluginHost) -> Standing:
    return Standing(
        row, "enabled", f"acts in every run ({host.settings.origins.get(f'enabled:{name}', '`enabled`')} enables it)"
    )


def _is_default(row: Row) -> bool:
    return row.kind == "processor" and row.address in DEFAULT_CHAIN


def _of_default_chain(row: Row, taken: Collection[str], host: PluginHost) -> Standing:
    if row.name in taken:
        return Standing(
            row, "", f"would act by default, but another {row.name!r} is enabled or named and takes its place"
        )
    if doubt := host.unproven(row):
        return Standing(row, "", f"would act by default, but {doubt}")
    return Standing(row, "default chain", "acts in every run (as part of the default chain)")
