"""What another searcher finds, in a model's order."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from jackfield import sync
from jackfield.errors import (
    ConfigError,
    MissingSecretError,
    ModelConnectionError,
    ModelResponseError,
    PluginNotFoundError,
)
from jackfield.plugins import PluginHost
from jackfield.retrieval import Chunk, Corpus, Hit, Searcher, Where
from jackfield.settings import Settings
from jackfield_dashscope.rerank import DashScopeRerank
from jackfield_testkit import replies
from jackfield_testkit.dashscope import FakeDashScope
from jackfield_testkit.replies import Reply
from jackfield_testkit.requests import RecordedRequest

PATH = "/api/v1/services/rerank/text-rerank/text-rerank"
TEXTS = ("tea", "tea and tea and tea", "green tea", "no word of it", "tea, green as grass")

MakeSearcher = Callable[..., DashScopeRerank]


@pytest.fixture
def make_searcher(server: FakeDashScope, clean_environment: pytest.MonkeyPatch) -> MakeSearcher:
    """Makes searchers that ask the server."""

    def make(**settings: Any) -> DashScopeRerank:
        given = {"base_url": server.url, "api_key": "sk-test", "max_retries": 0, **settings}
        asked = {"model": "qwen3-rerank", **given}
        return DashScopeRerank(asked, host=PluginHost(Settings()))

    return make


def corpus(*texts: str) -> Corpus:
    return Corpus(tuple(Chunk(f"id-{number}", "a.txt", text, number, 5) for number, text in enumerate(texts or TEXTS)))


def search(searcher: DashScopeRerank, query: str = "green tea", limit: int = 10) -> list[Hit]:
    return sync.run(searcher.search(query, corpus(), limit=limit))


def test_the_model_is_sent_the_query_and_what_was_found(server: FakeDashScope, make_searcher: MakeSearcher) -> None:
    search(make_searcher(instruct="Find the tea"))
    request = server.requests[0]
    assert request.native_path == PATH  # type: ignore[attr-defined]
    body = request.native  # type: ignore[attr-defined]
    assert body["model"] == "qwen3-rerank"
    assert body["input"]["query"] == "green tea"
    assert sorted(body["input"]["documents"]) == sorted(text for text in TEXTS if "tea" in text)
    assert body["parameters"] == {"return_documents": False, "top_n": 4, "instruct": "Find the tea"}


def test_a_missing_key_is_told_with_what_needs_it(make_searcher: MakeSearcher) -> None:
    with pytest.raises(MissingSecretError, match=r"searcher dashscope_rerank needs .*DASHSCOPE_API_KEY"):
        search(make_searcher(api_key=None, base_url="https://dashscope.aliyuncs.com/api/v1"))


def test_hits_are_in_the_models_order_and_equal_ones_in_that_of_the_documents(make_searcher: MakeSearcher) -> None:
    hits = search(make_searcher())
    assert [(hit.chunk.text, hit.score) for hit in hits] == [
        ("green tea", 1.0),
        ("tea, green as grass", 1.0),
        ("tea", 0.5),
        ("tea and tea and tea", 0.5),
    ]
    assert [hit.ranks["dashscope_rerank"] for hit in hits] == [1, 2, 3, 4]
    assert all("keyword_search" in hit.ranks for hit in hits)


def test_a_limit_cuts_the_models_order_and_not_the_candidates(
    server: FakeDashScope, make_searcher: MakeSearcher
) -> None:
    searcher = make_searcher()
    assert search(searcher, limit=2) == search(searcher)[:2]
    sent = [request.native["input"]["documents"] for request in server.requests]  # type: ignore[attr-defined]
    assert sent[0] == sent[1]


def test_the_other_searcher_gets_the_filter_keeps_its_ranks_and_is_closed(make_searcher: MakeSearcher) -> None:
    asked: list[Any] = []

    class Finds(Searcher):
        name = "finds"

        async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
            asked.append((query, limit, where))
            return [Hit(chunk, 1.0, {"finds": 7, "dashscope_rerank": 9}) for chunk in corpus.chunks[:2]]

        async def prepare(self, corpus: Corpus, *, on_progress: Any = None) -> None:
            on_progress(1, 2)

        async def aclose(self) -> None:
            asked.append("closed")

    searcher, where = make_searcher(), Where.parse({"path": "a*"})
    searcher._searcher = Finds()
    hits = sync.run(searcher.search("green tea", corpus(), limit=1, where=where))
    assert [hit.ranks for hit in hits] == [{"finds": 7, "dashscope_rerank": 1}]
    sync.run(searcher.prepare(corpus(), on_progress=lambda done, total: asked.append((done, total))))
    sync.run(searcher.aclose())
    assert asked == [("green tea", 50, where), (1, 2), "closed"]


def test_only_candidates_are_sent_and_further_hits_follow_in_their_own_order(
    server: FakeDashScope, make_searcher: MakeSearcher
) -> None:
    whole = corpus("tea", "green tea", "tea with milk", "green tea with milk")

    class Finds(Searcher):
        async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
            found = [Hit(chunk, 1.0, {"finds": rank}) for rank, chunk in enumerate(corpus.chunks, start=1)]
            return found[:limit]

    searcher = make_searcher(candidates=2)
    searcher._searcher = Finds()
    expected = [("green tea", 1.0, 2), ("tea", 0.5, 1), ("tea with milk", 0.0, 3), ("green tea with milk", 0.0, 4)]
    for limit in range(1, 6):
        hits = sync.run(searcher.search("green tea", whole, limit=limit))
        assert [(hit.chunk.text, hit.score, hit.ranks["finds"]) for hit in hits] == expected[:limit]
        assert [hit.ranks["dashscope_rerank"] for hit in hits] == list(range(1, len(hits) + 1))
    sent = [request.native["input"]["documents"] for request in server.requests]  # type: ignore[attr-defined]
    assert sent == [["tea", "green tea"]] * 5


def test_where_nothing_is_found_nothing_is_sent(server: FakeDashScope, make_searcher: MakeSearcher) -> None:
    searcher = make_searcher()
    assert search(searcher, "zebra") == []
    assert search(searcher, limit=0) == []
    assert sync.run(searcher.search("tea", Corpus(()), limit=5)) == []
    assert server.requests == []


def test_preparing_prepares_the_other_searcher_and_sends_nothing(
    server: FakeDashScope, make_searcher: MakeSearcher
) -> None:
    searcher = make_searcher(searcher="jackfield-keyword-search/keyword_search")
    sync.run(searcher.prepare(corpus()))
    assert server.requests == []
    assert len(search(searcher)) == 4
    sync.run(searcher.aclose())
    assert len(search(searcher)) == 4


def test_without_a_model_it_is_not_made() -> None:
    with pytest.raises(ConfigError, match="model"):
        DashScopeRerank()


def test_the_other_searcher_is_made_with_its_settings(make_searcher: MakeSearcher) -> None:
    assert search(make_searcher(searcher_settings={"k1": 0.0}))
    with pytest.raises(ConfigError, match="k2"):
        search(make_searcher(searcher_settings={"k2": 0.0}))


def test_the_other_searcher_must_be_there_and_another_one(make_searcher: MakeSearcher) -> None:
    with pytest.raises(PluginNotFoundError, match="no_such_searcher"):
        search(make_searcher(searcher="no_such_searcher"))
    with pytest.raises(ConfigError, match="its own results"):
        search(make_searcher(searcher="dashscope_rerank"))


@pytest.mark.parametrize("settings", [{"model": ""}, {"candidates": 0}, {"candidate": 3}])
def test_settings_that_do_not_fit_are_told_when_it_is_made(
    make_searcher: MakeSearcher, settings: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError, match=next(iter(settings))):
        make_searcher(**settings)


def test_a_server_that_is_not_there_is_an_error(make_searcher: MakeSearcher) -> None:
    with pytest.raises(ModelConnectionError, match="cannot be reached"):
        search(make_searcher(base_url="http://127.0.0.1:9/api/v1"))


@pytest.mark.parametrize(
    "body", [b"{}", b'{"output": {"results": []}}', b'{"output": {"results": [{"index": 9, "relevance_score": 1}]}}']
)
def test_scores_for_other_chunks_are_an_error(server: FakeDashScope, make_searcher: MakeSearcher, body: bytes) -> None:
    server.reply(replies.raw(body))
    with pytest.raises(ModelResponseError):
        search(make_searcher())


@pytest.mark.parametrize("change", [1, -1])
def test_as_many_scores_for_other_chunks_are_an_error(
    server: FakeDashScope, make_searcher: MakeSearcher, change: int
) -> None:
    def rank(request: RecordedRequest) -> Reply:
        count = len(request.json["documents"])
        results = [{"index": index + change, "relevance_score": 0.5} for index in range(count)]
        return replies.raw(json.dumps({"output": {"results": results}}).encode())

    server.respond(rank)
    with pytest.raises(ModelResponseError):
        search(make_searcher())


def test_the_order_is_the_one_that_the_sdk_gets(server: FakeDashScope, make_searcher: MakeSearcher) -> None:
    import dashscope

    ours = search(make_searcher())
    documents = server.requests[0].native["input"]["documents"]  # type: ignore[attr-defined]
    with dashscope.Client(api_key="sk-test", base_url=server.url) as client:
        theirs = client.rerank.create(model="qwen3-rerank", query="green tea", documents=documents)
    scored = {documents[result.index]: result.relevance_score for result in theirs.results}
    assert {hit.chunk.text: hit.score for hit in ours} == scored
