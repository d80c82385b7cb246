"""Load a corpus into the database: write new chunks in batches, then publish the corpus in one step."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

from jackfield.errors import ToolServiceError
from jackfield.retrieval import Chunk, Vector
from jackfield_documents.analyzer import searched_texts
from jackfield_pgvector_search.statements import term_of, vector_text, words_text
from jackfield_pgvector_search.tables import (
    Side,
    index_vectors,
    known_vectors,
    prepare,
    vectors_side,
    words_side,
)
from jackfield_postgres import Connection, Database, alone_in

_BATCH = 256
_LONGEST_S = 3600.0  # creating an index of millions of vectors is one statement
_POLL_S = 0.5
_ATTEMPTS = 3
# As one text, because the driver is slow at writing lists.
_KEYS = "unnest(CAST(string_to_array(:keys, ',') AS uuid[])) WITH ORDINALITY AS n (key, place)"
_KEPT = 4  # corpora under one name, such as an agent's files before a change, or those of another process


@dataclass(frozen=True, slots=True)
class Ready:
    """A corpus that is ready to be searched.

    Attributes:
        number: The corpus's id in the database. Ids are never reused.
        chunks: The number of chunks.
        mean_length: The mean number of words per chunk.
        words, vectors: The tables of words and vectors, or None if not requested.
    """

    number: int
    chunks: int
    mean_length: float
    words: Side | None
    vectors: Side | None


@dataclass(frozen=True, slots=True)
class Plan:
    """Settings for storing corpora.

    Attributes:
        schema: The database schema.
        analyzer: An identifier that is equal for analyzers that produce the same words, or '' to store no words.
        space: An identifier of the vector space, or '' to store no vectors.
        embed: Returns vectors for non-empty texts, in order.
        analyze: Splits a text into words.
        approximate_from: The number of vectors from which an approximate index is created. None means never.
        max_chars: The number of characters of a text to embed.
    """

    schema: str
    analyzer: str
    space: str
    embed: Callable[[Sequence[str]], Sequence[Vector]]
    analyze: Callable[[str], list[str]]
    approximate_from: int | None
    max_chars: int


@dataclass(frozen=True, slots=True)
class _Piece:
    """A chunk to be stored: the key of its content, the text for its words, and the text for its vector."""

    key: str
    text: str
    to_embed: str


class Filling:
    """Loads one corpus into the database.

    Args:
        database: The target database.
        plan: The settings for storing the corpus.
        name: The name of the corpus. Only its most recent versions are kept under the same name.
        content: A hash that changes with any chunk. If None, it is computed from the chunks.
        chunks: All chunks of the corpus.
    """

    def __init__(
        self, database: Database, plan: Plan, *, name: str, content: str | None, chunks: Sequence[Chunk]
    ) -> None:
        self._database = database
        self.plan = plan
        self.name = name
        self.chunks = chunks
        recipe = f"{plan.analyzer}\n{plan.space}\n{plan.max_chars}\n{content or self._digest()}"
        self.content = hashlib.sha256(recipe.encode("utf-8", "replace")).hexdigest()

    def ready(self) -> Ready:
        """Return the corpus in the database, loading it first if necessary.

        Raises:
            ConfigError: The tables are of a newer version, the vector dimension has changed, or pgvector is missing.
            ToolServiceError: The database failed. Data already written is kept, and the next attempt resumes from
                there.
            ModelServiceError: The embedder failed.
        """
        with self._database.use() as connection:
            prepare(connection, self.plan.schema)
            ready = self._published(connection)
        return ready or self._filled()

    def _digest(self) -> str:
        digest = hashlib.sha256()
        for chunk in self.chunks:
            digest.update(UUID(_piece(chunk, self.plan.max_chars).key).bytes)
        return digest.hexdigest()

    def _published(self, connection: Connection) -> Ready | None:
        rows = connection.run(
            "SELECT c.id, c.chunks, c.mean_length, c.words, c.vectors, v.dimension "  # noqa: S608 - a checked name
            f"FROM {self.plan.schema}.jackfield_corpora AS c "
            f"LEFT JOIN {self.plan.schema}.jackfield_sides AS v ON v.id = c.vectors "
            "WHERE c.name = :name AND c.content = :content AND c.published IS NOT NULL",
            name=self.name,
            content=self.content,
        )
        for number, chunks, mean_length, words, vectors, dimension in rows:
            return Ready(
                number,
                chunks,
                mean_length,
                None if words is None else Side(words),
                None if vectors is None else Side(vectors, dimension),
            )
        return None

    def _filled(self) -> Ready:
        with self._database.use_for_long(timeout_s=_LONGEST_S) as connection, self._turn(connection):
            ready = self._published(connection)
            return ready or _Fill(connection, self).run()

    @contextmanager
    def _turn(self, connection: Connection) -> Iterator[None]:
        """Hold the lock for loading corpora of this name. The server releases the lock when the connection ends."""
        lock = f"jackfield {self.plan.schema} {self.name}"
        while not connection.run("SELECT pg_try_advisory_lock(hashtextextended(:name, 0))", name=lock)[0][0]:
            time.sleep(_POLL_S)
        yield
        connection.run("SELECT pg_advisory_unlock(hashtextextended(:name, 0))", name=lock)


class _Fill:
    """Loads the corpus while the lock is held."""

    def __init__(self, connection: Connection, filling: Filling) -> None:
        self._connection = connection
        self._plan = filling.plan
        self._schema = filling.plan.schema
        self._name = filling.name
        self._content = filling.content
        self._chunks = filling.chunks
        self._words: Side | None = None
        self._vectors: Side | None = None
        self._number = 0

    def run(self) -> Ready:
        if self._plan.analyzer:
            self._words = words_side(self._connection, self._schema, self._plan.analyzer)
        if self._plan.space:
            self._vectors = known_vectors(self._connection, self._schema, self._plan.space)
        self._number, done = self._begun()
        for batch in _batches(self._chunks, done):
            self._add(done, [_piece(chunk, self._plan.max_chars) for chunk in batch])
            done += len(batch)
        mean_length = self._publish(done)
        self._gather_statistics()
        if self._vectors and self._plan.approximate_from:
            index_vectors(self._connection, self._schema, self._vectors, least=self._plan.approximate_from)
        return Ready(self._number, done, mean_length, self._words, self._vectors)

    def _begun(self) -> tuple[int, int]:
        """Return the id of the unpublished corpus, and the number of chunks stored by an earlier attempt."""
        schema = self._schema
        self._connection.run(
            f"INSERT INTO {schema}.jackfield_corpora (name, content, chunks) VALUES (:name, :content, 0) "  # noqa: S608
            "ON CONFLICT (name, content) DO NOTHING",
            name=self._name,
            content=self._content,
        )
        [[number, done]] = self._connection.run(
            f"SELECT c.id, (SELECT count(*) FROM {schema}.jackfield_places WHERE corpus = c.id) "  # noqa: S608
            f"FROM {schema}.jackfield_corpora AS c WHERE c.name = :name AND c.content = :content",
            name=self._name,
            content=self._content,
        )
        return number, done

    def _add(self, start: int, pieces: Sequence[_Piece]) -> None:
        """Add chunks: first their missing words and vectors, then their positions."""
        for _ in range(_ATTEMPTS):
            lacking = self._lacking(pieces)
            words = {key: self._words_of(piece) for key, piece in lacking.words.items()}
            vectors = self._vectors_of(lacking.vectors)
            with self._connection.transaction():
                # Shared with other writers, but not with processes that remove unused chunks.
                self._connection.run(
                    "SELECT pg_advisory_xact_lock_shared(hashtextextended(:name, 0))", name=f"jackfield {self._schema}"
                )
                if lacking:
                    self._write(pieces, words, vectors)
                lacks_nothing = not self._lacking(pieces)
                if lacks_nothing:
                    self._place(start, pieces)
            if lacks_nothing:
                return
        raise ToolServiceError(
            "other processes are deleting the data while it is being written to the database: try again"
        )

    def _lacking(self, pieces: Sequence[_Piece]) -> _Lacking:
        by_key = {piece.key: piece for piece in pieces}
        to_embed = {key: piece for key, piece in by_key.items() if self._plan.space and piece.to_embed}
        words = self._without(by_key, f"words_{self._words.number}") if self._words else frozenset()
        vectors = self._without(to_embed, f"vectors_{self._vectors.number}") if self._vectors else to_embed.keys()
        return _Lacking(self._without(by_key), words=_only(by_key, words), vectors=_only(to_embed, vectors))

    def _without(self, keys: Iterable[str], side: str = "") -> Set[str]:
        """Return the keys without a stored chunk. If `side` is given, return the keys without a row in its table."""
        join = f"LEFT JOIN {self._schema}.jackfield_{side} AS s ON s.chunk = c.id" if side else ""
        rows = self._connection.run(
            f"SELECT CAST(key AS text) FROM {_KEYS} LEFT JOIN {self._schema}.jackfield_chunks AS c USING (key) "  # noqa: S608
            f"{join} WHERE {'s.chunk' if side else 'c.id'} IS NULL",
            keys=",".join(keys),
        )
        return {key for (key,) in rows}

    def _words_of(self, piece: _Piece) -> list[str]:
        return [term for term in map(term_of, self._plan.analyze(piece.text)) if term]

    def _vectors_of(self, pieces: dict[str, _Piece]) -> dict[str, Vector]:
        if not pieces:
            return {}
        texts = list(dict.fromkeys(piece.to_embed for piece in pieces.values()))
        made = dict(zip(texts, self._plan.embed(texts), strict=True))
        if self._vectors is None or self._vectors.dimension != len(made[texts[0]]):
            self._vectors = vectors_side(self._connection, self._schema, self._plan.space, len(made[texts[0]]))
        return {key: made[piece.to_embed] for key, piece in pieces.items()}

    def _write(self, pieces: Sequence[_Piece], words: dict[str, list[str]], vectors: dict[str, Vector]) -> None:
        schema, run = self._schema, self._connection.run
        run(
            f"INSERT INTO {schema}.jackfield_chunks (key) "  # noqa: S608
            f"SELECT DISTINCT key FROM {_KEYS} ORDER BY key ON CONFLICT DO NOTHING",
            keys=",".join(piece.key for piece in pieces),
        )
        if words and self._words:
            run(
                f"INSERT INTO {schema}.jackfield_words_{self._words.number} "  # noqa: S608
                "SELECT c.id, n.length, CAST(n.words AS tsvector) FROM "
                "unnest(CAST(:keys AS uuid[]), CAST(:lengths AS integer[]), CAST(:words AS text[])) "
                f"AS n (key, length, words) JOIN {schema}.jackfield_chunks AS c USING (key) ON CONFLICT DO NOTHING",
                keys=list(words),
                lengths=list(map(len, words.values())),
                words=list(map(words_text, words.values())),
            )
        if vectors and self._vectors:
            run(
                f"INSERT INTO {schema}.jackfield_vectors_{self._vectors.number} "  # noqa: S608
                f"SELECT c.id, CAST(n.vector AS vector({self._vectors.dimension})) FROM "
                "unnest(CAST(:keys AS uuid[]), CAST(:vectors AS text[])) AS n (key, vector) "
                f"JOIN {schema}.jackfield_chunks AS c USING (key) ON CONFLICT DO NOTHING",
                keys=list(vectors),
                vectors=list(map(vector_text, vectors.values())),
            )

    def _place(self, start: int, pieces: Sequence[_Piece]) -> None:
        self._connection.run(
            f"INSERT INTO {self._schema}.jackfield_places (corpus, place, chunk) "  # noqa: S608
            "SELECT CAST(:corpus AS bigint), CAST(:start AS integer) + n.place - 1, c.id "
            f"FROM {_KEYS} JOIN {self._schema}.jackfield_chunks AS c USING (key)",
            corpus=self._number,
            start=start,
            keys=",".join(piece.key for piece in pieces),
        )

    def _publish(self, count: int) -> float:
        """Make the corpus visible to searches, and delete outdated versions. Return the mean length in words."""
        schema, run = self._schema, self._connection.run
        with alone_in(self._connection, schema):
            mean_length = self._mean_length()
            run(
                f"UPDATE {schema}.jackfield_corpora SET published = clock_timestamp(), "  # noqa: S608
                "chunks = CAST(:chunks AS integer), mean_length = CAST(:mean AS double precision), "
                "words = CAST(:words AS integer), vectors = CAST(:vectors AS integer) "
                "WHERE id = CAST(:corpus AS bigint)",
                words=self._words and self._words.number,
                vectors=self._vectors and self._vectors.number,
                chunks=count,
                mean=mean_length,
                corpus=self._number,
            )
            # Unpublished corpora of this name were abandoned, because only the process with the lock, this one, can
            # continue.
            gone = run(
                f"DELETE FROM {schema}.jackfield_corpora WHERE name = :name AND id NOT IN ("  # noqa: S608
                f"SELECT id FROM {schema}.jackfield_corpora WHERE name = :name AND published IS NOT NULL "
                f"ORDER BY published DESC, id DESC LIMIT {_KEPT}) RETURNING id",
                name=self._name,
            )
            if gone:
                self._sweep()
        return mean_length

    def _gather_statistics(self) -> None:
        """Update the planner's statistics. Without them, the planner assumes that the tables are empty."""
        tables = ["jackfield_chunks", "jackfield_places"]
        tables += [f"jackfield_words_{self._words.number}"] if self._words else []
        tables += [f"jackfield_vectors_{self._vectors.number}"] if self._vectors else []
        self._connection.run(f"ANALYZE {', '.join(f'{self._schema}.{table}' for table in tables)}")

    def _mean_length(self) -> float:
        if not self._words:
            return 1.0
        [[mean]] = self._connection.run(
            f"SELECT CAST(avg(w.length) AS double precision) FROM {self._schema}.jackfield_places AS p "  # noqa: S608
            f"JOIN {self._schema}.jackfield_words_{self._words.number} AS w USING (chunk) "
            "WHERE p.corpus = CAST(:corpus AS bigint)",
            corpus=self._number,
        )
        return max(float(mean or 0), 1.0)

    def _sweep(self) -> None:
        """Delete chunks that belong to no corpus, along with their words and vectors."""
        self._connection.run(
            f"DELETE FROM {self._schema}.jackfield_chunks AS c WHERE NOT EXISTS "  # noqa: S608
            f"(SELECT FROM {self._schema}.jackfield_places AS p WHERE p.chunk = c.id)"
        )


@dataclass(frozen=True, slots=True)
class _Lacking:
    """The keys of chunks that are not stored yet, and the chunks that lack words or a vector."""

    chunks: Set[str]
    words: dict[str, _Piece]
    vectors: dict[str, _Piece]

    def __bool__(self) -> bool:
        return bool(self.chunks or self.words or self.vectors)


def _piece(chunk: Chunk, max_chars: int) -> _Piece:
    context = [part for part in dict.fromkeys((chunk.title, *chunk.headings)) if part]
    # A file's text may contain a lone surrogate, which is not valid UTF-8.
    text = chunk.text.encode("utf-8", "replace").decode()
    above = "\n".join(context).encode("utf-8", "replace").decode()
    key = hashlib.sha256("\0".join((str(max_chars), above, text)).encode()).digest()[:16]
    to_embed = "\n".join(filter(None, (above, text)))[:max_chars].strip() if text.strip() else ""
    return _Piece(str(UUID(bytes=key)), "\n".join(searched_texts(chunk)), to_embed)


def _batches(chunks: Sequence[Chunk], start: int) -> Iterator[list[Chunk]]:
    batch: list[Chunk] = []
    for number, chunk in enumerate(chunks):
        if number >= start:
            batch.append(chunk)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _only(pieces: Mapping[str, _Piece], keys: Set[str]) -> dict[str, _Piece]:
    return {key: piece for key, piece in pieces.items() if key in keys}
