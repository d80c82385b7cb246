"""Maintain the full-text index of stored runs. The first search creates the index, and every search updates it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from jackfield_local_state.ownfile import writing
from jackfield_records import searched_text
from jackfield_sqlite_store.entries import LAST, join_entries
from jackfield_sqlite_store.sharing import read_first

_RUNS_AT_ONCE = 100  # per transaction, so that other processes can write in between
_SHORTEST_INDEXED = 3  # a trigram
_TABLES = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS texts USING fts5 (text, tokenize = 'trigram case_sensitive 1')",
    "CREATE TABLE IF NOT EXISTS indexed_runs (run INTEGER PRIMARY KEY, entries INTEGER NOT NULL)",
)
_STALE = (
    f"SELECT number, {LAST} AS count, first, last, base FROM runs LEFT JOIN indexed_runs ON indexed_runs.run = number "  # noqa: S608
    "WHERE indexed_runs.entries IS NOT count LIMIT ?"
)


def can_index(connection: sqlite3.Connection) -> bool:
    """Return True if this SQLite build supports full-text indexes."""
    has_fts5 = connection.execute("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'").fetchone()
    return bool(has_fts5) and sqlite3.sqlite_version_info >= (3, 34)


def update_index(connection: sqlite3.Connection) -> bool:
    """Index a batch of new or changed runs. Return True if there may be more."""
    with writing(connection):
        for statement in _TABLES:
            connection.execute(statement)
        rows = connection.execute(_STALE, (_RUNS_AT_ONCE,)).fetchall()
        for number, count, first, last, base in rows:
            found = connection.execute("SELECT entry FROM entries WHERE run = ? ORDER BY place", (number,))
            middle = [entry for (entry,) in found]
            if base is not None:
                middle = middle[first is None :]
                first = read_first(connection, number)  # noqa: PLW2901 - now complete
            text = searched_text(join_entries(first, middle, last))
            connection.execute("DELETE FROM texts WHERE rowid = ?", (number,))
            connection.execute("INSERT INTO texts (rowid, text) VALUES (?, ?)", (number, text))
            connection.execute("INSERT OR REPLACE INTO indexed_runs VALUES (?, ?)", (number, count))
    return len(rows) == _RUNS_AT_ONCE


def search_query(columns: str, words: Sequence[str], owner: str | None = None) -> tuple[str, list[str]]:
    """Return an SQL query for runs that contain every word, and all its parameters except the last one, the limit.

    Args:
        columns: The columns of `runs` to select.
        words: One or more search words, as returned by `search_words`.
        owner: The owner whose runs to search, or None to search all runs.
    """
    long = [word for word in words if len(word) >= _SHORTEST_INDEXED]
    conditions = ["texts MATCH ?"] if long else []
    values = [" AND ".join(_quote(word) for word in long)] if long else []
    for word in words:
        if word not in long:  # too short for a trigram, so the remaining texts are scanned
            conditions.append("instr(texts.text, ?) > 0")
            values.append(word)
    if owner is not None:
        conditions.append("runs.client = ?")
        values.append(owner)
    where = " AND ".join(conditions)
    query = (
        f"SELECT {columns} FROM texts JOIN runs ON runs.number = texts.rowid WHERE {where} "  # noqa: S608
        "ORDER BY runs.number DESC LIMIT ?"
    )
    return query, values


def forget_texts(connection: sqlite3.Connection, numbers: Sequence[int]) -> None:
    """Remove deleted runs from the index, if it exists."""
    if numbers and connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'indexed_runs'").fetchone():
        for number in numbers:
            connection.execute("DELETE FROM texts WHERE rowid = ?", (number,))
            connection.execute("DELETE FROM indexed_runs WHERE run = ?", (number,))


def _quote(word: str) -> str:
    """Quote a word as an FTS5 string, in which no character is an operator."""
    return '"' + word.replace('"', '""') + '"'
