"""What is embedded, uploaded and removed, and what a server may do wrong. Requests go over a real connection."""

from __future__ import annotations

import asyncio
import json
import math
import socket
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jackfield.errors import ConfigError, ModelResponseError, PluginNotFoundError, ToolServiceError
from jackfield.retrieval import Chunk, Corpus, Hit, Searcher, Where
from jackfield_documents import Shelf
from jackfield_qdrant_search import searcher as searcher_module
from jackfield_testkit.embeddings import embeddings, texts_in
from jackfield_testkit.server import FakeOpenAI
from jackfield_testkit.suites.searcher import corpus_of

pytestmark = pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")

Make = Callable[..., Searcher]
TEXTS = ["green tea and water", "a violin has strings", "rye bread keeps fresh"]
KEY = "qd-0123456789abcdefghij"


@dataclass(frozen=True)
class KeptCorpus(Corpus):
    """A corpus that has a shelf."""

    shelf: Shelf | None = None


def kept(folder: Path, texts: Sequence[str]) -> Corpus:
    corpus = corpus_of(texts)
    folder.mkdir(exist_ok=True)
    return KeptCorpus(corpus.chunks, Shelf(folder, corpus.content_hash))


def search(searcher: Searcher, query: str, corpus: Corpus | None = None, limit: int = 3) -> list[Hit]:
    return asyncio.run(searcher.search(query, corpus or corpus_of(TEXTS), limit=limit))


def places(hits: Sequence[Hit]) -> list[int]:
    return [hit.chunk.index for hit in hits]


def asked(server: FakeOpenAI) -> list[list[str]]:
    return [texts_in(request) for request in server.requests]


# --- what is embedded, uploaded and removed ---


def test_a_server_finds_what_the_local_mode_does(make: Make, qdrant: Any) -> None:
    corpus = corpus_of([*TEXTS, TEXTS[0], " ", "violin"])
    for query in ("violin", "tea", "bread and water", "nothing of that"):
        far, near = (search(make(**where), query, corpus, 9) for where in ({"url": qdrant.url}, {}))
        assert [(hit.chunk.index, hit.score) for hit in far] == [(hit.chunk.index, hit.score) for hit in near]
    assert places(search(make(url=qdrant.url), "violin", corpus, 1)) == [5]


def test_a_question_whose_vector_is_zeros_finds_nothing(make: Make) -> None:
    assert search(make(), "?") == []


def test_no_text_is_embedded_or_uploaded_twice_not_even_by_another_searcher(
    server: FakeOpenAI, make: Make, qdrant: Any
) -> None:
    first = search(make(url=qdrant.url), "violin")
    grown = corpus_of([*TEXTS, "one more"])
    again = search(make(url=qdrant.url), "violin", grown)
    assert asked(server) == [TEXTS, ["violin"], ["one more"], ["violin"]]
    assert [len(ids) for ids in qdrant.upserts()] == [3, 1]
    assert [(hit.chunk.text, hit.score) for hit in again] == [(hit.chunk.text, hit.score) for hit in first]


def test_a_corpus_can_be_uploaded_before_the_first_search(
    server: FakeOpenAI, make: Make, qdrant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searcher_module, "_AT_ONCE", 2)
    searcher: Any = make(url=qdrant.url)
    said: list[tuple[int, int]] = []
    asyncio.run(searcher.prepare(corpus_of([*TEXTS, " "]), on_progress=lambda *figures: said.append(figures)))
    assert said == [(2, 4), (3, 4), (4, 4)]
    assert places(search(searcher, "violin", corpus_of([*TEXTS, " "]), 1)) == [1]
    assert asked(server) == [TEXTS[:2], TEXTS[2:], ["violin"]]


def test_a_text_is_a_point_once_however_often_it_stands_there(server: FakeOpenAI, make: Make, qdrant: Any) -> None:
    hits = search(make(url=qdrant.url), "tea", corpus_of(["tea", "bread", "tea", " "]), limit=9)
    assert asked(server) == [["tea", "bread"], ["tea"]]
    assert places(hits) == [0, 2, 1]
    assert qdrant.points() == 2


def test_texts_are_not_uploaded(make: Make, qdrant: Any) -> None:
    search(make(url=qdrant.url), "violin")
    assert "strings" not in json.dumps(qdrant.requests)


def test_another_model_has_points_of_its_own(make: Make, qdrant: Any) -> None:
    search(make(url=qdrant.url), "violin")
    search(make(url=qdrant.url, embedding_model="openai:other"), "violin")
    assert qdrant.points() == 6


def test_points_that_only_older_contents_of_an_index_have_are_removed(
    server: FakeOpenAI, make: Make, qdrant: Any, tmp_path: Path
) -> None:
    other = kept(tmp_path / "other", ["rye bread", "of another index"])
    search(make(url=qdrant.url), "bread", other)
    for texts in (["a", "b"], ["b", "c"], ["c", "d"], ["rye bread", "d"]):
        search(make(url=qdrant.url), "c", kept(tmp_path / "notes", texts))
    assert qdrant.points() == 4, "c, d and rye bread are in the last two, the rest is of the other index"
    before = len(asked(server))
    assert places(search(make(url=qdrant.url), "bread", other)) == [0, 1]
    assert asked(server)[before:] == [["bread"]]


def test_the_last_eight_corpora_in_memory_of_an_index_are_kept(make: Make, qdrant: Any) -> None:
    search(make(url=qdrant.url, index="kitchen"), "bread", corpus_of(["rye bread"]))
    searcher = make(url=qdrant.url, index="music")
    for number in range(9):
        search(searcher, "violin", corpus_of([f"violin {number}"]))
        assert qdrant.points() == 1 + min(number + 1, 8)
    created = [
        body["field_name"] for method, path, body in qdrant.requests if method == "PUT" and path.endswith("/index")
    ]
    (removed,) = (path for method, path, _ in qdrant.requests if method == "DELETE" and "/index/" in path)
    assert len(created) == len({*created}) == 10, "a payload index for each corpus"
    assert removed.endswith(f"/index/{created[1]}"), "that of the first violin"


def test_a_collection_is_named_after_the_setting_and_asked_for_first(make: Make, qdrant: Any) -> None:
    search(make(url=qdrant.url, collection="notes"), "violin")
    method, path, _ = qdrant.requests[0]
    assert (method, path[:19], path.rsplit("/")[-1]) == ("GET", "/collections/notes-", "exists")
    assert {path.split("/")[2] for _, path, _ in qdrant.requests} == {path.split("/")[2]}
    assert len(path.split("/")[2]) == len("notes-") + 12


@pytest.mark.parametrize("most_named", [1000, 1])
def test_a_filter_selects_the_same_whether_its_points_are_named_or_not(
    make: Make, qdrant: Any, monkeypatch: pytest.MonkeyPatch, most_named: int
) -> None:
    monkeypatch.setattr(searcher_module, "_MOST_NAMED", most_named)
    corpus = Corpus(tuple(Chunk(f"{n}", f"{n % 4}.md", f"tea {n // 8}", n // 4, 2) for n in range(40)))
    searcher, where = make(url=qdrant.url), Where.parse({"path": ["1.md", "3.md"]})
    everything = [hit for hit in search(searcher, "tea", corpus, 40) if hit.chunk.source in ("1.md", "3.md")]
    assert len(everything) == 20
    for limit in (1, 7, 40):
        hits = asyncio.run(searcher.search("tea", corpus, limit=limit, where=where))
        assert [(hit.chunk.id, hit.score) for hit in hits] == [(h.chunk.id, h.score) for h in everything][:limit]
        assert [hit.ranks for hit in hits] == [{"qdrant_search": rank} for rank in range(1, len(hits) + 1)]
    named = [body for _, path, body in qdrant.requests if path.endswith("/query") and "has_id" in json.dumps(body)]
    assert bool(named) == (most_named == 1000)


def test_a_corpus_whose_points_were_removed_is_uploaded_again(make: Make, qdrant: Any, tmp_path: Path) -> None:
    searcher, old = make(url=qdrant.url), kept(tmp_path / "notes", ["a tea", "b tea"])
    assert places(search(searcher, "tea", old)) == [0, 1]
    for text in ("c", "d"):
        search(make(url=qdrant.url), "c", kept(tmp_path / "notes", [text]))
    assert qdrant.points() == 2
    assert places(search(searcher, "tea", old)) == [0, 1]


def test_which_chunk_is_which_point_is_kept_beside_an_index_on_disk(
    make: Make, qdrant: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = kept(tmp_path / "notes", TEXTS)
    first = search(make(url=qdrant.url), "violin", corpus)
    monkeypatch.setattr(searcher_module.QdrantSearcher, "_points_of", None)
    assert search(make(url=qdrant.url), "violin", corpus) == first


def test_points_that_somebody_takes_away_during_a_build_are_uploaded_again(make: Make, qdrant: Any) -> None:
    def fail(method: str, path: str) -> None:
        if path.endswith("/points/count") and len(qdrant.upserts()) == 1:
            collection = path.split("/")[2]
            qdrant.local.delete(collection, [qdrant.upserts()[0][1]])

    qdrant.fail = fail
    assert places(search(make(url=qdrant.url), "violin"))[:1] == [1]
    assert qdrant.points() == 3


def test_a_folder_of_the_local_mode_keeps_points_between_runs(server: FakeOpenAI, make: Make, tmp_path: Path) -> None:
    for _ in range(2):
        searcher = make(local_path=str(tmp_path / "qdrant"))
        assert places(search(searcher, "violin"))[:1] == [1]
        asyncio.run(searcher.aclose())
    assert asked(server) == [TEXTS, ["violin"], ["violin"]]


def test_a_searcher_that_was_closed_opens_again(make: Make, qdrant: Any) -> None:
    for where in ({"url": qdrant.url}, {}):
        searcher = make(**where)
        first = search(searcher, "violin")
        asyncio.run(searcher.aclose())
        assert search(searcher, "violin") == first


def test_hits_below_the_lowest_score_are_left_out(make: Make) -> None:
    assert places(search(make(min_score=0.2), "violin strings")) == [1]


def test_a_hit_that_has_the_lowest_score_is_kept(make: Make) -> None:
    hits = search(make(), "violin strings")
    scores = [hit.score for hit in hits]
    assert scores[0] > scores[1]
    for number, least in enumerate(scores):
        kept = search(make(min_score=least), "violin strings")
        assert [hit.chunk.index for hit in kept][: number + 1] == [hit.chunk.index for hit in hits[: number + 1]]
    just_above = search(make(min_score=math.nextafter(scores[0], 2)), "violin strings") if scores[0] < 1 else []
    assert just_above == []


# --- what a server may do wrong ---


def raised(searcher: Searcher) -> ToolServiceError:
    with pytest.raises(ToolServiceError) as caught:
        search(searcher, "violin")
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + repr(searcher.config)
    assert KEY not in shown
    return caught.value


def status(code: int, body: str) -> list[bytes]:
    return [f"HTTP/1.1 {code} X\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n{body}".encode()]


def test_a_server_that_goes_away_in_mid_build_is_an_error_and_the_next_build_goes_on(
    server: FakeOpenAI, make: Make, qdrant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searcher_module, "_AT_ONCE", 2)
    corpus = corpus_of([f"word{number}" for number in range(8)])
    qdrant.fail = lambda method, path: [] if len(qdrant.upserts()) == 3 else None
    with pytest.raises(
        ToolServiceError, match=r"Qdrant at http://127.0.0.1:\d+ cannot be used .*check that Qdrant is running"
    ):
        search(make(url=qdrant.url), "word1", corpus)
    assert qdrant.points() == 4
    qdrant.fail = lambda method, path: None
    before = len(asked(server))
    assert places(search(make(url=qdrant.url), "word5", corpus, 1)) == [5]
    assert asked(server)[before:] == [["word4", "word5"], ["word6", "word7"], ["word5"]]


def test_an_error_is_not_kept(make: Make, qdrant: Any) -> None:
    searcher = make(url=qdrant.url)
    qdrant.fail = lambda method, path: status(503, "starting")
    assert "status 503: starting" in str(raised(searcher))
    qdrant.fail = lambda method, path: None
    assert places(search(searcher, "violin"))[:1] == [1]


def test_nobody_at_the_address_is_an_error_that_says_so(make: Make) -> None:
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        error = raised(make(url=url, api_key=KEY))
    assert f"Qdrant at {url} cannot be used" in str(error)


def test_a_refused_key_is_an_error_without_the_key(make: Make, qdrant: Any) -> None:
    qdrant.fail = lambda method, path: status(401, f"the key {KEY} is unknown")
    error = raised(make(url=qdrant.url, api_key=KEY))
    assert "rejected the API key (status 401): set QDRANT_API_KEY" in str(error)
    assert error.code == "401"
    assert qdrant.keys == [KEY]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (status(400, f"bad request with {KEY}"), "status 400: bad request with [key]"),
        (status(500, "<html>" + "x" * 5000), "status 500: <html>xxx"),
        (status(429, "{}"), "status 429"),
        (status(200, "hello"), "cannot be used"),
        (status(200, f'{{"result": "{KEY}"}}'), "cannot be used"),
        ([b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{"], "cannot be used"),
        ([b"\xff\xfe\r\n\r\n"], "cannot be used"),
    ],
    ids=["refused", "a page", "too many", "no JSON", "other JSON", "cut short", "no HTTP"],
)
def test_an_answer_that_is_not_one_of_qdrants_is_an_error(
    make: Make, qdrant: Any, answer: list[bytes], said: str
) -> None:
    qdrant.fail = lambda method, path: answer
    error = str(raised(make(url=qdrant.url, api_key=KEY)))
    assert said in error
    assert len(error) < 600


def test_an_answer_that_drips_has_an_end(make: Make, qdrant: Any) -> None:
    ended = threading.Event()

    def drip() -> Iterable[bytes]:
        yield b"HTTP/1.1 200 OK\r\ncontent-length: 999999999\r\n\r\n"
        while not ended.wait(0.02):
            yield b" "

    qdrant.fail = lambda method, path: drip()
    try:
        error = raised(make(url=qdrant.url, timeout_s=0.5))
    finally:
        ended.set()
    assert "did not respond within 0.5 s: try again, or increase timeout_s" in str(error)


# --- keys and settings ---


def test_the_key_of_the_environment_goes_to_this_machine_and_to_no_other(
    make: Make, qdrant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QDRANT_API_KEY", KEY)
    search(make(url=qdrant.url), "violin")
    assert set(qdrant.keys) == {KEY}
    elsewhere: Any = make(url="http://qdrant.example")
    assert elsewhere._collection._address.key == ""
    assert "set api_key next to the URL" in elsewhere._collection._address.withheld
    monkeypatch.setenv("QDRANT_URL", "http://qdrant.example")
    trusted: Any = make(url="http://qdrant.example")
    assert trusted._collection._address.key == KEY
    assert KEY not in repr(trusted._collection._address)


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


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda vectors: vectors[:-1], "vectors"),
        (lambda vectors: [*vectors[:-1], [1.0]], "lengths"),
        (lambda vectors: [*vectors[:-1], [1e300, 1.0]], "not finite"),
        (lambda vectors: [[] for _ in vectors], "lengths|empty"),
    ],
    ids=["one is missing", "of another length", "not finite", "empty"],
)
def test_vectors_that_cannot_be_compared_are_an_error_and_not_uploaded(
    server: FakeOpenAI, make: Make, qdrant: Any, change: Callable[[Any], Any], problem: str
) -> None:
    server.respond(
        lambda request: embeddings(
            request, change([[1.0, 0.0] for _ in texts_in(request)]), tokens=1, knows_base64=False
        )
    )
    with pytest.raises(ModelResponseError, match=problem):
        search(make(url=qdrant.url, embedder_settings={"max_retries": 0}), "violin")
    assert qdrant.upserts() == []


def test_a_chunk_is_embedded_under_its_title_and_headings_and_a_query_by_its_text(
    server: FakeOpenAI, make: Make
) -> None:
    chunk = Chunk("1", "a.md", "It opens at nine.", 0, 5, title="Mills", headings=("Mills", "Opening hours"))
    search(make(), json.dumps({"keywords_en": ["hours"], "text": "When?"}), Corpus((chunk,)))
    assert asked(server) == [["Mills\nOpening hours\nIt opens at nine."], ["When?"]]


def test_the_local_mode_removes_old_points_without_a_warning(make: Make, tmp_path: Path) -> None:
    searcher = make()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for texts in (["a", "b"], ["b", "c"], ["c", "d"], ["rye bread", "d"]):
            assert search(searcher, "c", kept(tmp_path / "notes", texts))
