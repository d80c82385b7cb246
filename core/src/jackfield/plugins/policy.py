"""Which plugins may load, decided from metadata before anything is imported. Deny always wins."""

from __future__ import annotations

from jackfield.plugins.catalog import API, Row
from jackfield.plugins.descriptors import KINDS
from jackfield.settings import Settings


def why_not(row: Row, settings: Settings) -> str:
    """Why a component may not load, or '' if it may; the sentence goes on after its name."""
    if row.api != API:
        return f"is made for plugin API v{row.api}, and this core has v{API}"
    if row.kind not in KINDS:
        return f"is of the kind {row.kind!r}, which this core does not know"
    if settings.safe:
        return "does not load in safe mode (JACKFIELD_SAFE)"
    for name in (row.distribution, row.id, row.address):
        if name in settings.block:
            return f"is blocked ({name!r} is in JACKFIELD_PLUGINS_BLOCK or `block`)"
    if settings.allow is not None and row.distribution not in settings.allow:
        return "is not in the list of allowed distributions (JACKFIELD_PLUGINS or `allow`)"
    return ""


def is_incompatible(row: Row) -> bool:
    """Whether a component is for another core, whatever the policy says."""
    return row.api != API or row.kind not in KINDS
