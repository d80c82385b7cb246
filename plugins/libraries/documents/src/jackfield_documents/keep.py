"""Cache expensive values: parsed documents, corpora and indexes."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock
from typing import Generic, TypeVar

from jackfield.retrieval import Chunk, Corpus

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_ABANDONED_S = 3600.0  # older staging files are leftovers of killed processes


class Kept(Generic[K, V]):
    """An LRU cache. If several threads need a missing value, only one computes it.

    Args:
        capacity: The maximum total size, in units of `size_of`. The latest value is retained even if it is larger.
        size_of: Returns a value's size. Defaults to 1 per value.
    """

    def __init__(self, capacity: int, *, size_of: Callable[[V], int] | None = None) -> None:
        self._capacity = capacity
        self._size_of = size_of or (lambda _: 1)
        self._values: OrderedDict[K, V] = OrderedDict()
        self._size = 0
        self._pending: dict[K, Event] = {}
        self._lock = Lock()

    def peek(self, key: K) -> V | None:
        """Return a key's cached value, or None. Never waits for a value that is being computed."""
        return self._values.get(key)

    def get(self, key: K, make: Callable[[], V]) -> V:
        """Return a key's value, computing it if needed. Blocks. Errors from `make` are raised and not cached."""
        done = Event()
        while True:
            with self._lock:
                if key in self._values:
                    self._values.move_to_end(key)
                    return self._values[key]
                other = self._pending.get(key)
                if other is None:
                    self._pending[key] = done
                    break
            # The other thread may fail for its own reasons; then this one tries.
            other.wait()
        try:
            value = make()
            with self._lock:
                self._values[key] = value
                self._size += self._size_of(value)
                while self._size > self._capacity and len(self._values) > 1:
                    _, dropped = self._values.popitem(last=False)
                    self._size -= self._size_of(dropped)
            return value
        finally:
            with self._lock:
                del self._pending[key]
            done.set()


@dataclass(frozen=True, slots=True)
class OnShelf(Generic[V]):
    """An index's file format.

    Attributes:
        name: A part of the file name that identifies the searcher and every setting that affects the index.
        read: Reads the index. Raises `ValueError` if the file is incomplete, in which case the index is rebuilt.
        write: Writes the index to a new file.
        change: Updates an index of other chunks to these chunks. Returns None if rebuilding is better.
    """

    name: str
    read: Callable[[Path], V]
    write: Callable[[V, Path], None]
    change: Callable[[V, Sequence[Chunk]], V | None] | None = None


@dataclass(frozen=True, slots=True)
class Shelf:
    """The folder for index files next to a corpus on disk. The files are derived data and may be deleted.

    Attributes:
        folder: The folder's path.
        content: The corpus's content hash.
    """

    folder: Path
    content: str

    def load(self, kept: OnShelf[V]) -> V | None:
        """Load the index for this content, or return None if it is missing or incomplete."""
        return _read(self._path(kept.name), kept)

    def changed(self, chunks: Sequence[Chunk], kept: OnShelf[V]) -> V | None:
        """Load an index of other content and update it to these chunks, or return None if no index can be updated."""
        if kept.change is None:
            return None
        for path in sorted(self.folder.glob(f"{kept.name}.*")):
            other = _read(path, kept)
            updated = None if other is None else kept.change(other, chunks)
            if updated is not None:
                return updated
        return None

    def save(self, value: V, kept: OnShelf[V]) -> None:
        """Save an index atomically, and remove the files for other content.

        Raises:
            OSError: The index cannot be written.
        """
        descriptor, staging = tempfile.mkstemp(dir=self.folder, prefix=f".{kept.name}-")
        os.close(descriptor)
        try:
            kept.write(value, Path(staging))
            Path(staging).replace(self._path(kept.name))
        except BaseException:
            Path(staging).unlink(missing_ok=True)
            raise
        for old in (*self.folder.glob(f"{kept.name}.*"), *self.folder.glob(f".{kept.name}-*")):
            with contextlib.suppress(OSError):  # another process removed it first, or has it open on Windows
                is_obsolete = not old.name.startswith(".") or time.time() - old.stat().st_mtime > _ABANDONED_S
                if is_obsolete and old != self._path(kept.name):
                    old.unlink()

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.{self.content[:32]}"


def _read(path: Path, kept: OnShelf[V]) -> V | None:
    try:
        return kept.read(path)
    except (FileNotFoundError, ValueError):
        return None


class IndexCache(Generic[V]):
    """Caches a searcher's indexes of the most recently used corpora, by content hash."""

    def __init__(self, capacity: int = 8) -> None:
        self._indexes: Kept[str, V] = Kept(capacity)

    def peek(self, corpus: Corpus) -> V | None:
        """Return a corpus's index if it is in memory. Never blocks.

        Computing a content hash takes long, so the result is None if the corpus has not been hashed yet.
        """
        content_hash = vars(corpus).get("content_hash")
        return None if content_hash is None else self._indexes.peek(content_hash)

    def get(self, corpus: Corpus, build: Callable[[Sequence[Chunk]], V], kept: OnShelf[V] | None = None) -> V:
        """Return a corpus's index, building it if needed. Blocks, so call it in a worker thread.

        Args:
            corpus: The corpus to search. If its `shelf` attribute is a `Shelf`, the index is saved there.
            build: Builds the index.
            kept: The index's file format, or None to never save it.
        """

        def load_or_build() -> V:
            shelf = getattr(corpus, "shelf", None)
            if kept is None or not isinstance(shelf, Shelf):
                return build(corpus.chunks)
            index = shelf.load(kept)
            if index is None:
                index = shelf.changed(corpus.chunks, kept)
                if index is None:
                    index = build(corpus.chunks)
                shelf.save(index, kept)
            return index

        return self._indexes.get(corpus.content_hash, load_or_build)
