"""Contract tests for searchers."""

# ruff: noqa: S101 - these are tests: they assert

from __future__ import annotations

import asyncio
import hashlib
import math
import random
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pytest

from jackfield import sync
from jackfield.errors import ConfigError
from jackfield.plugins import SearcherSpec
from jackfield.retrieval import Chunk, Corpus, Hit, MetadataValue, Searcher, Where
from jackfield_testkit.effects import undeclared, watching
from jackfield_testkit.installed import forbid_default_host, plain_host
from jackfield_testkit.loopwatch import TRIES, check_loop
from jackfield_testkit.suites.base import Suite
from jackfield_testkit.suites.threads import at_once

PASSAGES: Sequence[tuple[str, str]] = (
    ("Green tea is brewed with water of eighty degrees.", "brewing green tea"),
    ("The lighthouse keeper counted the ships every evening.", "lighthouse keeper"),
    ("Volcanoes erupt when magma rises through cracks in the crust.", "volcano magma"),
    ("Parliament passed the budget after a debate of nine hours.", "parliament budget debate"),
    ("A violin has four strings tuned in fifths.", "violin strings"),
    ("Penguins huddle together against the wind of Antarctica.", "penguins antarctica"),
    ("The compiler reports an error when a semicolon is missing.", "compiler semicolon error"),
    ("Rye bread rises slowly and keeps fresh for a week.", "rye bread"),
    ("Der Zug nach München fährt um acht Uhr ab.", "Zug nach München"),
    ("Le musée est fermé le lundi et le mardi.", "musée fermé"),
    ("El río cruza la ciudad de norte a sur.", "río ciudad"),
)
CHINESE: Sequence[tuple[str, str]] = (
    ("绿茶要用八十度的水冲泡。", "绿茶"),
    ("长城建于明朝,全长两万多公里。", "长城"),
    ("量子计算机利用叠加态进行计算。", "量子计算机"),
    ("企鹅生活在南极洲。", "企鹅"),
)
UNKNOWN = ("qqxzq", "jjkjj zzqzz", "鬱龘")
"""Queries that share no word or part of a word with any passage."""
ODD_TEXTS = (
    "",
    " ",
    "?!",
    "…",
    "\0",
    "🙂",
    "half \ud83d",
    "a" * 3000,
    "the the the",
    '{"a": ',
    "-",
    "AND OR NOT (",
    '"',
)

FILTERS: Sequence[Mapping[str, object]] = (
    {"year": 2024},
    {"year": [2023, 2024], "path": "reports/*"},
    {"path": "no/such/*"},
    {"number": {"lt": 3}},
    {"page": {"gte": 2}},
    {"part": "scans/*"},
    {"part": {"not": "b.pdf"}},
    {"path": {"not": "*'; DROP TABLE x; --"}},
)


class SearcherSuite(Suite):
    """Contract of searchers.

    ```python
    class TestAcme(SearcherSuite):
        component = "jackfield-acme/acme"
    ```

    Attributes:
        component: The searcher to test, as `distribution/name`, or only the name if it is unique.
        config: The searcher's settings.
        always_finds: The reason why the searcher returns hits even for a query that has nothing in common with the
            corpus, such as ranking by similarity.
        ignores_query: The reason why the searcher's hits do not depend on the query, if it always returns the same
            ones.
        patience_s: How long to wait for something that should happen immediately, in seconds.
    """

    component: ClassVar[str]
    config: ClassVar[Mapping[str, object]] = {}
    always_finds: ClassVar[str] = ""
    ignores_query: ClassVar[str] = ""
    patience_s: ClassVar[float] = 60.0

    def make_searcher(self) -> Searcher:
        """Create a searcher to test. Override this if yours needs more than `config`."""
        host = plain_host()
        searcher: Searcher = host.make(host.find("searcher", self.component), self.config, Searcher)
        return searcher

    # --- finding ---

    def test_it_finds_the_passage_that_answers(self) -> None:
        self._needs_a_query()
        searcher, corpus = self.make_searcher(), self._corpus()
        for number, (text, query) in enumerate(PASSAGES):
            found = [hit.chunk.index for hit in _run(searcher, query, corpus, 3)]
            assert number in found, f"{text!r} is not among the first three hits for {query!r}"

    def test_it_finds_chinese(self) -> None:
        self._needs_a_query()
        searcher, corpus = self.make_searcher(), corpus_of([text for text, _ in (*PASSAGES, *CHINESE)])
        for number, (text, query) in enumerate(CHINESE, start=len(PASSAGES)):
            found = [hit.chunk.index for hit in _run(searcher, query, corpus, 3)]
            assert number in found, f"{text!r} is not among the first three hits for {query!r}"

    def test_nothing_is_found_where_nothing_is(self) -> None:
        assert self._search("tea", Corpus(()), limit=5) == []
        for limit in (0, -1):
            assert self._search("tea bread violin", self._corpus(), limit=limit) == []

    def test_a_query_that_matches_nothing_finds_nothing(self) -> None:
        self._needs_a_query()
        searcher, corpus = self.make_searcher(), self._corpus()
        found = {query: [hit.chunk.text for hit in _run(searcher, query, corpus, 5)] for query in UNKNOWN}
        if self.always_finds:
            assert any(found.values()), "the searcher can return no hits: remove `always_finds`"
        else:
            assert {query: texts for query, texts in found.items() if texts} == {}, (
                "these hits have nothing in common with their query: return none, or give a reason in `always_finds`"
            )

    def test_hits_are_chunks_of_the_corpus_and_no_more_than_asked_for(self) -> None:
        corpus = corpus_of(_many_texts(60))
        searcher = self.make_searcher()
        for limit in (1, 2, 7, 60, 1000):
            hits = _run(searcher, "stone river cloud", corpus, limit)
            assert len(hits) <= limit
            assert all(any(hit.chunk is chunk for chunk in corpus.chunks) for hit in hits), (
                "the searcher returns chunks that are not in the corpus"
            )
            assert len({hit.chunk.id for hit in hits}) == len(hits), "the searcher returns a chunk twice"

    def test_the_best_come_first_whatever_the_limit(self) -> None:
        corpus = corpus_of(_many_texts(60))
        searcher = self.make_searcher()
        everything = _run(searcher, "stone river cloud", corpus, 60)
        scores = [hit.score for hit in everything]
        # Infinity would rank a chunk first, even after fusing the hits of several searchers.
        assert all(math.isfinite(score) or score == math.inf for score in scores)
        assert scores == sorted(scores, reverse=True)
        for limit in (1, 5, 20):
            assert _seen(_run(searcher, "stone river cloud", corpus, limit)) == _seen(everything[:limit])

    def test_equal_scores_stand_in_document_order(self) -> None:
        corpus = corpus_of(["green tea", "black coffee", "green tea", "green tea", "red wine", "green tea"])
        hits = self._search("green tea", corpus, limit=6)
        same = [hit.chunk.index for hit in hits if hit.chunk.text == "green tea"]
        assert self.ignores_query or same == [0, 2, 3, 5]
        order = [(-hit.score, hit.chunk.index) for hit in hits]
        assert order == sorted(order)

    def test_places_count_from_one(self) -> None:
        for rank, hit in enumerate(self._search("tea bread violin", self._corpus(), limit=5), start=1):
            assert all(place >= 1 for place in hit.ranks.values())
            assert not hit.ranks or rank in hit.ranks.values()

    # --- filters ---

    def test_a_filter_selects_what_is_found(self) -> None:
        corpus, searcher = _filtered_corpus(), self.make_searcher()
        everything = _run(searcher, "stone river", corpus, 500)
        for where in map(Where.parse, FILTERS):
            selected = {corpus.chunks[number].id for number in corpus.select(where).numbers}
            hits = sync.run(searcher.search("stone river", corpus, limit=500, where=where))
            ids = {hit.chunk.id for hit in hits}
            assert ids <= selected, f"the searcher returns chunks that the filter {where} excludes"
            if not self.ignores_query:
                expected = {hit.chunk.id for hit in everything} & selected
                assert ids >= expected, f"the searcher misses chunks that the filter {where} selects"

    def test_a_filter_leaves_as_many_hits_as_there_are(self) -> None:
        self._needs_a_query()
        corpus, searcher = _filtered_corpus(), self.make_searcher()
        where = Where.parse({"number": {"gte": 100}})  # far behind the best hits
        hits = sync.run(searcher.search("stone river", corpus, limit=5, where=where))
        assert len(hits) == 5, "only the best hits are filtered: continue searching until there are enough"
        assert _seen(_run(searcher, "stone river", corpus, 5)) == _seen(
            _run(self.make_searcher(), "stone river", corpus, 5)
        )

    def test_documents_with_the_same_text_are_told_apart(self) -> None:
        searcher = self.make_searcher()
        for names in ("abc", "bcd", "dcb"):
            corpus = Corpus(tuple(Chunk(f"id-{name}", f"/data/{name}.md", "green tea", 0, tokens=2) for name in names))
            assert [hit.chunk.source for hit in _run(searcher, "green tea", corpus, 9)] == [
                chunk.source for chunk in corpus.chunks
            ], "the searcher merges equal texts, or confuses chunks of different documents"
            for chunk in corpus.chunks:
                where = Where.parse({"path": chunk.source})
                hits = sync.run(searcher.search("green tea", corpus, limit=9, where=where))
                assert [hit.chunk for hit in hits] == [chunk]

    def test_a_filter_that_does_not_fit_is_an_error(self) -> None:
        for where in ({"yaer": 2024}, {"year": "2024"}, {"path": 3}):
            with pytest.raises(ConfigError, match="where"):
                sync.run(self.make_searcher().search("stone", _filtered_corpus(), limit=5, where=Where.parse(where)))

    # --- odd inputs ---

    def test_any_text_can_be_a_query(self) -> None:
        searcher, corpus = self.make_searcher(), self._corpus()
        for query in ODD_TEXTS:
            hits = _run(searcher, query, corpus, 5)
            assert isinstance(hits, list)
            assert len(hits) <= 5
        assert _seen(_run(searcher, "rye bread", corpus, 5)) == _seen(self._search("rye bread", corpus, limit=5))

    def test_any_text_can_be_a_chunk(self) -> None:
        searcher = self.make_searcher()
        for text in ODD_TEXTS:
            assert isinstance(_run(searcher, "violin", corpus_of([text]), 3), list)
        needle = "The violin is a small needle."
        texts = [*ODD_TEXTS, "x", "filler words again " * 5000, needle, "数" * 3000]
        hits = self._search("violin needle", corpus_of(texts), limit=3)
        assert self.ignores_query or needle in [hit.chunk.text for hit in hits]

    # --- stored and rebuilt indexes ---

    def test_the_same_search_gives_the_same(self) -> None:
        corpus = corpus_of(_many_texts(60))
        searcher = self.make_searcher()
        first = _seen(_run(searcher, "stone river", corpus, 9))
        _run(searcher, "another cloud", corpus, 9)
        assert _seen(_run(searcher, "stone river", corpus, 9)) == first
        assert _seen(self._search("stone river", corpus, limit=9)) == first

    def test_a_corpus_that_has_grown_is_searched_as_a_new_one(self) -> None:
        searcher = self.make_searcher()
        texts = [text for text, _ in PASSAGES]
        for end in (4, len(texts), 4):
            corpus = corpus_of([*texts[:end], "The otter floats on its back."])
            assert _seen(_run(searcher, "otter", corpus, 3)) == _seen(self._search("otter", corpus, limit=3))
            hits = _run(searcher, "otter floats", corpus, 3)
            assert self.ignores_query or any(hit.chunk is corpus.chunks[-1] for hit in hits)

    def test_it_takes_plugins_and_keys_from_its_host(self, monkeypatch: pytest.MonkeyPatch) -> None:
        if type(self).make_searcher is not SearcherSuite.make_searcher:
            pytest.skip("the searcher is created by hand, perhaps without a host")
        query = PASSAGES[0][1]
        hits = _seen(self._search(query, self._corpus(), limit=3))
        forbid_default_host(monkeypatch)
        assert _seen(self._search(query, self._corpus(), limit=3)) == hits

    def test_a_corpus_is_indexed_once_and_searched_often(self) -> None:
        counted = [CountedChunk.of(chunk) for chunk in corpus_of(_many_texts(200)).chunks]
        corpus = Corpus(tuple(counted))
        searcher = self.make_searcher()
        _run(searcher, "stone river", corpus, 3)
        for chunk in counted:
            chunk.read = 0
        _run(searcher, "another cloud", Corpus(tuple(counted)), 3)
        assert sum(chunk.read for chunk in counted) <= 50, (
            "the searcher reads the whole corpus again for a second query: cache the index by `corpus.content_hash`"
        )

    # --- preparing ---

    def test_a_corpus_that_was_prepared_is_not_read_again(self) -> None:
        counted = [CountedChunk.of(chunk) for chunk in corpus_of(_many_texts(200)).chunks]
        searcher = self.make_searcher()
        sync.run(searcher.prepare(Corpus(tuple(counted))))
        for chunk in counted:
            chunk.read = 0
        sync.run(searcher.prepare(Corpus(tuple(counted))))
        found = _run(searcher, "stone river", Corpus(tuple(counted)), 3)
        assert sum(chunk.read for chunk in counted) <= 50, "build everything that searches need once, in `prepare`"
        assert _seen(found) == _seen(self._search("stone river", corpus_of(_many_texts(200)), limit=3))

    def test_progress_grows_to_all_chunks(self) -> None:
        corpus = corpus_of(_many_texts(60))
        reports: list[tuple[int, int]] = []
        sync.run(self.make_searcher().prepare(corpus, on_progress=lambda done, total: reports.append((done, total))))
        assert reports == sorted(reports), "progress goes backwards"
        assert all(0 <= done <= total == len(corpus.chunks) for done, total in reports)
        assert not reports or reports[-1] == (60, 60)

    def test_a_preparation_that_is_stopped_can_be_taken_up_again(self) -> None:
        corpus = corpus_of(_many_texts(60))
        searcher = self.make_searcher()

        async def stop_and_go_on() -> list[Hit]:
            task = asyncio.create_task(searcher.prepare(corpus))
            await asyncio.sleep(0)  # it has begun
            task.cancel()
            await asyncio.wait([task])
            await searcher.prepare(corpus)
            return await searcher.search("stone river", corpus, limit=9)

        assert _seen(asyncio.run(stop_and_go_on())) == _seen(self._search("stone river", corpus, limit=9))

    def test_any_corpus_can_be_prepared_and_a_closed_searcher_used_again(self) -> None:
        searcher = self.make_searcher()
        sync.run(searcher.aclose())
        for corpus in (Corpus(()), corpus_of(ODD_TEXTS), self._corpus()):
            sync.run(searcher.prepare(corpus))
        before = _seen(_run(searcher, "rye bread", self._corpus(), 5))
        for _ in range(2):
            sync.run(searcher.aclose())
        assert _seen(_run(searcher, "rye bread", self._corpus(), 5)) == before
        sync.run(searcher.aclose())

    # --- many at once ---

    def test_searches_at_the_same_time_give_what_they_give_alone(self) -> None:
        corpora = [corpus_of(_many_texts(40, seed=seed)) for seed in (1, 2)]
        wanted = [(query, corpus) for query in ("stone river", "cloud", "zebra", "moss") for corpus in corpora]
        one_by_one, searcher = self.make_searcher(), self.make_searcher()
        alone = [_seen(_run(one_by_one, query, corpus, 5)) for query, corpus in wanted]

        async def all_at_once() -> list[list[Hit]]:
            return await asyncio.gather(*(searcher.search(query, corpus, limit=5) for query, corpus in wanted * 2))

        assert [_seen(hits) for hits in sync.run(all_at_once())] == alone * 2

    def test_a_cancelled_search_ends_and_does_not_hinder_the_next(self) -> None:
        corpus = corpus_of(_many_texts(60))
        expected = _seen(self._search("stone river", corpus, limit=9))  # also loads libraries and models
        searcher = self.make_searcher()

        async def cancel_and_search() -> list[Hit]:
            for steps in (0, 1, 2, 5, 20):
                task = asyncio.create_task(searcher.search("another cloud", corpus, limit=9))
                for _ in range(steps):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task], timeout=self.patience_s)
                assert task.done(), "the search continues after it is cancelled"
            async with asyncio.timeout(self.patience_s):
                return await searcher.search("stone river", corpus, limit=9)

        assert _seen(asyncio.run(cancel_and_search())) == expected

    def test_searches_from_several_event_loops_give_what_they_give_alone(self) -> None:
        corpus = corpus_of(_many_texts(40))
        searcher = self.make_searcher()
        came = at_once(4, lambda _: _seen(asyncio.run(searcher.search("stone river", corpus, limit=5))))
        assert came == [_seen(self._search("stone river", corpus, limit=5))] * 4

    def test_the_event_loop_is_never_held_up(self) -> None:
        corpora = [corpus_of([f"{seed} {' '.join(_many_texts(25, seed=seed))}" for seed in range(start, start + 300)])
                   for start in range(0, 300 * (TRIES + 1), 300)]  # fmt: skip
        searcher = self.make_searcher()
        _run(searcher, "stone river", corpora.pop(), 5)  # a first search, whose imports do not count
        check_loop(lambda: searcher.search("stone river", corpora.pop(), limit=5))

    def test_it_does_what_it_declares_and_nothing_else(self) -> None:
        host = plain_host()
        with watching() as effects:
            self._search("rye bread", self._corpus(), limit=3)
        spec = host.spec_of(host.find("searcher", self.component), SearcherSpec)
        assert undeclared(effects, spec.effects) == [], (
            "undeclared effects: add them to `effects` of the descriptor, or remove them"
        )

    # --- parts ---

    def _needs_a_query(self) -> None:
        if self.ignores_query:
            pytest.skip(f"the searcher returns the same hits for every query: {self.ignores_query}")

    def _corpus(self) -> Corpus:
        return corpus_of([text for text, _ in PASSAGES])

    def _search(self, query: str, corpus: Corpus, *, limit: int) -> list[Hit]:
        """Return the hits of a new searcher."""
        return _run(self.make_searcher(), query, corpus, limit)


def _filtered_corpus() -> Corpus:
    """Return the chunks of four documents that all contain the words `stone river`, most often in the first ones."""
    folders = ("/data/reports/a.md", "/data/reports/b.md", "/data/notes/c.md", "/data/notes/d.md")
    chunks = []
    for number in range(120):
        text = f"{'stone river ' * max(1, 5 - number // 20)}number {number}"
        metadata: dict[str, MetadataValue] = {"year": 2022 + number % 4, "number": number}
        chunks.append(
            Chunk(
                hashlib.sha256(text.encode()).hexdigest(),
                folders[number // 30],
                text,
                number % 30,
                tokens=len(text) // 4,
                page=1 + number % 3,
                part=("", "scans/a.pdf", "in.zip › b.pdf")[number % 3],
                metadata=metadata,
            )
        )
    return Corpus(tuple(chunks))


class CountedChunk(Chunk):
    """A chunk that counts how often its text is read."""

    __slots__ = ("read",)

    @classmethod
    def of(cls, chunk: Chunk) -> CountedChunk:
        """Return a counting copy of a chunk."""
        made = cls(chunk.id, chunk.source, chunk.text, chunk.index, chunk.tokens)
        made.read = 0
        return made

    def __getattribute__(self, name: str) -> Any:
        if name == "text":
            object.__setattr__(self, "read", object.__getattribute__(self, "read") + 1)
        return object.__getattribute__(self, name)

    def __setattr__(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)  # only the count changes


def corpus_of(texts: Sequence[str]) -> Corpus:
    """Return a corpus with one chunk per text."""
    return Corpus(
        tuple(
            Chunk(
                hashlib.sha256(f"{number} {text}".encode(errors="replace")).hexdigest(),
                "corpus.txt",
                text,
                number,
                tokens=max(1, len(text) // 4),
            )
            for number, text in enumerate(texts)
        )
    )


def _many_texts(count: int, *, seed: int = 0) -> list[str]:
    dice = random.Random(seed)  # noqa: S311 - the same texts in every run
    words = [
        "stone",
        "river",
        "cloud",
        "zebra",
        "moss",
        "violin",
        "harbour",
        "copper",
        "another",
        "meadow",
        "lantern",
        "orbit",
    ]
    return [" ".join(dice.choice(words) for _ in range(dice.randint(3, 12))) for _ in range(count)]


def _run(searcher: Searcher, query: str, corpus: Corpus, limit: int) -> list[Hit]:
    return sync.run(_awaited(searcher, query, corpus, limit))


async def _awaited(searcher: Searcher, query: str, corpus: Corpus, limit: int) -> list[Hit]:
    return await searcher.search(query, corpus, limit=limit)


def _seen(hits: Sequence[Hit]) -> list[tuple[str, float]]:
    """Return the comparable parts of hits, with scores rounded, because their last digits depend on summation order."""
    return [(hit.chunk.id, round(hit.score, 6)) for hit in hits]
