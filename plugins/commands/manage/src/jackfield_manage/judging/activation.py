"""Why each component acts in every run, or does not. What acts, the core says; here are the reasons."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from jackfield.defaults import DEFAULT_CHAIN
from jackfield.plugins import PluginHost, Row, default_chain, enabled_by, known_components
from jackfield.settings import CONSIDERED_KINDS, ENABLED_KINDS
from jackfield_manage.names import whole_name

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


def standings(host: PluginHost) -> dict[Row, Standing]:
    """How every installed processor and observer stands where code names none. Nothing is loaded or raised."""
    return {row: one for kind in ENABLED_KINDS for row, one in _of_kind(host, kind).items()}


def acting(host: PluginHost) -> dict[Row, str]:
    """The processors and observers that act in every run here, each with the reason, as `Standing.why`."""
    return {row: one.why for row, one in standings(host).items() if one.acts}


def standing(row: Row, host: PluginHost) -> Standing:
    """The same for one component, of whichever kind."""
    if row.kind in ENABLED_KINDS:
        return _of_kind(host, row.kind)[row]
    left_out = host.policy.left_out(row.kind).get(row, "") if row.kind in CONSIDERED_KINDS else ""
    return Standing(row, "", host.policy.why_not(row) or left_out or "may be loaded by name")


def acting_by_default(host: PluginHost) -> frozenset[str]:
    """The names, short and whole, of what the default chain lets act here. Nothing is loaded."""
    rows = [row for row, one in standings(host).items() if one.because == "default chain"]
    return frozenset(chain.from_iterable((row.id, whole_name(row)) for row in rows))


def acts_by_default(row: Row) -> bool:
    """Whether a component belongs to the default chain, whatever the settings say."""
    return row.kind == "processor" and row.address in DEFAULT_CHAIN


def remarks(row: Row, host: PluginHost) -> list[str]:
    """What somebody who is shown a component should know of who offers it, as ends of sentences after `it`."""
    known = known_components().get(row.id)
    lines = [host.policy.unproven(row)]
    if known is not None and known.distribution != row.distribution:
        lines.insert(0, f"has the same name as a component of {known.distribution}, but comes from {row.distribution}")
    return list(filter(None, lines))


def _of_kind(host: PluginHost, kind: str) -> dict[Row, Standing]:
    enabled = enabled_by(host, kind)
    default = frozenset(default_chain(host, kind, besides=enabled))
    return {row: _standing(row, enabled, default, host) for row in host.catalog.rows if row.kind == kind}


def _standing(row: Row, enabled: Mapping[Row, str], default: frozenset[Row], host: PluginHost) -> Standing:
    if reason := host.policy.why_not(row):
        return Standing(row, "", reason)
    if row in enabled:
        origin = host.settings.origins.get(f"enabled:{enabled[row]}", "`enabled`")
        return Standing(row, "enabled", f"acts in every run ({origin} enables it)")
    if row in default:
        return Standing(row, "default chain", "acts in every run (as part of the default chain)")
    if acts_by_default(row):
        return Standing(row, "", f"would act by default, but {_why_not_by_default(row, enabled, host)}")
    return Standing(row, "", "acts only if it is named in code or enabled")


def _why_not_by_default(row: Row, enabled: Collection[Row], host: PluginHost) -> str:
    if row.name in (other.name for other in enabled):
        return f"another {row.name!r} is enabled or named and takes its place"
    return host.policy.unproven(row)
