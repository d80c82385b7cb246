"""What is kept in the database, what is asked of the embedder, and what becomes of both when something fails."""

from __future__ import annotations

import asyncio
import json
import math
import re
import shlex
import socket
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jackfield.cli.main import main
from jackfield.errors import ConfigError, ModelResponseError, ToolServiceError
from jackfield.retrieval import Chunk, Corpus, Hit, Searcher, make_searcher
from jackfield_documents import DocumentReader
from jackfield_knowledge import KnowledgeIndex
from jackfield_pgvector_search import searcher as searcher_module
from jackfield_pgvector_search.filling import Ready
from jackfield_pgvector_search.statements import query_of, term_of, words_text
from jackfield_pgvector_search.tables import VERSION, prepare
from jackfield_postgres import Address, Database, LostConnectionError
from jackfield_testkit.embeddings import embeddings, embeddings_of, texts_in
from jackfield_testkit.installed import plain_host
from jackfield_testkit.replies import text as says
from jackfield_testkit.server import FakeOpenAI, RecordedRequest
from jackfield_testkit.suites.searcher import corpus_of

Make = Callable[..., Searcher]
Rows = Callable[..., list[list[Any]]]
TEXTS = ["green tea and water", "a violin has strings", "rye bread keeps fresh"]


def search(searcher: Searcher, query: str, corpus: Corpus | None = None, limit: int = 3) -> list[Hit]:
    return asyncio.run(searcher.search(query, corpus or corpus_of(TEXTS), limit=limit))


def indexes_of(hits: Sequence[Hit]) -> list[int]:
    return [hit.chunk.index for hit in hits]


def asked(server: FakeOpenAI) -> list[list[str]]:
    return [texts_in(request) for request in server.requests]


@pytest.fixture
def rows(engine: str, schema: str) -> Iterator[Rows]:
    """What is in the test's tables: `rows("SELECT count(*) FROM jackfield_chunks")`."""
    database = Database(engine, timeout_s=60)

    def of(sql: str, **values: object) -> list[list[Any]]:
        with database.use() as connection:
            connection.run(f"SET search_path TO {schema}, public")
            try:
                return connection.run(sql, **values)
            finally:
                connection.run("RESET search_path")  # all clients of PGlite share one session

    yield of
    database.close()


# --- what is embedded, and what is kept ---


def test_a_question_whose_vector_is_zeros_finds_nothing_by_meaning(make: Make) -> None:
    assert search(make(search="vectors"), "?") == []


def test_only_what_is_new_is_embedded_whoever_asks(server: FakeOpenAI, make: Make) -> None:
    assert indexes_of(search(make(), "violin", limit=1)) == [1]
    assert indexes_of(search(make(), "bread", corpus_of([*TEXTS, "one more"]), limit=1)) == [2]
    assert asked(server) == [["violin"], TEXTS, ["bread"], ["one more"]]


def test_a_text_is_embedded_once_however_often_it_stands_there(server: FakeOpenAI, make: Make, rows: Rows) -> None:
    hits = search(make(search="vectors"), "tea", corpus_of(["tea", "bread", "tea", " "]), limit=9)
    assert asked(server) == [["tea"], ["tea", "bread"]]
    assert [(hit.chunk.index, round(hit.score, 6)) for hit in hits][:2] == [(0, 1.0), (2, 1.0)]
    assert {hit.chunk.index for hit in hits} == {0, 1, 2}, "a chunk without text has no vector"
    assert rows("SELECT count(*) FROM jackfield_chunks") == [[3]]


def test_chunks_are_found_under_their_title_and_headings_and_distinguished_by_them(
    server: FakeOpenAI, make: Make
) -> None:
    chunk = Chunk("1", "a.md", "It opens at nine.", 0, 5, title="Mills", headings=("Mills", "Opening hours"))
    other = Chunk("1", "a.md", "It opens at nine.", 0, 5, title="Shops")
    searcher = make(max_chars=30)
    assert [hit.chunk.title for hit in search(searcher, "mill", Corpus((chunk,)))] == ["Mills"]
    assert asked(server)[1] == ["Mills\nOpening hours\nIt opens a"]
    assert [hit.chunk.title for hit in search(make(search="words"), "shop", Corpus((other,)))] == ["Shops"]
    assert search(make(search="words"), "mill", Corpus((other,))) == []


def test_indexes_share_a_database_and_chunks_that_nothing_needs_are_removed(make: Make, rows: Rows) -> None:
    search(make(index="kitchen", search="words"), "tea", corpus_of(["tea", "bread"]))
    for number in range(6):
        search(make(index="music", search="words"), "violin", corpus_of(["bread", f"violin {number}"]))
    assert rows("SELECT name, count(*) FROM jackfield_corpora GROUP BY name ORDER BY name") == [
        ["kitchen", 1],
        ["music", 4],
    ]
    # Two of the kitchen, of which one is in the other index, too, and the last four violins.
    assert rows("SELECT count(*) FROM jackfield_chunks") == [[6]]
    assert rows("SELECT count(*) FROM jackfield_words_1") == [[6]]
    assert indexes_of(search(make(index="kitchen", search="words"), "bread", corpus_of(["tea", "bread"]))) == [1]


def test_a_corpus_that_others_have_removed_is_brought_back(make: Make) -> None:
    searcher, corpus = make(search="words"), corpus_of(TEXTS)
    assert indexes_of(search(searcher, "violin", corpus)) == [1]
    for number in range(5):
        search(make(search="words"), "violin", corpus_of([f"violin {number}"]))
    assert indexes_of(search(searcher, "violin", corpus)) == [1]


@pytest.mark.parametrize("times", [0, 1, 2, 3])
def test_a_corpus_that_others_keep_removing_is_brought_back_twice(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    made: Any = make_searcher("pgvector_search", {"dsn": "postgresql://127.0.0.1:1/db"}, host=plain_host())
    brought: list[Corpus] = []

    def ready(corpus: Corpus) -> Ready:
        brought.append(corpus)
        return Ready(len(brought), 3, 1.0, None, None)

    monkeypatch.setattr(made, "_ready", ready)
    monkeypatch.setattr(made, "_rows", lambda ready, *_: None if ready.number <= times else [(1, 2.5, 1, None)])
    corpus = corpus_of(TEXTS)
    if times == 3:
        with pytest.raises(ToolServiceError, match=r"keep replacing this one in the database: set a different `index`"):
            search(made, "violin", corpus)
        return
    (hit,) = search(made, "violin", corpus)
    assert (hit.chunk, hit.score) == (corpus.chunks[1], 2.5)
    assert hit.ranks == {"pgvector_search": 1, "pgvector_search.words": 1}
    assert brought == [corpus] * (times + 1)
    search(made, "violin", corpus)
    assert len(brought) == times + 1, "and then it is known to be there"


def test_an_index_on_disk_has_its_name_and_is_not_read_again(
    server: FakeOpenAI, make: Make, rows: Rows, tmp_path: Path
) -> None:
    (tmp_path / "notes.md").write_text("# Mill\n\nThe mill opens at nine.\n")
    index = KnowledgeIndex(str(tmp_path / "notes.index"))
    asyncio.run(index.build([str(tmp_path / "notes.md")], reader=DocumentReader()))
    corpus = index.corpus()
    assert next(hit.chunk.text for hit in search(make(), "mill", corpus)).endswith("The mill opens at nine.")
    again = [hit.score for hit in search(make(), "mill", corpus)]
    assert len(again) == 1
    assert rows("SELECT name FROM jackfield_corpora") == [["notes.index"]]
    assert len(asked(server)) == 3, "two questions and one text"
    index.close()


def test_words_alone_need_neither_an_embedder_nor_pgvector(server: FakeOpenAI, make: Make, rows: Rows) -> None:
    assert indexes_of(search(make(search="words"), "strings of violins")) == [1]
    assert server.requests == []
    assert rows("SELECT what FROM jackfield_sides WHERE dimension IS NOT NULL") == []


# --- how it ranks ---


def test_both_rankings_are_fused_and_say_their_places(make: Make) -> None:
    first, *_ = search(make(), "violin strings")
    assert first.ranks == {"pgvector_search": 1, "pgvector_search.words": 1, "pgvector_search.vectors": 1}
    assert first.score == pytest.approx(2 / 61)
    [only] = [hit.ranks for hit in search(make(), "strings") if "pgvector_search.words" in hit.ranks]
    assert only["pgvector_search.words"] == 1


def test_a_question_of_stop_words_alone_is_asked_by_its_vector(make: Make) -> None:
    hits = search(make(), "what is the")
    assert hits
    assert all(hit.ranks.keys() == {"pgvector_search", "pgvector_search.vectors"} for hit in hits)


def test_a_rare_word_says_more_than_a_frequent_one_and_a_short_text_more_than_a_long_one(make: Make) -> None:
    texts = ["tea tea tea tea", "tea and a violin", "tea", "tea and bread and butter and more of all that", "nothing"]
    hits = search(make(search="words"), "tea violin", corpus_of(texts), limit=9)
    assert indexes_of(hits) == [1, 0, 2, 3]


def test_words_score_as_bm25_does(make: Make) -> None:
    texts = ["tea tea violin", "tea bread", "bread bread bread butter jam", "violin"]
    lengths = [3, 2, 5, 1]
    mean = sum(lengths) / 4

    def weight(count: int, length: int, having: int) -> float:
        idf = math.log(1 + (4 - having + 0.5) / (having + 0.5))
        return idf * count * 2.5 / (count + 1.5 * (0.25 + 0.75 * length / mean))

    hits = search(make(search="words"), "tea violin tea", corpus_of(texts), limit=9)
    expected = {
        0: 2 * weight(2, lengths[0], 2) + weight(1, lengths[0], 2),
        1: 2 * weight(1, lengths[1], 2),
        3: weight(1, lengths[3], 2),
    }
    assert {hit.chunk.index: hit.score for hit in hits} == pytest.approx(expected, rel=1e-6)


def test_each_way_of_cutting_chinese_has_words_of_its_own(make: Make, rows: Rows) -> None:
    corpus = corpus_of(["库存管理系统的数据", "violin"])
    for chinese in ("words", "bigrams", "words"):
        assert indexes_of(search(make(search="words", chinese=chinese), "库存", corpus)) == [0]
    sides = [what for (what,) in rows("SELECT what FROM jackfield_sides ORDER BY id")]
    assert [what.partition(" ")[2].partition(" ")[0] for what in sides] == ["words", "bigrams"]


def test_the_settings_of_the_connection_reach_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []

    class NoDatabase:
        def __init__(self, dsn: str, **settings: Any) -> None:
            opened.append((dsn, settings.pop("settings").count("hnsw."), settings))

    monkeypatch.setattr(searcher_module, "Database", NoDatabase)
    dsn = "postgresql://127.0.0.1:1/db"
    made: Any = make_searcher("pgvector_search", {"dsn": dsn, "timeout_s": 7, "connections": 3}, host=plain_host())
    assert made._database is made._database
    assert opened == [(dsn, 2, {"timeout_s": 7, "connections": 3})]


def test_words_find_what_keyword_search_finds(make: Make) -> None:
    corpus = corpus_of(
        ["U.S.A. and 3.5", "don't panic", "库存管理系统的数据", "snake_case names", "ÅNGSTRÖM", "ｆｕｌｌ"]
    )
    other = make_searcher("keyword_search", {}, host=plain_host())
    searcher = make(search="words")
    for query in ("usa", "3.5", "panic", "库存数据", "管理", "cases", "ångström", "full", "no such thing"):
        assert set(indexes_of(search(searcher, query, corpus))) == set(indexes_of(search(other, query, corpus))), query


def test_hits_below_the_lowest_cosine_are_left_out(make: Make) -> None:
    assert indexes_of(search(make(search="vectors", min_score=0.2), "violin strings")) == [1]


def test_a_hit_that_has_the_lowest_cosine_is_kept(make: Make) -> None:
    hits = search(make(search="vectors"), "violin strings")
    scores = [hit.score for hit in hits]
    assert scores[0] > scores[1]
    for number, least in enumerate(scores):
        kept = search(make(search="vectors", min_score=least), "violin strings")
        assert [hit.chunk.index for hit in kept][: number + 1] == [hit.chunk.index for hit in hits[: number + 1]]
    just_above = (
        search(make(search="vectors", min_score=math.nextafter(scores[0], 2)), "violin strings")
        if scores[0] < 1
        else []
    )
    assert just_above == []


@pytest.mark.parametrize(("least", "indexes"), [(12, 1), (13, 0)])
def test_vectors_get_an_index_from_the_number_that_is_set(make: Make, rows: Rows, least: int, indexes: int) -> None:
    corpus = corpus_of([f"text {number}" for number in range(12)])
    search(make(search="vectors", approximate_from=least), "text 7", corpus, limit=1)
    assert rows("SELECT count(*) FROM pg_indexes WHERE indexname LIKE '%_near'") == [[indexes]]


def test_many_vectors_get_an_index_and_are_found_with_it(make: Make, rows: Rows) -> None:
    corpus = corpus_of([f"text {number}" for number in range(40)])
    exact = search(make(search="vectors", approximate_from=None), "text 7", corpus, limit=5)
    assert rows("SELECT count(*) FROM pg_indexes WHERE indexname LIKE '%_near'") == [[0]]
    more = corpus_of([f"text {number}" for number in range(41)])
    assert indexes_of(search(make(search="vectors", approximate_from=40), "text 7", more, limit=1)) == [7]
    assert rows("SELECT count(*) FROM pg_indexes WHERE indexname LIKE '%_near'") == [[1]]
    assert indexes_of(exact)[0] == 7


# --- a text is never syntax ---


@given(st.lists(st.text(max_size=12), min_size=1, max_size=6))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_term_is_kept_and_asked_for_as_it_is(rows: Rows, words: list[str]) -> None:
    terms = [term for term in map(term_of, words) if term]
    [[kept]] = rows("SELECT tsvector_to_array(CAST(:words AS tsvector))", words=words_text(terms))
    assert set(kept) == set(terms)
    for term in terms:
        query = "SELECT CAST(:words AS tsvector) @@ CAST(:query AS tsquery), numnode(CAST(:query AS tsquery))"
        assert rows(query, words=words_text(terms), query=query_of(term)) == [[True, 1]]


def test_a_query_is_never_syntax(make: Make, rows: Rows) -> None:
    searcher = make()
    search(searcher, "tea")
    for query in ("'; DROP SCHEMA public CASCADE; --", "tea & !violin", "a:* | (b <-> c)", ":corpus $1 %s {0}", "\\"):
        assert isinstance(search(searcher, query), list)
    assert indexes_of(search(make(search="words"), "!violin")) == [1], "an exclamation mark is no operator"
    assert rows("SELECT count(*) FROM jackfield_chunks") == [[3]]


# --- what can fail ---


class Relay:
    """A way to a server that can be cut: what goes through it breaks, and nothing comes through until it is mended."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._is_cut = False
        self._lock = threading.Lock()
        self.port = self._listening.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def cut(self) -> None:
        with self._lock:
            self._is_cut = True
            for one in self._open:
                _shut(one)
            self._open.clear()

    def mend(self) -> None:
        with self._lock:
            self._is_cut = False

    def close(self) -> None:
        self.cut()
        _shut(self._listening)
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            with self._lock:
                if self._is_cut:
                    _shut(near)
                    continue
                far = socket.create_connection(self._target)
                self._open += [near, far]
                for one in (near, far):  # else each statement waits for an acknowledgement
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for source, sink in ((near, far), (far, near)):
                self._threads.append(threading.Thread(target=_pass_on, args=(source, sink), daemon=True))
                self._threads[-1].start()


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass
    finally:
        _shut(sink)
        _shut(source)


def _shut(one: socket.socket) -> None:
    with suppress(OSError):  # it is not connected
        one.shutdown(socket.SHUT_RDWR)
    one.close()


@pytest.fixture
def relay(engine: str) -> Iterator[Relay]:
    """A way to the database."""
    address = Address.parse(engine)
    with closing(Relay((address.host, address.port))) as relay:
        yield relay


def through(engine: str, relay: Relay) -> str:
    return urlsplit(engine)._replace(netloc=f"postgres:not-a-secret@127.0.0.1:{relay.port}").geturl()


def test_a_database_that_goes_away_in_mid_build_publishes_nothing_and_the_next_build_goes_on(
    server: FakeOpenAI, make: Make, rows: Rows, engine: str, relay: Relay
) -> None:
    texts = [f"text {number}" for number in range(300)]
    searcher = make(dsn=through(engine, relay), search="vectors")
    seen: list[str] = []

    def answer(request: RecordedRequest) -> Any:
        seen.extend(texts_in(request))
        if "text 299" in texts_in(request):
            relay.cut()
        return embeddings_of(request)

    server.respond(answer)
    with pytest.raises(
        ToolServiceError, match=r"PostgreSQL at 127\.0\.0\.1:\d+/postgres cannot be reached, or the connection"
    ):
        search(searcher, "text 7", corpus_of(texts))
    assert rows("SELECT published FROM jackfield_corpora") == [[None]]
    [[kept]] = rows("SELECT count(*) FROM jackfield_places")
    assert kept == 256, "a whole batch is there, and nothing of the next"
    with pytest.raises(ToolServiceError):
        search(searcher, "text 7", corpus_of(texts))

    relay.mend()
    seen.clear()
    server.respond(lambda request: (seen.extend(texts_in(request)), embeddings_of(request))[1])
    assert indexes_of(search(searcher, "text 7", corpus_of(texts), limit=1)) == [7]
    assert sorted(seen) == sorted(["text 7", *texts[256:]])
    assert rows("SELECT count(*) FROM jackfield_places") == [[300]]


def test_a_build_that_was_given_up_for_another_corpus_leaves_nothing(
    server: FakeOpenAI, make: Make, rows: Rows, engine: str, relay: Relay
) -> None:
    def answer(request: RecordedRequest) -> Any:
        if "text 299" in texts_in(request):
            relay.cut()
        return embeddings_of(request)

    server.respond(answer)
    with pytest.raises(ToolServiceError):
        search(make(dsn=through(engine, relay)), "tea", corpus_of([f"text {number}" for number in range(300)]))
    assert indexes_of(search(make(), "violin"))
    assert rows("SELECT count(*) FROM jackfield_corpora") == [[1]]
    assert rows("SELECT count(*) FROM jackfield_chunks") == [[3]]


def test_a_connection_that_died_while_nobody_used_it_is_replaced(make: Make, engine: str, relay: Relay) -> None:
    searcher = make(dsn=through(engine, relay), search="words")
    assert indexes_of(search(searcher, "violin")) == [1]
    relay.cut()
    relay.mend()
    assert indexes_of(search(searcher, "violin")) == [1]


def test_tables_of_a_newer_version_are_left_alone(make: Make, rows: Rows) -> None:
    search(make(search="words"), "tea")
    rows("UPDATE jackfield_facts SET value = '99' WHERE name = 'version'")
    with pytest.raises(ConfigError, match=rf"version 99, but this .* only supports up to {VERSION}: upgrade"):
        search(make(search="words"), "tea")


def test_tables_of_an_older_version_are_brought_up_to_date(engine: str, schema: str, rows: Rows) -> None:
    first = "CREATE TABLE {schema}.jackfield_facts (name text PRIMARY KEY, value text NOT NULL)"
    then = "ALTER TABLE {schema}.jackfield_facts ADD COLUMN noted text"
    database = Database(engine, timeout_s=60)
    for steps in ((first,), (first, then), (first, then)):
        with database.use() as connection:
            prepare(connection, schema, steps=steps)
    database.close()
    assert rows("SELECT value, noted FROM jackfield_facts") == [["2", None]]


def test_an_embedder_that_changes_the_length_of_its_vectors_is_an_error_with_a_next_step(
    server: FakeOpenAI, make: Make
) -> None:
    searcher = make()
    search(searcher, "tea")
    server.respond(embeddings_of)  # eight numbers
    for one in (searcher, make()):
        with pytest.raises(
            ConfigError, match=r"vectors of dimension 8, but those in schema '\w+' have dimension 256: restore"
        ):
            search(one, "tea")
    with pytest.raises(ConfigError, match="now generates vectors of dimension 8"):
        search(make(), "tea", corpus_of(["something new"]))


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
def test_vectors_that_cannot_be_compared_are_an_error_and_nothing_is_published(
    server: FakeOpenAI, make: Make, rows: Rows, change: Callable[[Any], Any], problem: str
) -> None:
    def answer(request: RecordedRequest) -> Any:
        vectors = [[1.0, 0.0] for _ in texts_in(request)]
        return embeddings(request, change(vectors) if len(vectors) > 1 else vectors, tokens=1, knows_base64=False)

    server.respond(answer)
    with pytest.raises(ModelResponseError, match=problem):
        search(make(), "violin")
    assert rows("SELECT published FROM jackfield_corpora") == [[None]]


# --- where the database is, and who knows ---


PASSWORD = "s3cret-Passw0rd/with#signs"
QUOTED = "s3cret-Passw0rd%2Fwith%23signs"


@pytest.mark.parametrize(
    "dsn",
    [
        f"postgresql://me:{QUOTED}@127.0.0.1:1/db",
        f"postgresql://me:{QUOTED}@127.0.0.1:port/db",
        f"postgresql://me:{QUOTED}@127.0.0.1:1/db?sslmode=sometimes",
        f"mysql://me:{QUOTED}@127.0.0.1:1/db",
        f"me:{QUOTED}@127.0.0.1",
    ],
)
def test_a_dsn_is_in_no_error_and_no_text(dsn: str) -> None:
    searcher = make_searcher("pgvector_search", {"dsn": dsn}, host=plain_host())
    with pytest.raises((ConfigError, ToolServiceError)) as raised:
        search(searcher, "tea")
    shown = [repr(searcher.config), str(searcher.config.model_dump()), repr(searcher.cfg), repr(vars(searcher))]
    report = traceback.TracebackException.from_exception(raised.value, capture_locals=True)
    shown += [str(raised.value), *(str(frame.locals) for frame in report.stack if frame.filename != __file__)]
    assert report.__context__ is None or not any(frame.locals for frame in report.__context__.stack)
    for text in shown:
        assert PASSWORD not in text
        assert QUOTED not in text
        assert "s3cret" not in text


def test_without_a_dsn_the_error_says_where_it_goes(monkeypatch: pytest.MonkeyPatch, engine: str, schema: str) -> None:
    searcher = make_searcher("pgvector_search", {"db_schema": schema, "connections": 1}, host=plain_host())
    monkeypatch.delenv("PGVECTOR_DSN", raising=False)
    with pytest.raises(ConfigError, match="environment variable PGVECTOR_DSN to postgresql://"):
        search(searcher, "tea")
    monkeypatch.setenv("PGVECTOR_DSN", engine)
    assert indexes_of(search(searcher, "tea")) == [0]
    asyncio.run(searcher.aclose())  # type: ignore[attr-defined]
    assert indexes_of(search(searcher, "tea")) == [0], "it can be used after that"


def test_nothing_is_connected_before_the_first_search() -> None:
    for settings_of_one in ({}, {"dsn": "postgresql://127.0.0.1:1/db"}):
        searcher = make_searcher("pgvector_search", settings_of_one, host=plain_host())
        assert search(searcher, "  ") == []
        assert search(searcher, "tea", Corpus(())) == []


def test_a_database_that_is_not_there_is_an_error_that_says_so() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        port = listening.getsockname()[1]
    with pytest.raises(
        LostConnectionError, match=rf"127\.0\.0\.1:{port}/db cannot be reached, or the connection was lost"
    ):
        search(make_searcher("pgvector_search", {"dsn": f"postgresql://127.0.0.1:{port}/db"}, host=plain_host()), "tea")


@pytest.mark.parametrize(
    ("settings_of_one", "problem"),
    [
        ({"search": "vectors"}, "embedding_model"),
        ({"db_schema": 'x"; DROP'}, "db_schema"),
        ({"dsn": 3}, "dsn"),
    ],
)
def test_settings_that_do_not_fit_are_an_error(settings_of_one: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        make_searcher("pgvector_search", settings_of_one, host=plain_host())


@pytest.mark.parametrize(
    ("dsn", "address"),
    [
        ("postgresql://me@db.example:6543/notes", ("db.example", 6543, "notes", "me")),
        ("postgres://me:x@[::1]/n%20s", ("::1", 5432, "n s", "me")),
        ("postgresql://me@/notes?host=/run/postgresql", ("/run/postgresql", 5432, "notes", "me")),
        ("postgresql://me@db.example", ("db.example", 5432, "me", "me")),
    ],
)
def test_a_dsn_is_read_as_libpq_reads_it(dsn: str, address: tuple[str, int, str, str]) -> None:
    read = Address.parse(dsn)
    assert (read.host, read.port, read.database, read.user) == address


@pytest.fixture
def default_schema(engine: str) -> Iterator[None]:
    """The schema of a reader who has set none; it is dropped."""
    yield
    database = Database(engine, timeout_s=60)
    with database.use() as connection:
        connection.run("DROP SCHEMA jackfield CASCADE")
    database.close()


@pytest.mark.usefixtures("default_schema")
def test_the_step_to_a_database_of_the_guide_does_what_it_says(
    engine: str,
    server: FakeOpenAI,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    guide = (Path(__file__).parents[4] / "docs/guides/documents.md").read_text(encoding="utf-8")
    files = dict(re.findall(r'^```\w+ title="([\w.]+)"\n(.*?)^```', guide, re.MULTILINE | re.DOTALL))
    for name in ("handbook.md", "database.yaml"):
        (tmp_path / name).write_text(files[name], encoding="utf-8")
    # What fits into a request whole is not searched.
    (tmp_path / "more.md").write_text("\n\n".join(f"Paragraph {n} is about nothing at all." for n in range(900)))
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "OPENAI_API_KEY": "sk-test",
        "OPENAI_BASE_URL": server.url,
        "PGVECTOR_DSN": engine,
    }.items():
        monkeypatch.setenv(name, value)
    server.respond(
        lambda asked: embeddings_of(asked) if asked.path.endswith("/embeddings") else says("Up to 120 EUR a night.")
    )
    commands = [line for line in re.findall(r"^\$ jackfield (.*)$", guide, re.MULTILINE) if "-m " not in line]
    assert commands == ["index build handbook .", 'run --config database.yaml --trust "What may a hotel cost?"']
    for command in commands:
        assert main(shlex.split(command)) == 0, capsys.readouterr()
    assert "Up to 120 EUR a night." in capsys.readouterr().out
    chat = [request for request in server.requests if request.path.endswith("/chat/completions")]
    assert "A hotel may cost up to 120 EUR a night." in json.dumps(chat[0].json)
    assert ["What may a hotel cost?"] in asked(server)


@pytest.mark.usefixtures("default_schema")
def test_the_example_of_the_readme_prints_what_it_finds(
    engine: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    [example] = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    monkeypatch.setenv("PGVECTOR_DSN", engine)
    exec(compile(example, "README.md", "exec"), {})
    assert capsys.readouterr().out.endswith(" Running shoes are on the second floor.\n")
