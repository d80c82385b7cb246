"""Searcher for similar vectors."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import Field

from jackfield import sync
from jackfield.config import Config, PathText
from jackfield.errors import ConfigError, JackfieldError, ModelResponseError
from jackfield.plugins import Plugins, default_host
from jackfield.retrieval import Chunk, Corpus, Hit, Purpose, Searcher, Where
from jackfield_documents import IndexCache, OnShelf, Shelf
from jackfield_documents.embedding import ChunkEmbedder

if TYPE_CHECKING:  # they load numpy, which only the first search should do
    from jackfield_vector_search.graph import Matrix
    from jackfield_vector_search.index import Index
    from jackfield_vector_search.store import VectorStore

T = TypeVar("T")
OnProgress = Callable[[int, int], None] | None

BESIDE = "vectors.sqlite"
"""The file name of stored vectors next to an on-disk corpus."""
_AT_ONCE = 512  # texts after which vectors are saved; later ones are lost if the process is killed


class VectorConfig(Config):
    """Settings for the embedder and the storage of vectors."""

    embedding_model: str = Field(
        min_length=1, description="The embedder and its model, such as openai:text-embedding-3-small; required"
    )
    embedder_settings: dict[str, Any] = Field(
        default_factory=dict, description="Additional settings of the embedder: base_url, dimension, batch_size …"
    )
    index_path: PathText | None = Field(
        default=None, description="File that stores vectors between runs; if unset, only an index on disk stores them"
    )
    min_score: float | None = Field(default=None, ge=-1, le=1, description="Minimum cosine similarity of a hit")
    approximate_from: int | None = Field(
        default=200_000,
        ge=1,
        description="Minimum number of chunks for approximate search (with usearch); null: always exact",
    )
    max_chars: int = Field(
        default=8000, ge=1, description="Maximum number of characters of each text to embed, from its start"
    )


class VectorSearcher(Searcher):
    """Finds chunks by meaning: those whose vectors are most similar to the query's vector.

    Each chunk is embedded once, along with its headings. The vectors of the last eight corpora are cached in memory.
    Vectors are also stored by text in the file `index_path`, or next to an on-disk corpus.

    Args:
        cfg: The settings of `VectorConfig`.
        host: The plugin host that provides the embedder.

    Raises:
        ConfigError: A setting is invalid, or no embedder is named.
    """

    name: ClassVar[str] = "vector_search"
    config_class = VectorConfig
    config: VectorConfig

    def __init__(
        self, cfg: VectorConfig | Mapping[str, object] | None = None, *, host: Plugins | None = None, **settings: Any
    ) -> None:
        super().__init__(cfg, **settings)
        self._embedding = ChunkEmbedder(
            self.config.embedding_model,
            self.config.embedder_settings,
            host=host or default_host(),
            max_chars=self.config.max_chars,
        )
        self._indexes: IndexCache[Index] = IndexCache()
        self._lock = threading.Lock()
        self._stores: dict[Path, VectorStore] = {}

    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        """Search as described in `Searcher`. The score is the cosine.

        Args:
            query: Text, or JSON with a `text` key, the format for keyword search.
            corpus: The corpus to search.
            limit: The maximum number of hits.
            where: A filter; see `Searcher`.

        Raises:
            ModelServiceError: The embedder failed or returned invalid vectors.
            PluginError: The embedder is not installed or failed to load.
            ConfigError: The embedder's settings are invalid, or `index_path` is not usable.
        """
        question = self._embedding.question_in(query)
        if not corpus.chunks or limit < 1 or not question:
            return []
        return await _in_worker(partial(self._search, question, corpus, limit, where))

    async def prepare(self, corpus: Corpus, *, on_progress: Callable[[int, int], None] | None = None) -> None:
        """Embed the texts that have no vector yet, as described in `Searcher`. Vectors are saved after every 512 texts.

        Raises:
            ModelServiceError, PluginError, ConfigError: As in `search`.
        """
        if corpus.chunks:
            await _in_worker(partial(self._index_of, corpus, on_progress))

    async def aclose(self) -> None:
        """Close the embedder and the vector files. The next search reopens them."""
        await self._embedding.aclose()
        for store in list(self._stores.values()):
            await sync.in_worker(store.close)

    def _search(
        self, question: str, corpus: Corpus, limit: int, where: Where | None, given_up: threading.Event
    ) -> list[Hit]:
        selected = corpus.select(where).numbers if where else None
        index = self._index_of(corpus, None, given_up)
        vector = self._embedded([question], "query")[0]
        if index.dimension not in (None, len(vector)):
            raise self._wrong(
                f"the query vector has dimension {len(vector)}, but the chunk vectors have dimension {index.dimension}"
            )
        if not vector.any():
            return []  # the model cannot read the question
        found = index.search(vector, limit, selected)
        least = self.config.min_score
        return [
            Hit(corpus.chunks[number], score, {self.name: rank})
            for rank, (number, score) in enumerate(found, start=1)
            if least is None or score >= least
        ]

    def _index_of(self, corpus: Corpus, on_progress: OnProgress, given_up: threading.Event) -> Index:
        build = partial(self._built, store=self._store_for(corpus), on_progress=on_progress, given_up=given_up)
        return self._indexes.get(corpus, build, self._on_shelf())

    def _on_shelf(self) -> OnShelf[Index]:
        """Return the storage for the index of an on-disk corpus, which is next to the corpus."""
        from jackfield_vector_search.graph import can_be_made

        versions = [metadata.version(name) for name in ("jackfield-vector-search", "jackfield-documents")]
        decides = (versions, self._embedding.space, self.config.approximate_from, can_be_made())
        digest = hashlib.sha256(repr(decides).encode()).hexdigest()
        return OnShelf(f"{self.name}-{digest[:8]}", _read_index, _write_index)

    def _built(
        self, chunks: Sequence[Chunk], *, store: VectorStore | None, on_progress: OnProgress, given_up: threading.Event
    ) -> Index:
        import numpy as np

        from jackfield_vector_search.index import Index

        texts = {number: text for number, chunk in enumerate(chunks) if (text := self._embedding.text_of(chunk))}
        uses = Counter(texts.values())
        vectors: dict[str, Matrix] = {}
        done = len(chunks) - len(texts)
        for some in self._vectors_of(list(uses), store, given_up):
            vectors.update(some)
            done += sum(uses[text] for text in some)
            if on_progress:
                on_progress(done, len(chunks))
        # A vector of zeros is of a text that the model cannot read.
        rows = {number: vectors[text] for number, text in texts.items() if vectors[text].any()}
        matrix = np.stack(list(rows.values())) if rows else np.zeros((0, 0), np.float32)
        return Index(matrix, list(rows), approximate_from=self.config.approximate_from)

    def _vectors_of(
        self, texts: Sequence[str], store: VectorStore | None, given_up: threading.Event
    ) -> Iterator[Mapping[str, Matrix]]:
        """Yield the vectors of texts: stored ones first, then new ones, which are computed and stored in batches."""
        space = self._embedding.space
        found = store.get(space, texts) if store else {}
        yield found
        length = self._length_of(found, store)
        lacking = [text for text in texts if text not in found]
        for some in _some_at_a_time(lacking, given_up):
            rows = self._embedded(some, "document")
            if length not in (None, rows.shape[1]):
                raise self._another_length(rows.shape[1], length, store if found else None)
            length = rows.shape[1]
            made = dict(zip(some, rows, strict=True))
            if store:
                store.put(space, made)
            yield made

    def _length_of(self, vectors: Mapping[str, Matrix], store: VectorStore | None) -> int | None:
        lengths = sorted({len(vector) for vector in vectors.values()})
        if len(lengths) > 1:
            raise self._another_length(lengths[1], lengths[0], store)
        return lengths[0] if lengths else None

    def _another_length(self, now: int, before: int | None, store: VectorStore | None) -> JackfieldError:
        if store is None:
            return self._wrong(f"expected vectors of dimension {before}, got {now}")
        name = self.config.embedding_model
        return ConfigError(
            f"{name} generates vectors of dimension {now}, but {store.path} contains earlier ones of "
            f"dimension {before}: "
            f"restore the previous settings, set index_path to a different file, or delete this file to "
            f"recompute all vectors"
        )

    def _embedded(self, texts: Sequence[str], purpose: Purpose) -> Matrix:
        """Return the validated vectors of texts, one per row."""
        import numpy as np

        return np.asarray(sync.run(self._embedding.embed(texts, purpose)), dtype=np.float32)

    def _wrong(self, what: str) -> ModelResponseError:
        name = self.config.embedding_model
        return ModelResponseError(f"embedder {name}: {what}", backend=name)

    def _store_for(self, corpus: Corpus) -> VectorStore | None:
        """Return the vector store for a corpus, or None if vectors are only cached in memory."""
        shelf = getattr(corpus, "shelf", None)
        if self.config.index_path:
            path = Path(self.config.index_path).expanduser()
        elif isinstance(shelf, Shelf):
            path = shelf.folder / BESIDE
        else:
            return None
        from jackfield_vector_search.store import VectorStore

        with self._lock:
            if path not in self._stores:
                self._stores[path] = VectorStore(path)
            return self._stores[path]


class _GivenUpError(Exception):
    """The caller no longer waits for the vectors. Vectors computed so far have been stored."""


async def _in_worker(work: Callable[[threading.Event], T]) -> T:
    """Run work in a thread that stops when the caller is cancelled, because embedding costs money."""
    given_up = threading.Event()
    try:
        return await sync.in_worker(work, given_up)
    except asyncio.CancelledError:
        given_up.set()
        raise


def _read_index(path: Path) -> Index:
    from jackfield_vector_search.index import Index

    return Index.from_file(path)


def _write_index(index: Index, path: Path) -> None:
    index.write(path)


def _some_at_a_time(texts: Sequence[str], given_up: threading.Event) -> Iterator[Sequence[str]]:
    for start in range(0, len(texts), _AT_ONCE):
        if given_up.is_set():
            raise _GivenUpError
        yield texts[start : start + _AT_ONCE]
