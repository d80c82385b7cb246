"""Define the tables, and create them in a schema.

- `jackfield_facts`: the schema version.
- `jackfield_sides`: the representations of chunks: the words from an analyzer, or the vectors in a space. Each has its
  own table, `jackfield_words_N` or `jackfield_vectors_N`.
- `jackfield_chunks`: the distinct chunks of all corpora, identified by content. The text itself is not stored.
- `jackfield_corpora`: corpora, visible to searches once they are published.
- `jackfield_places`: the chunk at each position in a corpus.
"""

from __future__ import annotations

from dataclasses import dataclass

from jackfield.errors import ConfigError, ToolServiceError
from jackfield_postgres import Connection, alone_in

_STEPS = (
    """
    CREATE TABLE {schema}.jackfield_facts (name text PRIMARY KEY, value text NOT NULL);
    CREATE TABLE {schema}.jackfield_sides (
        id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, what text NOT NULL UNIQUE, dimension integer
    );
    CREATE TABLE {schema}.jackfield_chunks (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key uuid NOT NULL UNIQUE
    );
    CREATE TABLE {schema}.jackfield_corpora (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL, content text NOT NULL,
        words integer REFERENCES {schema}.jackfield_sides, vectors integer REFERENCES {schema}.jackfield_sides,
        chunks integer NOT NULL, mean_length double precision NOT NULL DEFAULT 1,
        published timestamptz, UNIQUE (name, content)
    );
    CREATE TABLE {schema}.jackfield_places (
        corpus bigint NOT NULL REFERENCES {schema}.jackfield_corpora ON DELETE CASCADE, place integer NOT NULL,
        chunk bigint NOT NULL REFERENCES {schema}.jackfield_chunks, PRIMARY KEY (corpus, place)
    );
    CREATE INDEX ON {schema}.jackfield_places (chunk, corpus);
    """,
)
"""Migrations from each version to the next. A schema's version is the number of steps applied."""

VERSION = len(_STEPS)
_MOST_INDEXED = 2000  # dimensions that pgvector's index supports


@dataclass(frozen=True, slots=True)
class Side:
    """A table of words or vectors: its number, and the vector dimension."""

    number: int
    dimension: int | None = None


def prepare(connection: Connection, schema: str, *, steps: tuple[str, ...] = _STEPS) -> None:
    """Create or upgrade the tables in a schema. Nothing is written if they are up to date.

    Raises:
        ConfigError: The tables are of a newer version.
    """
    version = _version(connection, schema)
    if version < len(steps):
        with alone_in(connection, schema):
            version = _version(connection, schema)  # another process may have been first
            if not connection.run("SELECT 1 FROM pg_namespace WHERE nspname = :name", name=schema):
                connection.run(f"CREATE SCHEMA {schema}")
            for step in steps[version:]:
                connection.run(step.format(schema=schema))
            connection.run(
                f"INSERT INTO {schema}.jackfield_facts VALUES ('version', :version) "  # noqa: S608 - a checked name
                "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                version=str(max(version, len(steps))),
            )
    if version > len(steps):
        raise ConfigError(
            f"the tables in schema {schema!r} are version {version}, but this jackfield-pgvector-search only supports "
            f"up to {len(steps)}: upgrade jackfield-pgvector-search, or set a different db_schema"
        )


def _version(connection: Connection, schema: str) -> int:
    # Not by to_regclass, which may answer from a cache and miss tables that another process has just created.
    there = connection.run(
        "SELECT 1 FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace "
        "WHERE n.nspname = :schema AND c.relname = 'jackfield_facts'",
        schema=schema,
    )
    if not there:
        return 0
    rows = connection.run(f"SELECT value FROM {schema}.jackfield_facts WHERE name = 'version'")  # noqa: S608
    return int(rows[0][0]) if rows else 0


def words_side(connection: Connection, schema: str, analyzer: str) -> Side:
    """Return the table for an analyzer's words, creating it if necessary."""
    with alone_in(connection, schema):
        side = _side(connection, schema, f"words {analyzer}", None)
        connection.run(
            f"CREATE TABLE IF NOT EXISTS {schema}.jackfield_words_{side.number} (chunk bigint PRIMARY KEY "
            f"REFERENCES {schema}.jackfield_chunks ON DELETE CASCADE, length integer NOT NULL, words tsvector NOT NULL)"
        )
        connection.run(
            f"CREATE INDEX IF NOT EXISTS jackfield_words_{side.number}_words "
            f"ON {schema}.jackfield_words_{side.number} USING gin (words) WITH (fastupdate = off)"
        )
    return side


def known_vectors(connection: Connection, schema: str, space: str) -> Side | None:
    """Return the table for the vectors of a space, or None if it does not exist."""
    rows = connection.run(
        f"SELECT id, dimension FROM {schema}.jackfield_sides WHERE what = :what",  # noqa: S608 - a checked name
        what=f"vectors {space}",
    )
    return Side(*rows[0]) if rows else None


def vectors_side(connection: Connection, schema: str, space: str, dimension: int) -> Side:
    """Return the table for the vectors of a space, creating it if necessary.

    Raises:
        ConfigError: The stored vectors have another dimension, or pgvector is missing.
    """
    _check_pgvector(connection)
    with alone_in(connection, schema):
        side = _side(connection, schema, f"vectors {space}", dimension)
        if side.dimension != dimension:
            raise wrong_dimension(schema, space, kept=side.dimension, now=dimension)
        connection.run(
            f"CREATE TABLE IF NOT EXISTS {schema}.jackfield_vectors_{side.number} (chunk bigint PRIMARY KEY "
            f"REFERENCES {schema}.jackfield_chunks ON DELETE CASCADE, embedding vector({dimension}) NOT NULL)"
        )
    return side


def index_vectors(connection: Connection, schema: str, side: Side, *, least: int) -> None:
    """Create an HNSW index for at least `least` vectors, because scanning that many is slow.

    Vectors with too many dimensions for pgvector's index get none.
    """
    table = f"{schema}.jackfield_vectors_{side.number}"
    [[count]] = connection.run(f"SELECT count(*) FROM {table}")  # noqa: S608 - of a checked name and a number
    if count < least or (side.dimension or 0) > _MOST_INDEXED:
        return
    name = f"jackfield_vectors_{side.number}_near"
    with alone_in(connection, schema, name):
        connection.run(f"CREATE INDEX IF NOT EXISTS {name} ON {table} USING hnsw (embedding vector_cosine_ops)")


def wrong_dimension(schema: str, space: str, *, kept: int | None, now: int) -> ConfigError:
    """Return the error for an embedder whose vector dimension has changed."""
    return ConfigError(
        f"the embedder ({space}) now generates vectors of dimension {now}, but those in schema "
        f"{schema!r} have dimension {kept}: "
        f"restore the previous model or dimension, or set a different db_schema to embed everything again"
    )


def _side(connection: Connection, schema: str, what: str, dimension: int | None) -> Side:
    connection.run(
        f"INSERT INTO {schema}.jackfield_sides (what, dimension) "  # noqa: S608 - a checked name
        "VALUES (:what, CAST(:dimension AS integer)) ON CONFLICT (what) DO NOTHING",
        what=what,
        dimension=dimension,
    )
    [[number, kept]] = connection.run(
        f"SELECT id, dimension FROM {schema}.jackfield_sides WHERE what = :what",  # noqa: S608
        what=what,
    )
    return Side(number, kept)


def _check_pgvector(connection: Connection) -> None:
    if connection.run("SELECT 1 FROM pg_extension WHERE extname = 'vector'"):
        return
    try:
        connection.run("CREATE EXTENSION IF NOT EXISTS vector")
    except ToolServiceError as error:
        raise ConfigError(
            f"pgvector is not installed in this database ({error}): install it on the server and run CREATE EXTENSION "
            f"vector as an administrator, or set search to 'words', which needs no vectors"
        ) from None
