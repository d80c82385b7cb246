"""Which plugins may load, decided from metadata before anything is imported. Deny always wins."""

from __future__ import annotations

from jackfield.hookspecs import KINDS
from jackfield.plugins._catalog import API, Row
from jackfield.settings import Settings, near


def why_not(row: Row, settings: Settings) -> str:
    """Why a component may not load, or '' if it may; the sentence goes on after its name."""
    if row.api != API:
        return f"is made for plugin API v{row.api}, but this core has v{API}"
    if row.kind not in KINDS and (row.is_installed or not row.is_source):
        close = near(row.kind, KINDS)
        meant = f": did its authors mean {' or '.join(map(repr, close))}?" if close else ""
        return f"is of kind {row.kind!r}, which this core does not know{meant}"
    if settings.safe:
        return f"does not load in safe mode ({settings.origins.get('safe', 'safe')})"
    for name in (row.distribution, row.id, row.address) if settings.block else ():
        if name in settings.block:
            return f"is blocked ({name!r} in {settings.origins.get(f'block:{name}', '`block`')})"
    if settings.allow is not None and row.distribution not in settings.allow:
        return f"is not in the list of allowed packages ({settings.origins.get('allow', '`allow`')})"
    return ""


def is_blocked(row: Row, settings: Settings) -> bool:
    """Whether `block` names a component, by itself or with its whole distribution."""
    return not settings.block.isdisjoint((row.distribution, row.id, row.address))


def is_incompatible(row: Row) -> bool:
    """Whether a component is for another core, whatever the policy says."""
    return row.api != API or (row.kind not in KINDS and row.is_installed)
