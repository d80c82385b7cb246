from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import ConfigError
from jackfield.retrieval import Chunk, Corpus
from jackfield_keyword_search.index import Index
from jackfield_keyword_search.searcher import KeywordSearcher

MakeCorpus = Callable[[Sequence[str]], Corpus]

ENGLISH = [
    "The invoice must be paid within thirty days of delivery.",
    "Employees may apply for parental leave after six months of service.",
    "The server restarts every night at two o'clock and writes a backup.",
    "Running shoes are sold in the sports department on the second floor.",
    "Python 3.11 introduced exception groups and faster start-up.",
    "A backup that was never restored is no backup at all.",
]
CHINESE = [
    "发票必须在交货后三十天内付款。",
    "员工工作满六个月后可以申请育儿假。",
    "服务器每天凌晨两点重新启动，并写入备份。",
    "每次工具调用的默认超时是 300 秒。",
    "研究生可以在图书馆借阅二十本书。",
    "北京大学位于海淀区。",
]


def found(corpus: Corpus, query: str, limit: int = 10, **cfg: object) -> list[int]:
    hits = asyncio.run(KeywordSearcher(cfg).search(query, corpus, limit=limit))
    return [hit.chunk.index for hit in hits]


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("When must an invoice be paid?", 0),
        ("applying for leave as a parent, parental", 1),
        ("restarting servers", 2),
        ("run shoe", 3),
        ("What is new in Python 3.11?", 4),
        ("restore a backup", 5),
    ],
)
def test_an_english_question_finds_its_chunk(corpus_of: MakeCorpus, query: str, best: int) -> None:
    assert found(corpus_of(ENGLISH + CHINESE), query)[0] == best


@pytest.mark.parametrize("chinese", ["words", "bigrams"])
@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("发票多少天内付款？", 0),
        ("怎么申请育儿假", 1),
        ("服务器什么时候重启和备份", 2),
        ("每次工具调用的默认超时", 3),
        ("研究生能借几本书", 4),
        ("北京大学在哪里", 5),
    ],
)
def test_a_chinese_question_finds_its_chunk(corpus_of: MakeCorpus, query: str, best: int, chinese: str) -> None:
    assert found(corpus_of(CHINESE + ENGLISH), query, chinese=chinese)[0] == best


def test_a_word_in_half_of_the_chunks_still_finds_them(corpus_of: MakeCorpus) -> None:
    corpus = corpus_of(["apple banana", "cherry date", "banana banana", "zebra"])
    assert found(corpus, "banana") == [2, 0]


def test_a_word_in_every_chunk_finds_every_chunk(corpus_of: MakeCorpus) -> None:
    assert sorted(found(corpus_of(["report one", "report two", "report"]), "report")) == [0, 1, 2]


def test_a_single_chunk_is_found(corpus_of: MakeCorpus) -> None:
    assert found(corpus_of(["one banana"]), "banana") == [0]


def test_a_chinese_word_that_the_text_cuts_otherwise_is_found(corpus_of: MakeCorpus) -> None:
    assert found(corpus_of(["研究生命的起源", "天气很好"]), "研究生命科学") == [0]


def test_keywords_as_json_are_searched_by_their_words(corpus_of: MakeCorpus) -> None:
    corpus = corpus_of(ENGLISH + CHINESE)
    query = {"keywords_zh": ["默认超时"], "keywords_en": ["running shoes"], "text": "什么"}
    assert set(found(corpus, json.dumps(query))[:2]) == {3, 9}
    fenced = f"```json\n{json.dumps({'keywords_en': ['parental leave']})}\n```"
    assert found(corpus, fenced)[0] == 1


def test_the_keys_of_a_json_query_are_no_words(corpus_of: MakeCorpus) -> None:
    corpus = corpus_of(["keywords en text", "zebra"])
    assert found(corpus, '{"keywords_en": ["zebra"], "keywords_zh": []}') == [1]


@pytest.mark.parametrize("query", ['{"other": "zebra"}', "{zebra", "[zebra]", '{"keywords_en": "zebra"}'])
def test_what_is_no_keyword_query_is_searched_as_it_is(corpus_of: MakeCorpus, query: str) -> None:
    assert found(corpus_of(["apple", "zebra"]), query) == [1]


@pytest.mark.parametrize("query", ["", "  ", "the of and", "什么的", "？！", "nowhere"])
def test_a_query_that_says_nothing_finds_nothing(corpus_of: MakeCorpus, query: str) -> None:
    assert found(corpus_of(ENGLISH + CHINESE), query) == []


def test_an_empty_corpus_and_a_limit_of_none_find_nothing(corpus_of: MakeCorpus) -> None:
    assert found(corpus_of([]), "apple") == []
    assert found(corpus_of(["apple"]), "apple", limit=0) == []


def test_equal_chunks_come_in_document_order(corpus_of: MakeCorpus) -> None:
    assert found(corpus_of(["same words"] * 50), "words", limit=20) == list(range(20))


class CountingSearcher(KeywordSearcher):
    """Notes of how many chunks it has built an index."""

    def __init__(self) -> None:
        super().__init__()
        self.built: list[int] = []

    def build_index(self, chunks: Sequence[Chunk]) -> Index:
        self.built.append(len(chunks))
        return super().build_index(chunks)


def test_an_index_is_built_once_for_a_corpus_however_many_ask(corpus_of: MakeCorpus) -> None:
    searcher = CountingSearcher()

    async def ask() -> None:
        asked = [searcher.search(query, corpus_of(ENGLISH), limit=3) for query in ("invoice", "backup", "shoes") * 4]
        await asyncio.gather(*asked)
        await searcher.search("invoice", corpus_of(ENGLISH[:3]), limit=3)

    asyncio.run(ask())
    assert searcher.built == [6, 3]


def test_a_setting_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(ConfigError, match="keyword_search: b must "):
        KeywordSearcher({"b": 2})


words = st.text(alphabet="bcdfgkmpqxz", min_size=4, max_size=7).map(lambda word: f"{word}x")
many = st.lists(st.lists(words, min_size=2, max_size=8).map(" ".join), min_size=1, max_size=10)


@given(many, st.data())
def test_every_chunk_is_found_by_its_own_rare_words(
    corpus_of: MakeCorpus, chunks: list[str], data: st.DataObject
) -> None:
    number = data.draw(st.integers(0, len(chunks) - 1))
    others = set(" ".join(chunks[:number] + chunks[number + 1 :]).split())
    own = [word for word in chunks[number].split() if word not in others]
    if own:
        assert found(corpus_of(chunks), " ".join(own)) == [number]


@given(many, many, words)
def test_more_chunks_take_none_of_those_that_were_found(
    corpus_of: MakeCorpus, chunks: list[str], more: list[str], word: str
) -> None:
    query = f"{word} {chunks[0]}"
    before = found(corpus_of(chunks), query, limit=100)
    after = found(corpus_of(chunks + more), query, limit=100)
    assert [number for number in sorted(after) if number < len(chunks)] == sorted(before)


def test_a_search_is_the_same_each_time(corpus_of: MakeCorpus) -> None:
    query = " ".join(re.findall(r"\w+", " ".join(ENGLISH)))
    results = {tuple(found(corpus_of(ENGLISH * 5), query, limit=20)) for _ in range(5)}
    assert len(results) == 1


@pytest.mark.parametrize("chinese", ["words", "bigrams"])
@pytest.mark.parametrize(
    "query",
    ["Summarize this paper.", "What are the papers in the PDF file about?", "总结这篇论文", "概括一下这份文档的内容"],
)
def test_words_about_the_document_find_nothing_in_it(corpus_of: MakeCorpus, query: str, chinese: str) -> None:
    corpus = corpus_of(["Paper is made of wood, and this file is about that.", "论文的内容总结如下。这份文档很长。"])
    assert found(corpus, query, chinese=chinese) == []


def test_what_a_question_about_the_document_asks_for_is_found(corpus_of: MakeCorpus) -> None:
    corpus = corpus_of(["This paper summarizes papers. It is a paper.", "Wood burns."])
    assert found(corpus, "Does the paper mention wood?") == [1]


@pytest.mark.parametrize("settings", [{"k1": -0.1}, {"b": -0.1}, {"b": 1.1}, {"chinese": "signs"}])
def test_a_weight_out_of_its_range_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(settings))):
        KeywordSearcher(settings)
