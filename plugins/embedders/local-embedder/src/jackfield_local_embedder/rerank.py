"""Rerank another searcher's hits with a model that runs in this process."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from jackfield import sync
from jackfield.errors import ConfigError, ModelResponseError
from jackfield.plugins import Plugins, default_host
from jackfield.retrieval import Chunk, Corpus, Hit, Searcher, Where, make_searcher
from jackfield_documents import IndexCache
from jackfield_local_embedder.config import LocalRerankConfig
from jackfield_local_embedder.embedder import KEY_VARIABLE, translate_errors

if TYPE_CHECKING:  # it loads numpy, which only the first search should do
    from jackfield_local_embedder.cross_encoder import CrossEncoder

NAME = "local_rerank"


class LocalRerank(Searcher):
    """Reranks the hits of another searcher with a cross-encoder.

    The score is the model's relevance, from 0 to 1. Hits after the candidates follow in their own order, with a score
    of 0. A hit in a script that the model's tokenizer does not know keeps its place and takes the score of the next
    hit. If the question is in such a script, nothing is reranked.

    The model is loaded on first use and kept until `aclose`. Batches run one at a time, and a cancelled search stops
    after the current batch.

    Args:
        cfg: The settings of `LocalRerankConfig`. `model` is required.
        host: The plugin host that provides the other searcher and the hub token.

    Raises:
        ConfigError: A setting is invalid.
    """

    name: ClassVar[str] = NAME
    config_class = LocalRerankConfig
    config: LocalRerankConfig

    def __init__(
        self, cfg: LocalRerankConfig | Mapping[str, Any] | None = None, *, host: Plugins | None = None, **settings: Any
    ) -> None:
        super().__init__(cfg, **settings)
        self._host = host or default_host()
        self._turn = threading.Lock()
        self._model: CrossEncoder | None = None
        self._positions: IndexCache[Mapping[str, int]] = IndexCache()
        self._searcher: Searcher | None = None

    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        """Rerank the candidates from the other searcher. See `Searcher`.

        Raises:
            ModelServiceError: The model cannot be loaded, or failed.
            PluginError: The other searcher is not installed or failed to load.
        """
        if not corpus.chunks or limit < 1:
            return []
        searcher = self._candidate_searcher()
        hits = await searcher.search(query, corpus, limit=max(limit, self.config.candidates), where=where)
        scores = await self._scores(query, [hit.chunk.text for hit in hits[: self.config.candidates]])
        if not scores:
            return hits[:limit]
        positions = await sync.in_worker(self._positions.get, corpus, _positions_of)
        best = sorted(scores, key=lambda index: (-scores[index], positions[hits[index].chunk.id]))
        return _fill_places(hits, best, scores)[:limit]

    async def prepare(self, corpus: Corpus, *, on_progress: Callable[[int, int], None] | None = None) -> None:
        """Prepare the other searcher. The model itself needs no preparation. See `Searcher`."""
        await self._candidate_searcher().prepare(corpus, on_progress=on_progress)

    async def aclose(self) -> None:
        """Free the weights, and close the other searcher."""
        await sync.in_worker(self._forget)
        if self._searcher is not None:
            await self._searcher.aclose()

    async def _scores(self, query: str, passages: Sequence[str]) -> dict[int, float]:
        """Return the relevance of each passage that the model can read, by index."""
        from jackfield_local_embedder.model import batches_by_length

        if not passages:
            return {}
        pairs = await sync.in_worker(self._tokens, query, passages)
        readable = [index for index, pair in enumerate(pairs) if pair is not None]
        scores: dict[int, float] = {}
        for batch in batches_by_length([len(pairs[index].ids) for index in readable], self.config.tokens_at_once):
            indexes = [readable[number] for number in batch]
            computed = await sync.in_worker(self._compute, [pairs[index] for index in indexes])
            scores.update(zip(indexes, computed, strict=True))
        if not all(math.isfinite(score) for score in scores.values()):
            raise ModelResponseError(
                f"{NAME}: {self.config.model!r} produced infinite or undefined numbers, so its weights may be "
                "corrupted: download the model again",
                backend=NAME,
            )
        return scores

    def _candidate_searcher(self) -> Searcher:
        if self._searcher is None:
            name = self.config.searcher
            if self._host.load_row(self._host.find("searcher", name)) is type(self):
                raise ConfigError(
                    f"searcher {NAME} cannot rerank its own results: set `searcher` to a different searcher"
                )
            self._searcher = make_searcher(name, self.config.searcher_settings, host=self._host)
        return self._searcher

    # --- in a worker thread, one at a time ---

    def _forget(self) -> None:
        with self._turn:
            self._model = None

    def _tokens(self, query: str, passages: Sequence[str]) -> list[Any]:
        with self._turn, translate_errors(self.config.model):
            return self._load().tokens(query, passages)

    def _compute(self, pairs: Sequence[Any]) -> list[float]:
        with self._turn, translate_errors(self.config.model):
            return self._load().scores(pairs)

    def _load(self) -> CrossEncoder:
        if self._model is None:
            from jackfield_local_embedder.cross_encoder import CrossEncoder
            from jackfield_local_embedder.hub import folder_of

            configured = self.config.api_key.get_secret_value() if self.config.api_key else ""
            key = configured or self._host.settings.secret(KEY_VARIABLE) or ""
            self._model = CrossEncoder(folder_of(self.config, key=key.strip(), onnx=True), self.config)
        return self._model


def _fill_places(hits: Sequence[Hit], best: Sequence[int], scores: Mapping[int, float]) -> list[Hit]:
    """Put the scored hits, best first, into the places that scored hits hold. The others keep their places."""
    scored = iter(best)
    order = [next(scored) if index in scores else index for index in range(len(hits))]
    filled: list[Hit] = []
    score = 0.0
    for rank, index in reversed(list(enumerate(order, start=1))):
        score = scores.get(index, score)
        filled.append(Hit(hits[index].chunk, score, {**hits[index].ranks, NAME: rank}))
    return filled[::-1]


def _positions_of(chunks: Sequence[Chunk]) -> Mapping[str, int]:
    return {chunk.id: position for position, chunk in enumerate(chunks)}
