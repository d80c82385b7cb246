from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rank_bm25 import BM25Plus

from jackfield.retrieval import Chunk, Corpus
from jackfield_documents.analyzer import Analyzer
from jackfield_keyword_search import index as index_module
from jackfield_keyword_search.index import Index

MakeCorpus = Callable[[Sequence[str]], Corpus]

WORDS = [
    "apple",
    "banana",
    "cherry",
    "date",
    "running",
    "Runner",
    "parseTileHeader",
    "the",
    "and",
    "3.14",
    "U.S.A.",
    "默认超时",
    "café",
    "it's",
]
texts = st.lists(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join), min_size=1, max_size=12)
queries = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)


@pytest.fixture(scope="module")
def analyzer() -> Analyzer:
    return Analyzer()


# b is below 1: at 1, rank_bm25 divides 0 by 0 for a chunk without terms.
@given(texts, queries, st.floats(0.1, 3), st.floats(0, 0.99))
def test_scores_are_those_of_rank_bm25_but_for_its_constant(
    corpus_of: MakeCorpus, analyzer: Analyzer, chunks: list[str], query: str, k1: float, b: float
) -> None:
    tokens = [analyzer.terms(text) for text in chunks]
    asked = analyzer.terms(query)
    if not any(tokens):
        return
    peer = BM25Plus(tokens, k1=k1, b=b)
    constant = sum(peer.delta * peer.idf.get(term, 0) for term in asked)
    scores = Index(corpus_of(chunks).chunks, analyzer, k1=k1, b=b).scores(asked)
    assert scores.tolist() == pytest.approx((peer.get_scores(asked) - constant).tolist(), abs=1e-9)


@given(st.lists(st.text(max_size=60), min_size=1, max_size=6))
def test_the_index_has_the_terms_that_the_analyzer_finds(
    corpus_of: MakeCorpus, analyzer: Analyzer, chunks: list[str]
) -> None:
    index = Index(corpus_of(chunks).chunks, analyzer)
    for number, text in enumerate(chunks):
        for term in analyzer.terms(text):
            assert index.scores([term])[number] > 0


def test_many_batches_are_numbered_like_one(corpus_of: MakeCorpus, analyzer: Analyzer) -> None:
    index = Index(corpus_of([f"word{number} common" for number in range(1000)]).chunks, analyzer)
    for number in (0, 255, 256, 511, 512, 999):
        assert [found for found, _ in index.search([f"word{number}"], 5)] == [number]


def test_a_chunk_is_found_by_what_it_stands_under(analyzer: Analyzer) -> None:
    chunks = [
        Chunk("1", "a", "Unpack it.", 0, 3, headings=("Installation", "Linux"), title="Manual"),
        Chunk("2", "a", "Throw it away.", 1, 3, headings=("Disposal",)),
    ]
    index = Index(chunks, analyzer)
    for query, number in (("installation", 0), ("Linux", 0), ("the manual", 0), ("disposal", 1)):
        assert [found for found, _ in index.search([query], 5)] == [number]


def test_an_index_of_nothing_finds_nothing(corpus_of: MakeCorpus, analyzer: Analyzer) -> None:
    for chunks in ([], [""], ["the and of", "，。"]):
        assert Index(corpus_of(chunks).chunks, analyzer).search(["anything at all"], 5) == []


@given(texts, queries, st.integers(1, 12))
def test_the_first_hits_are_the_same_however_many_are_asked_for(
    corpus_of: MakeCorpus, analyzer: Analyzer, chunks: list[str], query: str, limit: int
) -> None:
    index = Index(corpus_of(chunks).chunks, analyzer)
    everything = index.search([query], 1000)
    assert index.search([query], limit) == everything[:limit]
    assert everything == sorted(everything, key=lambda hit: (-hit[1], hit[0]))


def test_a_known_part_of_an_unknown_word_counts_as_often_as_the_word_has_it(
    corpus_of: MakeCorpus, analyzer: Analyzer
) -> None:
    index = Index(corpus_of(["默认", "天气"]).chunks, analyzer)
    once, twice = (index.scores([word]).tolist() for word in ("默认值", "默认默认"))
    assert once[0] > 0
    assert twice == [2 * score for score in once]


def test_common_terms_are_cached_up_to_a_limit_of_numbers(corpus_of: MakeCorpus, analyzer: Analyzer) -> None:
    words = ["apple", "banana", "cherry", "zebra"]
    index = Index(corpus_of([" ".join(words)] * 10).chunks, analyzer)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_module, "_COMMON_NUMBERS", 30)
        for _ in range(2):
            index.search(words, 5)
    assert len(index._common) == 3


@given(texts, st.lists(queries, min_size=1, max_size=3), st.sampled_from([0, 12, 30]))
def test_scores_are_the_same_to_the_last_bit_however_terms_are_added(
    corpus_of: MakeCorpus, analyzer: Analyzer, chunks: list[str], asked: list[str], kept: int
) -> None:
    picked, along = (Index(corpus_of(chunks).chunks, analyzer) for _ in range(2))
    for query in asked * 2:
        terms = analyzer.terms(query)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(index_module, "_PICKED", 0)
            expected = picked.scores(terms).tolist()
            patch.setattr(index_module, "_PICKED", 1000)
            patch.setattr(index_module, "_COMMON_NUMBERS", kept)
            assert along.scores(terms).tolist() == expected
