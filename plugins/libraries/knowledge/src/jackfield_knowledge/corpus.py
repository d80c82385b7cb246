"""An index's chunks as a corpus, read on demand."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import cast, overload

from jackfield.retrieval import Chunk, Corpus, MetadataValue, Where, document_values, kinds_in, position_values
from jackfield_documents import Shelf
from jackfield_knowledge.store import IndexFacts, Store, StoredDocument


class KeptCorpus(Corpus):
    """An index's content at the time of opening. After the index has changed twice, access raises `ChangedIndexError`.

    Attributes:
        facts: The index's properties.
        shelf: The folder where searchers save their indexes.
    """

    facts: IndexFacts
    shelf: Shelf

    def __init__(self, store: Store, facts: IndexFacts) -> None:
        # For counting, iteration and lookups, a sequence that reads on demand works like a tuple.
        super().__init__(cast("tuple[Chunk, ...]", KeptChunks(store, facts)))
        object.__setattr__(self, "facts", facts)
        object.__setattr__(self, "shelf", Shelf(store.folder, facts.content))

    @cached_property
    def content_hash(self) -> str:
        """A hash that changes whenever a chunk does."""
        return self.facts.content

    def count_chunks(self, source: str) -> int:
        """Return a document's chunk count without reading texts, or 0 if there is no such document."""
        return self._sizes.get(source, 0)

    @cached_property
    def _sizes(self) -> dict[str, int]:
        return self._kept.sizes()

    @cached_property
    def metadata_kinds(self) -> Mapping[str, frozenset[str]]:
        """The keys by which chunks can be filtered, from documents that have chunks. No chunk is read."""
        return kinds_in(values for _, values in self._kept.documents)

    def number_of(self, chunk: Chunk) -> int | None:
        """See `Corpus`. No chunk is read."""
        start = self._starts.get(chunk.source)
        return None if start is None or chunk.index >= self._sizes[chunk.source] else start + chunk.index

    @cached_property
    def _starts(self) -> dict[str, int]:
        sizes = self._sizes
        return dict(zip(sizes, accumulate(sizes.values(), initial=0), strict=False))

    def numbers_of(self, where: Where) -> list[int]:
        """See `Corpus`. No text is read."""
        return list(self._kept.numbers(where))

    @property
    def _kept(self) -> KeptChunks:
        return cast("KeptChunks", self.chunks)

    def __hash__(self) -> int:
        return hash(self.content_hash)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeptCorpus) and other.content_hash == self.content_hash


class KeptChunks(Sequence[Chunk]):
    """An index's chunks, ordered by document location."""

    def __init__(self, store: Store, facts: IndexFacts) -> None:
        self._store = store
        self._facts = facts

    def __len__(self) -> int:
        return self._facts.chunks

    @overload
    def __getitem__(self, place: int) -> Chunk: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Chunk, ...]: ...

    def __getitem__(self, place: int | slice) -> Chunk | tuple[Chunk, ...]:
        if isinstance(place, slice):
            return tuple(self[one] for one in range(*place.indices(len(self))))
        place = place + len(self) if place < 0 else place
        if not 0 <= place < len(self):
            raise IndexError("the index has no chunk with this number")
        number = bisect_right(self._ends, place)
        start = self._ends[number - 1] if number else 0
        document, metadata = self.documents[number]
        return self._store.chunk(document, place - start, metadata)

    def __iter__(self) -> Iterator[Chunk]:
        for document, metadata in self.documents:
            yield from self._store.chunks(document, metadata)

    def numbers(self, where: Where) -> Iterator[int]:
        """Yield the numbers of the chunks that match a filter, without reading texts."""
        of_documents = where.of_documents()
        start = 0
        for document, metadata in self.documents:
            values = document_values(document.location, document.title, metadata)
            if not of_documents.matches(values):
                pass
            elif where.is_of_documents:
                yield from range(start, start + document.chunks)
            else:
                for number, position in enumerate(self._store.positions(document), start):
                    if where.matches({**values, **position_values(*position)}):
                        yield number
            start += document.chunks

    def sizes(self) -> dict[str, int]:
        """Return the number of chunks per document, by location."""
        return {one.location: one.chunks for one, _ in self.documents}

    def ids(self) -> list[str]:
        """Return the ids of all chunks, in order, without reading texts."""
        return self._store.chunk_ids(self._facts.generation)

    @cached_property
    def documents(self) -> list[tuple[StoredDocument, Mapping[str, MetadataValue]]]:
        """The documents that have chunks, each with its filterable values."""
        rules = self._facts.metadata_rules
        documents = self._store.documents(self._facts.generation)
        return [(one, one.values(rules) if rules else one.metadata) for one in documents if one.chunks]

    @cached_property
    def _ends(self) -> list[int]:
        return list(accumulate(one.chunks for one, _ in self.documents))
