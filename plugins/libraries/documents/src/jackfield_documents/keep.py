"""Keep what was costly to make: parsed documents, corpora, indexes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from threading import Event, Lock
from typing import Generic, TypeVar

from jackfield.retrieval import Chunk, Corpus

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


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


class IndexCache(Generic[V]):
    """A searcher's indexes of the most recently used corpora, by content hash."""

    def __init__(self, capacity: int = 8) -> None:
        self._indexes: Kept[str, V] = Kept(capacity)

    def get(self, corpus: Corpus, build: Callable[[Sequence[Chunk]], V]) -> V:
        """The index of a corpus, built if needed. It blocks: call it in a worker thread."""
        return self._indexes.get(corpus.content_hash, lambda: build(corpus.chunks))
