"""Many sessions at one PostgreSQL, which PGlite does not have: whoever comes together gets what each gets alone.

It needs the programs of a PostgreSQL server (`initdb`, `pg_ctl`) of any version from 13 on. It has no pgvector, so
words are searched.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from jackfield.errors import ConfigError
from jackfield.retrieval import Corpus, Searcher, make_searcher
from jackfield_postgres import Database
from jackfield_testkit.embeddings import embeddings_of
from jackfield_testkit.installed import plain_host
from jackfield_testkit.server import FakeOpenAI
from jackfield_testkit.suites.searcher import corpus_of
from tests.support.postgresql import running_postgresql

THREADS = 5


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    """Where the server is."""
    with running_postgresql() as dsn:
        yield dsn


def make(dsn: str, **settings: Any) -> Searcher:
    return make_searcher("pgvector_search", {"dsn": dsn, "search": "words", **settings}, host=plain_host())


def ids(searcher: Searcher, corpus: Corpus) -> list[str]:
    return [hit.chunk.id for hit in asyncio.run(searcher.search("stone 7", corpus, limit=5))]


def corpora() -> list[Corpus]:
    return [corpus_of([f"stone {number % 50} river {seed}" for number in range(400)]) for seed in range(3)]


@pytest.mark.parametrize("same_name", [True, False], ids=["of one index", "of an index for each"])
def test_many_that_fill_an_empty_database_at_once_find_what_one_finds_alone(dsn: str, same_name: bool) -> None:
    wanted = corpora()
    alone = [ids(make(dsn, db_schema=f"alone_{same_name}".lower()), corpus) for corpus in wanted]
    assert all(alone)
    schema = f"crowd_{same_name}".lower()
    begin = threading.Barrier(THREADS)
    came: list[object] = [None] * THREADS

    def search(number: int) -> None:
        searcher = make(dsn, db_schema=schema, index="one" if same_name else f"index {number}")
        begin.wait()
        try:
            came[number] = [ids(searcher, corpus) for corpus in wanted]
        except Exception as error:
            came[number] = error

    threads = [threading.Thread(target=search, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert came == [alone] * THREADS
    database = Database(dsn, timeout_s=60)
    with database.use() as connection:
        [[chunks]] = connection.run(f"SELECT count(*) FROM {schema}.jackfield_chunks")
    database.close()
    assert chunks == 150, "each text once, whoever brought it"


def test_searches_of_one_searcher_run_side_by_side(dsn: str) -> None:
    wanted = corpora()
    searcher = make(dsn, db_schema="side", connections=4)

    async def all_at_once() -> list[list[str]]:
        found = await asyncio.gather(*(searcher.search("stone 7", wanted[n % 3], limit=5) for n in range(30)))
        return [[hit.chunk.id for hit in hits] for hits in found]

    alone = [ids(make(dsn, db_schema="side"), corpus) for corpus in wanted]
    assert asyncio.run(all_at_once()) == alone * 10


def test_without_pgvector_the_error_says_what_to_do(dsn: str) -> None:

    with FakeOpenAI() as server:
        server.respond(embeddings_of)
        settings = {"base_url": server.url, "api_key": "sk-test"}
        searcher = make(dsn, search="hybrid", embedding_model="openai:m", embedder_settings=settings)
        with pytest.raises(ConfigError, match=r"pgvector is not installed in this database .*or set search to 'words'"):
            ids(searcher, corpora()[0])


def test_a_user_that_may_only_read_searches_what_others_have_published(dsn: str) -> None:
    corpus = corpora()[0]
    found = ids(make(dsn, db_schema="shared"), corpus)
    database = Database(dsn, timeout_s=60)
    with database.use() as connection:
        connection.run("CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA shared TO reader")
        connection.run("GRANT SELECT ON ALL TABLES IN SCHEMA shared TO reader")
    database.close()
    searcher = make(dsn.replace("postgres@", "reader@"), db_schema="shared")
    assert ids(searcher, corpus) == found
