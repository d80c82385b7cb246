"""Searcher that uses PostgreSQL with pgvector."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import metadata
from itertools import chain
from typing import Any, ClassVar, Literal, TypeAlias

from pydantic import Field, SecretStr, model_validator

from jackfield import sync
from jackfield.config import Config
from jackfield.errors import ConfigError, ToolServiceError
from jackfield.plugins import Plugins, default_host
from jackfield.retrieval import Corpus, Hit, Purpose, Searcher, Vector, Where, shown_path
from jackfield.secrets import ForgetLocals
from jackfield.settings import config_path
from jackfield_documents import IndexCache, Shelf
from jackfield_documents.analyzer import Analyzer, Chinese, parts_of
from jackfield_documents.embedding import ChunkEmbedder
from jackfield_documents.queries import texts_of
from jackfield_pgvector_search.filling import Filling, Plan, Ready
from jackfield_pgvector_search.statements import known_terms, query_of, ranking, term_of, vector_text
from jackfield_pgvector_search.tables import Side, wrong_dimension
from jackfield_postgres import Database, Row

SECRET = "PGVECTOR_DSN"  # noqa: S105 - the name of a variable
_ATTEMPTS = 3
_Asked: TypeAlias = tuple[Side | None, dict[str, object]]
_UNDEFINED_TABLE = "42P01"
_ANY_SCORE = -2.0  # below all cosines

# An index finds the nearest among all vectors, and continues until enough of them are in the searched corpus. Without
# pgvector, these settings have no meaning for the server, and do no harm.
_NEAREST = "SET hnsw.iterative_scan = strict_order; SET hnsw.ef_search = 100"


class PgvectorConfig(Config):
    """Settings for the database, the ranking methods and the embedder."""

    dsn: SecretStr | None = Field(
        default=None, repr=False, description="postgresql://USER:PASSWORD@HOST/DATABASE; better kept as PGVECTOR_DSN"
    )
    db_schema: str = Field(
        default="jackfield",
        pattern=r"^[a-z_][a-z0-9_]{0,62}$",
        description="Schema of the tables; created if missing",
    )
    index: str | None = Field(
        default=None, min_length=1, description="Name of the document group; unset: the name of the index on disk"
    )
    search: Literal["hybrid", "vectors", "words"] | None = Field(
        default=None, description="Ranking method; unset: hybrid with an embedding_model, words without"
    )
    embedding_model: str | None = Field(
        default=None, description="The embedder and its model, such as openai:text-embedding-3-small"
    )
    embedder_settings: dict[str, Any] = Field(
        default_factory=dict, description="Additional settings of the embedder: base_url, dimension, batch_size …"
    )
    chinese: Chinese = Field(default="words", description="words (found with a dictionary) or bigrams")
    min_score: float | None = Field(default=None, ge=-1, le=1, description="Minimum cosine similarity of a vector hit")
    max_chars: int = Field(
        default=8000, ge=1, description="Maximum number of characters of each text to embed, from its start"
    )
    approximate_from: int | None = Field(
        default=50_000, ge=1, description="Minimum number of chunks for an HNSW index; null: no index"
    )
    connections: int = Field(default=8, ge=1, description="Maximum number of concurrent connections")
    timeout_s: float = Field(
        default=30.0, gt=0, description="Maximum time without data from the server during a search"
    )

    @model_validator(mode="after")
    def _vectors_need_an_embedder(self) -> PgvectorConfig:
        if self.search in ("hybrid", "vectors") and not self.embedding_model:
            raise ValueError(f"search {self.search!r} needs embedding_model, such as openai:text-embedding-3-small")
        return self

    @property
    def has_words(self) -> bool:
        """True if chunks are ranked by words."""
        return self.search != "vectors"

    @property
    def has_vectors(self) -> bool:
        """True if chunks are ranked by vectors."""
        return self.search != "words" and self.embedding_model is not None


class PgvectorSearcher(Searcher):
    """Finds chunks in PostgreSQL by meaning, by words, or by both.

    The first search in a corpus writes its new chunks to the database, where later searches of any process find them.
    The database stores words and vectors, but not the text itself.

    Args:
        cfg: The settings of `PgvectorConfig`.
        host: The plugin host that provides the embedder and the secret `PGVECTOR_DSN`.

    Raises:
        ConfigError: A setting is invalid.
    """

    name: ClassVar[str] = "pgvector_search"
    config_class = PgvectorConfig
    config: PgvectorConfig

    def __init__(
        self,
        cfg: PgvectorConfig | Mapping[str, object] | None = None,
        *,
        host: Plugins | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(cfg, **settings)
        self._host = host or default_host()
        self._lock = threading.Lock()
        self._corpora: IndexCache[Ready] = IndexCache()
        self._opened: Database | None = None
        self._embedding = ChunkEmbedder(
            self.config.embedding_model or "",
            self.config.embedder_settings,
            host=self._host,
            max_chars=self.config.max_chars,
        )

    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        """Search as described in `Searcher`. The score is a cosine, a BM25 score or a reciprocal rank fusion score.

        Args:
            query: Text, or JSON with any of `keywords_zh`, `keywords_en` and `text`. There is no query syntax.
            corpus: The corpus to search.
            limit: The maximum number of hits.
            where: A filter; see `Searcher`. The numbers of the selected chunks are sent to the server as one parameter.

        Raises:
            ToolServiceError: The database is unreachable or failed.
            ModelServiceError: The embedder failed or returned invalid vectors.
            ConfigError: The DSN is missing or wrong, the tables are of a newer version, pgvector is missing, or the
                vector dimension differs from that of the stored vectors.
        """
        if not corpus.chunks or limit < 1 or not query.strip():
            return []
        with ForgetLocals():  # they include the DSN
            return await sync.in_worker(self._search, query, corpus, limit, where)

    async def aclose(self) -> None:
        """Close the connections and the embedder. The next search reopens them."""
        await self._embedding.aclose()
        if self._opened is not None:
            await sync.in_worker(self._opened.close)

    # --- a search ---

    def _search(self, query: str, corpus: Corpus, limit: int, where: Where | None) -> list[Hit]:
        selected = corpus.select(where).numbers if where else None
        if selected is not None and not len(selected):
            return []
        texts = texts_of(query)
        question = self._embedding.question_in(" ".join(texts))
        vector = self._embed([question], "query")[0] if question and self.config.has_vectors else None
        if vector is not None and not any(vector):
            vector = None  # the model cannot read the question
        for _ in range(_ATTEMPTS):
            corpora = self._corpora
            ready = corpora.get(corpus, lambda _: self._ready(corpus))
            rows = self._rows(ready, texts, vector, limit, selected)
            if rows is not None:
                return [self._hit(corpus, rank, row) for rank, row in enumerate(rows, start=1)]
            with self._lock:
                if self._corpora is corpora:
                    self._corpora = IndexCache()
        raise ToolServiceError(
            "other corpora with the same index name keep replacing this one in the database: set a different `index`"
        )

    def _rows(
        self, ready: Ready, texts: Sequence[str], vector: Vector | None, limit: int, selected: Sequence[int] | None
    ) -> list[Row] | None:
        """Return the hits, or None if the corpus is no longer in the database."""
        try:
            return self._found(ready, texts, vector, limit, selected) or self._nothing_in(ready)
        except ToolServiceError as error:
            if error.code == _UNDEFINED_TABLE:
                return None
            raise

    def _nothing_in(self, ready: Ready) -> list[Row] | None:
        table = f"{self.config.db_schema}.jackfield_corpora"
        rows = self._database.ask(
            f"SELECT 1 FROM {table} WHERE id = CAST(:id AS bigint)",  # noqa: S608 - a checked name
            id=ready.number,
        )
        return [] if rows else None

    def _found(
        self, ready: Ready, texts: Sequence[str], vector: Vector | None, limit: int, selected: Sequence[int] | None
    ) -> list[Row]:
        words, asked_words = self._asked_words(ready, texts)
        vectors, asked_vector = self._asked_vector(ready, vector)
        statement = ranking(self.config.db_schema, words, vectors, is_filtered=selected is not None)
        if statement is None:
            return []
        limits = {"corpus": ready.number, "limit": min(limit, ready.chunks)}
        places = {} if selected is None else {"places": list(selected)}
        return self._database.ask(statement, **limits, **asked_words, **asked_vector, **places)

    def _asked_vector(self, ready: Ready, vector: Vector | None) -> _Asked:
        """Return the table of vectors and the parameters for the query's vector, or neither without a vector search."""
        if ready.vectors is None or not vector:
            return None, {}
        kept, least = ready.vectors.dimension, self.config.min_score
        if kept != len(vector):
            raise wrong_dimension(self.config.db_schema, self._embedding.space, kept=kept, now=len(vector))
        return ready.vectors, {"vector": vector_text(vector), "least": _ANY_SCORE if least is None else least}

    def _asked_words(self, ready: Ready, texts: Sequence[str]) -> _Asked:
        """Return the table of words and the parameters for the query's words, or neither without words."""
        if ready.words is None:
            return None, {}
        terms = [term for text in texts for term in map(term_of, self._analyzer.terms_of_query(text)) if term]
        counts = Counter(self._in_parts(ready.number, ready.words, terms))
        if not counts:
            return None, {}
        return ready.words, {
            "terms": list(counts),
            "queries": list(map(query_of, counts)),
            "times": list(map(float, counts.values())),
            "chunks": ready.chunks,
            "mean_length": ready.mean_length,
        }

    def _in_parts(self, corpus: int, words: Side, terms: Sequence[str]) -> list[str]:
        """Replace each Chinese word that occurs in no chunk by those of its parts that do occur."""
        candidates = list(dict.fromkeys(chain.from_iterable(map(_with_parts, terms))))
        if not candidates:
            return list(terms)
        rows = self._database.ask(
            known_terms(self.config.db_schema, words),
            corpus=corpus,
            terms=candidates,
            queries=list(map(query_of, candidates)),
        )
        known = {term for (term,) in rows}
        whole = known.union(set(terms).difference(candidates))
        return [part for term in terms for part in ([term] if term in whole else parts_of(term, known.__contains__))]

    def _hit(self, corpus: Corpus, rank: int, row: Row) -> Hit:
        place, score, by_words, by_vectors = row
        ranks = {self.name: rank}
        if by_words is not None:
            ranks[f"{self.name}.words"] = by_words
        if by_vectors is not None:
            ranks[f"{self.name}.vectors"] = by_vectors
        return Hit(corpus.chunks[place], float(score), ranks)

    # --- requirements of a search ---

    def _ready(self, corpus: Corpus) -> Ready:
        shelf = getattr(corpus, "shelf", None)
        on_disk = shelf if isinstance(shelf, Shelf) else None
        name = self.config.index or (shown_path(on_disk.folder.name) if on_disk else "default")
        plan = Plan(
            schema=self.config.db_schema,
            analyzer=self._analyzer_name if self.config.has_words else "",
            space=self._embedding.space if self.config.has_vectors else "",
            embed=lambda texts: self._embed(texts, "document"),
            analyze=self._analyzer.terms,
            approximate_from=self.config.approximate_from,
            max_chars=self.config.max_chars,
        )
        # An index on disk has a hash of its contents; elsewhere, only the texts are sure to differ.
        content = on_disk.content if on_disk else None
        return Filling(self._database, plan, name=name, content=content, chunks=corpus.chunks).ready()

    def _embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Vector]:
        return sync.run(self._embedding.embed(texts, purpose))

    @cached_property
    def _analyzer(self) -> Analyzer:
        return Analyzer(self.config.chinese)

    @cached_property
    def _analyzer_name(self) -> str:
        """An identifier that changes whenever the analyzer may produce different words."""
        return f"{self.config.chinese} {metadata.version('jackfield-documents')}"

    @property
    def _database(self) -> Database:
        with self._lock:
            if self._opened is None:
                dsn = self.config.dsn.get_secret_value() if self.config.dsn else self._host.settings.secret(SECRET)
                if not dsn:
                    raise ConfigError(
                        f"pgvector_search needs a database: set the environment variable {SECRET} to "
                        f"postgresql://USER:PASSWORD@HOST/DATABASE, or set it under [secrets] in {config_path()}"
                    )
                self._opened = Database(
                    dsn,
                    timeout_s=self.config.timeout_s,
                    connections=self.config.connections,
                    settings=_NEAREST,
                )
            return self._opened


def _with_parts(term: str) -> list[str]:
    """Return a Chinese term and all its parts, or [] for a term that has no parts."""
    parts: list[str] = []

    def note(part: str) -> bool:
        parts.append(part)
        return False

    parts_of(term, note)
    return [term, *parts] if parts else []
