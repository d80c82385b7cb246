"""Store an index's documents and chunks in one file, with the old ones kept until the new ones are complete.

Each document belongs to the generations from `since` up to, but not including, `until`. A build writes the next
generation, which searches do not see until it is published. If the process is killed, the next build continues from the
part already written. Data dropped by a generation is deleted when the next generation but one is published, so that
readers of the previous one can still access it.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar

from jackfield.errors import ConfigError, JackfieldError
from jackfield.retrieval import Chunk, MetadataValue, Where, shown_path
from jackfield_documents import MetadataRules, with_rules
from jackfield_knowledge.places import FILE
from jackfield_local_state.ownfile import (
    BusyFileError,
    OtherVersionError,
    OwnFile,
    UnusableFileError,
    is_busy,
    is_full,
    writing,
)

T = TypeVar("T")

APPLICATION_ID = 0x4A464B42
"""Marks the file as ours. SQLite reserves this header field for the purpose."""
VERSION = 2
_PATIENCE_S = 10.0
_PLACES = 2**24  # chunks in one document
_OF_GENERATION = "since <= ?1 AND (until IS NULL OR until > ?1)"
_LOCK_SCHEMA = "CREATE TABLE builds (number INTEGER);"
_SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE steps (place INTEGER PRIMARY KEY, name BLOB NOT NULL, adds INTEGER NOT NULL);
CREATE TABLE documents (
  number INTEGER PRIMARY KEY AUTOINCREMENT, location BLOB NOT NULL, since INTEGER NOT NULL, until INTEGER,
  signature TEXT NOT NULL, parsers TEXT NOT NULL, recipe TEXT NOT NULL, title BLOB NOT NULL, error BLOB NOT NULL,
  chunks INTEGER NOT NULL, tokens INTEGER NOT NULL, digest BLOB NOT NULL, metadata TEXT NOT NULL
);
CREATE UNIQUE INDEX documents_now ON documents (location) WHERE until IS NULL;
CREATE INDEX documents_gone ON documents (until) WHERE until IS NOT NULL;
CREATE TABLE chunks (
  place INTEGER PRIMARY KEY, id TEXT NOT NULL, page INTEGER, tokens INTEGER NOT NULL, overlap INTEGER NOT NULL,
  joint BLOB, headings TEXT NOT NULL, part BLOB NOT NULL, text BLOB NOT NULL
);
INSERT INTO facts VALUES ('generation', '0');
INSERT INTO facts VALUES ('content', '');
INSERT INTO facts VALUES ('chunks', '0');
INSERT INTO facts VALUES ('tokens', '0');
INSERT INTO facts VALUES ('documents', '0');
INSERT INTO facts VALUES ('size_tokens', '500');
INSERT INTO facts VALUES ('overlap_chars', '150');
INSERT INTO facts VALUES ('rules', '[]');
"""


class ChangedIndexError(JackfieldError):
    """The index has changed twice since it was opened. Open it again."""

    def __init__(self) -> None:
        super().__init__("the index has changed twice since it was opened: reopen it")


@dataclass(frozen=True, slots=True)
class Step:
    """A name whose files are added or removed. If several names match the same file, the last one decides."""

    name: str
    adds: bool


@dataclass(frozen=True)
class IndexFacts:
    """An index's properties.

    Attributes:
        generation: A number that grows with each change.
        content: A hash of all chunks. The same documents have the same hash, however they were added.
        documents, chunks, tokens: The number of each.
        size_tokens, overlap_chars: The parameters for splitting documents.
        rules: The values assigned to documents, as JSON: a list of `[filter, values]`, in which later entries win.
        recipes: The distinct ways in which the documents were produced, as JSON: a list of `[parser, version, cut]`.
    """

    generation: int
    content: str
    documents: int
    chunks: int
    tokens: int
    size_tokens: int
    overlap_chars: int
    rules: str = "[]"
    recipes: str = "[]"

    @cached_property
    def metadata_rules(self) -> MetadataRules:
        """The parsed `rules`."""
        return [
            (Where.parse(where), {key: _value(value) for key, value in values.items()})
            for where, values in json.loads(self.rules)
        ]


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document in an index.

    Attributes:
        number: The document's number, which is never reused.
        location: The document's path.
        signature, parsers: If neither has changed, the file is unchanged. '' if unknown.
        recipe: The hash of the file's content, the parser, and the way the text was split.
        title: The document's title.
        error: The reason why the document could not be read, or ''.
        chunks: The number of chunks.
        metadata: The metadata stated by the file, without values from rules.
    """

    number: int
    location: str
    signature: str
    parsers: str
    recipe: str
    title: str
    error: str
    chunks: int
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict, hash=False)

    def values(self, rules: MetadataRules) -> dict[str, MetadataValue]:
        """Return the values by which the document is filtered, in addition to its location and title."""
        return with_rules(self.location, self.title, self.metadata, rules)


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A document to store. Has the attributes of `StoredDocument`, except that `chunks` holds the chunks."""

    signature: str = ""
    parsers: str = ""
    recipe: str = ""
    title: str = ""
    error: str = ""
    chunks: Sequence[Chunk] = ()
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict, hash=False)


class Store:
    """An index's file, which any number of threads and processes may read while one writes.

    Args:
        folder: The index's folder.
        called: The index's name, for errors.
    """

    def __init__(self, folder: Path, called: str) -> None:
        self.folder = folder
        self._called = shown_path(called)
        self._file = OwnFile(
            folder / FILE, application_id=APPLICATION_ID, version=VERSION, schema=_SCHEMA, owner="jackfield-knowledge"
        )

    @property
    def exists(self) -> bool:
        """True if the index exists. Its file is empty only while it is being created."""
        try:
            return (self.folder / FILE).stat().st_size > 0
        except OSError:
            return False

    def facts(self) -> IndexFacts:
        """Return the published generation's properties."""
        return self._used(_facts)

    def steps(self) -> list[Step]:
        """Return the names that were added and removed."""
        return self._used(_steps)

    def documents(self, generation: int) -> list[StoredDocument]:
        """Return a generation's documents, by location.

        Raises:
            ChangedIndexError: The generation no longer exists.
        """

        return [_document(row) for row in self._rows_of(generation, _documents_where(_OF_GENERATION))]

    def chunk_ids(self, generation: int) -> list[str]:
        """Return the ids of a generation's chunks, in order.

        Raises:
            ChangedIndexError: The generation no longer exists.
        """
        query = (
            "SELECT chunks.id FROM documents JOIN chunks "  # noqa: S608 - of constants
            f"ON place >= number * {_PLACES} AND place < (number + 1) * {_PLACES} "
            f"WHERE {_OF_GENERATION} ORDER BY location, place"
        )
        return [id_ for (id_,) in self._rows_of(generation, query)]

    def _rows_of(self, generation: int, query: str) -> list[Any]:
        def read(connection: sqlite3.Connection) -> list[Any]:
            connection.execute("BEGIN")  # the check and the rows come from one snapshot
            try:
                if _facts(connection).generation > generation + 1:
                    raise ChangedIndexError
                return connection.execute(query, (generation,)).fetchall()
            finally:
                connection.execute("COMMIT")

        return self._used(read)

    def positions(self, document: StoredDocument) -> list[tuple[int | None, tuple[str, ...], str]]:
        """Return the page, headings and part of each of a document's chunks, without reading texts.

        Raises:
            ChangedIndexError: The document's generation no longer exists.
        """
        first = document.number * _PLACES
        query = "SELECT page, headings, part FROM chunks WHERE place >= ? AND place < ? ORDER BY place"
        rows = self._used(lambda connection: connection.execute(query, (first, first + document.chunks)).fetchall())
        if len(rows) != document.chunks:
            raise ChangedIndexError
        return [(page, tuple(json.loads(headings)), _text(part)) for page, headings, part in rows]

    def chunk(self, document: StoredDocument, place: int, metadata: Mapping[str, MetadataValue]) -> Chunk:
        """Return one of a document's chunks, with the given metadata.

        Raises:
            ChangedIndexError: The document's generation no longer exists.
        """
        (chunk,) = self.chunks(document, metadata, place, place + 1)
        return chunk

    def chunks(
        self,
        document: StoredDocument,
        metadata: Mapping[str, MetadataValue],
        start: int = 0,
        end: int | None = None,
    ) -> list[Chunk]:
        """Return a slice of a document's chunks, with the given metadata.

        Raises:
            ChangedIndexError: The document's generation no longer exists.
        """
        first = document.number * _PLACES
        end = document.chunks if end is None else end
        rows = self._used(
            lambda connection: connection.execute(
                "SELECT place, id, page, tokens, overlap, joint, headings, part, text FROM chunks "
                "WHERE place >= ? AND place < ? ORDER BY place",
                (first + start, first + end),
            ).fetchall()
        )
        if len(rows) != end - start:
            raise ChangedIndexError
        return [_chunk(document, row, metadata) for row in rows]

    def searchers(self) -> dict[str, dict[str, object]]:
        """Return the searchers the index is built for, with their settings. Empty if none are recorded."""
        query = "SELECT value FROM facts WHERE name = 'searchers'"
        row = self._used(lambda connection: connection.execute(query).fetchone())
        found: dict[str, dict[str, object]] = json.loads(row[0]) if row else {}
        return found

    def close(self) -> None:
        """Close the file, which is reopened when needed."""
        self._file.close()

    @contextmanager
    def building(self) -> Iterator[Draft]:
        """Open the next generation, for one process at a time. The lock ends with the process.

        Raises:
            ConfigError: Another process is building the index, or the folder cannot be used.
        """
        self._check_folder()
        lock = OwnFile(
            self.folder / "building.sqlite",
            application_id=APPLICATION_ID,
            version=VERSION,
            schema=_LOCK_SCHEMA,
            owner="jackfield-knowledge",
        )
        try:
            with self._named_errors(), lock.use(patience_s=0) as connection:
                begun = _begun(connection)
                if begun:
                    try:
                        yield Draft(self._used)
                    finally:
                        connection.execute("ROLLBACK")
            if not begun:
                raise ConfigError(
                    f"index {self._called!r} is being built by another process: wait until that process has finished"
                )
        finally:
            lock.close()

    def _check_folder(self) -> None:
        """Refuse a folder that contains the user's files, so that it does not become an index by mistake."""
        try:
            others = self.folder.is_dir() and not self.exists and any(self.folder.iterdir())
            if not others:
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"cannot create an index in {self.folder}: {error.strerror or error}") from error
        if others and not (self.folder / "building.sqlite").exists():
            raise ConfigError(f"{self.folder} contains other files: specify an empty or new folder")

    def _used(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with self._named_errors(), self._file.use(patience_s=_PATIENCE_S) as connection:
            return work(connection)

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except UnusableFileError as error:
            is_other = isinstance(error, OtherVersionError)
            advice = f". Delete the folder {self.folder} and rebuild the index" if is_other else ""
            raise ConfigError(f"index {self._called!r} cannot be used: {error}{advice}") from error
        except (sqlite3.Error, OSError, BusyFileError) as error:
            if is_busy(error):
                raise ConfigError(f"index {self._called!r} is in use by another process: try again") from error
            if is_full(error):
                raise ConfigError(
                    f"index {self._called!r} cannot be used ({error}): free some disk space; its content is kept"
                ) from error
            raise ConfigError(
                f"index {self._called!r} cannot be used ({error}): if its file {self.folder / FILE} is corrupted, "
                f"delete the folder and rebuild the index"
            ) from error


class _Use(Protocol):
    """Runs a function with a store's connection."""

    def __call__(self, work: Callable[[sqlite3.Connection], T], /) -> T: ...


class Draft:
    """The next generation of an index, for the process that builds it. Invisible to searches until published."""

    def __init__(self, use: _Use) -> None:
        self._used = use

    def set_searchers(self, searchers: Mapping[str, Mapping[str, object]]) -> None:
        """Record the searchers that use the index."""

        def write(connection: sqlite3.Connection) -> None:
            with writing(connection):
                _set_facts(connection, {"searchers": json.dumps(searchers)})

        self._used(write)

    def set_rules(self, rules: str) -> None:
        """Set the values for documents, as in `IndexFacts.rules`. They take effect at once, because no text changes."""

        def write(connection: sqlite3.Connection) -> None:
            with writing(connection):
                _set_facts(connection, {"rules": rules})

        self._used(write)

    def set_steps(self, steps: Sequence[Step], *, size_tokens: int, overlap_chars: int) -> None:
        """Set the names of the index's files and the splitting parameters. Documents follow as they are stored."""

        def write(connection: sqlite3.Connection) -> None:
            with writing(connection):
                connection.execute("DELETE FROM steps")
                connection.executemany(
                    "INSERT INTO steps (name, adds) VALUES (?, ?)", [(_bytes(one.name), one.adds) for one in steps]
                )
                _set_facts(connection, {"size_tokens": size_tokens, "overlap_chars": overlap_chars})

        self._used(write)

    def documents(self) -> dict[str, StoredDocument]:
        """Return the documents so far, by location."""
        rows = self._used(lambda connection: connection.execute(_documents_where("until IS NULL")).fetchall())
        return {one.location: one for one in map(_document, rows)}

    def put(self, location: str, new: NewDocument) -> None:
        """Store a document in a single transaction."""
        metadata = json.dumps(new.metadata)
        identity = f"{new.recipe}\0{new.error}"  # the chunks depend on nothing but the recipe
        tokens = sum(chunk.tokens for chunk in new.chunks)
        row = (new.signature, new.parsers, new.recipe, _bytes(new.title), _bytes(new.error), len(new.chunks), tokens)
        digest = hashlib.sha256(_bytes(identity)).digest()

        def write(connection: sqlite3.Connection) -> None:
            with writing(connection):
                generation = _retire(connection, location)
                number = connection.execute(
                    "INSERT INTO documents (location, since, signature, parsers, recipe, title, error, chunks, tokens, "
                    "digest, metadata) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (_bytes(location), generation, *row, digest, metadata),
                ).lastrowid
                assert number is not None  # noqa: S101 - a row was inserted
                connection.executemany(
                    "INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (_row(number * _PLACES + place, chunk) for place, chunk in enumerate(new.chunks)),
                )

        self._used(write)

    def touch(self, document: StoredDocument, *, signature: str, parsers: str) -> None:
        """Record a new signature and parsers for a document whose content is unchanged."""
        self._used(
            lambda connection: connection.execute(
                "UPDATE documents SET signature = ?, parsers = ? WHERE number = ?",
                (signature, parsers, document.number),
            )
        )

    def retire(self, locations: Sequence[str]) -> None:
        """Remove documents."""

        def write(connection: sqlite3.Connection) -> None:
            with writing(connection):
                for location in locations:
                    _retire(connection, location)

        if locations:
            self._used(write)

    def publish(self) -> bool:
        """Publish the generation if anything has changed, and return True if so."""

        def write(connection: sqlite3.Connection) -> bool:
            with writing(connection):
                generation = _facts(connection).generation
                changes = "SELECT EXISTS (SELECT 1 FROM documents WHERE since > ?1 OR until > ?1)"
                if not connection.execute(changes, (generation,)).fetchone()[0]:
                    return False
                _delete(connection, "until <= ?", generation)
                _set_facts(connection, {"generation": generation + 1, **_summary(connection)})
                return True

        return self._used(write)


_LOSSLESS = ("utf-8", "surrogatepass")


def _bytes(text: str) -> bytes:
    """Encode a text so that SQLite stores it unchanged, even with a lone surrogate or a NUL."""
    return text.encode(*_LOSSLESS)


def _text(data: bytes) -> str:
    return data.decode(*_LOSSLESS)


def _begun(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if is_busy(error):
            return False
        raise
    return True


def _facts(connection: sqlite3.Connection) -> IndexFacts:
    found = dict(connection.execute("SELECT name, value FROM facts"))
    texts = ("content", "rules", "recipes")
    numbers = {one.name: int(found[one.name]) for one in fields(IndexFacts) if one.name not in texts}
    recipes = found.get("recipes", "[]")  # unknown until the first change
    return IndexFacts(content=found["content"], rules=found["rules"], recipes=recipes, **numbers)


def _set_facts(connection: sqlite3.Connection, facts: Mapping[str, object]) -> None:
    connection.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", [(k, str(v)) for k, v in facts.items()])


def _steps(connection: sqlite3.Connection) -> list[Step]:
    rows = connection.execute("SELECT name, adds FROM steps ORDER BY place")
    return [Step(_text(name), bool(adds)) for name, adds in rows]


def _documents_where(where: str) -> str:
    return (
        "SELECT number, location, signature, parsers, recipe, title, error, chunks, metadata FROM documents "  # noqa: S608
        f"WHERE {where} ORDER BY location"
    )


def _document(row: tuple[int, bytes, str, str, str, bytes, bytes, int, str]) -> StoredDocument:
    number, location, signature, parsers, recipe, title, error, chunks, metadata_json = row
    metadata = {key: _value(value) for key, value in json.loads(metadata_json).items()} if metadata_json != "{}" else {}
    texts = (signature, parsers, recipe, _text(title), _text(error))
    return StoredDocument(number, _text(location), *texts, chunks, metadata)


def _value(value: Any) -> MetadataValue:
    """Return a metadata value, with lists from JSON turned back into tuples."""
    return tuple(value) if isinstance(value, list) else value


def _retire(connection: sqlite3.Connection, location: str) -> int:
    """Remove a document from the next generation, and return that generation's number."""
    following = _facts(connection).generation + 1
    _delete(connection, "location = ? AND since = ?", _bytes(location), following)
    connection.execute(
        "UPDATE documents SET until = ? WHERE location = ? AND until IS NULL", (following, _bytes(location))
    )
    return following


def _delete(connection: sqlite3.Connection, where: str, *values: object) -> None:
    numbers = [number for (number,) in connection.execute(f"SELECT number FROM documents WHERE {where}", values)]  # noqa: S608
    for number in numbers:
        first = number * _PLACES
        connection.execute("DELETE FROM chunks WHERE place >= ? AND place < ?", (first, first + _PLACES))
        connection.execute("DELETE FROM documents WHERE number = ?", (number,))


def _summary(connection: sqlite3.Connection) -> dict[str, object]:
    """Return the properties of the next generation's content."""
    digest = hashlib.sha256()
    documents = chunks = tokens = 0
    ways: set[str] = set()
    rows = connection.execute(
        "SELECT location, digest, recipe, chunks, tokens FROM documents WHERE until IS NULL ORDER BY location"
    )
    for location, one, recipe, chunks_of_one, tokens_of_one in rows:
        digest.update(len(location).to_bytes(8, "big") + location + one)
        ways.add(recipe.partition("\n")[2])  # without the content hash
        documents, chunks, tokens = documents + 1, chunks + chunks_of_one, tokens + tokens_of_one
    recipes = sorted({_way(way) for way in ways if way})
    return {
        "content": digest.hexdigest(),
        "documents": documents,
        "chunks": chunks,
        "tokens": tokens,
        "recipes": json.dumps(recipes),
    }


def _way(recipe: str) -> tuple[str, str, str]:
    """Return a recipe's parser, its version, and the way of splitting."""
    parser, *_, cut = recipe.split("\n")
    address, version, *_ = json.loads(parser)
    return address, version, cut


def _row(place: int, chunk: Chunk) -> tuple[object, ...]:
    joint = None if chunk.joint is None else _bytes(chunk.joint)
    headings = json.dumps(chunk.headings)
    texts = (_bytes(chunk.part), _bytes(chunk.text))
    return (place, chunk.id, chunk.page, chunk.tokens, chunk.overlap, joint, headings, *texts)


def _chunk(
    document: StoredDocument,
    row: tuple[int, str, int | None, int, int, bytes | None, str, bytes, bytes],
    metadata: Mapping[str, MetadataValue],
) -> Chunk:
    place, id_, page, tokens, overlap, joint, headings, part, text = row
    return Chunk(
        id=id_,
        source=document.location,
        text=_text(text),
        index=place % _PLACES,
        tokens=tokens,
        page=page,
        headings=tuple(json.loads(headings)),
        part=_text(part),
        title=document.title,
        overlap=overlap,
        joint=None if joint is None else _text(joint),
        metadata=metadata,
    )
