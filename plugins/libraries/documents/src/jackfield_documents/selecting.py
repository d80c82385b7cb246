"""Compute the metadata that documents are filtered by, and search within a selection."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jackfield.retrieval import RESERVED_KEYS, Document, MetadataValue, Selection, Where, document_values

# After D:, as in PDF, all digits of a date and a time follow each other.
_YEAR = re.compile(r"D:(?P<of_pdf>(?:19|20)\d\d)|(?P<year>(?:19|20)\d\d)(?!\d{3})")
_DATES = ("date", "published", "created", "modified")
_MOST_CHARS = 1000  # of a text, because each chunk of the document carries it

MetadataRules = Sequence[tuple[Where, Mapping[str, MetadataValue]]]
"""Values to assign to documents, each with a filter for the documents. Later values replace earlier ones."""


def metadata_of(document: Document, rules: MetadataRules = ()) -> dict[str, MetadataValue]:
    """Return a document's filterable values: those the file states, its `year`, and those from rules."""
    return with_rules(document.source, document.title, stated_metadata(document), rules)


def stated_metadata(document: Document) -> dict[str, MetadataValue]:
    """Return the plain values that a file states about itself, and the `year` of its date."""
    stated = {key: plain for key, value in document.metadata.items() if (plain := _plain(value)) is not None}
    for key in RESERVED_KEYS:
        stated.pop(key, None)
    year = next((match for key in _DATES if (match := _YEAR.match(str(stated.get(key, ""))))), None)
    return {**({"year": int(year["of_pdf"] or year["year"])} if year and "year" not in stated else {}), **stated}


def with_rules(
    source: str, title: str, metadata: Mapping[str, MetadataValue], rules: MetadataRules
) -> dict[str, MetadataValue]:
    """Apply rules to a document's metadata. A rule's filter may use values from earlier rules."""
    values = dict(metadata)
    for where, added in rules:
        if where.matches(document_values(source, title, values)):
            values.update(added)
    return values


def search_selected(
    search: Callable[[int], list[tuple[int, float]]], limit: int, selection: Selection
) -> list[tuple[int, float]]:
    """Return the best hits within a selection, requesting more hits until enough of them are selected.

    Args:
        search: Returns up to the given number of chunk numbers with scores, best first.
        limit: The maximum number of hits.
        selection: The chunks that may be hits.
    """
    if not len(selection):
        return []
    wanted = max(limit, 2 * limit * selection.total // len(selection))
    while True:
        wanted = min(wanted, selection.total)
        hits = search(wanted)
        selected = [hit for hit in hits if hit[0] in selection]
        if len(selected) >= min(limit, len(selection)) or len(hits) < wanted or wanted == selection.total:
            return selected[:limit]
        wanted *= 4


def _plain(value: Any) -> MetadataValue | None:
    match value:
        case str():
            return value[:_MOST_CHARS] or None
        case bool() | int() | float():
            return value
        case [str(), *_] if all(isinstance(one, str) for one in value):
            return tuple(one[:_MOST_CHARS] for one in value)
    return None
