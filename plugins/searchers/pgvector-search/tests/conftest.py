"""A real PostgreSQL with pgvector: PGlite from npm, which is PostgreSQL as WebAssembly and speaks its wire protocol.

npm fetches it once, into `.tools/pglite` of the repository, where an empty database is made once, too: making one takes
four seconds, loading it one. One server lives as long as the tests of this folder, and
each test has a schema of its own. Where node or the packages cannot be had, the tests are skipped with the reason.
"""

from __future__ import annotations

import fcntl
import itertools
import json
import math
import re
import shutil
import subprocess
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jackfield.retrieval import Searcher, make_searcher
from jackfield_postgres import Database
from jackfield_testkit.embeddings import embeddings, texts_in, tokens_in
from jackfield_testkit.installed import plain_host
from jackfield_testkit.replies import Reply
from jackfield_testkit.server import FakeOpenAI, RecordedRequest

PACKAGES = {
    "@electric-sql/pglite": "0.5.14",
    "@electric-sql/pglite-pgvector": "0.0.15",
    "@electric-sql/pglite-socket": "0.2.17",
}
CACHE = Path(__file__).resolve().parents[4] / ".tools" / "pglite"
MAKE_DATABASE = """
import { writeFileSync } from 'node:fs'
import { PGlite } from '@electric-sql/pglite'
const db = await PGlite.create()
writeFileSync('database.tar', Buffer.from(await (await db.dumpDataDir('none')).arrayBuffer()))
await db.close()
process.exit(0)
"""
# It ends when its standard input does, so that it lives no longer than whoever started it.
SERVER = """
import { readFileSync } from 'node:fs'
import { PGlite } from '@electric-sql/pglite'
import { vector } from '@electric-sql/pglite-pgvector'
import { PGLiteSocketServer } from '@electric-sql/pglite-socket'
const db = await PGlite.create({ extensions: { vector }, loadDataDir: new Blob([readFileSync('database.tar')]) })
const server = new PGLiteSocketServer({ db, host: '127.0.0.1', port: 0, maxConnections: 500 })
await server.start()
console.log(server.getServerConn())
process.stdin.resume()
process.stdin.on('end', () => process.exit(0))
"""
_numbers = itertools.count(1)

MakeSearcher = Callable[..., Searcher]


@pytest.fixture(scope="session")
def engine() -> Iterator[str]:
    """Where the server is: its DSN."""
    folder = _packages()
    process = subprocess.Popen(
        [_program("node"), "server.mjs"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout
        address = process.stdout.readline().strip()  # '' if it has ended
        assert address, f"PGlite did not start: node ended with {process.wait()}"
        yield f"postgresql://postgres:not-a-secret@{address}/postgres?sslmode=disable"
    finally:
        process.communicate()  # which closes its standard input
        assert process.returncode == 0


@pytest.fixture
def schema(engine: str) -> Iterator[str]:
    """A schema of the test's own."""
    name = f"test_{next(_numbers)}"
    yield name
    database = Database(engine, timeout_s=60)
    with database.use() as connection:
        connection.run(f"DROP SCHEMA IF EXISTS {name} CASCADE")
    database.close()


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    """A server of embeddings; they know the words of a text and no meaning."""
    with FakeOpenAI() as server:
        server.respond(of_words)
        yield server


@pytest.fixture
def make(engine: str, schema: str, server: FakeOpenAI) -> MakeSearcher:
    """Makes a searcher in the test's schema."""

    def of(**settings: Any) -> Searcher:
        if settings.get("search") != "words":
            settings = {
                "embedding_model": "openai:words",
                "embedder_settings": {"base_url": server.url, "api_key": "sk-test", "max_retries": 0},
                **settings,
            }
        # All clients of PGlite share one session: two of them must not ask at once.
        cfg = {"dsn": engine, "db_schema": schema, "connections": 1, **settings}
        return make_searcher("jackfield-pgvector-search/pgvector_search", cfg, host=plain_host())

    return of


DIMENSION = 256


def vector_of(text: str) -> list[float]:
    """The vector of a text, of length 1: its words, their beginnings and its Chinese characters, hashed."""
    numbers = [0.0] * DIMENSION
    for word in re.findall(r"\w+", text.lower()):
        for piece in (word, word[:4], *re.findall(r"[\u4e00-\u9fff]", word)):
            numbers[zlib.crc32(piece.encode("utf-8", "replace")) % DIMENSION] += 1
    length = math.sqrt(sum(number * number for number in numbers)) or 1.0
    return [number / length for number in numbers]


def of_words(request: RecordedRequest) -> Reply:
    """The answer to a request for embeddings."""
    texts = texts_in(request)
    return embeddings(request, [vector_of(text) for text in texts], tokens=tokens_in(texts))


def _packages() -> Path:
    wanted = json.dumps({"private": True, "dependencies": PACKAGES}, indent=1)
    CACHE.mkdir(parents=True, exist_ok=True)
    (CACHE.parent / ".gitignore").write_text("*\n")
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several processes run tests
        done, content = CACHE / "done.txt", wanted + MAKE_DATABASE + SERVER
        if not done.exists() or done.read_text() != content:
            (CACHE / "package.json").write_text(wanted)
            (CACHE / "make.mjs").write_text(MAKE_DATABASE)
            (CACHE / "server.mjs").write_text(SERVER)
            _install()
            subprocess.run([_program("node"), "make.mjs"], cwd=CACHE, check=True)
            done.write_text(content)
    return CACHE


def _install() -> None:
    options = [
        "--no-audit",
        "--no-fund",
        "--no-package-lock",
        "--ignore-scripts",
        "--fetch-retries=1",
        "--fetch-retry-mintimeout=500",
    ]
    came = subprocess.run(
        [_program("npm"), "install", *options], cwd=CACHE, capture_output=True, text=True, check=False
    )
    if came.returncode:
        pytest.skip(f"npm cannot fetch PGlite: {came.stderr.strip()[-300:]}")


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"there is no {name}: the tests of the database need Node.js and npm")
    return found
