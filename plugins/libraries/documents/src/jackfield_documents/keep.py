"""Keep what was costly to make: parsed documents, corpora, indexes."""

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

_ABANDONED_S = 3600.0  # after which a file that is being written belongs to a process that was killed


def _one(_: object) -> int:
    return 1


class Kept(Generic[K, V]):
    """The most recently used values, by key. If two threads need one at the same time, it is made once.

    Args:
        capacity: The most that is kept, in the unit of `size_of`; the value used last is kept whatever its size.
        size_of: The size of a value, 1 for each if not given.
    """

    def __init__(self, capacity: int, *, size_of: Callable[[V], int] = _one) -> None:
        self._capacity = capacity
        self._size_of = size_of
        self._values: OrderedDict[K, V] = OrderedDict()
        self._size = 0
        self._making: dict[K, Event] = {}
        self._lock = Lock()

    def get(self, key: K, make: Callable[[], V]) -> V:
        """The value of a key, made if needed; errors of `make` are raised and not kept. It blocks."""
        mine = Event()
        while True:
            with self._lock:
                if key in self._values:
                    self._values.move_to_end(key)
                    return self._values[key]
                other = self._making.get(key)
                if other is None:
                    self._making[key] = mine
                    break
            # Whoever makes it may fail, for a reason of its own: then it is our turn.
            other.wait()
        try:
            value = make()
            with self._lock:
                self._keep(key, value)
            return value
        finally:
            with self._lock:
                del self._making[key]
            mine.set()

    def _keep(self, key: K, value: V) -> None:
        self._values[key] = value
        self._size += self._size_of(value)
        while self._size > self._capacity and len(self._values) > 1:
            _, dropped = self._values.popitem(last=False)
            self._size -= self._size_of(dropped)


@dataclass(frozen=True, slots=True)
class OnShelf(Generic[V]):
    """How an index goes to a file and comes back.

    Attributes:
        name: Of the searcher and of all settings that decide what is in the index, as a part of a file's name.
        read: Reads it; a `ValueError` says that the file is not whole, and it is built again.
        write: Writes it to a file that does not exist yet.
        change: Makes the index of some chunks out of one of other chunks; None if building it is better.
    """

    name: str
    read: Callable[[Path], V]
    write: Callable[[V, Path], None]
    change: Callable[[V, Sequence[Chunk]], V | None] | None = None


@dataclass(frozen=True, slots=True)
class Shelf:
    """Where a corpus on disk has the files that searchers make of it: they are derived, and may be deleted.

    Attributes:
        folder: Its place.
        content: The corpus's content hash.
    """

    folder: Path
    content: str

    def load(self, kept: OnShelf[V]) -> V | None:
        """What was saved for this content; None if there is nothing, or nothing that is whole."""
        return _read(self._path(kept.name), kept)

    def changed(self, chunks: Sequence[Chunk], kept: OnShelf[V]) -> V | None:
        """What was saved for other content, changed to that of these chunks; None if there is nothing of use."""
        if kept.change is None:
            return None
        for path in sorted(self.folder.glob(f"{kept.name}.*")):
            other = _read(path, kept)
            found = None if other is None else kept.change(other, chunks)
            if found is not None:
                return found
        return None

    def save(self, value: V, kept: OnShelf[V]) -> None:
        """Save it, whole or not at all, and remove what was saved for other content.

        Raises:
            OSError: It cannot be written.
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
            with contextlib.suppress(OSError):  # another process was quicker, or Windows keeps what one has open
                is_left_behind = not old.name.startswith(".") or time.time() - old.stat().st_mtime > _ABANDONED_S
                if is_left_behind and old != self._path(kept.name):
                    old.unlink()

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.{self.content[:32]}"


def _read(path: Path, kept: OnShelf[V]) -> V | None:
    try:
        return kept.read(path)
    except (FileNotFoundError, ValueError):
        return None


class IndexCache(Generic[V]):
    """A searcher's indexes of the most recently used corpora, by content hash."""

    def __init__(self, capacity: int = 8) -> None:
        self._indexes: Kept[str, V] = Kept(capacity)

    def get(self, corpus: Corpus, build: Callable[[Sequence[Chunk]], V], kept: OnShelf[V] | None = None) -> V:
        """The index of a corpus, built if needed. It blocks: call it in a worker thread.

        Args:
            corpus: What is searched. If it has a `Shelf` as its attribute `shelf`, the index is kept there.
            build: Makes the index.
            kept: How it is written and read; None if it is not.
        """

        def made() -> V:
            shelf = getattr(corpus, "shelf", None)
            if kept is None or not isinstance(shelf, Shelf):
                return build(corpus.chunks)
            found = shelf.load(kept)
            if found is None:
                found = shelf.changed(corpus.chunks, kept)
                found = build(corpus.chunks) if found is None else found
                shelf.save(found, kept)
            return found

        return self._indexes.get(corpus.content_hash, made)
