"""Rerank another searcher's hits with a DashScope model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from jackfield import sync
from jackfield.errors import ConfigError, ModelResponseError
from jackfield.plugins import Plugins, default_host
from jackfield.retrieval import Chunk, Corpus, Hit, Searcher, Where, make_searcher
from jackfield_dashscope.config import RerankConfig
from jackfield_dashscope.service import Service
from jackfield_documents import IndexCache

NAME = "dashscope_rerank"
PATH = "/services/rerank/text-rerank/text-rerank"


class _Result(msgspec.Struct):
    index: int
    relevance_score: float


class _Output(msgspec.Struct):
    results: list[_Result]


class _Answer(msgspec.Struct):
    output: _Output
    request_id: str | None = None


class DashScopeRerank(Searcher):
    """Searcher that reranks the top `candidates` hits of another searcher with a model.

    A score is the relevance assigned by the model, from 0 to 1. Further hits follow in their own order, with a score of
    0. The server receives the query and the candidates.

    Args:
        cfg: The keys of `RerankConfig`; `model` is required.
        host: The plugin host that provides the other searcher and the API key.

    Raises:
        ConfigError: A setting is invalid.
    """

    name: ClassVar[str] = NAME
    config_class = RerankConfig
    config: RerankConfig

    def __init__(
        self, cfg: RerankConfig | Mapping[str, Any] | None = None, *, host: Plugins | None = None, **settings: Any
    ) -> None:
        super().__init__(cfg, **settings)
        self._host = host or default_host()
        self._service = Service(
            PATH,
            _Answer,
            self.config,
            backend=NAME,
            name=f"searcher {NAME}",
            settings=lambda: self._host.settings,
        )
        self._positions: IndexCache[Mapping[str, int]] = IndexCache()
        self._searcher: Searcher | None = None

    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        """See `Searcher`.

        Raises:
            ModelServiceError: The server failed or refused the request.
            PluginError: The other searcher is not installed or cannot be loaded.
        """
        if not corpus.chunks or limit < 1:
            return []
        searcher, count = self._candidate_searcher(), self.config.candidates
        hits = await searcher.search(query, corpus, limit=max(limit, count), where=where)
        if not hits:
            return []
        scores = await self._scores(query, hits[:count])
        positions = await sync.in_worker(self._positions.get, corpus, _positions_of)
        best = sorted(range(len(scores)), key=lambda index: (-scores[index], positions[hits[index].chunk.id]))
        ranked = [(hits[index], scores[index]) for index in best] + [(hit, 0.0) for hit in hits[count:]]
        return [
            Hit(hit.chunk, score, {**hit.ranks, NAME: rank})
            for rank, (hit, score) in enumerate(ranked[:limit], start=1)
        ]

    async def prepare(self, corpus: Corpus, *, on_progress: Callable[[int, int], None] | None = None) -> None:
        """Prepare the other searcher; see `Searcher`. This sends no requests to the model."""
        await self._candidate_searcher().prepare(corpus, on_progress=on_progress)

    async def aclose(self) -> None:
        """See `Searcher`."""
        await self._service.aclose()
        if self._searcher is not None:
            await self._searcher.aclose()

    async def _scores(self, query: str, candidates: Sequence[Hit]) -> list[float]:
        """Return the relevance of each candidate."""
        # Score all candidates, not just `limit`, because corpus order breaks ties.
        parameters = {"return_documents": False, "top_n": len(candidates), "instruct": self.config.instruct}
        documents = [hit.chunk.text for hit in candidates]
        answer = await self._service.ask({"query": query, "documents": documents}, parameters)
        scores = {result.index: result.relevance_score for result in answer.output.results}
        if scores.keys() != set(range(len(candidates))):
            raise ModelResponseError(
                f"{NAME}: the server scored {len(scores)} chunks, but {len(candidates)} were sent",
                backend=NAME,
                request_id=answer.request_id,
            )
        return [scores[index] for index in range(len(candidates))]

    def _candidate_searcher(self) -> Searcher:
        if self._searcher is None:
            name = self.config.searcher
            if self._host.load_row(self._host.find("searcher", name)) is type(self):
                raise ConfigError(
                    f"searcher {NAME} cannot rerank its own results: set `searcher` to a different searcher"
                )
            self._searcher = make_searcher(name, self.config.searcher_settings, host=self._host)
        return self._searcher


def _positions_of(chunks: Sequence[Chunk]) -> Mapping[str, int]:
    return {chunk.id: position for position, chunk in enumerate(chunks)}
