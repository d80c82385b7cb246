"""Words and phrases find chunks; what a query looks like does not matter."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield import sync
from jackfield.errors import ConfigError
from jackfield.retrieval import Chunk, Corpus, Where
from jackfield_documents import Shelf
from jackfield_documents.analyzer import Analyzer
from jackfield_tantivy_search import searcher as searcher_module
from jackfield_tantivy_search.index import DamagedIndexError, WordIndex
from jackfield_tantivy_search.searcher import TantivySearcher

Found = Callable[..., list[str]]
CorpusOf = Callable[..., Corpus]

TEXTS = [
    "The invoice must be paid within thirty days of delivery.",
    "Employees may apply for parental leave after six months of service.",
    "Running shoes are sold in the sports department on the second floor.",
    "发票必须在交货后三十天内付款。",
    "服务器每天凌晨两点重新启动，并写入备份。",
    "每次工具调用的默认超时是 300 秒。",
]


@pytest.mark.parametrize("chinese", ["words", "bigrams"])
@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("When must an invoice be paid?", 0),
        ("applying for leave as a parent, parental", 1),
        ("run shoe", 2),
        ("发票多少天内付款？", 3),
        ("服务器什么时候重启和备份", 4),
        ("每次工具调用的默认超时", 5),
    ],
)
def test_a_question_finds_its_chunk(in_memory: CorpusOf, found: Found, query: str, best: int, chinese: str) -> None:
    assert found(in_memory(*TEXTS), query, chinese=chinese)[0] == TEXTS[best]


def test_a_word_in_every_chunk_finds_every_chunk(in_memory: CorpusOf, found: Found) -> None:
    assert found(in_memory("report a", "report b", "report c"), "reports") == ["report a", "report b", "report c"]


def test_where_every_chunk_has_the_word_those_that_have_it_more_often_come_first(
    in_memory: CorpusOf, found: Found
) -> None:
    texts = [f"report {'on that and ' * 3}{'report ' * (number % 7)}" for number in range(400)]
    assert found(in_memory(*dict.fromkeys(texts)), "report", 1) == [texts[6]]
    corpus = in_memory(*(f"{text} n{number}" for number, text in enumerate(texts)))
    assert all(" report report report" in text for text in found(corpus, "report", 20))


def test_words_next_to_each_other_count_more_than_words_apart(in_memory: CorpusOf, found: Found) -> None:
    apart, together = "leave that is parental today", "today parental leave that"
    corpus = in_memory(apart, together)
    for query in (
        "parental leave",
        'about "parental leave" please',
        "about “parental leave” please",
        json.dumps({"keywords_en": ["parental leave"], "text": "today"}),
    ):
        assert found(corpus, query) == [together, apart], query
    assert found(corpus, "parental today leave") == [apart, together], "equal ones in document order"


@pytest.mark.parametrize(
    ("query", "decides"),
    [
        ("aaa bbb ccc", True),
        ("aaa bbb ccc ddd", False),
        ('about "aaa bbb ccc ddd" please', True),
        ("about “aaa bbb ccc ddd” please", True),
        ("about 「aaa bbb ccc ddd」 please", True),
        ("about 『aaa bbb ccc ddd』 please", True),
    ],
)
def test_only_a_quotation_or_a_query_of_three_terms_is_a_phrase(
    in_memory: CorpusOf, found: Found, query: str, decides: bool
) -> None:
    apart, together = "ddd ccc aaa bbb", "aaa bbb ccc ddd"
    assert found(in_memory(apart, together), query) == ([together, apart] if decides else [apart, together])


def test_every_quotation_is_a_phrase(in_memory: CorpusOf, found: Found) -> None:
    words = "aaa bbb ccc ddd eee fff ggg hhh"
    apart, first, second, both = (
        "bbb aaa ddd ccc eee fff ggg hhh",
        "aaa bbb ddd ccc eee fff ggg hhh",
        "bbb aaa ccc ddd eee fff ggg hhh",
        words,
    )
    corpus = in_memory(apart, first, second, both)
    for query in ('"aaa bbb" eee fff "ccc ddd"', '“aaa bbb” eee fff "ccc ddd"'):
        assert found(corpus, query) == [both, first, second, apart]


def test_the_first_sixteen_terms_of_a_quotation_are_the_phrase(in_memory: CorpusOf, found: Found) -> None:
    words = [f"word{number}" for number in range(18)]
    early, late = ([*words[:place], words[place + 1], words[place], *words[place + 2 :]] for place in (14, 16))
    corpus = in_memory(" ".join(early), " ".join(late))
    assert found(corpus, f'"{" ".join(words)}"') == [" ".join(late), " ".join(early)]


def test_a_word_that_a_query_repeats_counts_repeatedly(in_memory: CorpusOf, found: Found) -> None:
    corpus = in_memory("apple fig", "zebra fig")
    assert found(corpus, "apple zebra") == ["apple fig", "zebra fig"]
    assert found(corpus, "zebra apple zebra zebra") == ["zebra fig", "apple fig"]


def test_a_phrase_does_not_go_from_a_heading_into_the_text(found: Found) -> None:
    split = Chunk("1", "a", "green", 0, 1, headings=("tea",))
    whole = Chunk("2", "a", "green tea", 1, 1)
    corpus = Corpus((split, whole))
    assert found(corpus, "green tea") == ["green tea", "green"]


@pytest.mark.parametrize(
    "query",
    [
        'tea "',
        '"tea',
        "tea AND coffee",
        "NOT tea",
        "-tea",
        "+coffee tea",
        "words:tea",
        "key:0 tea",
        "tea^9 OR (",
        "[tea TO zoo]",
        "tea~2",
        "tea*",
        "IN [tea]",
        "/tea/",
        "tea\\",
        "{tea}",
    ],
)
def test_nothing_in_a_query_is_syntax(in_memory: CorpusOf, found: Found, query: str) -> None:
    assert found(in_memory("bread", "green tea", "zebra"), query) == ["green tea"]


def test_a_chinese_word_that_the_text_cuts_otherwise_is_found(in_memory: CorpusOf, found: Found) -> None:
    assert found(in_memory("研究生命的起源", "天气很好"), "研究生命科学") == ["研究生命的起源"]
    assert found(in_memory("超时", "天气"), "超时空") == ["超时"]


def test_chunks_and_queries_are_split_as_the_settings_say(in_memory: CorpusOf) -> None:
    corpus = in_memory("研究生命的起源", "研究生活", "生命")
    scores = {
        chinese: [
            hit.score for hit in asyncio.run(TantivySearcher(chinese=chinese).search("研究生命", corpus, limit=5))
        ]
        for chinese in ("words", "bigrams")
    }
    assert scores["words"] != scores["bigrams"]


def test_a_word_that_is_only_outside_of_the_selected_documents_finds_nothing() -> None:
    chunks = tuple(Chunk(str(number), f"{text}.md", text, number, 1) for number, text in enumerate(("tea", "bread")))
    where = Where.parse({"path": "bread.md"})
    assert asyncio.run(TantivySearcher().search("tea", Corpus(chunks), limit=5, where=where)) == []


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(ConfigError, match="tantivy_search: unknown setting 'k1'"):
        TantivySearcher({"k1": 2})


WORDS = st.sampled_from(
    ["tide", "tides", "flood", "über", "潮汐", "高潮", "U.S.A.", "3.11", "a", "snake_case", "\udcff"]
)
LINES = st.lists(st.lists(WORDS, max_size=6).map(" ".join), unique=True, max_size=8)
ANALYZER = Analyzer()


@given(LINES, st.lists(WORDS, max_size=3).map(" ".join))
def test_exactly_the_chunks_that_share_a_term_are_found(
    in_memory: CorpusOf, found: Found, texts: Sequence[str], query: str
) -> None:
    asked = set(ANALYZER.terms_of_query(query))
    sharing = {text for text in texts if asked & set(ANALYZER.terms(text))}
    first = found(in_memory(*texts), query, limit=20)
    assert len(first) == len(set(first))
    # A Chinese word that is nowhere is looked up by its parts.
    assert set(first) == sharing or any(term not in "".join(texts) for term in asked)
    for limit in (1, 2, 5):
        assert found(in_memory(*texts), query, limit=limit) == first[:limit]


@pytest.mark.parametrize(
    ("query", "limit", "where", "setting", "value", "needs_a_thread"),
    [
        ("stone 7", 5, None, "_QUICK_CHUNKS", 50, False),
        ("stone 7", 5, None, "_QUICK_CHUNKS", 49, True),
        ("stone 7", 5, None, "_QUICK_CHARS", 7, False),
        ("stone 7", 5, None, "_QUICK_CHARS", 6, True),
        ("stone 7", 5, None, "_QUICK_HITS", 5, False),
        ("stone 7", 5, None, "_QUICK_HITS", 4, True),
        ("stone 7", 5, {"path": "*"}, "_QUICK_HITS", 500, True),
    ],
)
def test_only_a_small_warm_search_in_memory_needs_no_thread_and_all_find_the_same(
    in_memory: CorpusOf, query: str, limit: int, where: Any, setting: str, value: int, needs_a_thread: bool
) -> None:
    corpus = in_memory(*[f"river stone number {number}" for number in range(50)])
    searcher, threads = TantivySearcher(), list[str]()

    async def both() -> tuple[Any, Any]:
        cold = await searcher.search(query, corpus, limit=limit)
        search = WordIndex.search

        def noting(self: WordIndex, *arguments: Any) -> Any:
            threads.append(threading.current_thread().name)
            return search(self, *arguments)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(WordIndex, "search", noting)
            patch.setattr(searcher_module, setting, value)
            return cold, await searcher.search(query, corpus, limit=limit, where=where and Where.parse(where))

    cold, warm = asyncio.run(both())
    assert cold == warm
    assert (threads == [threading.current_thread().name]) != needs_a_thread
    assert sync.run(searcher.search("stone 7", corpus, limit=-1)) == []


def test_a_warm_search_on_disk_needs_a_thread_because_its_index_may_have_to_be_made_again(
    in_memory: CorpusOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = in_memory("high tide", "flood")
    vars(corpus)["shelf"] = Shelf(tmp_path, corpus.content_hash)
    searcher, search, times = TantivySearcher(), WordIndex.search, list[str]()

    def damaged_once(self: WordIndex, *arguments: Any) -> Any:
        times.append(threading.current_thread().name)
        if len(times) == 2:
            raise DamagedIndexError("torn")
        return search(self, *arguments)

    monkeypatch.setattr(WordIndex, "search", damaged_once)

    async def twice() -> list[str]:
        return [hit.chunk.text for _ in range(2) for hit in await searcher.search("tide", corpus, limit=5)]

    assert asyncio.run(twice()) == ["high tide"] * 2
    assert threading.current_thread().name not in times
    assert len(times) == 3
