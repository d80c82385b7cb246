"""Several searchers as one: what each of them says counts, and none is asked for ever."""

from __future__ import annotations

import asyncio
import logging
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import ConfigError, JackfieldError, ModelConnectionError, PluginNotFoundError, ToolServiceError
from jackfield.plugins import PluginHost, SearcherSpec, hook
from jackfield.retrieval import Chunk, Corpus, Hit, Searcher, Where, make_searcher
from jackfield.settings import Settings
from jackfield_documents import Shelf, failures_noted, fuse
from jackfield_hybrid_search.searcher import HybridSearcher
from jackfield_testkit.dashscope import FakeDashScope

CHUNKS = tuple(Chunk(f"id{number}", "ba"[number % 2], f"text {number}", number // 2, 5) for number in range(20))
CORPUS = Corpus(CHUNKS)
MODULE = "jackfield_hybrid_zoo"  # this one, by a name that a plugin may have
ADDRESS = "jackfield-hybrid-search/hybrid_search"


class Fixed(Searcher):
    """Gives the chunks of `numbers`; counts how often it is asked, prepared and closed."""

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__(cfg)
        self.asked: list[int] = []
        self.closed = 0

    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        self.asked.append(limit)
        if error := self.cfg.get("fails"):
            raise ToolServiceError(error) if self.cfg.get("as_tool") else ModelConnectionError(error, backend="m")
        numbers = self.cfg["numbers"][:limit]
        score = self.cfg.get("score", 1.0)
        return [Hit(corpus.chunks[number], score, {"fixed": rank}) for rank, number in enumerate(numbers, 1)]

    async def prepare(self, corpus: Corpus, *, on_progress: Callable[[int, int], None] | None = None) -> None:
        if on_progress is not None and "reports" in self.cfg:
            on_progress(self.cfg["reports"], len(corpus.chunks))
        if self.cfg.get("is_silent"):
            return
        await super().prepare(corpus, on_progress=on_progress)

    async def aclose(self) -> None:
        self.closed += 1


class Other(Fixed):
    """Another one."""


class Meeting(Fixed):
    """Answers when all that share its barrier are asked."""

    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        await self.cfg["barrier"].wait()
        return await super().search(query, corpus, limit=limit, where=where)


class Meeting2(Meeting):
    """Another one."""


class Reranker(Searcher):
    """Turns the order of another searcher round."""

    def __init__(self, cfg: Mapping[str, Any] | None = None, *, host: PluginHost) -> None:
        super().__init__(cfg)
        if unknown := cfg and cfg.keys() - {"searcher", "searcher_settings", "model"}:
            raise ConfigError(f"unknown setting {unknown}")
        self.host = host
        self.filters: list[Where | None] = []
        self.closed = 0

    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        self.filters.append(where)
        inner = make_searcher(self.cfg["searcher"], self.cfg["searcher_settings"], host=self.host)
        found = await inner.search(query, corpus, limit=50, where=where)
        if self.cfg.get("model") == "away":
            raise ModelConnectionError("no route to the model", backend="m")
        if self.cfg.get("model") == "wrong":
            raise ConfigError("no such model")
        if self.cfg.get("model") == "down":
            raise ToolServiceError("no route to the model")
        return [Hit(hit.chunk, float(at), {**hit.ranks, "turned": at}) for at, hit in enumerate(found, 1)][::-1][:limit]

    async def aclose(self) -> None:
        self.closed += 1


class Plugin:
    """The searchers above."""

    @hook.searchers
    def searchers(self) -> list[SearcherSpec]:
        classes = {"fixed": Fixed, "other": Other, "meeting": Meeting, "meeting2": Meeting2, "turned": Reranker,
                   "alias": HybridSearcher}  # fmt: skip
        return [SearcherSpec(name=name, target=f"{MODULE}:{one.__name__}") for name, one in classes.items()]


@pytest.fixture(scope="module")
def host() -> Iterator[PluginHost]:
    made = PluginHost(Settings())
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, MODULE, sys.modules[__name__])
        made.register(Plugin())
        yield made


Make = Callable[..., HybridSearcher]


@pytest.fixture
def make(host: PluginHost) -> Make:
    return lambda **settings: HybridSearcher(settings, host=host)


def search(searcher: Searcher, limit: int = 20) -> list[Hit]:
    return asyncio.run(asyncio.wait_for(searcher.search("anything", CORPUS, limit=limit), 60))


def fixed(*numbers: int, **settings: Any) -> dict[str, Any]:
    return {"name": "fixed", "numbers": list(numbers), **settings}


def other(*numbers: int, **settings: Any) -> dict[str, Any]:
    return {**fixed(*numbers, **settings), "name": "other"}


# --- fusing ---

numbers = st.lists(st.integers(0, 19), unique=True, max_size=20)


@given(first=numbers, second=numbers, weight=st.floats(0.1, 10), k=st.integers(1, 100), limit=st.integers(1, 25))
def test_by_ranks_it_is_the_weighted_sum_of_reciprocal_ranks(
    host: PluginHost, first: list[int], second: list[int], weight: float, k: int, limit: int
) -> None:
    searchers = [fixed(*first), other(*second)]
    made = HybridSearcher(searchers=searchers, weights={"other": weight}, fusion="ranks", k=k, host=host)

    def part(number: int, ranking: list[int], weight: float) -> float:
        return weight / (k + ranking.index(number) + 1) if number in ranking else 0.0

    scores = {one: math.fsum((part(one, first, 1.0), part(one, second, weight))) for one in {*first, *second}}
    order = sorted(scores, key=lambda number: (-scores[number], "ba".index(CHUNKS[number].source), number))
    hits = search(made, limit)
    assert [(hit.chunk, hit.score) for hit in hits] == [(CHUNKS[number], scores[number]) for number in order[:limit]]


def test_a_hit_says_which_searcher_had_it_where(make: Make) -> None:
    first, second = search(make(searchers=[fixed(3, 4), other(4)]))
    assert (first.chunk.id, first.ranks) == ("id4", {"fixed": 2, "other": 1, "hybrid_search": 1})
    assert (second.chunk.id, second.ranks) == ("id3", {"fixed": 1, "hybrid_search": 2})


def test_infinity_stands_first(make: Make) -> None:
    hits = search(make(searchers=[fixed(1, 2, 3), other(3, score=math.inf)]))
    assert [hit.chunk.id for hit in hits] == ["id3", "id1", "id2"]


def test_equal_scores_are_in_the_order_of_the_corpus_and_not_of_names(make: Make) -> None:
    hits = search(make(searchers=[fixed(1), other(0)]))
    assert [hit.chunk.source for hit in hits] == ["b", "a"]
    of_one_document = search(make(searchers=[fixed(4, score=1), other(2, score=1)]))
    assert [hit.chunk.index for hit in of_one_document] == [1, 2]
    assert [hit.chunk.source for hit in fuse({"fixed": hits[1:], "other": hits[:1]})] == ["a", "b"]


def test_an_index_on_disk_is_not_read_to_order_its_documents(make: Make, tmp_path: Path) -> None:
    class Unread(tuple[Chunk, ...]):
        def __iter__(self) -> Iterator[Chunk]:
            raise AssertionError("all chunks are read")

    @dataclass(frozen=True)
    class Kept(Corpus):
        shelf: Shelf | None = None
        content_hash = "1"

    corpus = Kept(Unread(CHUNKS), Shelf(tmp_path, "1"))
    hits = asyncio.run(make(searchers=[fixed(1), other(0)]).search("anything", corpus, limit=9))
    assert [hit.chunk.source for hit in hits] == ["a", "b"], "in the order of their paths, as the index has them"


def test_each_searcher_is_asked_for_as_many_whatever_the_limit(make: Make) -> None:
    made = make(searchers=[fixed(1, 2, 3), other(1)], candidates=2)
    assert len(search(made, 1)) == 1
    assert len(search(made, 20)) == 2
    assert {tuple(one.asked) for one in made._searchers.values()} == {(2, 2)}  # type: ignore[attr-defined]


def test_searchers_are_asked_at_the_same_time(make: Make) -> None:
    async def meet() -> list[Hit]:
        barrier = asyncio.Barrier(2)  # nobody passes alone
        searchers = [{**fixed(1), "name": name, "barrier": barrier} for name in ("meeting", "meeting2")]
        return await make(searchers=searchers).search("anything", CORPUS, limit=1)

    assert len(asyncio.run(asyncio.wait_for(meet(), 60))) == 1


@pytest.mark.parametrize(("weights", "first"), [({}, "id1"), ({"vector_search": 0.9}, "id0"), ({"fixed": 2}, "id0")])
def test_vectors_count_for_more_unless_weights_say_otherwise(weights: dict[str, float], first: str) -> None:
    class Vectors:
        @hook.searchers
        def searchers(self) -> list[SearcherSpec]:
            return [SearcherSpec(name="vector_search", target=f"{MODULE}:Other")]

    host = PluginHost(Settings(block=frozenset({"jackfield-vector-search"})))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, MODULE, sys.modules[__name__])
        host.register(Plugin())
        host.register(Vectors())
        named = [fixed(0), {**fixed(1), "name": "vector_search"}]
        hits = search(HybridSearcher(searchers=named, weights=weights, fusion="ranks", host=host))
    assert hits[0].chunk.id == first


def test_a_searcher_of_weight_0_is_not_asked(make: Make) -> None:
    made = make(searchers=[fixed(1), other(2)], weights={"other": 0})
    assert [dict(hit.ranks) for hit in search(made)] == [{"fixed": 1, "hybrid_search": 1}]
    assert made._searchers.keys() == {"fixed"}


# --- failures ---


def test_a_searcher_that_fails_is_left_out_and_said(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    made = make(searchers=[fixed(1, 2), other(fails="no route to m")])
    with failures_noted() as failures:
        assert [hit.chunk.id for hit in search(made)] == ["id1", "id2"]
    assert failures == ["other failed and was skipped: no route to m"]
    with caplog.at_level(logging.WARNING):
        search(made)
    assert "other failed and was skipped: no route to m" in caplog.text


def test_a_failure_is_said_through_a_reranker_too(make: Make) -> None:
    made = make(searchers=[fixed(1, 2), other(fails="no route to m")], rerank="turned")
    with failures_noted() as failures:
        assert [hit.chunk.id for hit in search(made)] == ["id2", "id1"]
    assert failures == ["other failed and was skipped: no route to m"]


def test_if_all_fail_so_does_the_search(make: Make) -> None:
    with pytest.raises(ModelConnectionError, match="first"):
        search(make(searchers=[fixed(fails="first"), other(fails="second")]))


def test_what_is_not_installed_is_an_error_although_others_are(make: Make) -> None:
    with pytest.raises(PluginNotFoundError, match="no_such_searcher"):
        search(make(searchers=[fixed(1), "no_such_searcher"]))


@pytest.mark.parametrize("model", ["away", "down"])
def test_if_the_reranker_fails_the_order_is_that_of_the_others_and_that_is_said(make: Make, model: str) -> None:
    made = make(searchers=[fixed(1, 2)], rerank={"name": "turned", "model": model})
    with failures_noted() as failures:
        assert [hit.chunk.id for hit in search(made)] == ["id1", "id2"]
    assert failures == ["results were not reranked, because the reranker failed: no route to the model"]
    with pytest.raises(ModelConnectionError, match="first"), failures_noted() as failures:
        search(make(searchers=[fixed(fails="first")], rerank="turned"))
    assert failures == []


def test_a_wrong_setting_of_the_reranker_is_an_error_and_no_failure_of_a_service(make: Make) -> None:
    made = make(searchers=[fixed(1, 2)], rerank={"name": "turned", "model": "wrong"})
    with failures_noted() as failures, pytest.raises(ConfigError, match="no such model"):
        search(made)
    assert failures == []


# --- reranking ---


def test_a_reranker_has_the_last_word(make: Make) -> None:
    hits = search(make(searchers=[fixed(1, 2, 3), other(2)], rerank={"name": "turned", "model": "m"}), limit=2)
    assert [hit.chunk.id for hit in hits] == ["id3", "id1"]
    assert dict(hits[0].ranks) == {"fixed": 3, "turned": 3, "hybrid_search": 1}


def test_a_reranker_gets_the_filter_and_is_prepared_and_closed_alone(make: Make) -> None:
    reports: list[tuple[int, int]] = []
    made: Any = make(searchers=[fixed(1), other(2)], rerank="turned")
    where = Where.parse({"path": "a"})
    asyncio.run(made.search("anything", CORPUS, limit=3, where=where))
    assert made._searchers["turned"].filters == [where]
    asyncio.run(made.prepare(CORPUS, on_progress=lambda done, total: reports.append((done, total))))
    assert reports == [(20, 20)]
    assert made._searchers.keys() == {"turned"}, "what is reranked is the reranker's to prepare"
    asyncio.run(made.aclose())
    assert made._searchers["turned"].closed == 1


def test_the_reranker_of_dashscope_is_such_a_searcher(make: Make) -> None:
    texts = ("tea", "tea and tea and tea", "green tea", "no word of it")
    corpus = Corpus(tuple(Chunk(f"id{number}", "a", text, number, 5) for number, text in enumerate(texts)))
    with FakeDashScope() as server:
        rerank = {"name": "dashscope_rerank", "model": "m", "base_url": server.url, "api_key": "sk-test"}
        made = make(searchers=["keyword_search", fixed(3)], rerank=rerank)
        hits = asyncio.run(made.search("green tea", corpus, limit=2))
        sent = server.requests[0].native["input"]["documents"]  # type: ignore[attr-defined]
    assert sorted(sent) == sorted(texts), "all that the searchers found"
    assert [(hit.chunk.text, hit.score) for hit in hits] == [("green tea", 1.0), ("tea", 0.5)]
    assert dict(hits[0].ranks) == {"keyword_search": 1, "dashscope_rerank": 1, "hybrid_search": 1}


@pytest.mark.parametrize(
    "settings",
    [{"candidates": 1}, {"weights": {"other": 0}}, {"weights": {"other": 9}}, {"fusion": "ranks"}, {"k": 1}],
    ids=str,
)
def test_what_is_reranked_is_found_with_the_same_settings(make: Make, settings: dict[str, Any]) -> None:
    searchers = [fixed(1, 2, 3, 4), other(4, 2, 5, score=0.5)]
    found = search(make(searchers=searchers, **settings))
    turned = search(make(searchers=searchers, rerank="turned", **settings))
    assert [hit.chunk.id for hit in turned] == [hit.chunk.id for hit in found][::-1]


def test_what_cannot_rerank_is_an_error_that_names_the_setting(make: Make) -> None:
    with pytest.raises(ConfigError, match="hybrid_search: rerank: keyword_search: unknown setting 'searcher'"):
        search(make(searchers=[fixed(1)], rerank="keyword_search"))


# --- itself ---


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, "searchers"),
        ({"searchers": []}, "searchers"),
        ({"searchers": [{"k1": 1}]}, "requires 'name'"),
        ({"searchers": ["a", {"name": "a"}]}, "'a' is listed twice"),
        ({"searchers": ["hybrid_search"]}, "'hybrid_search' cannot search with itself"),
        ({"searchers": [{"name": ADDRESS}]}, "cannot search with itself"),
        ({"searchers": ["a"], "rerank": "hybrid_search"}, "cannot search with itself"),
        ({"searchers": ["a"], "rerank": {"name": "b", "searcher": "c"}}, "remove 'searcher'"),
        ({"searchers": ["a"], "rerank": {"name": "b", "searcher_settings": {}}}, "remove 'searcher_settings'"),
        ({"searchers": ["a"], "rerank": ADDRESS}, "cannot search with itself"),
        ({"searchers": ["a"], "weights": {"b": 1}}, "weights: unknown searcher 'b'; available: a"),
        ({"searchers": ["a"], "weights": {"a": 0}}, "weights: every searcher has weight 0"),
        ({"searchers": ["a"], "weights": {"a": -1}}, "weights: the weight of 'a'"),
        ({"searchers": ["a"], "k": 0}, "k"),
        ({"searchers": ["a"], "wieghts": {}}, "did you mean 'weights'"),
    ],
    ids=str,
)
def test_settings_that_do_not_fit_are_errors_when_it_is_made(make: Make, settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make(**settings)


def test_it_never_asks_itself_through_another_one(make: Make) -> None:
    circle = {"name": "turned", "searcher": ADDRESS, "searcher_settings": {"searchers": [fixed(1)]}}
    for work in (search, lambda made: asyncio.run(made.prepare(CORPUS))):
        with pytest.raises(ConfigError, match="is used by one of its own searchers, which would recurse forever"):
            work(make(searchers=[fixed(2), circle]))
    assert len(search(make(searchers=[fixed(2)]))) == 1, "a search after that is none inside of another"


def test_it_is_no_searcher_of_its_own_by_another_name(make: Make) -> None:
    with pytest.raises(ConfigError, match="'alias' cannot search with itself"):
        search(make(searchers=[fixed(1), {"name": "alias", "searchers": [fixed(2)]}]))


def test_each_searcher_is_made_once_for_all_searches(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Fixed] = []
    create = Fixed.__init__

    def note(self: Fixed, *arguments: Any, **settings: Any) -> None:
        create(self, *arguments, **settings)
        made.append(self)

    monkeypatch.setattr(Fixed, "__init__", note)
    hybrid = make(searchers=[fixed(1), other(2)], rerank={"name": "turned"})
    search(hybrid)
    count = len(made)
    plain = make(searchers=[fixed(1), other(2)])
    for _ in range(3):
        search(plain)
    assert [type(one) for one in made[count:]] == [Fixed, Other]
    assert plain._one("fixed", fixed(1)) is plain._one("fixed", fixed(1))


def test_no_secret_of_a_searcher_is_shown(make: Make) -> None:
    made = make(searchers=[fixed(1, api_key="sk-secret")], rerank={"name": "turned", "token": "sk-secret"})
    assert "sk-secret" not in f"{made.config!r} {made.cfg!r} {made.config.model_dump_json()}"


# --- preparing and closing ---


def test_all_searchers_are_prepared_and_closed_and_one_that_fails_stops_no_other(make: Make) -> None:
    reports: list[tuple[int, int]] = []
    made = make(searchers=[fixed(fails="no route to m"), other(1)])
    with pytest.raises(JackfieldError, match="no route to m"):
        asyncio.run(made.prepare(CORPUS, on_progress=lambda done, total: reports.append((done, total))))
    assert made._searchers["other"].asked == [1]  # type: ignore[attr-defined]
    assert reports[-1] == (20, 20)
    asyncio.run(made.aclose())
    assert [one.closed for one in made._searchers.values()] == [1, 1]  # type: ignore[attr-defined]


def test_each_searcher_reports_its_part_of_the_preparation(make: Make) -> None:
    reports: list[tuple[int, int]] = []
    made = make(searchers=[fixed(1, reports=4), other(1)])
    asyncio.run(made.prepare(CORPUS, on_progress=lambda done, total: reports.append((done, total))))
    assert (reports[0], reports[-1]) == ((2, 20), (20, 20))
    assert (10, 20) in reports


def test_a_searcher_that_reports_nothing_counts_when_it_is_prepared(make: Make) -> None:
    reports: list[tuple[int, int]] = []
    made = make(searchers=[fixed(1, is_silent=True), other(1, is_silent=True)])
    asyncio.run(made.prepare(CORPUS, on_progress=lambda done, total: reports.append((done, total))))
    assert reports == [(10, 20), (20, 20)]


@pytest.mark.parametrize("as_tool", [False, True])
def test_of_several_failures_the_first_is_raised_whatever_it_is(make: Make, as_tool: bool) -> None:
    made: Any = make(searchers=[fixed(fails="first", as_tool=as_tool), other(fails="second")])
    with pytest.raises(ToolServiceError if as_tool else ModelConnectionError, match="first"):
        asyncio.run(made.prepare(CORPUS))
    assert made._searchers["other"].asked, "the first failure stops no other"


def test_an_empty_corpus_is_not_searched_and_nothing_is_loaded(make: Make) -> None:
    made = make(searchers=[fixed(1)])
    assert asyncio.run(made.search("anything", Corpus(()), limit=5)) == []
    assert made._searchers == {}
    assert search(made, 0) == search(made, -1) == []
    assert made._searchers == {}
