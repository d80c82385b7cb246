"""Vectors are made while an index is built; whatever happens meanwhile, none is lost and none is wrong."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jackfield.errors import ConfigError, ModelConnectionError, ModelResponseError
from jackfield.retrieval import Embedded, Embedder, Purpose, Searcher
from jackfield_documents import Shelf
from jackfield_testkit.embeddings import embeddings_of, texts_in
from jackfield_testkit.replies import Reply
from jackfield_testkit.server import FakeOpenAI, RecordedRequest
from jackfield_testkit.suites.searcher import corpus_of
from jackfield_vector_search import searcher as module
from jackfield_vector_search.searcher import VectorSearcher
from jackfield_vector_search.store import VectorStore

Make = Callable[..., Searcher]
TEXTS = [f"text {number}" for number in range(10)]
AT_ONCE = module._AT_ONCE  # of users; the tests use less


def vector_of(text: str) -> tuple[float, ...]:
    return (float(len(text)), float(sum(map(ord, text)) % 97), 1.0)


class Flaky(Embedder):
    """Makes one mistake for each entry of `faults`, one call after the other, and then none."""

    backend = "flaky"
    space = "flaky"

    def __init__(self, faults: Sequence[str] = ()) -> None:
        super().__init__()
        self.faults = list(faults)
        self.asked: list[str] = []
        self.batches: list[int] = []
        self.closed = 0

    async def aclose(self) -> None:
        self.closed += 1

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
        self.batches.append(len(texts) if purpose == "document" else -len(texts))
        if purpose == "query":
            return Embedded(tuple(map(vector_of, texts)))
        fault = self.faults.pop(0) if self.faults else ""
        vectors = tuple(map(vector_of, texts))
        match fault:
            case "fails":
                raise ModelConnectionError("no route", backend="flaky")
            case "half":
                return Embedded(vectors[: len(vectors) // 2])
            case "not a number":
                return Embedded((*vectors[:-1], (float("nan"), 1.0, 1.0)))
            case "longer" if self.asked:  # before, there is nothing that it does not fit
                return Embedded(tuple((*vector, 1.0) for vector in vectors))
            case "of two lengths":
                return Embedded((*vectors[:-1], (1.0,)) if len(vectors) > 1 else ((),))
            case "more":
                return Embedded((*vectors, vectors[0]))
        self.asked += texts
        return Embedded(vectors)


def searcher_of(embedder: Embedder, path: Path | None) -> VectorSearcher:
    made = VectorSearcher(embedding_model="flaky:m", index_path=str(path) if path else None)
    made._embedding._embedder = embedder
    return made


@pytest.fixture(autouse=True, scope="module")
def _small_steps() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_AT_ONCE", 3)
        yield


FAULTS = ("", "fails", "half", "not a number", "of two lengths", "more")


@given(faults=st.lists(st.sampled_from([*FAULTS, "longer"]), max_size=8))
def test_whatever_an_embedder_answers_no_wrong_vector_is_kept_and_no_right_one_is_made_twice(faults: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        embedder = Flaky(faults)
        searcher = searcher_of(embedder, Path(folder) / "vectors.db")
        assert _prepared_at_last(searcher, len(faults)) == _right_hits()
        asyncio.run(searcher.aclose())
    assert embedder.asked == TEXTS


@settings(max_examples=settings().max_examples // 2)
@given(faults=st.lists(st.sampled_from(FAULTS), max_size=5))
def test_without_a_file_the_next_try_begins_anew(faults: list[str]) -> None:
    assert _prepared_at_last(searcher_of(Flaky(faults), None), len(faults)) == _right_hits()


def _prepared_at_last(searcher: VectorSearcher, tries: int) -> list[tuple[str, float]]:
    corpus = corpus_of(TEXTS)
    said: list[str] = []
    for _ in range(tries):
        try:
            asyncio.run(searcher.prepare(corpus))
        except (ModelResponseError, ModelConnectionError, ConfigError) as error:
            said.append(str(error))
    assert all("flaky" in text or "no route" in text for text in said)
    asyncio.run(searcher.prepare(corpus))
    return _hits(searcher)


def _right_hits() -> list[tuple[str, float]]:
    return _hits(searcher_of(Flaky(), None))


def _hits(searcher: Searcher) -> list[tuple[str, float]]:
    found = asyncio.run(searcher.search("text 4", corpus_of(TEXTS), limit=20))
    assert len(found) == len(TEXTS)
    return [(hit.chunk.id, hit.score) for hit in found]


def test_vectors_of_another_length_than_those_that_are_kept_say_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "vectors.db"
    asyncio.run(searcher_of(Flaky(), path).prepare(corpus_of(TEXTS)))
    other = Flaky(["longer"])
    other.asked.append("another process asked before")
    with pytest.raises(
        ConfigError, match=r"vectors of dimension 4, but .*vectors\.db contains .* dimension 3: .* delete this"
    ):
        asyncio.run(searcher_of(other, path).prepare(corpus_of([*TEXTS, "new"])))
    assert len(_hits(searcher_of(Flaky(), path))) == len(TEXTS)


def test_texts_are_embedded_512_at_a_time_and_a_question_by_itself_as_a_question(tmp_path: Path) -> None:
    embedder = Flaky()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_AT_ONCE", AT_ONCE)
        corpus = corpus_of([f"text {number}" for number in range(AT_ONCE + 1)])
        assert len(asyncio.run(searcher_of(embedder, tmp_path / "v.db").search("text", corpus, limit=3))) == 3
    assert (AT_ONCE, embedder.batches) == (512, [512, 1, -1])


def test_a_chunk_without_text_needs_no_vector_and_matches_nothing() -> None:
    embedder = Flaky()
    corpus = corpus_of([" ", ""])
    assert asyncio.run(searcher_of(embedder, None).search("text", corpus, limit=3)) == []
    assert embedder.asked == []


def test_vectors_of_two_lengths_without_any_from_before_are_the_embedders_fault(tmp_path: Path) -> None:
    for path in (None, tmp_path / "vectors.db"):
        with pytest.raises(ModelResponseError, match="expected vectors of dimension 3, got 4"):
            asyncio.run(searcher_of(Flaky(["", "longer"]), path).prepare(corpus_of(TEXTS)))


def test_closing_closes_the_embedder_and_the_file_and_both_open_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    embedder = Flaky()
    made = VectorSearcher(embedding_model="flaky:m", index_path="~/deep/vectors.db")
    made._embedding._embedder = embedder
    asyncio.run(made.prepare(corpus_of([])))
    assert not (tmp_path / "deep").exists(), "an empty corpus needs no file"
    for texts in (TEXTS[:5], TEXTS):
        asyncio.run(made.prepare(corpus_of(texts)))
    assert (tmp_path / "deep/vectors.db").is_file()
    asyncio.run(made.aclose())
    assert embedder.closed == 1
    assert [name for name in open_files() if name.startswith(str(tmp_path))] == []
    made._embedding._embedder = embedder
    asyncio.run(made.prepare(corpus_of([*TEXTS, "more"])))
    assert embedder.asked == [*TEXTS, "more"]


def open_files() -> list[str]:
    folder = Path("/proc/self/fd")
    return [str(entry.resolve()) for entry in folder.iterdir()] if folder.is_dir() else []


def test_a_corpus_on_disk_keeps_its_vectors_beside_itself(tmp_path: Path) -> None:
    corpus = corpus_of(TEXTS)
    object.__setattr__(corpus, "shelf", Shelf(tmp_path, corpus.content_hash))
    for asked in (TEXTS, []):
        embedder = Flaky()
        asyncio.run(searcher_of(embedder, None).prepare(corpus))
        assert embedder.asked == asked
    assert (tmp_path / "vectors.sqlite").exists()


def test_a_file_of_vectors_that_is_named_takes_those_of_a_corpus_on_disk_too(tmp_path: Path) -> None:
    corpus = corpus_of(TEXTS)
    object.__setattr__(corpus, "shelf", Shelf(tmp_path, corpus.content_hash))
    asyncio.run(searcher_of(Flaky(), tmp_path / "own.db").prepare(corpus))
    assert ((tmp_path / "own.db").exists(), (tmp_path / "vectors.sqlite").exists()) == (True, False)


def test_kept_vectors_of_two_lengths_say_what_to_do(tmp_path: Path) -> None:
    store = VectorStore(tmp_path / "vectors.db")
    searcher = searcher_of(Flaky(), store.path)
    space = searcher._embedding.space
    store.put(space, {text: np.ones(3 + number, np.float32) for number, text in enumerate(TEXTS[:2])})
    store.close()
    with pytest.raises(ConfigError, match=r"vectors of dimension 4, but .*vectors\.db contains .* dimension 3"):
        asyncio.run(searcher.prepare(corpus_of(TEXTS)))


def test_progress_counts_chunks_and_begins_with_those_that_are_kept(tmp_path: Path) -> None:
    reports: list[tuple[int, int]] = []
    texts = ["a", "b", "a", " ", *TEXTS]
    path = tmp_path / "vectors.db"
    with pytest.raises(ModelConnectionError):
        asyncio.run(searcher_of(Flaky(["", "", "fails"]), path).prepare(corpus_of(texts)))
    made = searcher_of(Flaky(), path)
    asyncio.run(made.prepare(corpus_of(texts), on_progress=lambda done, total: reports.append((done, total))))
    assert reports == [(8, 14), (11, 14), (14, 14)]


def test_who_stops_waiting_pays_for_no_further_texts(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    class Slow(Flaky):
        async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
            begun.set()
            await asyncio.to_thread(go_on.wait, 60)
            return await super().embed(texts, purpose=purpose)

    embedder = Slow()
    searcher = searcher_of(embedder, tmp_path / "vectors.db")

    async def give_up() -> None:
        task = asyncio.create_task(searcher.prepare(corpus_of(TEXTS)))
        await asyncio.to_thread(begun.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(give_up())
    go_on.set()
    asyncio.run(searcher.prepare(corpus_of(TEXTS)))  # it waits until the first one has noticed
    assert embedder.asked == TEXTS


KILLED = """
import asyncio, json, sys
from jackfield_testkit.suites.searcher import corpus_of
from jackfield_vector_search import searcher

searcher._AT_ONCE = 3
made = searcher.VectorSearcher(json.loads(sys.argv[1]))
asyncio.run(made.prepare(corpus_of(json.loads(sys.argv[2]))))
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_process_that_is_killed_has_lost_no_vector_that_it_had_kept(
    server: FakeOpenAI, make: Make, tmp_path: Path
) -> None:
    third = threading.Event()

    def never_from_the_third_on(request: RecordedRequest) -> Reply:
        if TEXTS[6] not in texts_in(request):
            return embeddings_of(request)
        third.set()
        return replace(embeddings_of(request), delay_s=600)

    server.respond(never_from_the_third_on)
    embedder = {"base_url": server.url, "api_key": "sk-test"}
    cfg = {"embedding_model": "openai:words", "embedder_settings": embedder, "index_path": str(tmp_path / "v.db")}
    process = subprocess.Popen([sys.executable, "-c", KILLED, json.dumps(cfg), json.dumps(TEXTS)])
    assert third.wait(60)
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    server.respond(embeddings_of)
    before = len(server.requests)
    asyncio.run(make(index_path=cfg["index_path"]).prepare(corpus_of(TEXTS)))
    assert [text for request in server.requests[before:] for text in texts_in(request)] == TEXTS[6:]
