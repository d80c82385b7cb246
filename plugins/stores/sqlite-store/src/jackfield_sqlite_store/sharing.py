"""Deduplicate the first entries of runs in the same conversation.

A run's first entry contains the whole conversation so far, which would otherwise be stored again with every turn. A run
with a `base` stores only the remainder: its first entry consists of the first `shared` bytes of the base's first entry,
followed by its own bytes.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

FIRST = "coalesce(first, (SELECT entry FROM entries WHERE run = number AND place = 1), x'')"
_LONGEST = 31  # bases in a row, before a long step
_LEAST = 200  # bytes; a shorter prefix saves nothing
_CHAIN = f"SELECT base, shared, {FIRST} FROM runs WHERE number = ?"  # noqa: S608 - constants only
_REBASE = "UPDATE runs SET base = ?, shared = ?, bytes = bytes + ? WHERE number = ?"
_BESIDE = "UPDATE runs SET first = ? WHERE number = ?"
_AMONG = "UPDATE entries SET entry = ? WHERE run = ? AND place = 1"


@dataclass(frozen=True, slots=True)
class Sharing:
    """The prefix that two first entries have in common.

    Attributes:
        base: The run whose first entry has the same prefix, or None if there is none.
        shared: The length of the common prefix, in bytes.
        depth: The number of short steps since the last long one; see `share_beginning`.
    """

    base: int | None = None
    shared: int = 0
    depth: int = 0


def share_beginning(connection: sqlite3.Connection, session: str, entry: bytes) -> Sharing:
    """Find a base for a new run's first entry, usually the previous run in the conversation.

    Every 32nd run takes a long step back to the run 32 before it, which keeps chains of bases short in long
    conversations.
    """
    query = "SELECT number, base, depth FROM runs WHERE session = ? ORDER BY number DESC LIMIT 1"
    row = connection.execute(query, (session,)).fetchone()
    if row is None:
        return Sharing()
    number, base, depth = row
    new_depth = 0 if depth == _LONGEST else depth + 1
    while new_depth == 0 and depth > 0 and base is not None:
        number = base
        base, depth = connection.execute("SELECT base, depth FROM runs WHERE number = ?", (number,)).fetchone()
    shared = _common_length(read_first(connection, number), entry)
    return Sharing(number, shared, new_depth) if shared >= _LEAST else Sharing()


def _common_length(one: bytes, other: bytes) -> int:
    """Return the length of the common prefix. Bisection is used because comparing slices is fast."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def read_first(connection: sqlite3.Connection, number: int) -> bytes:
    """Return a run's complete first entry, or b'' if the run has no entries."""
    parts: list[bytes] = []
    run: int | None = number
    limit: int | None = None
    while run is not None:
        base, shared, own = connection.execute(_CHAIN, (run,)).fetchone()
        if limit is None or limit > shared:
            parts.append(own if limit is None else own[: limit - shared])
            limit = shared
        run = base
    return b"".join(reversed(parts))


def release_base(connection: sqlite3.Connection, number: int) -> None:
    """Rebase every run that shares a prefix with the given run, which is about to be deleted."""
    base, shared, own = connection.execute(_CHAIN, (number,)).fetchone()
    query = f"SELECT number, shared, first IS NOT NULL, {FIRST} FROM runs WHERE base = ?"  # noqa: S608 - constants only
    for run, common, is_beside, rest in connection.execute(query, (number,)).fetchall():
        taken_over = own[: max(0, common - shared)]
        connection.execute(_REBASE, (base, min(common, shared), len(taken_over), run))
        where = _BESIDE if is_beside else _AMONG
        connection.execute(where, (taken_over + rest, run))
