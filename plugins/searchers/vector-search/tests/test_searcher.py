"""Vectors are asked for once, kept by text and model, and checked before anything is compared with them."""

from __future__ import annotations

import asyncio
import json
import math
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield import PluginHost, create_agent, sync
from jackfield.errors import ConfigError, ModelResponseError, PluginNotFoundError
from jackfield.retrieval import Chunk, Corpus, Hit, Searcher
from jackfield.testing import ScriptedModel, answer
from jackfield_testkit.embeddings import embeddings, texts_in
from jackfield_testkit.forks import output_of
from jackfield_testkit.server import FakeOpenAI
from jackfield_testkit.suites.searcher import corpus_of
from jackfield_vector_search.index import Index
from jackfield_vector_search.searcher import VectorSearcher
from jackfield_vector_search.store import VectorStore

Make = Callable[..., Searcher]
TEXTS = ["green tea and water", "a violin has strings", "rye bread keeps fresh"]


def search(searcher: Searcher, query: str, corpus: Corpus | None = None, limit: int = 3) -> list[Hit]:
    return asyncio.run(searcher.search(query, corpus or corpus_of(TEXTS), limit=limit))


def asked(server: FakeOpenAI) -> list[list[str]]:
    return [texts_in(request) for request in server.requests]


# --- what is embedded ---


def test_a_corpus_is_embedded_once_and_each_query_by_itself(server: FakeOpenAI, make: Make) -> None:
    searcher = make()
    assert [hit.chunk.index for hit in search(searcher, "violin", limit=1)] == [1]
    assert [hit.chunk.index for hit in search(searcher, "bread", limit=1)] == [2]
    assert asked(server) == [TEXTS, ["violin"], ["bread"]]


def test_a_text_is_embedded_once_however_often_it_stands_there(server: FakeOpenAI, make: Make) -> None:
    hits = search(make(), "tea", corpus_of(["tea", "bread", "tea", " "]), limit=9)
    assert asked(server) == [["tea", "bread"], ["tea"]]
    assert [(hit.chunk.index, hit.score) for hit in hits][:2] == [(0, 1.0), (2, 1.0)]
    assert {hit.chunk.index for hit in hits} == {0, 1, 2}, "a chunk without text has no vector"


def test_a_chunk_is_embedded_under_its_title_and_headings(server: FakeOpenAI, make: Make) -> None:
    chunk = Chunk("1", "a.md", "It opens at nine.", 0, 5, title="Mills", headings=("Mills", "Opening hours"))
    search(make(), "hours", Corpus((chunk,)))
    assert asked(server)[0] == ["Mills\nOpening hours\nIt opens at nine."]


def test_long_texts_are_cut_and_a_query_of_keywords_is_asked_by_its_text(server: FakeOpenAI, make: Make) -> None:
    query = json.dumps({"keywords_en": ["tea"], "text": "Which tea?"})
    search(make(max_chars=20), query, corpus_of(["tea " * 100]))
    assert [[len(text) for text in texts] for texts in asked(server)] == [[19], [10]]
    assert asked(server)[1] == ["Which tea?"]


def test_a_vector_of_zeros_finds_nothing_and_is_not_found(server: FakeOpenAI, make: Make) -> None:
    vectors = {"tea": (1.0, 0.0), "violin": (-1.0, 0.1), "茶": (0.0, 0.0)}
    server.respond(lambda request: embeddings(request, [vectors[text] for text in texts_in(request)], tokens=1))
    corpus, searcher = corpus_of(list(vectors)), make()
    assert [hit.chunk.text for hit in search(searcher, "tea", corpus)] == ["tea", "violin"]
    assert search(searcher, "茶", corpus) == []
    assert search(make(), "tea", corpus_of(["茶"])) == []


def test_hits_below_the_lowest_score_are_left_out(make: Make) -> None:
    assert [hit.chunk.index for hit in search(make(min_score=0.2), "violin strings")] == [1]


def test_a_lowest_score_of_zero_leaves_out_what_is_unlike_the_query(server: FakeOpenAI, make: Make) -> None:
    vectors = {"tea": (1.0, 0.0), "violin": (-1.0, 0.1), "bread": (0.0, 1.0)}
    server.respond(lambda request: embeddings(request, [vectors[text] for text in texts_in(request)], tokens=1))
    hits = search(make(min_score=0), "tea", corpus_of(list(vectors)))
    assert [hit.chunk.text for hit in hits] == ["tea", "bread"]


@pytest.mark.parametrize(("approximate_from", "has_graph"), [(3, True), (4, False), (None, False)])
def test_an_index_of_a_searcher_is_approximate_from_its_setting_on(
    make: Make, approximate_from: int | None, has_graph: bool
) -> None:
    pytest.importorskip("usearch")
    made: Any = make(approximate_from=approximate_from)
    index = asyncio.run(sync.in_worker(made._index_of, corpus_of(TEXTS), None, threading.Event()))
    assert (index._graph is not None) is has_graph


def test_a_hit_that_has_the_lowest_score_is_kept(make: Make) -> None:
    hits = search(make(), "violin strings")
    scores = [hit.score for hit in hits]
    assert scores[0] > scores[1]
    for number, least in enumerate(scores):
        kept = search(make(min_score=least), "violin strings")
        assert [hit.chunk.index for hit in kept][: number + 1] == [hit.chunk.index for hit in hits[: number + 1]]
    just_above = search(make(min_score=math.nextafter(scores[0], 2)), "violin strings") if scores[0] < 1 else []
    assert just_above == []


# --- what is kept in a file ---


def test_no_text_is_embedded_twice_with_a_file_not_even_by_another_process(
    server: FakeOpenAI, make: Make, tmp_path: Path
) -> None:
    path = tmp_path / "deep" / "vectors.db"
    first = [(hit.chunk.index, hit.score) for hit in search(make(index_path=str(path)), "violin")]
    corpus = corpus_of([*TEXTS, "one more"])
    again = search(make(index_path=str(path)), "violin", corpus, limit=9)
    assert asked(server) == [TEXTS, ["violin"], ["one more"], ["violin"]]
    assert [(hit.chunk.index, hit.score) for hit in again if hit.chunk.index < 3] == first
    assert path.stat().st_mode & 0o077 == 0
    program = (
        "import sys; from pathlib import Path\n"
        "from jackfield_vector_search.store import VectorStore\n"
        "print(len(VectorStore(Path(sys.argv[1])).get(sys.argv[2], sys.argv[3:])))\n"
    )
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM vectors").fetchone() == (4,)
    space = asyncio.run(_space(make()))
    assert output_of(program, path, space, *TEXTS, "new") == "3"


async def _space(searcher: Any) -> str:
    return str(searcher._embedding.space)


def test_another_model_shares_no_vectors(server: FakeOpenAI, make: Make, tmp_path: Path) -> None:
    path = str(tmp_path / "vectors.db")
    search(make(index_path=path), "violin")
    search(make(index_path=path, embedding_model="openai:other"), "violin")
    assert asked(server) == [TEXTS, ["violin"]] * 2


def test_many_vectors_go_in_and_come_out(tmp_path: Path) -> None:
    store = VectorStore(tmp_path / "vectors.db")
    vectors = {f"text {number}": np.asarray([number, 1], np.float32) for number in range(1300)}
    store.put("space", vectors)
    found = store.get("space", [*vectors, "another"])
    assert found.keys() == vectors.keys()
    assert all((found[text] == vectors[text]).all() for text in vectors)
    store.close()
    assert len(store.get("space", ["text 1"])) == 1


@pytest.mark.parametrize("content", [b"not a database at all", b"", None])
def test_a_file_that_is_not_ours_is_left_as_it_is(make: Make, tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "theirs.db"
    if content is None:
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE theirs (a)")
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    if content == b"":  # an empty file is taken: nothing is lost with it
        assert search(make(index_path=str(path)), "violin")
        return
    with pytest.raises(ConfigError, match=r"index_path .*theirs\.db"):
        search(make(index_path=str(path)), "violin")
    assert path.read_bytes() == before


# --- what an embedder may do wrong ---


def wrong(server: FakeOpenAI, change: Callable[[list[list[float]]], Sequence[Sequence[float]]]) -> None:
    server.respond(
        lambda request: embeddings(
            request, change([[1.0, 0.0] for _ in texts_in(request)]), tokens=1, knows_base64=False
        )
    )


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda vectors: vectors[:-1], "vectors"),
        (lambda vectors: [*vectors[:-1], [1.0]], "length"),
        (lambda vectors: [*vectors[:-1], [1e300, 1.0]], "not finite"),
        (lambda vectors: [[] for _ in vectors], "empty"),
    ],
    ids=["one is missing", "of another length", "not finite", "empty"],
)
def test_vectors_that_cannot_be_compared_are_an_error(
    server: FakeOpenAI, make: Make, change: Callable[[Any], Any], problem: str
) -> None:
    wrong(server, change)
    with pytest.raises(ModelResponseError, match=problem):
        search(make(embedder_settings={"max_retries": 0}), "violin")


def test_a_query_of_another_length_than_the_chunks_is_an_error(server: FakeOpenAI, make: Make) -> None:
    wrong(server, lambda vectors: vectors if len(vectors) > 1 else [[1.0, 0.0, 0.0]])
    with pytest.raises(ModelResponseError, match="dimension 3, but the chunk vectors have dimension 2"):
        search(make(), "violin")


def test_an_embedder_is_that_of_the_host(make: Make) -> None:
    with pytest.raises(PluginNotFoundError, match="openai"):
        search(VectorSearcher(embedding_model="openai:words", host=PluginHost(paths=[])), "violin")


@pytest.mark.parametrize(
    ("model", "error", "problem"),
    [
        ("words", ConfigError, "openai:text-embedding"),
        ("openai:", ConfigError, "openai:text-embedding"),
        ("no_such:words", PluginNotFoundError, "no_such"),
    ],
)
def test_an_embedder_must_be_named_and_installed(make: Make, model: str, error: type[Exception], problem: str) -> None:
    with pytest.raises(error, match=problem):
        search(make(embedding_model=model), "violin")


# --- the nearest ---


@given(
    rows=st.lists(st.lists(st.integers(-3, 3), min_size=3, max_size=3), min_size=1, max_size=30),
    query=st.lists(st.integers(-3, 3), min_size=3, max_size=3),
    limit=st.integers(1, 35),
)
def test_the_nearest_are_those_that_sorting_all_of_them_gives(
    rows: list[list[int]], query: list[int], limit: int
) -> None:
    index = Index(np.asarray(rows, np.float32), range(0, 2 * len(rows), 2))
    found = index.search(np.asarray(query, np.float32), limit)
    everything = index.search(np.asarray(query, np.float32), len(rows))
    assert found == everything[:limit]
    assert everything == sorted(everything, key=lambda hit: (-hit[1], hit[0]))
    for number, score in everything:
        row, other = np.asarray(rows[number // 2], float), np.asarray(query, float)
        lengths = np.linalg.norm(row) * np.linalg.norm(other)
        assert score == round(score, 6), "the last bits depend on the order of summation"
        assert score == pytest.approx(row @ other / lengths if lengths else 0.0, abs=1e-5)


# --- with an agent ---


def test_an_agent_searches_by_words_and_by_vectors_and_shows_the_best_of_both(
    server: FakeOpenAI, tmp_path: Path
) -> None:
    paragraphs = [f"Paragraph {number} is about nothing at all." for number in range(300)]
    paragraphs[150] = "The mill opens at nine."
    (tmp_path / "guide.txt").write_text("\n\n".join(paragraphs), encoding="utf-8")
    by_vectors = {
        "name": "vector_search",
        "embedding_model": "openai:words",
        "embedder_settings": {"base_url": server.url, "api_key": "sk-test"},
        "index_path": str(tmp_path / "vectors.db"),
    }
    rag_cfg = {
        "rag_searchers": ["keyword_search", by_vectors],
        "max_ref_token": 200,
        "parser_page_size": 50,
        "chunk_overlap": 0,
    }
    model = ScriptedModel([answer("At nine.")])
    result = create_agent("assistant", llm=model, files=[str(tmp_path / "guide.txt")], rag_cfg=rag_cfg).ask(
        "When does the mill open?"
    )
    assert "The mill opens at nine." in model.requests[0].messages[0].get_text_content()
    assert [str(source) for source in result.sources] == ["guide.txt"]
    assert ["When does the mill open?"] in asked(server)
