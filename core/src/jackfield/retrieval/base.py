"""Documents, chunks, hits: the values of retrieval, and what parsers and searchers promise."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any, Generic, Literal, TypeVar

BlockKind = Literal["heading", "paragraph", "list", "table", "code"]


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a document that belongs together, in reading order.

    Attributes:
        text: The text; a table is a Markdown pipe table.
        kind: What it is.
        page: The page it begins on, from 1; None for formats without pages.
        level: Of a heading, from 1; 0 for the rest.
    """

    text: str
    kind: BlockKind = "paragraph"
    page: int | None = None
    level: int = 0


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed document. `source` is its path or URL, `content_hash` the SHA-256 of its bytes, in hex."""

    source: str
    blocks: tuple[Block, ...]
    content_hash: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a document small enough to be found and shown by itself.

    Attributes:
        id: Unique in its corpus, and the same whenever the same bytes are cut in the same way.
        source: The document's path or URL.
        text: What is shown to a model.
        index: Its place in the document, from 0.
        tokens: The length of `text`.
        page: The page it begins on, from 1, or None.
        headings: The headings it stands under, outermost first.
        title: The document's title.
    """

    id: str
    source: str
    text: str
    index: int
    tokens: int
    page: int | None = None
    headings: tuple[str, ...] = ()
    title: str = ""


@dataclass(frozen=True)
class Corpus:
    """Chunks that are searched together, in document order."""

    chunks: tuple[Chunk, ...]

    @cached_property
    def content_hash(self) -> str:
        """Changes whenever a chunk does; what searchers keep their indexes by."""
        digest = hashlib.sha256()
        for chunk in self.chunks:
            digest.update(chunk.id.encode())
            digest.update(b"\0")
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that was found. `ranks` says at which place (from 1) which searcher had it."""

    chunk: Chunk
    score: float
    ranks: Mapping[str, int] = field(default_factory=dict)


class Parser(ABC):
    """Reads one kind of file. It is called in a worker thread, one instance by many threads at once."""

    @abstractmethod
    def parse(self, data: bytes, *, source: str) -> Document:
        """Turn bytes into blocks.

        Raises:
            DocParserError: The file is empty, encrypted, damaged or not what its name says; the text names `source`.
        """


class Searcher(ABC):
    """Ranks the chunks of a corpus against a query. It indexes a corpus once and keeps the index by content hash."""

    @abstractmethod
    async def search(self, query: str, corpus: Corpus, *, limit: int) -> list[Hit]:
        """The best chunks, best first, at most `limit`, equal scores in document order; [] when nothing matches."""


I = TypeVar("I")  # noqa: E741 - an index


class IndexCache(Generic[I]):
    """The indexes of the last corpora, by content hash. Two threads that need one at once build it once."""

    def __init__(self, capacity: int = 8) -> None:
        self._capacity = capacity
        self._indexes: OrderedDict[str, I] = OrderedDict()
        self._building: dict[str, Lock] = {}
        self._lock = Lock()

    def get(self, corpus: Corpus, build: Callable[[Sequence[Chunk]], I]) -> I:
        """The index of a corpus, built if need be. It blocks: call it in a worker thread."""
        key = corpus.content_hash
        with self._lock:
            if key in self._indexes:
                self._indexes.move_to_end(key)
                return self._indexes[key]
            turn = self._building.setdefault(key, Lock())
        with turn:
            with self._lock:
                if key in self._indexes:
                    return self._indexes[key]
            index = build(corpus.chunks)
            with self._lock:
                self._indexes[key] = index
                self._building.pop(key, None)
                while len(self._indexes) > self._capacity:
                    self._indexes.popitem(last=False)
            return index
