"""The index of vectors in a file, and with a graph of candidates."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import ConfigError
from jackfield.retrieval import Corpus, Searcher
from jackfield_documents import Shelf
from jackfield_local_state.ownfile import BusyFileError
from jackfield_testkit.embeddings import texts_in
from jackfield_testkit.server import FakeOpenAI
from jackfield_testkit.suites.searcher import corpus_of
from jackfield_vector_search import graph
from jackfield_vector_search import index as index_module
from jackfield_vector_search.graph import Matrix
from jackfield_vector_search.index import Index
from jackfield_vector_search.searcher import VectorSearcher
from jackfield_vector_search.store import VectorStore

ROWS = st.lists(st.lists(st.integers(-3, 3), min_size=3, max_size=3), max_size=20)


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "_THREADS", 1)  # so that a graph is the same in each run


def clustered(count: int, *, seed: int = 1) -> Matrix:
    chance = np.random.default_rng(seed)
    centres = np.random.default_rng(0).normal(size=(40, 24))
    points: Matrix = (centres[chance.integers(0, 40, count)] + 0.6 * chance.normal(size=(count, 24))).astype(np.float32)
    return points


# --- in a file ---


@given(ROWS, st.integers(1, 25))
def test_an_index_from_a_file_finds_what_it_found_before(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[int]], limit: int
) -> None:
    path = tmp_path_factory.mktemp("index") / "vectors"
    matrix = np.asarray(rows, np.float32).reshape(len(rows), 3 if rows else 0)
    index = Index(matrix, range(0, 2 * len(rows), 2))
    index.write(path)
    again = Index.from_file(path)
    assert again.dimension == index.dimension
    query = np.asarray([1, 2, -1], np.float32)
    assert again.search(query, limit) == index.search(query, limit)


@pytest.mark.parametrize("approximate_from", [None, 10])
def test_a_file_that_is_not_whole_is_refused(tmp_path: Path, approximate_from: int | None) -> None:
    path = tmp_path / "vectors"
    Index(clustered(20), range(20), approximate_from=approximate_from).write(path)
    whole = path.read_bytes()
    for damaged in (b"", whole[:10], whole[:63], whole[:64], whole[:-1], whole + b"\0", b"\xff" * len(whole)):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r".*"):
            Index.from_file(path)


def test_a_file_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "vectors"
    Index(clustered(20), range(20)).write(path)
    path.write_bytes(path.read_bytes().replace(b"jackfield-vectors 1", b"jackfield-vectors 2"))
    with pytest.raises(ValueError, match="created by another version"):
        Index.from_file(path)


def test_a_graph_that_is_not_one_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("usearch")
    path = tmp_path / "vectors"
    Index(clustered(20), range(20), approximate_from=10).write(path)
    graphless = 64 + 20 * 8 + 20 * 24 * 4
    whole = path.read_bytes()
    path.write_bytes(whole[:graphless] + bytes(len(whole) - graphless))
    with pytest.raises(ValueError, match=r".*"):
        Index.from_file(path)


# --- approximate ---


@pytest.mark.parametrize("from_file", [False, True])
def test_candidates_hold_nearly_all_of_the_nearest_with_their_exact_scores(tmp_path: Path, from_file: bool) -> None:
    pytest.importorskip("usearch")
    rows = clustered(3000)
    exact, approximate = Index(rows, range(3000)), Index(rows, range(3000), approximate_from=3000)
    if from_file:
        approximate.write(tmp_path / "vectors")
        approximate = Index.from_file(tmp_path / "vectors")
    assert approximate._graph
    found = 0
    for query in clustered(50, seed=2):
        all_of_them, nearest = exact.search(query, 3000), approximate.search(query, 10)
        assert len(nearest) == 10
        assert set(nearest) <= set(all_of_them)
        assert nearest == sorted(nearest, key=lambda hit: (-hit[1], hit[0]))
        found += len(set(nearest) & set(all_of_them[:10]))
        assert len(approximate.search(query, 200)) == 200
        assert len(approximate._graph.near(query, 1)) == 128
    assert found >= 475


@pytest.mark.parametrize("count", [1, 10, 200])
def test_a_filter_is_exact_and_selects_with_a_graph_as_without(count: int) -> None:
    pytest.importorskip("usearch")
    rows = clustered(600)
    exact, approximate = Index(rows, range(600)), Index(rows, range(600), approximate_from=600)
    assert approximate._graph
    selected = list(range(0, 600, 600 // count))
    for query in clustered(5, seed=5):
        everything = [hit for hit in exact.search(query, 600) if hit[0] in selected]
        for limit in (1, 5, 600):
            for index in (exact, approximate):
                assert index.search(query, limit, selected) == everything[:limit]
        assert approximate.search(query, 3, []) == []


def test_below_that_size_and_for_many_hits_it_is_exact() -> None:
    rows = clustered(600)
    exact, small = Index(rows, range(600)), Index(rows, range(600), approximate_from=601)
    large = Index(rows, range(600), approximate_from=600)
    for query in clustered(5, seed=3):
        assert small.search(query, 10) == exact.search(query, 10)
        assert large.search(query, 150) == exact.search(query, 150)


def test_without_usearch_it_is_exact_and_one_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rows, query = clustered(600), clustered(1, seed=4)[0]
    Index(rows, range(600), approximate_from=600).write(tmp_path / "vectors")
    monkeypatch.setattr(graph, "find_spec", lambda _: None)
    with caplog.at_level(logging.WARNING):
        without = Index(rows, range(600), approximate_from=600)
    assert [record.getMessage() for record in caplog.records] == [
        "each search compares 600 vectors: to make searches faster, run: pip install "
        "'jackfield-vector-search[approximate]'"
    ]
    exact = Index(rows, range(600)).search(query, 10)
    assert without.search(query, 10) == exact
    from_file = Index.from_file(tmp_path / "vectors")
    assert (from_file._graph, from_file.search(query, 10)) == (None, exact)


# --- beside an index on disk ---


@dataclass(frozen=True)
class KeptCorpus(Corpus):
    """A corpus that has a shelf."""

    shelf: Shelf | None = None


def test_a_corpus_on_disk_is_embedded_and_read_once_for_all_processes(
    server: FakeOpenAI, make: Callable[..., Searcher], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunks = corpus_of(["green tea", "a violin", "rye bread"]).chunks
    corpus = KeptCorpus(chunks, Shelf(tmp_path, Corpus(chunks).content_hash))

    def found(searcher: Any) -> list[tuple[int, float]]:
        hits = asyncio.run(searcher.search("violin", corpus, limit=3))
        return [(hit.chunk.index, hit.score) for hit in hits]

    def not_again(*_: object, **__: object) -> None:
        raise AssertionError("it is built again")

    first = found(make())
    monkeypatch.setattr(VectorSearcher, "_built", not_again)  # as in another process
    assert found(make()) == first
    assert [texts_in(request) for request in server.requests] == [[c.text for c in chunks], ["violin"], ["violin"]]
    monkeypatch.undo()
    found(make(max_chars=3))
    assert [texts_in(request)[0] for request in server.requests[3:]] == ["gre", "vio"]


@pytest.mark.parametrize(
    "change",
    [
        *["max_chars", "approximate_from", "embedding_model"],
        *["jackfield-vector-search", "jackfield-documents", "usearch"],
    ],
)
def test_an_index_of_another_setting_or_version_is_not_used(
    server: FakeOpenAI, make: Callable[..., Searcher], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    chunks = corpus_of(["green tea"]).chunks
    corpus = KeptCorpus(chunks, Shelf(tmp_path, Corpus(chunks).content_hash))
    settings = {"max_chars": 3, "approximate_from": 7, "embedding_model": "openai:other"}
    asyncio.run(make().prepare(corpus))
    if change == "usearch":
        is_installed = graph.can_be_made()
        monkeypatch.setattr(graph, "can_be_made", lambda: not is_installed)
    elif change not in settings:
        true = metadata.version
        monkeypatch.setattr(metadata, "version", lambda name: "9" if name == change else true(name))
    before = set(tmp_path.glob("vector_search-*"))
    asyncio.run(make(**({change: settings[change]} if change in settings else {})).prepare(corpus))
    assert len(set(tmp_path.glob("vector_search-*")) - before) == 1


def test_sizes_below_zero_are_refused_even_if_they_add_up(tmp_path: Path) -> None:
    path = tmp_path / "index"
    Index(clustered(1)[:, :0], [0]).write(path)
    content = bytearray(path.read_bytes())
    header = np.frombuffer(content, dtype=index_module._HEADER, count=1)
    header["graph"] = -8  # as long as the number of the one row
    path.write_bytes(content[:-8])
    with pytest.raises(ValueError, match="is incomplete or was created by another version"):
        Index.from_file(path)


def test_a_search_for_many_hits_does_not_use_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    index = Index(clustered(600), range(600), approximate_from=600)
    asked: list[int] = []

    def near(_: graph.Graph, __: Matrix, limit: int) -> Any:
        asked.append(limit)
        return np.arange(limit)

    monkeypatch.setattr(graph.Graph, "near", near)
    most = next(limit for limit in range(1, 600) if index_module._CANDIDATES * limit >= 600)
    index.search(clustered(1)[0], most)
    assert asked == []
    index.search(clustered(1)[0], most - 1)
    assert asked == [index_module._CANDIDATES * (most - 1)]


def test_a_store_that_is_busy_is_passed_over_and_one_that_fails_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = VectorStore(tmp_path / "vectors.db")
    errors = iter([BusyFileError("in use"), sqlite3.DatabaseError("the disk image is malformed")])

    def fail(**_: object) -> None:
        raise next(errors)

    monkeypatch.setattr(store._file, "use", fail)
    assert store.get("space", ["a"]) == {}
    assert "is locked by another process" in caplog.text
    with pytest.raises(ConfigError, match=r"index_path .* cannot be used: the disk image is malformed"):
        store.get("space", ["a"])


def test_a_store_keeps_half_a_character(tmp_path: Path) -> None:
    store = VectorStore(tmp_path / "vectors.db")
    (vector,) = clustered(1)
    store.put("space", {"\ud83d": vector})
    assert (store.get("space", ["\ud83d"])["\ud83d"] == vector).all()
    store.close()


def test_a_store_keeps_the_last_vector_of_a_text_in_each_space(tmp_path: Path) -> None:
    store = VectorStore(tmp_path / "vectors.db")
    first, second = clustered(2)
    for space, vector in (("space", first), ("spac", second), ("space", second)):
        store.put(space, {"a": vector, "ea": first})
    assert (store.get("space", ["a"])["a"] == second).all()
    assert (store.get("spac", ["ea"])["ea"] == first).all()
    assert store.get("other", ["a"]) == {}
    store.close()
