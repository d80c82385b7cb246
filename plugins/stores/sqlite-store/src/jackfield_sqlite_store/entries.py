"""Read the entries of a run. Some may be stored in the run's own row."""

from __future__ import annotations

from collections.abc import Iterable

LOSSLESS = ("utf-8", "surrogatepass")
LAST = "lasts + coalesce((SELECT max(place) FROM entries WHERE run = number), first IS NOT NULL)"
"""SQL expression for a run's number of entries, in a query on `runs`."""


def join_entries(first: bytes | None, middle: Iterable[bytes], last: bytes | None) -> list[str]:
    """Return a run's entries, oldest first."""
    entries = [*([] if first is None else [first]), *middle, *split_last(last)]
    return [entry.decode(*LOSSLESS) for entry in entries]


def split_last(last: bytes | None) -> list[bytes]:
    """Split the last entries of a run, which are stored in a single column."""
    return [] if last is None else last.split(b"\n")
