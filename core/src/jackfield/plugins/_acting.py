"""What acts in every run without being named in code: one answer, which runs follow and every report starts from."""

from __future__ import annotations

from collections.abc import Collection

from jackfield.defaults import DEFAULT_CHAIN
from jackfield.errors import PluginError
from jackfield.plugins._catalog import Row
from jackfield.plugins._host import PluginHost


def acting(host: PluginHost, kind: str, *, named: Collection[Row] = ()) -> list[Row]:
    """What acts besides what code names, enabled ones first.

    Args:
        host: Whose plugins and settings.
        kind: `processor` or `observer`.
        named: What code names; a default of the same name gives way to it.

    Raises:
        PluginError: Something that is enabled cannot act. It may protect somebody, so nothing runs without it.
    """
    enabled = [row for row in host.enabled(kind) if row not in named]
    return [*enabled, *default_chain(host, kind, besides=(*named, *enabled))]


def default_chain(host: PluginHost, kind: str, *, besides: Collection[Row]) -> list[Row]:
    """Of the default chain, what acts besides these: one of the same name takes a default's place, and nobody acts
    whom nothing proves to be ours."""
    if kind != "processor":
        return []
    taken = {row.name for row in besides}
    policy = host.policy
    ours = [row for row in policy.rows(kind) if row.address in DEFAULT_CHAIN and row.name not in taken]
    return [row for row in ours if not policy.unproven(row)]


def enabled_by(host: PluginHost, kind: str) -> dict[Row, str]:
    """What the settings enable, each with the first name that does; what cannot act is left out."""
    found: dict[Row, str] = {}
    for name in host.settings.enabled:
        try:
            row = host.find_enabled(name) if name.partition(".")[0] == kind else None
        except PluginError:
            continue
        if row is not None:
            found.setdefault(row, name)
    return found
