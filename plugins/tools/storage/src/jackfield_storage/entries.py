"""A key-value store for text, in an SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from jackfield.errors import ToolServiceError
from jackfield_local_state.ownfile import BusyFileError, OwnFile, UnusableFileError, is_busy, writing

T = TypeVar("T")

_PATIENCE_S = 10.0
_LOSSLESS = ("utf-8", "surrogatepass")
_SCHEMA = "CREATE TABLE entries (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;"


class Entries:
    """Texts by key. Every change is atomic, even if the process is killed.

    Args:
        path: The SQLite file, created by the first `put`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = OwnFile(path, application_id=0x4A465354, version=1, schema=_SCHEMA, owner="jackfield-storage")

    def put(self, key: str, value: str, *, most_bytes: int) -> bool:
        """Save a text. If there is no room, keep the previous text and return False."""
        row = (_bytes(key), _bytes(value))

        def write(connection: sqlite3.Connection) -> bool:
            with writing(connection):
                others = "SELECT coalesce(sum(length(key) + length(value)), 0) FROM entries WHERE key <> ?"
                (used,) = connection.execute(others, row[:1]).fetchone()
                if used + len(row[0]) + len(row[1]) > most_bytes:
                    return False
                connection.execute("INSERT OR REPLACE INTO entries VALUES (?, ?)", row)
                return True

        return self._run_on_file(write)

    def get(self, key: str) -> str | None:
        """Return the text saved under a key, or None."""
        query = "SELECT value FROM entries WHERE key = ?"
        row = self._run_on_file(lambda connection: connection.execute(query, (_bytes(key),)).fetchone())
        return None if row is None else _text(row[0])

    def delete(self, key: str) -> bool:
        """Delete a key. Return True if it existed."""
        statement = "DELETE FROM entries WHERE key = ?"
        return self._run_on_file(lambda connection: connection.execute(statement, (_bytes(key),)).rowcount > 0)

    def below(self, key: str) -> list[tuple[str, str]]:
        """Return the sorted keys below a key, relative to it, with their texts. '' selects all keys."""
        start = _bytes(f"{key}/") if key else b""
        query = "SELECT key, value FROM entries WHERE substr(key, 1, ?) = ? ORDER BY key"
        rows = self._run_on_file(lambda connection: connection.execute(query, (len(start), start)).fetchall())
        return [(_text(name[len(start) :]), _text(value)) for name, value in rows]

    def _run_on_file(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            with self._file.use(patience_s=_PATIENCE_S) as connection:
                return work(connection)
        except UnusableFileError as error:
            raise ToolServiceError(f"cannot open the storage: {error}") from error
        except (sqlite3.Error, OSError, BusyFileError) as error:
            if is_busy(error):
                raise ToolServiceError("the storage is in use by another process: try again") from error
            raise ToolServiceError(f"cannot open the storage: {error}") from error


def _bytes(text: str) -> bytes:
    return text.encode(*_LOSSLESS)


def _text(data: bytes) -> str:
    return data.decode(*_LOSSLESS)
