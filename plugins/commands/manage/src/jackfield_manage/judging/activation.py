"""Explain why each component does or does not act in every run, which the core decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from jackfield.defaults import DEFAULT_CHAIN
from jackfield.plugins import PluginHost, Row, default_chain, enabled_by, known_components
from jackfield.settings import CONSIDERED_KINDS, ENABLED_KINDS
from jackfield_manage.names import full_name

Cause = Literal["enabled", "default chain", ""]


@dataclass(frozen=True, slots=True)
class Activation:
    """The reason why a component acts in every run, or only where it is named.

    Attributes:
        row: The component.
        cause: The rule that makes the component act, or ''.
        reason: The reason, as the predicate of a sentence about the component.
    """

    row: Row
    cause: Cause
    reason: str

    @property
    def is_active(self) -> bool:
        """True if the component acts without being named in code."""
        return bool(self.cause)


def activations(host: PluginHost) -> dict[Row, Activation]:
    """Return the activation of every installed processor and observer, without loading any."""
    return {row: activation for kind in ENABLED_KINDS for row, activation in _activations_of_kind(host, kind).items()}


def activation_of(row: Row, host: PluginHost) -> Activation:
    """Return why a component does or does not act, whatever its kind."""
    if row.kind in ENABLED_KINDS:
        return _activations_of_kind(host, row.kind)[row]
    left_out = host.policy.left_out(row.kind).get(row, "") if row.kind in CONSIDERED_KINDS else ""
    return Activation(row, "", host.policy.why_not(row) or left_out or "may be loaded by name")


def active_components(host: PluginHost) -> dict[Row, str]:
    """Return the processors and observers that act in every run here, each with its reason."""
    return {row: activation.reason for row, activation in activations(host).items() if activation.is_active}


def names_active_by_default(host: PluginHost) -> frozenset[str]:
    """Return the short and full names of components that act as part of the default chain, without loading any."""
    rows = [row for row, activation in activations(host).items() if activation.cause == "default chain"]
    return frozenset(name for row in rows for name in (row.id, full_name(row)))


def is_in_default_chain(row: Row) -> bool:
    """Return True if a component belongs to the default chain, regardless of the settings."""
    return row.kind == "processor" and row.address in DEFAULT_CHAIN


def remarks(row: Row, host: PluginHost) -> list[str]:
    """Return warnings about the distribution that offers a component, as predicates to follow "it"."""
    sentences: list[str] = []
    known = known_components().get(row.id)
    if known is not None and known.distribution != row.distribution:
        sentences.append(f"has the same name as a component of {known.distribution}, but comes from {row.distribution}")
    if unproven := host.policy.unproven(row):
        sentences.append(unproven)
    return sentences


def _activations_of_kind(host: PluginHost, kind: str) -> dict[Row, Activation]:
    enabled = enabled_by(host, kind)
    default = frozenset(default_chain(host, kind, besides=enabled))
    return {row: _activation(row, enabled, default, host) for row in host.catalog.rows if row.kind == kind}


def _activation(row: Row, enabled: Mapping[Row, str], default: frozenset[Row], host: PluginHost) -> Activation:
    if reason := host.policy.why_not(row):
        return Activation(row, "", reason)
    if row in enabled:
        origin = host.settings.origins.get(f"enabled:{enabled[row]}", "`enabled`")
        return Activation(row, "enabled", f"acts in every run ({origin} enables it)")
    if row in default:
        return Activation(row, "default chain", "acts in every run (as part of the default chain)")
    if not is_in_default_chain(row):
        return Activation(row, "", "acts only if it is named in code or enabled")
    if any(row.name == other.name for other in enabled):
        obstacle = f"another {row.name!r} is enabled or named and takes its place"
    else:
        obstacle = host.policy.unproven(row)
    return Activation(row, "", f"would act by default, but {obstacle}")
