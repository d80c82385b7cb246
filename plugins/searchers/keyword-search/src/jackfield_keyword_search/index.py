"""An in-memory inverted index with the weights of `rank_bm25`.

Unlike `rank_bm25`, which scans every chunk for every query term, the index looks up the chunks that contain a term. The
scores are the same, except for a constant that `rank_bm25` adds to all chunks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from rank_bm25 import BM25Plus

from jackfield.retrieval import Chunk
from jackfield_documents.analyzer import Analyzer, parts_of, searched_texts
from jackfield_keyword_search.file import LinesOf, Terms, by_number, read_arrays, write_arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BATCH = 256  # chunks split into terms at once: enough to spread the cost of a call, few enough for the cache
_PICKED = 8
_COMMON_NUMBERS = 8_000_000  # 64 MB: the 80 most common terms of 100,000 chunks
_END = b" \xff "  # separates chunks; this byte never occurs in UTF-8
# In one pass over the bytes: a space for each sign that no term has. Other characters than ASCII stay for the analyzer,
# and so does the case, which marks the parts of a name.
_TABLE = bytes(code if chr(code).isalnum() or code >= 128 or code in b"'." else 32 for code in range(256))


class Index:
    """Maps terms to the chunks that contain them.

    Args:
        chunks: The chunks to index.
        analyzer: Splits texts into terms.
        k1: The weight of repeated occurrences of a term. With 0, repetitions do not count.
        b: The penalty for long chunks, from 0 to 1.
    """

    def __init__(self, chunks: Sequence[Chunk], analyzer: Analyzer, *, k1: float = 1.5, b: float = 0.75) -> None:
        self._analyzer = analyzer
        vocabulary = _Vocabulary(analyzer)
        codes, bits = _codes(chunks, vocabulary)
        lengths = np.bincount(codes & ((1 << bits) - 1), minlength=len(chunks))
        codes.sort()
        firsts = np.flatnonzero(np.diff(codes, prepend=-1))
        counts = np.diff(firsts, append=len(codes))
        codes = codes[firsts]
        self._size = len(chunks)
        self._ids: Iterable[str] = [chunk.id for chunk in chunks]
        self._terms: Mapping[str, int] = vocabulary.terms
        self._chunks: NDArray[np.int32] = (codes & ((1 << bits) - 1)).astype(np.int32)
        self._starts: NDArray[np.int64] = np.searchsorted(codes >> bits, np.arange(len(vocabulary.terms) + 1))
        self._counts: NDArray[np.int32] = counts.astype(np.int32)
        self._lengths: NDArray[np.int64] = lengths
        self._weigh(k1, b)

    def _weigh(self, k1: float, b: float) -> None:
        """Compute the weight of each term, overall and in each chunk."""
        self._idf: NDArray[np.float64] = np.zeros(0)
        self._weights: NDArray[np.float64] = np.zeros(0)
        if len(self._chunks):  # rank_bm25 divides by the number of terms
            model = _Model(self._lengths, np.diff(self._starts), k1=k1, b=b)
            self._idf = np.fromiter(model.idf.values(), np.float64, len(model.idf))
            held_back = k1 * (1 - b + b * self._lengths / model.avgdl)
            self._weights = self._counts * (k1 + 1) / (self._counts + held_back[self._chunks])

    def changed(self, chunks: Sequence[Chunk], *, k1: float, b: float) -> Index | None:
        """Update the index for a new list of chunks. The result equals a newly built index.

        None if building a new index would be as fast. Chunks are compared by id. If `chunks` has a method `ids`, the
        text of chunks that are already in the index is not read.
        """
        change = _change(list(self._ids), self._size, _ids_of(chunks))
        if change is None:
            return None
        fresh = Index([chunks[number] for number in change.new.tolist()], self._analyzer, k1=k1, b=b)
        index = Index((), self._analyzer)
        index._ids, index._size = change.ids, len(change.ids)
        index._lengths = np.zeros(index._size, np.int64)
        is_kept = change.kept >= 0
        index._lengths[change.kept[is_kept]] = self._lengths[is_kept]
        index._lengths[change.new] = fresh._lengths
        index._merge(self, change.kept, fresh, change.new)
        index._weigh(k1, b)
        return index

    def _merge(self, old: Index, kept: NDArray[np.int64], fresh: Index, new: NDArray[np.int64]) -> None:
        """Merge the terms of two indexes. `kept` and `new` are the new numbers of their chunks; -1 means removed."""
        bits = max(1, self._size.bit_length())
        vocabulary = {term: number for number, term in enumerate(by_number(old._terms))}
        numbers = [vocabulary.setdefault(term, len(vocabulary)) for term in by_number(fresh._terms)]
        chunks = kept[old._chunks]
        is_kept = chunks >= 0
        of_old = (old._term_of_each()[is_kept] << bits) + chunks[is_kept]
        of_fresh = (np.array(numbers, np.int64)[fresh._term_of_each()] << bits) + new[fresh._chunks]
        order = np.argsort(of_fresh)
        places = np.searchsorted(of_old, of_fresh[order])
        codes = np.insert(of_old, places, of_fresh[order])
        self._counts = np.insert(old._counts[is_kept], places, fresh._counts[order])
        self._chunks = (codes & ((1 << bits) - 1)).astype(np.int32)
        chunks_with_term = np.bincount(codes >> bits, minlength=len(vocabulary))
        is_used = chunks_with_term > 0
        self._terms = {term: number for number, term in enumerate(compress(vocabulary, is_used))}
        self._starts = np.concatenate([[0], np.cumsum(chunks_with_term[is_used])]).astype(np.int64)

    def _term_of_each(self) -> NDArray[np.int64]:
        """Return the term number of each entry in `_chunks`."""
        return np.repeat(np.arange(len(self._starts) - 1), np.diff(self._starts))

    @classmethod
    def from_file(cls, path: Path, analyzer: Analyzer) -> Self:
        """Load an index written by `write`. The file is memory-mapped, so data is read only during a search.

        Raises:
            FileNotFoundError: The file does not exist.
            ValueError: The file is not an index, has another version, or is truncated.
        """
        size, arrays = read_arrays(path)
        index = cls.__new__(cls)
        index._analyzer, index._size = analyzer, size
        try:
            index._terms = Terms(arrays["terms"], arrays["ends"], arrays["numbers"])
            index._chunks, index._starts = arrays["chunks"], arrays["starts"]
            index._counts, index._lengths = arrays["counts"], arrays["lengths"]
            index._ids = LinesOf(arrays["ids"])
            index._idf, index._weights = arrays["idf"], arrays["weights"]
        except KeyError as error:
            raise ValueError(f"{path} has no {error}") from error
        return index

    def write(self, path: Path) -> None:
        """Write the index to a file.

        Raises:
            OSError: The file cannot be written.
        """
        arrays = Terms.arrays(self._terms)
        arrays |= {"chunks": self._chunks, "starts": self._starts, "idf": self._idf, "weights": self._weights}
        arrays |= {"counts": self._counts, "lengths": self._lengths, "ids": LinesOf.array(self._ids)}
        write_arrays(path, self._size, arrays)

    def search(
        self, texts: Sequence[str], limit: int, selected: Sequence[int] | None = None
    ) -> list[tuple[int, float]]:
        """Return the numbers and scores of chunks that contain any term of the texts, best first.

        Chunks with equal scores keep their order.

        Args:
            texts: The texts of the query.
            limit: The maximum number of chunks.
            selected: The numbers of the chunks to consider. If None, all chunks are searched.
        """
        scores = self.scores([term for text in texts for term in self._analyzer.terms_of_query(text)])
        if selected is not None:
            all_scores, numbers = scores, np.asarray(selected, np.int64)
            scores = np.zeros(self._size)
            scores[numbers] = all_scores[numbers]
        last = np.partition(scores, len(scores) - limit)[len(scores) - limit] if 0 < limit < len(scores) else 0.0
        found = np.flatnonzero(scores >= last) if last > 0 else np.flatnonzero(scores)
        best = found[np.argsort(-scores[found], kind="stable")][: max(0, limit)]
        return list(zip(best.tolist(), scores[best].tolist(), strict=True))

    def scores(self, terms: Sequence[str]) -> NDArray[np.float64]:
        """Return the score of every chunk, which is 0 without any of the terms. Repeated terms count repeatedly."""
        scores = np.zeros(self._size)
        for term in terms:
            number = self._terms.get(term)
            if number is not None:
                self._add(number, scores)
                continue
            for part in parts_of(term, self._terms.__contains__):
                self._add(self._terms[part], scores)
        return scores

    def _add(self, number: int, scores: NDArray[np.float64]) -> None:
        """Add a term's weight in each chunk to the scores.

        For common terms, adding to all chunks is faster than to an eighth of them by index.
        """
        place = slice(self._starts[number], self._starts[number + 1])
        if _PICKED * (place.stop - place.start) < self._size:
            scores[self._chunks[place]] += self._idf[number] * self._weights[place]
            return
        along = self._common.get(number)
        scores += self._along(number, place) if along is None else along

    def _along(self, number: int, place: slice) -> NDArray[np.float64]:
        """Return a common term's weight in every chunk, and cache it for later queries."""
        along = np.zeros(self._size)
        along[self._chunks[place]] = self._idf[number] * self._weights[place]
        if (len(self._common) + 1) * self._size <= _COMMON_NUMBERS:
            self._common[number] = along
        return along

    @cached_property
    def _common(self) -> dict[int, NDArray[np.float64]]:
        """Cached weights of common terms in every chunk, by term number."""
        return {}


@dataclass(frozen=True, slots=True)
class _Change:
    """The difference between two lists of chunks.

    Attributes:
        ids: The ids of the current chunks.
        kept: The new number of each old chunk, or -1 if it was removed.
        new: The numbers of the added chunks, in ascending order.
    """

    ids: list[str]
    kept: NDArray[np.int64]
    new: NDArray[np.int64]


def _change(old: Sequence[str], size: int, ids: list[str]) -> _Change | None:
    """Return the difference between two lists of chunk ids.

    None if a new index is cheaper: for duplicate ids, a changed order, or mostly new chunks.
    """
    before, now = _numbers(old), _numbers(ids)
    kept = np.array([now.get(id_, -1) for id_ in before], np.int64)
    new = np.array([number for number, id_ in enumerate(ids) if id_ not in before], np.int64)
    in_order = bool((np.diff(kept[kept >= 0]) > 0).all())
    if len(before) != size or len(now) < len(ids) or not in_order or 2 * len(new) > len(ids):
        return None
    return _Change(ids, kept, new)


def _numbers(ids: Iterable[str]) -> dict[str, int]:
    return {id_: number for number, id_ in enumerate(ids)}


def _ids_of(chunks: Sequence[Chunk]) -> list[str]:
    ids = getattr(chunks, "ids", None)
    return list(ids()) if callable(ids) else [chunk.id for chunk in chunks]


class _Model(BM25Plus):  # type: ignore[misc] # rank_bm25 has no types
    """Computes the weights of `rank_bm25` from the counts in an index, without counting again.

    Uses BM25Plus, whose term weights are always positive. With Okapi, a term in at least half of the chunks has a
    weight of 0 or less, so searches in a small corpus would find nothing. The scores are otherwise alike.
    """

    def __init__(self, lengths: NDArray[Any], chunks_with_term: NDArray[Any], *, k1: float, b: float) -> None:
        self._lengths = lengths
        self._chunks_with_term = chunks_with_term
        super().__init__((), k1=k1, b=b)

    def _initialize(self, corpus: object) -> dict[int, int]:  # noqa: ARG002 - rank_bm25 calls it with the corpus
        self.doc_len = self._lengths
        self.corpus_size = len(self._lengths)
        self.avgdl = float(self._lengths.mean())
        return dict(enumerate(self._chunks_with_term.tolist()))


class _Vocabulary(dict[bytes, int]):
    """Numbers whitespace-separated words and caches the terms of each, because most words occur more than once."""

    def __init__(self, analyzer: Analyzer) -> None:
        super().__init__({_END.strip(): 0})
        self.terms: dict[str, int] = {}
        self._analyzer = analyzer
        self._terms_of: list[list[int]] = [[]]

    def __missing__(self, token: bytes) -> int:
        bare = token.strip(b".'")
        if bare.isalnum():
            terms = self._analyzer.terms_of_word(bare.decode("ascii"))
        else:
            terms = self._analyzer.terms(token.decode("utf-8", "replace"))
        self._terms_of.append([self.terms.setdefault(term, len(self.terms)) for term in terms])
        number = self[token] = len(self)
        return number

    def expand(self, tokens: NDArray[np.int32], chunks: NDArray[np.int64], bits: int) -> NDArray[np.int64]:
        """Return a code for each term of each token: the term number shifted by `bits`, plus the chunk number."""
        terms = np.array([term for terms in self._terms_of for term in terms], dtype=np.int64) << bits
        counts = np.array([len(terms) for terms in self._terms_of])
        starts = np.cumsum(counts) - counts
        one = counts[tokens] == 1
        simple = terms[starts[tokens[one]]] if len(terms) else np.zeros(0, np.int64)
        simple += chunks[one]
        more = counts[tokens] > 1
        tokens, chunks = tokens[more], chunks[more]
        repeats = counts[tokens]
        ends = np.cumsum(repeats)
        within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - repeats, repeats)
        compound = terms[np.repeat(starts[tokens], repeats) + within] + np.repeat(chunks, repeats)
        return np.concatenate([simple, compound])


def _codes(chunks: Sequence[Chunk], vocabulary: _Vocabulary) -> tuple[NDArray[np.int64], int]:
    """Return the codes of all terms in all chunks, and the number of bits that the chunk number takes in a code."""
    bits = max(1, len(chunks).bit_length())
    codes = [np.zeros(0, np.int64)]
    batches: list[NDArray[np.int32]] = []
    for start in range(0, len(chunks), _BATCH):
        tokens = _END.join(map(_searched, chunks[start : start + _BATCH])).translate(_TABLE).split()
        batches.append(np.fromiter(map(vocabulary.__getitem__, tokens), np.int32, len(tokens)))
        batches.append(np.zeros(1, np.int32))  # the end of the batch's last chunk
    if batches:
        numbers = np.concatenate(batches)
        codes.append(vocabulary.expand(numbers, np.cumsum(numbers == 0), bits))
    return np.concatenate(codes), bits


def _searched(chunk: Chunk) -> bytes:
    return " ".join(searched_texts(chunk)).encode("utf-8", "replace")
