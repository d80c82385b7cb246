"""Maintain an index in a folder next to a corpus, updating it with the corpus and rebuilding it if it is incomplete.

Any number of processes can search the index while one changes it. For each version of the corpus, a file maps chunks to
positions. The file is written before the index is committed with that version.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jackfield.retrieval import Chunk
from jackfield_documents import Shelf
from jackfield_documents.analyzer import Analyzer
from jackfield_local_state.ownfile import OwnFile
from jackfield_tantivy_search.index import (
    DamagedIndexError,
    Places,
    State,
    WordIndex,
    add,
    damage_noticed,
    made_in,
    opened_in,
    remove,
    set_state,
    state_of,
    writing,
)

if TYPE_CHECKING:
    import tantivy

APPLICATION_ID = 0x4A465453
"""Identifies the lock file as ours, in the header field that SQLite reserves for this purpose."""
_LOCK_VERSION = 1
_PATIENCE_S = 24 * 3600.0  # another process that indexes millions of chunks takes long; the lock ends with it
_NOTED_EVERY = 1000  # chunks
_MOST_GONE = 0.5  # share removed of all chunks ever added; above it, the index is rebuilt

_NOT_WHOLE = (
    ValueError,
    OSError,
    TypeError,
    EOFError,
    LookupError,
)  # the errors of tantivy, JSON and numpy for a truncated file


class KeptIndex:
    """The on-disk index of a corpus in its successive versions.

    Args:
        folder: The folder of the index.
        made_by: The versions and settings that determine the terms. An index with other values is rebuilt.
        analyzer: Splits texts into terms.
    """

    def __init__(self, folder: Path, made_by: str, analyzer: Analyzer) -> None:
        self._folder = folder
        self._index_folder = folder / "index"
        self._made_by = made_by
        self._analyzer = analyzer

    def following(
        self, shelf: Shelf, chunks: Sequence[Chunk], on_read: Callable[[int], None] | None = None
    ) -> WordIndex:
        """Return the index for the current version of a corpus, reading only new chunks if possible.

        Args:
            shelf: The shelf of the corpus.
            chunks: The chunks of the corpus.
            on_read: Called with the number of finished chunks if the index is rebuilt.

        Raises:
            OSError, DamagedIndexError: The index cannot be written.
        """
        found = self._opened(shelf.content)
        if found is None:
            with self._alone():
                found = self._opened(shelf.content)  # another process may have been quicker
                if found is None:
                    self._follow(shelf.content, chunks, on_read)
                    found = self._opened(shelf.content)
        if found is None:
            raise OSError(f"the index in {self._folder} cannot be read after it was written")
        return found

    def remove(self) -> None:
        """Delete the index. It is rebuilt when necessary."""
        with self._alone():
            shutil.rmtree(self._index_folder, ignore_errors=True)

    def _opened(self, content: str) -> WordIndex | None:
        """Open the index, or return None if it is incomplete or of another version of the corpus."""
        try:
            index = opened_in(str(self._index_folder))
            state = state_of(index)
            if (state.content, state.made_by) != (content, self._made_by):
                return None
            return WordIndex(index, self._read_places(content), self._analyzer)
        except _NOT_WHOLE:
            return None

    def _follow(self, content: str, chunks: Sequence[Chunk], on_read: Callable[[int], None] | None) -> None:
        places = Places.of(_ids_of(chunks))
        self._write_places(content, places)
        if not self._change(content, chunks, places):
            self._make(content, _noted(chunks, on_read) if on_read else chunks)
        for path in self._folder.glob("places-*"):
            with contextlib.suppress(OSError):  # Windows keeps a file that a process has open
                if path != self._places_path(content):
                    path.unlink()

    def _make(self, content: str, chunks: Iterable[Chunk]) -> None:
        """Rebuild the index. The old one is kept until the new one is complete."""
        new = self._folder / "new"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        self._commit(made_in(str(new)), State(content, self._made_by), gone=(), new=chunks)
        shutil.rmtree(self._index_folder, ignore_errors=True)
        new.rename(self._index_folder)

    def _change(self, content: str, chunks: Sequence[Chunk], places: Places) -> bool:
        """Update the index in place. Return False if it has to be rebuilt instead."""
        try:
            index = opened_in(str(self._index_folder))
            state = state_of(index)
            before = self._read_places(state.content).keys
        except _NOT_WHOLE:
            return False
        gone = before[~np.isin(before, places.keys)]
        new = places.table[1][~np.isin(places.keys, before)]
        gone_in_all = state.gone + len(gone)
        if state.made_by != self._made_by or 2 * len(new) > len(chunks) or gone_in_all > _MOST_GONE * len(chunks):
            return False
        state = State(content, self._made_by, gone_in_all)
        try:
            self._commit(index, state, gone=gone.tolist(), new=(chunks[place] for place in sorted(new.tolist())))
        except DamagedIndexError:
            return False
        return True

    def _commit(self, index: tantivy.Index, state: State, *, gone: Iterable[int], new: Iterable[Chunk]) -> None:
        """Remove and add chunks in a single commit."""
        with damage_noticed(), writing(index) as writer:
            remove(writer, gone)
            add(writer, new, self._analyzer)
            set_state(writer, state)
            writer.commit()

    def _read_places(self, content: str) -> Places:
        table = np.load(self._places_path(content), mmap_mode="r", allow_pickle=False)
        if table.ndim != 2 or len(table) != 2 or table.dtype != np.int64:
            raise ValueError("not a positions file")
        return Places(table)

    def _write_places(self, content: str, places: Places) -> None:
        with tempfile.NamedTemporaryFile(dir=self._folder, prefix="places-", delete=False) as file:
            np.save(file, places.table)
        Path(file.name).replace(self._places_path(content))

    def _places_path(self, content: str) -> Path:
        return self._folder / f"places-{content[:32]}.npy"

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock for changing the index. The lock is released when the process ends."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        lock = OwnFile(
            self._folder / "lock.sqlite",
            application_id=APPLICATION_ID,
            version=_LOCK_VERSION,
            schema="CREATE TABLE locks (number INTEGER);",
            owner="jackfield-tantivy-search",
        )
        try:
            with lock.use(patience_s=_PATIENCE_S) as connection:
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield
                finally:
                    connection.execute("ROLLBACK")
        finally:
            lock.close()


def _noted(chunks: Iterable[Chunk], on_read: Callable[[int], None]) -> Iterator[Chunk]:
    for number, chunk in enumerate(chunks):
        if number % _NOTED_EVERY == 0:
            on_read(number)
        yield chunk


def _ids_of(chunks: Sequence[Chunk]) -> Iterable[str]:
    ids = getattr(chunks, "ids", None)
    return ids() if callable(ids) else (chunk.id for chunk in chunks)
