"""Store vectors in a file by text and space, so that no text is embedded twice.

Several threads and processes can share a file. Stored data stays intact even if a process is killed.
"""

from __future__ import annotations

import hashlib
import logging
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from jackfield.errors import ConfigError
from jackfield_local_state.ownfile import BusyFileError, OwnFile, UnusableFileError, is_busy, writing
from jackfield_vector_search.graph import Matrix

T = TypeVar("T")

APPLICATION_ID = 0x4A465645
"""Identifies the file as ours, in the header field that SQLite reserves for this purpose."""
_VERSION = 1
_SCHEMA = "CREATE TABLE vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID;"
_PATIENCE_S = 10.0
_AT_ONCE = 500

_log = logging.getLogger(__name__)


class VectorStore:
    """Stores vectors of 32-bit floats.

    Args:
        path: The file. It is created with its folder if missing, with access for the current user only.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = OwnFile(
            path, application_id=APPLICATION_ID, version=_VERSION, schema=_SCHEMA, owner="jackfield-vector-search"
        )

    def get(self, space: str, texts: Sequence[str]) -> dict[str, Matrix]:
        """Return the vectors of those texts that are stored.

        Raises:
            ConfigError: The file was not created by this package, or cannot be read.
        """
        by_key = {key_of(space, text): text for text in texts}
        keys = list(by_key)

        def read(connection: sqlite3.Connection) -> dict[str, Matrix]:
            found: dict[str, Matrix] = {}
            for start in range(0, len(keys), _AT_ONCE):
                some = keys[start : start + _AT_ONCE]
                marks = ",".join("?" * len(some))
                rows = connection.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", some)  # noqa: S608
                found.update((by_key[key], np.frombuffer(vector, "<f4").astype(np.float32)) for key, vector in rows)
            return found

        return self._used(read, otherwise={})

    def put(self, space: str, vectors: Mapping[str, Matrix]) -> None:
        """Store vectors by text.

        Raises:
            ConfigError: The file was not created by this package, or cannot be written.
        """
        rows = [(key_of(space, text), vector.astype("<f4").tobytes()) for text, vector in vectors.items()]

        def write(connection: sqlite3.Connection) -> None:
            with writing(connection):
                connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)

        self._used(write, otherwise=None)

    def close(self) -> None:
        """Close the file. It is reopened when needed."""
        self._file.close()

    def _used(self, work: Callable[[sqlite3.Connection], T], *, otherwise: T) -> T:
        """Run work on the file, or return `otherwise` if another process keeps the file locked.

        Texts are then simply embedded again.
        """
        try:
            with self._file.use(patience_s=_PATIENCE_S) as connection:
                return work(connection)
        except UnusableFileError as error:
            raise ConfigError(
                f"index_path {str(self.path)!r} cannot be used: {error}; use a different file, or move this file away"
            ) from error
        except (sqlite3.Error, OSError, BusyFileError) as error:
            if not is_busy(error):
                raise ConfigError(f"index_path {str(self.path)!r} cannot be used: {error}") from error
            _log.warning("%s is locked by another process: its vectors are not used this time", self.path)
            return otherwise


def key_of(space: str, text: str) -> bytes:
    """Return the key of a vector, a digest of the space and the text."""
    return hashlib.sha256(f"{space}\0{text}".encode("utf-8", "surrogatepass")).digest()[:16]
