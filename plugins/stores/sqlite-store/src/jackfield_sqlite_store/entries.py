"""The entries of a run as stored in the file; the first and the last may be in the row of the run."""

from __future__ import annotations

from collections.abc import Iterable

LOSSLESS = ("utf-8", "surrogatepass")
LAST = "lasts + coalesce((SELECT max(place) FROM entries WHERE run = number), first IS NOT NULL)"
"""The number of entries of a run, in a query on `runs`."""


def join_entries(first: bytes | None, middle: Iterable[bytes], last: bytes | None) -> list[str]:
    """Return the entries of a run, oldest first."""
    entries = [*([] if first is None else [first]), *middle, *split_last(last)]
    return [entry.decode(*LOSSLESS) for entry in entries]


def split_last(last: bytes | None) -> list[bytes]:
    """Return the last entries of a run, which are kept as one."""
    return [] if last is None else last.split(b"\n")
