"""Which plugins may load, decided from metadata before anything is imported. Deny always wins."""

from __future__ import annotations

from jackfield.errors import near
from jackfield.hookspecs import KINDS
from jackfield.plugins._catalog import API, Row
from jackfield.settings import Settings


def why_not(row: Row, settings: Settings) -> str:
    """Why a component may not load, or '' if it may; the sentence goes on after its name."""
    return _unsuited(row) or _forbidden(row, settings)


def _unsuited(row: Row) -> str:
    if row.api != API:
        return f"is made for plugin API v{row.api}, but this core has v{API}"
    if row.kind in KINDS or not row.is_installed:  # what nobody installed is asked by the hooks there are
        return ""
    close = near(row.kind, KINDS)
    meant = f": did its authors mean {' or '.join(map(repr, close))}?" if close else ""
    return f"is of kind {row.kind!r}, which this core does not know{meant}"


def _forbidden(row: Row, settings: Settings) -> str:
    if settings.safe:
        return f"does not load in safe mode ({settings.origins.get('safe', 'safe')})"
    if name := is_blocked(row, settings):
        return f"is blocked ({name!r} in {settings.origins.get(f'block:{name}', '`block`')})"
    if settings.allow is not None and row.distribution not in settings.allow:
        return f"is not in the list of allowed packages ({settings.origins.get('allow', '`allow`')})"
    return ""


def is_blocked(row: Row, settings: Settings) -> str:
    """The name by which `block` has a component, its own or that of its whole distribution; '' if it is not blocked."""
    if not settings.block:  # as everywhere, and this is asked of every row
        return ""
    return next((name for name in (row.distribution, row.id, row.address) if name in settings.block), "")


def is_incompatible(row: Row) -> bool:
    """Whether a component is for another core, whatever the policy says."""
    return bool(_unsuited(row))
