"""Searcher that uses a Qdrant server."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

from pydantic import Field, SecretStr

from jackfield import sync
from jackfield.config import Config, PathText, ServerAddress
from jackfield.errors import ToolServiceError
from jackfield.plugins import Plugins, default_host
from jackfield.retrieval import Chunk, Corpus, Hit, Searcher, Selection, Vector, Where, shown_path
from jackfield.secrets import ForgetLocals
from jackfield_documents import IndexCache, OnShelf, Shelf, search_selected
from jackfield_documents.embedding import ChunkEmbedder
from jackfield_http.keys import KeyRule, find_key

if TYPE_CHECKING:  # they load numpy and Qdrant's client, which only the first search should do
    from jackfield_qdrant_search.points import Points
    from jackfield_qdrant_search.server import Collection

OnProgress = Callable[[int, int], None]

_KEY = KeyRule("QDRANT_API_KEY", hosts=(".cloud.qdrant.io",), url_variable="QDRANT_URL")
_AT_ONCE = 256  # texts embedded and uploaded together; a build that ends early keeps the finished ones
_ATTEMPTS = 3
_KEPT = 8  # corpora, the same number as in memory
_KEPT_ON_DISK = 2  # corpora, the readable versions of an on-disk index
_DIGITS = 4  # the lowest bits of a 32-bit score depend on the order of summation
_MOST_NAMED = 1000  # selected chunks that a request lists; beyond that, hits outside the selection are dropped
_TIES = 1000  # points to examine so that equal ones come in document order


class QdrantConfig(Config):
    """Settings for the server, the collection and the embedder."""

    url: ServerAddress = Field(
        default="http://localhost:6333", description="URL of the server; without a port, 6333 is used"
    )
    api_key: SecretStr | None = Field(default=None, repr=False, description="Better set as QDRANT_API_KEY")
    local_path: PathText | None = Field(
        default=None, min_length=1, description="A folder, or :memory:, for Qdrant's local mode instead of a server"
    )
    collection: str = Field(
        default="jackfield",
        pattern=r"^[\w-]{1,200}$",
        description="Prefix of collection names; each embedder with its settings has its own collection",
    )
    index: str | None = Field(
        default=None, min_length=1, description="Name of the document group; unset: the name of the index on disk"
    )
    embedding_model: str = Field(
        min_length=1, description="The embedder and its model, such as openai:text-embedding-3-small; required"
    )
    embedder_settings: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="Additional settings of the embedder: base_url, dimension …"
    )
    min_score: float | None = Field(default=None, ge=-1, le=1, description="Minimum cosine similarity of a hit")
    max_chars: int = Field(
        default=8000, ge=1, description="Maximum number of characters of each text to embed, from its start"
    )
    timeout_s: float = Field(default=60.0, gt=0, description="Time limit of one request to the server")


class QdrantSearcher(Searcher):
    """Finds chunks in Qdrant by meaning.

    The first search in a corpus embeds and uploads its new chunks. Points are identified by their text, so later
    searches of any process find them. The text itself is not uploaded.

    Args:
        cfg: The settings of `QdrantConfig`.
        host: The plugin host that provides the embedder and the secret `QDRANT_API_KEY`.

    Raises:
        ConfigError: A setting is invalid.
    """

    name: ClassVar[str] = "qdrant_search"
    config_class = QdrantConfig
    config: QdrantConfig

    def __init__(
        self, cfg: QdrantConfig | Mapping[str, object] | None = None, *, host: Plugins | None = None, **settings: Any
    ) -> None:
        with ForgetLocals():  # they may include a key
            super().__init__(cfg, **settings)
        self._host = host or default_host()
        self._embedder = ChunkEmbedder(
            self.config.embedding_model,
            self.config.embedder_settings,
            host=self._host,
            max_chars=self.config.max_chars,
        )
        self._lock = threading.Lock()
        self._opened: Collection | None = None
        self._points: IndexCache[Points] = IndexCache()
        self._uploaded: IndexCache[str] = IndexCache()

    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        """Search as described in `Searcher`. The score is the cosine.

        Args:
            query: Text, or JSON with a `text` key, the format for keyword search.
            corpus: The corpus to search.
            limit: The maximum number of hits.
            where: A filter; see `Searcher`.

        Raises:
            ToolServiceError: The server is unreachable, rejected the request, or failed.
            ModelServiceError: The embedder failed or returned invalid vectors.
            ConfigError, PluginError: The embedder's settings are invalid, or it is not installed.
        """
        question = self._embedder.question_in(query)
        if not corpus.chunks or limit < 1 or not question:
            return []
        return await sync.in_worker(partial(self._search, question, corpus, limit, where))

    async def prepare(self, corpus: Corpus, *, on_progress: OnProgress | None = None) -> None:
        """Embed and upload the new chunks of a corpus, so that a search does not have to.

        Chunks uploaded before a failure are kept.

        Args:
            corpus: The corpus to prepare.
            on_progress: Called with the number of finished chunks and the total, from any thread.

        Raises:
            ToolServiceError, ModelServiceError, ConfigError, PluginError: As in `search`.
        """
        if corpus.chunks:
            await sync.in_worker(partial(self._ready, corpus, on_progress))
        if on_progress:
            on_progress(len(corpus.chunks), len(corpus.chunks))

    async def aclose(self) -> None:
        """Close the connections and the embedder. The next search reopens them."""
        await self._embedder.aclose()
        if self._opened is not None:
            await sync.in_worker(self._opened.close)
            self._uploaded = IndexCache()  # the local mode in memory has forgotten it

    def _search(self, question: str, corpus: Corpus, limit: int, where: Where | None) -> list[Hit]:
        selection = corpus.select(where) if where else None
        points, key = self._ready(corpus)
        if not len(points) or (selection is not None and not len(selection)):
            return []
        (vector,) = sync.run(self._embedder.embed([question], "query"))
        if not any(vector):
            return []  # the model cannot read the question
        found = self._nearest(points, key, vector, limit, selection)
        if len(found) < min(limit, len(points)) and not self._collection.is_whole(key):
            self._uploaded = IndexCache()  # other corpora of the same index have taken its place
            points, key = self._ready(corpus)
            found = self._nearest(points, key, vector, limit, selection)
        least = self.config.min_score
        return [
            Hit(corpus.chunks[place], score, {self.name: rank})
            for rank, (place, score) in enumerate(found, start=1)
            if least is None or score >= least
        ]

    def _nearest(
        self, points: Points, key: str, vector: Vector, limit: int, selection: Selection | None
    ) -> list[tuple[int, float]]:
        if selection is None:
            return self._nearest_of(points, key, vector, limit)
        if len(selection) > _MOST_NAMED:
            search = partial(self._nearest_of, points, key, vector)
            return search_selected(search, limit, selection)
        # A point may belong to several chunks, some of which are not selected.
        named = points.of_chunks(selection.numbers)
        nearest = self._nearest_of(points, key, vector, len(named) * 2, named)
        return [hit for hit in nearest if hit[0] in selection][:limit]

    def _nearest_of(
        self, points: Points, key: str, vector: Vector, limit: int, named: Sequence[str] | None = None
    ) -> list[tuple[int, float]]:
        nearest = self._nearest_points(key, vector, limit, named)
        found = [(place, score) for point, score in nearest for place in points.places(point)]
        found.sort(key=lambda hit: (-hit[1], hit[0]))
        return found if named is not None else found[:limit]

    def _nearest_points(
        self, key: str, vector: Vector, limit: int, named: Sequence[str] | None
    ) -> list[tuple[str, float]]:
        """Return the nearest points with rounded scores, including all ties with the last one."""
        wanted = 2 * limit
        while True:
            found = self._collection.nearest(key, vector, wanted, named)
            nearest = [(point, round(score, _DIGITS)) for point, score in found]
            if len(nearest) < wanted or nearest[-1][1] < nearest[limit - 1][1] or wanted > max(_TIES, limit):
                return nearest
            wanted *= 8  # the last one ties with others, some of which may come before it

    # --- points in the server ---

    def _ready(self, corpus: Corpus, on_progress: OnProgress | None = None) -> tuple[Points, str]:
        """Return the points of a corpus and the key of the corpus in Qdrant, uploading the points if necessary."""
        points = self._points.get(corpus, self._points_of, self._on_shelf)
        if not len(points):
            return points, ""
        return points, self._uploaded.get(corpus, partial(self._upload, corpus, points, on_progress))

    def _upload(self, corpus: Corpus, points: Points, on_progress: OnProgress | None, chunks: Sequence[Chunk]) -> str:
        """Upload the new chunks of a corpus, and return the key of the corpus in Qdrant.

        Chunks uploaded before a failure are kept, and the next attempt resumes from there.
        """
        key = f"corpus_{corpus.content_hash[:32]}"
        if self._collection.is_whole(key):
            return key
        on_disk = _shelf_of(corpus)
        index = self.config.index or (shown_path(on_disk.folder.name) if on_disk else "")
        for _ in range(_ATTEMPTS):
            self._upload_new(key, index, chunks, on_progress)
            # Another process may have removed points that seemed to belong only to an old corpus.
            if self._collection.count(key) == len(points):
                self._collection.finish(key, index, keep=_KEPT_ON_DISK if on_disk else _KEPT)
                return key
        raise ToolServiceError(
            f"other processes keep changing the Qdrant collection {self._collection_name}: try again, or set a "
            "different `collection`"
        )

    def _upload_new(self, key: str, index: str, chunks: Sequence[Chunk], on_progress: OnProgress | None) -> None:
        done = 0
        for texts in _batches(self._embedder, chunks):
            known = self._collection.known(list(texts)) if self._collection.exists() else set()
            new = self._embedded({point: text for point, text in texts.items() if point not in known})
            if not done:
                self._collection.announce(key, index)
            if new:
                self._collection.put(key, new)
            if known:
                self._collection.mark(key, list(known))
            done += len(texts)
            if on_progress:
                on_progress(done, len(chunks))

    def _embedded(self, texts: dict[UUID, str]) -> dict[UUID, Vector]:
        """Return the vectors of points, creating the collection if necessary."""
        if not texts:
            return {}
        vectors = sync.run(self._embedder.embed(list(texts.values()), "document"))
        self._collection.make(len(vectors[0]))
        return dict(zip(texts, vectors, strict=True))

    @property
    def _collection(self) -> Collection:
        from jackfield_qdrant_search.server import Address, Collection

        with self._lock:
            if self._opened is None:
                config = self.config
                found = find_key(config.url, _KEY, configured=config.api_key, settings=self._host.settings)
                address = Address(
                    url="" if config.local_path else config.url,
                    local_path=config.local_path or "",
                    key=found.value,
                    withheld=found.withheld,
                    timeout_s=config.timeout_s,
                )
                self._opened = Collection(address, self._collection_name)
            return self._opened

    @cached_property
    def _collection_name(self) -> str:
        return f"{self.config.collection}-{hashlib.sha256(self._embedder.space.encode()).hexdigest()[:12]}"

    # --- points of chunks ---

    def _points_of(self, chunks: Sequence[Chunk]) -> Points:
        from jackfield_qdrant_search.points import Points

        return Points.of([self._embedder.text_of(chunk) for chunk in chunks])

    @cached_property
    def _on_shelf(self) -> OnShelf[Points]:
        version = metadata.version("jackfield-documents")  # which decides how a chunk's text is embedded
        return OnShelf(f"{self.name}-{version}-{self.config.max_chars}", _read_points, _write_points)


def _shelf_of(corpus: Corpus) -> Shelf | None:
    shelf = getattr(corpus, "shelf", None)
    return shelf if isinstance(shelf, Shelf) else None


def _batches(embedder: ChunkEmbedder, chunks: Sequence[Chunk]) -> Iterator[dict[UUID, str]]:
    """Yield the distinct texts of chunks by point id, in batches."""
    from jackfield_qdrant_search.points import id_of

    seen: set[UUID] = set()
    batch: dict[UUID, str] = {}
    for text in map(embedder.text_of, chunks):
        if text and (point := id_of(text)) not in seen:
            seen.add(point)
            batch[point] = text
            if len(batch) == _AT_ONCE:
                yield batch
                batch = {}
    if batch:
        yield batch


def _read_points(path: Path) -> Points:
    from jackfield_qdrant_search.points import Points

    return Points.read(path)


def _write_points(points: Points, path: Path) -> None:
    points.write(path)
