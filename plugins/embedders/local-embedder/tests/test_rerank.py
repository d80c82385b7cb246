"""The reranker orders hits as the cross-encoder scores them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jackfield.errors import ConfigError, JackfieldError, ModelNotFoundError, ModelRequestError, ModelResponseError
from jackfield.retrieval import Block, Corpus, Document, Hit, Searcher
from jackfield_documents import corpus_of
from jackfield_local_embedder.graph import GraphValue, GraphWriter
from jackfield_testkit.installed import plain_host
from jackfield_testkit.suites import SearcherSuite

QUESTION = "green tea water"
TEXTS = {"a": "tea a b c d e f g", "b": "train 80", "c": "water tea green", "d": "green tea train"}


def overlap_model(*, classes: int = 1) -> bytes:
    """A cross-encoder that counts equal tokens of question and passage; the scores of further classes are 0."""
    graph = GraphWriter()
    last, middle = graph.weight("last", np.array([2], np.int64)), graph.weight("middle", np.array([1], np.int64))
    inputs = ["input_ids", "attention_mask", "token_type_ids"]
    ids, mask, types = (graph.node("Cast", [name], f"{name}.float", to=1) for name in inputs)
    one, few = graph.weight("one", np.array([1], np.float32)), graph.weight("few", np.array([4], np.float32))
    query = graph.node("Sub", [one, types], "query")
    passage = graph.node("Mul", [types, mask], "passage")
    same = graph.node(
        "Equal",
        [graph.node("Unsqueeze", [ids, last], "rows"), graph.node("Unsqueeze", [ids, middle], "columns")],
        "same",
    )
    pairs = graph.node(
        "Mul", [graph.node("Cast", [same], "pairs", to=1), graph.node("Unsqueeze", [query, last], "q")], "of"
    )
    pairs = graph.node("Mul", [pairs, graph.node("Unsqueeze", [passage, middle], "p")], "both")
    axes = graph.weight("axes", np.array([1, 2], np.int64))
    counts = graph.node("ReduceSum", [pairs, axes], "counts", keepdims=0)
    logits = graph.node("Unsqueeze", [graph.node("Div", [counts, few], "scaled"), middle], "logits")
    if classes > 1:
        zeros = graph.node("Sub", [logits, logits], "zeros")
        logits = graph.node("Concat", [zeros, logits] + [zeros] * (classes - 2), "wide", axis=1)
    values = [GraphValue(name, "int64", ("rows", "length")) for name in inputs]
    return graph.model(values, GraphValue(logits, "float32", ("rows", classes)))


@pytest.fixture
def folder(bert: Path, tmp_path: Path) -> Path:
    (tmp_path / "model.onnx").write_bytes(overlap_model())
    (tmp_path / "tokenizer.json").write_bytes((bert / "tokenizer.json").read_bytes())
    return tmp_path


@pytest.fixture
def corpus() -> Corpus:
    documents = [Document(name, (Block(text),), content_hash=name) for name, text in TEXTS.items()]
    return corpus_of(documents, size_tokens=100)


def make(folder: Path | str, **settings: Any) -> Searcher:
    host = plain_host()
    row = host.find("searcher", "local_rerank")
    return host.make(row, {"model": str(folder), **settings}, Searcher)


def search(searcher: Searcher, corpus: Corpus, question: str = QUESTION, limit: int = 9) -> list[Hit]:
    return asyncio.run(searcher.search(question, corpus, limit=limit))


class TestContract(SearcherSuite):
    component = "jackfield-local-embedder/local_rerank"

    @pytest.fixture(autouse=True)
    def _model(self, folder: Path) -> None:
        self.config = {"model": str(folder)}  # type: ignore[misc]


def test_the_model_has_the_last_word(folder: Path, corpus: Corpus) -> None:
    hits = search(make(folder), corpus)
    assert [hit.chunk.source for hit in hits] == ["c", "d", "a"]
    expected = [1 / (1 + np.exp(-count / 4)) for count in (3, 2, 1)]
    assert [hit.score for hit in hits] == pytest.approx(expected, abs=1e-5)
    assert [hit.ranks["local_rerank"] for hit in hits] == [1, 2, 3]


@pytest.mark.parametrize("settings", [{"tokens_at_once": 1}, {"tokens_at_once": 12}])
def test_batches_change_nothing(settings: dict[str, Any], folder: Path, corpus: Corpus) -> None:
    assert search(make(folder, **settings), corpus) == search(make(folder), corpus)


def test_hits_after_the_candidates_follow_in_their_own_order(folder: Path) -> None:
    texts = ["tea", "green tea", "green tea water", "green tea water 80"]
    documents = [Document(str(number), (Block(text),), content_hash=text) for number, text in enumerate(texts)]
    long = corpus_of(documents, size_tokens=100)
    searcher: Any = make(folder, candidates=2)
    searcher._searcher = Given([Hit(chunk, 0.5, {"given": rank}) for rank, chunk in enumerate(long.chunks, start=1)])
    hits = search(searcher, long)
    assert [hit.chunk.text for hit in hits] == ["green tea", "tea", "green tea water", "green tea water 80"]
    assert [hit.score > 0 for hit in hits] == [True, True, False, False]
    assert [hit.ranks for hit in hits] == [{"given": g, "local_rerank": r} for g, r in ((2, 1), (1, 2), (3, 3), (4, 4))]
    assert [search(searcher, long, limit=limit) for limit in range(5)] == [hits[:limit] for limit in range(5)]


def test_a_hit_in_an_unknown_script_keeps_its_place(folder: Path) -> None:
    texts = ["黑白", "tea", "黑白红 tea", "green tea", "water tea green", "白黑"]
    documents = [Document(str(number), (Block(text),), content_hash=text) for number, text in enumerate(texts)]
    mixed = corpus_of(documents, size_tokens=100)
    searcher: Any = make(folder)
    searcher._searcher = Given([Hit(chunk, 0.5, {"given": rank}) for rank, chunk in enumerate(mixed.chunks, start=1)])
    hits = search(searcher, mixed)
    assert [hit.chunk.text for hit in hits] == ["黑白", "water tea green", "黑白红 tea", "green tea", "tea", "白黑"]
    scores = [1 / (1 + np.exp(-count / 4)) for count in (3, 3, 2, 2, 1)]
    assert [hit.score for hit in hits] == pytest.approx([*scores, 0], abs=1e-5)
    for question in ("黑白", "黑白红 tea"):
        assert search(searcher, mixed, question) == searcher._searcher.hits


def test_a_model_with_two_classes_ranks_by_their_difference(folder: Path, corpus: Corpus) -> None:
    expected = search(make(folder), corpus)
    (folder / "model.onnx").write_bytes(overlap_model(classes=2))
    assert search(make(folder), corpus) == expected


def test_a_model_of_more_classes_is_refused(folder: Path, corpus: Corpus) -> None:
    (folder / "model.onnx").write_bytes(overlap_model(classes=3))
    with pytest.raises(ModelRequestError, match="returns 3 scores per pair"):
        search(make(folder), corpus)


def test_long_pairs_are_cut_where_the_model_ends(folder: Path, corpus: Corpus) -> None:
    (folder / "config.json").write_text(json.dumps({"max_position_embeddings": 5}))
    scores = {hit.chunk.source: hit.score for hit in search(make(folder), corpus)}
    # Of three tokens and three, five are left.
    assert scores["c"] < 1 / (1 + np.exp(-3 / 4))


def test_without_a_model_the_error_says_how_to_get_one(corpus: Corpus) -> None:
    with pytest.raises(ModelNotFoundError, match="set download to true"):
        search(make("org/none"), corpus)


@pytest.mark.parametrize("missing", ["model.onnx", "tokenizer.json"])
def test_a_missing_file_is_named(missing: str, folder: Path, corpus: Corpus) -> None:
    (folder / missing).unlink()
    with pytest.raises(JackfieldError, match=r"onnx_file|tokenizer\.json"):
        search(make(folder), corpus)


def test_it_does_not_rerank_its_own_hits(folder: Path, corpus: Corpus) -> None:
    with pytest.raises(ConfigError, match="its own results"):
        search(make(folder, searcher="local_rerank"), corpus)


class Given(Searcher):
    """Finds what it was given, and notes what it is asked."""

    name = "given"

    def __init__(self, hits: list[Hit]) -> None:
        super().__init__()
        self.hits = hits
        self.asked: list[tuple[str, Any]] = []

    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Any = None) -> list[Hit]:
        self.asked.append((query, limit))
        return self.hits

    async def prepare(self, corpus: Corpus, *, on_progress: Any = None) -> None:
        self.asked.append(("prepare", on_progress))

    async def aclose(self) -> None:
        self.asked.append(("aclose", None))


def test_the_other_searcher_is_asked_prepared_and_closed(folder: Path, corpus: Corpus) -> None:
    searcher: Any = make(folder, candidates=7)
    given = searcher._searcher = Given([Hit(chunk, 0.5, {"given": 1}) for chunk in reversed(corpus.chunks)])
    asyncio.run(searcher.prepare(corpus, on_progress=print))
    hits = search(searcher, corpus, "nothing", limit=3)
    # Of hits that are equally good, the first in the documents is the first.
    assert [hit.chunk.source for hit in hits] == ["a", "b", "c"]
    assert [hit.ranks for hit in hits] == [{"given": 1, "local_rerank": rank} for rank in (1, 2, 3)]
    assert search(searcher, corpus, limit=0) == []
    assert search(searcher, corpus_of([], size_tokens=100)) == []
    given.hits = []
    assert search(searcher, corpus, "none") == []
    asyncio.run(searcher.aclose())
    assert searcher._model is None
    assert given.asked == [("prepare", print), ("nothing", 7), ("none", 9), ("aclose", None)]


def test_damaged_weights_are_told(folder: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    searcher: Any = make(folder)
    monkeypatch.setattr(searcher, "_compute", lambda pairs: [float("nan")] * len(pairs))
    with pytest.raises(ModelResponseError, match=r"local_rerank: .* produced infinite or undefined numbers"):
        search(searcher, corpus)


def test_hybrid_search_takes_it_as_the_reranker(folder: Path, corpus: Corpus) -> None:
    host = plain_host()
    settings: dict[str, Any] = {
        "searchers": ["keyword_search"],
        "rerank": {"name": "local_rerank", "model": str(folder)},
    }
    searcher = host.make(host.find("searcher", "hybrid_search"), settings, Searcher)
    assert [hit.chunk.source for hit in search(searcher, corpus)] == ["c", "d", "a"]
