"""Index the words of chunks with tantivy, in memory or in a folder."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import tantivy

from jackfield.errors import JackfieldError
from jackfield.retrieval import Chunk
from jackfield_documents.analyzer import Analyzer, parts_of, searched_texts

if TYPE_CHECKING:
    from numpy.typing import NDArray

_HEAP_BYTES = 64_000_000
_STATE = 0  # the key of the document with the index's metadata; no chunk has this key
_DIGITS = 5  # the lowest bits of a 32-bit score depend on the order of summation
_KNOWN_TERMS = 10_000
_MOST_IN_DICT = 50_000  # chunks; 5 MB
_BEYOND = 6  # hits after the last one, to detect ties with it
_TIES = 10_000  # chunks to examine so that equal ones come in document order
_LONGEST_PHRASE = 16
_SHORT = 3  # terms; a keyword, or a query that is hardly longer
_QUOTED = re.compile(r'"([^"]+)"|“([^”]+)”|「([^」]+)」|『([^』]+)』')


class DamagedIndexError(Exception):
    """The index files cannot be written, or are corrupt."""


@dataclass(frozen=True, slots=True)
class State:
    """Metadata of an index, committed together with the chunks.

    Attributes:
        content: The content hash of the corpus.
        made_by: The versions and settings that determine the terms.
        gone: The number of chunks removed since the index was built. They still take space and affect scores.
    """

    content: str
    made_by: str
    gone: int = 0


class Places:
    """Maps the keys of chunks to their positions in a corpus."""

    def __init__(self, table: NDArray[np.int64]) -> None:
        self.table = table

    @classmethod
    def of(cls, ids: Iterable[str]) -> Places:
        """Build the mapping from the ids of the chunks in order."""
        keys = np.fromiter(map(_key_of, ids), np.int64)
        order = np.argsort(keys, kind="stable")
        return cls(np.stack([keys[order], order]))

    @property
    def keys(self) -> NDArray[np.int64]:
        """All keys in ascending order."""
        keys: NDArray[np.int64] = self.table[0]
        return keys

    @cached_property
    def _by_key(self) -> dict[int, int] | None:
        """The positions by key, or None if a dict of this size would take too much memory."""
        known, places = self.table
        return dict(zip(known.tolist(), places.tolist(), strict=True)) if known.size <= _MOST_IN_DICT else None

    def keys_of(self, places: Sequence[int]) -> list[int]:
        """Return the keys of the chunks at these positions, in ascending order."""
        keys: list[int] = self.keys[np.isin(self.table[1], np.asarray(places, np.int64))].tolist()
        return keys

    def find(self, keys: Sequence[int]) -> list[int]:
        """Return the position of each key, or -1 if the key is unknown."""
        if (by_key := self._by_key) is not None:
            return [by_key.get(key, -1) for key in keys]
        known, places = self.table
        found = known.searchsorted(np.array(keys, np.int64)).tolist()
        return [
            int(places[number]) if number < known.size and known[number] == key else -1
            for number, key in zip(found, keys, strict=True)
        ]


class WordIndex:
    """A read-only snapshot of an index.

    Args:
        index: The tantivy index.
        places: The positions of chunks in the corpus being searched.
        analyzer: The analyzer that produced the terms in the index.
    """

    def __init__(self, index: tantivy.Index, places: Places, analyzer: Analyzer) -> None:
        self._searcher = index.searcher()
        self._places = places
        self._analyzer = analyzer
        # A snapshot always gives the same answer.
        self._has = lru_cache(_KNOWN_TERMS)(lambda term: self._searcher.doc_freq("words", term) > 0)

    def search(
        self, texts: Sequence[str], limit: int, selected: Sequence[int] | None = None
    ) -> list[tuple[int, float]]:
        """Return the positions and scores of the best chunks, best first. Chunks with equal scores keep document order.

        Args:
            texts: The texts of the query.
            limit: The maximum number of chunks.
            selected: The positions of the chunks to consider. If None, all chunks are searched.

        Raises:
            DamagedIndexError: The index cannot be read.
        """
        with damage_noticed():
            return self._found(texts, limit, selected)

    def _found(self, texts: Sequence[str], limit: int, selected: Sequence[int] | None) -> list[tuple[int, float]]:
        query = self._query(texts)
        if query is None:
            return []
        if selected is not None:
            is_selected = tantivy.Query.term_set_query(_SCHEMA, "key", self._places.keys_of(selected))
            unscored = tantivy.Query.const_score_query(is_selected, 0.0)
            query = tantivy.Query.boolean_query([(tantivy.Occur.Must, query), (tantivy.Occur.Must, unscored)])
        addresses, scores = self._best(query, limit)
        keys = self._searcher.fast_field_values("key", addresses)
        places = self._places.find([int(key or _STATE) for key in keys])
        best = [(-score, place) for score, place in zip(scores, places, strict=True) if place >= 0]
        best.sort()
        return [(place, -score) for score, place in best[:limit]]

    def _best(self, query: tantivy.Query, limit: int) -> tuple[list[tantivy.DocAddress], list[float]]:
        """Return the addresses and rounded scores of the best documents, including all ties with the last one."""
        wanted = limit + _BEYOND
        while True:
            hits = self._searcher.search(query, min(wanted, self._searcher.num_docs), count=False).hits
            if not hits:
                return [], []
            # Integers, because rounding each score by formatting it took longer than the search.
            scale = 10.0 ** (_DIGITS - 1 - math.floor(math.log10(max(hits[0][0], 1e-30))))
            scores = [round(score * scale) for score, _ in hits]
            if len(hits) < wanted or scores[-1] < scores[limit - 1] or wanted > max(_TIES, limit):
                return [address for _, address in hits], [score / scale for score in scores]
            wanted = 8 * max(wanted, limit)  # the last one ties with others, some of which may come before it

    def _query(self, texts: Sequence[str]) -> tantivy.Query | None:
        """Build a query for chunks that contain any term of the texts.

        Chunks that contain a short text or a quotation as a phrase score higher.
        """
        terms = [self._known(self._analyzer.terms_of_query(text)) for text in texts]
        counts: dict[str, int] = {}
        for term in chain.from_iterable(terms):
            counts[term] = counts.get(term, 0) + 1
        clauses = [_term(term, count) for term, count in counts.items()]
        clauses += [tantivy.Query.phrase_query(_SCHEMA, "words", list(one)) for one in self._phrases(texts, terms)]
        return tantivy.Query.boolean_query([(tantivy.Occur.Should, one) for one in clauses]) if clauses else None

    def _phrases(self, texts: Sequence[str], terms: Iterable[Sequence[str]]) -> list[tuple[str, ...]]:
        """Return the phrases to search for, sorted: quoted texts, and short texts with several terms."""
        phrases = {tuple(self._analyzer.terms_of_query(part)[:_LONGEST_PHRASE]) for part in _quoted(texts)}
        # Not whole questions, because with a phrase, tantivy scans every chunk that has one of the terms.
        phrases |= {tuple(known) for known in terms if len(known) <= _SHORT}
        return sorted(one for one in phrases if len(one) > 1)

    def _known(self, terms: Iterable[str]) -> list[str]:
        known: list[str] = []
        for term in terms:
            if self._has(term):
                known.append(term)
            else:
                known += parts_of(term, self._has)
        return known


def _quoted(texts: Iterable[str]) -> Iterator[str]:
    """Yield the quoted parts of the texts."""
    for text in texts:
        for match in _QUOTED.finditer(text):
            yield from filter(None, match.groups())


class damage_noticed:  # noqa: N801 - it is used like a function
    """Translate tantivy's errors about unreadable or unwritable files to `DamagedIndexError`."""

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Translate the error, if there is one."""
        if error is None or isinstance(error, JackfieldError):
            return
        # A panic comes from tantivy, which verifies checksums of files only on request.
        if isinstance(error, ValueError) or type(error).__name__ == "PanicException":
            raise DamagedIndexError(str(error)) from error


def in_memory(chunks: Sequence[Chunk], analyzer: Analyzer) -> WordIndex:
    """Build an in-memory index of chunks."""
    index = tantivy.Index(_SCHEMA)
    places = Places.of(chunk.id for chunk in chunks)
    with writing(index) as writer:
        add(writer, chunks, analyzer)
        writer.commit()
    index.reload()
    return WordIndex(index, places, analyzer)


@contextmanager
def writing(index: tantivy.Index) -> Iterator[tantivy.IndexWriter]:
    """Open a writer for an index. Uncommitted changes are discarded."""
    writer = index.writer(heap_size=_HEAP_BYTES, num_threads=1)  # with more, the order of equal chunks would be random
    try:
        yield writer
    finally:
        writer.wait_merging_threads()  # which also releases the files


def add(writer: tantivy.IndexWriter, chunks: Iterable[Chunk], analyzer: Analyzer) -> None:
    """Add chunks to the index."""
    for chunk in chunks:
        document = tantivy.Document()
        document.add_integer("key", _key_of(chunk.id))
        for text in searched_texts(chunk):  # separately, so that no phrase spans two of them
            if text:
                document.add_text("words", " ".join(analyzer.terms(text)))
        writer.add_document(document)


def remove(writer: tantivy.IndexWriter, keys: Iterable[int]) -> None:
    """Remove the chunks with these keys."""
    for key in keys:
        writer.delete_documents_by_term("key", key)


def set_state(writer: tantivy.IndexWriter, state: State) -> None:
    """Set the metadata of the index for the next commit."""
    remove(writer, [_STATE])
    document = tantivy.Document()
    document.add_integer("key", _STATE)
    document.add_text("state", json.dumps(asdict(state)))
    writer.add_document(document)


def state_of(index: tantivy.Index) -> State:
    """Return the metadata of an index.

    Raises:
        ValueError: The index has no metadata.
    """
    searcher = index.searcher()
    hits = searcher.search(tantivy.Query.term_query(_SCHEMA, "key", _STATE), 1).hits
    if not hits:
        raise ValueError("the index lacks a description of its content")
    return State(**json.loads(str(searcher.doc(hits[0][1]).get_first("state"))))


def made_in(folder: str) -> tantivy.Index:
    """Create an index in an empty folder."""
    return tantivy.Index(_SCHEMA, path=folder)


def opened_in(folder: str) -> tantivy.Index:
    """Open the index in a folder.

    Raises:
        ValueError: There is no index, or it is damaged.
    """
    index = tantivy.Index.open(folder)
    index.config_reader(reload_policy="manual")  # otherwise a thread checks for changes twice a second
    index.reload()
    return index


def _key_of(chunk_id: str) -> int:
    """Return a key from 1 to 2**63 - 1. Among ten million ids, the probability of a collision is 1 in 180,000."""
    digest = hashlib.blake2b(chunk_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) >> 1 or 1


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_integer_field("key", indexed=True, fast=True)
    builder.add_text_field("words", tokenizer_name="whitespace")
    builder.add_text_field("state", stored=True, tokenizer_name="raw", index_option="basic")
    return builder.build()


@lru_cache(_KNOWN_TERMS)
def _term(term: str, count: int) -> tantivy.Query:
    query = tantivy.Query.term_query(_SCHEMA, "words", term)
    return query if count == 1 else tantivy.Query.boost_query(query, float(count))


_SCHEMA = _schema()
