"""The beginnings of documents, as far as they fit."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import ConfigError
from jackfield.retrieval import Chunk, Corpus, Hit, Where
from jackfield_documents import fuse
from jackfield_front_page_search.searcher import FrontPageSearcher


def corpus_of(*sizes: list[int]) -> Corpus:
    """A document for each list, with a chunk for each number: its tokens."""
    return Corpus(
        tuple(
            Chunk(f"{name}{place}", name, "text", place, tokens)
            for name, chunks in zip("zyxwvutsrq", sizes, strict=False)
            for place, tokens in enumerate(chunks)
        )
    )


def search(corpus: Corpus, limit: int = 100, **settings: Any) -> list[Hit]:
    return asyncio.run(FrontPageSearcher(**settings).search("anything", corpus, limit=limit))


def found(corpus: Corpus, **settings: Any) -> dict[str, float]:
    return {hit.chunk.id: hit.score for hit in search(corpus, **settings)}


def test_the_first_two_chunks_of_a_document_stand_before_all_else() -> None:
    corpus = corpus_of([10, 10, 10])
    assert found(corpus, max_ref_token=40) == {"z0": math.inf, "z1": math.inf}
    words = [Hit(corpus.chunks[2], 9.0), Hit(corpus.chunks[1], 8.0)]
    fused = fuse({"keyword_search": words, "front_page_search": search(corpus)})
    assert [hit.chunk.id for hit in fused] == ["z1", "z0", "z2"]


def test_of_more_than_fifty_documents_nothing_is_found_by_default() -> None:
    documents = [Chunk(f"{n}.md", f"{n}.md", "text", place, 1) for n in range(51) for place in range(3)]
    assert len(search(Corpus(tuple(documents[: 50 * 3])))) == 100
    assert search(Corpus(tuple(documents))) == []


@pytest.mark.parametrize(
    ("sizes", "budget", "ids"),
    [
        ([[10, 10]], 39, []),
        ([[10, 11, 10]], 40, ["z0"]),
        ([[11, 10]], 40, []),
        ([[10, 10], [10, 10]], 40, []),
        ([[10, 10], [10, 11]], 80, ["z0", "y0", "z1"]),
        ([[10], [99], [10]], 120, ["z0", "x0"]),
    ],
)
def test_documents_share_what_a_request_may_hold(sizes: list[list[int]], budget: int, ids: list[str]) -> None:
    assert list(found(corpus_of(*sizes), max_ref_token=budget)) == ids


def test_of_several_documents_the_first_chunks_come_first_and_words_may_come_before_them() -> None:
    corpus = corpus_of([10, 10, 10], [10, 10])
    assert found(corpus) == {"z0": 1.0, "y0": 1.0, "z1": 0.5, "y1": 0.5}
    words = [Hit(corpus.chunks[2], 9.0)]
    fused = fuse({"keyword_search": words, "front_page_search": search(corpus)}, weights={"keyword_search": 2})
    assert fused[0].chunk.id == "z2"


def test_of_very_many_documents_nothing_is_found_and_the_rest_is_not_read() -> None:
    chunks = corpus_of(*[[1]] * 6).chunks

    class Watched(tuple[Chunk, ...]):
        def __iter__(self) -> Iterator[Chunk]:
            yield from chunks[:6]
            raise AssertionError("it reads on")

    class OnDisk(Corpus):
        content_hash = "1"  # which is kept, and not made of the chunks

    assert search(OnDisk(Watched(chunks)), documents=5) == []
    assert len(search(corpus_of(*[[1]] * 5), documents=5)) == 5


def test_only_documents_that_a_filter_selects_are_counted_and_share_a_request() -> None:
    corpus = corpus_of([10, 10], [10, 10], [10, 10])
    searcher = FrontPageSearcher(max_ref_token=80, documents=2)
    selected = {("z",): ["z0", "z1"], ("z", "x"): ["z0", "x0", "z1", "x1"], ("z", "y", "x"): []}
    for documents, ids in selected.items():
        where = Where.parse({"path": list(documents)})
        hits = asyncio.run(searcher.search("anything", corpus, limit=9, where=where))
        assert [hit.chunk.id for hit in hits] == ids
        assert [hit.ranks for hit in hits] == [{"front_page_search": rank} for rank in range(1, len(ids) + 1)]
        assert all(math.isinf(hit.score) for hit in hits) == (len(documents) != 2)
    assert asyncio.run(searcher.search("anything", corpus, limit=9)) == [], "as if there had been no filter"


@given(
    st.lists(st.lists(st.integers(1, 50), min_size=1, max_size=4), min_size=1, max_size=9),
    st.integers(1, 2000),
    st.integers(1, 3),
)
def test_the_front_is_a_beginning_of_each_document_and_leaves_room(
    sizes: list[list[int]], budget: int, chunks: int
) -> None:
    corpus = corpus_of(*sizes)
    hits = search(corpus, max_ref_token=budget, chunks=chunks)
    assert sum(hit.chunk.tokens for hit in hits) <= budget * chunks / 4
    for name in {chunk.source for chunk in corpus.chunks}:
        places = sorted(hit.chunk.index for hit in hits if hit.chunk.source == name)
        assert places == list(range(len(places)))
        assert len(places) <= chunks


def test_settings_are_checked() -> None:
    with pytest.raises(ConfigError, match="max_ref_token"):
        FrontPageSearcher(max_ref_token=0)
