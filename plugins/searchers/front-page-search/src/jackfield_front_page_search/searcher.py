"""Searcher for the beginnings of documents."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from pydantic import Field

from jackfield.config import Config
from jackfield.retrieval import Chunk, Corpus, Hit, Searcher, Where
from jackfield.sync import in_worker
from jackfield_documents import IndexCache

_SHARE = 4  # a chunk of the front may take one part in this many of its document's share

Fronts = list[tuple[float, int]]
"""Scores and chunk numbers, best first."""


class FrontPageConfig(Config):
    """Settings for the size of the front pages."""

    chunks: int = Field(default=2, ge=1, description="Chunks of each document, from its beginning")
    documents: int = Field(
        default=50,
        ge=1,
        description="With more documents than this, the search returns nothing",
    )
    max_ref_token: int = Field(
        default=20_000,
        ge=1,
        description="Maximum number of document tokens in one request; rag_cfg passes its own limit",
    )


class FrontPageSearcher(Searcher):
    """Returns the beginning of each document for any query, which covers questions about titles, authors and subjects.

    Documents share `max_ref_token` equally. The first chunks of a document are returned as long as each takes at most a
    quarter of the document's share. Two chunks per document therefore fill at most half of a request, and more
    documents mean fewer chunks.

    With a single document, its front has an infinite score and precedes all other hits, even after fusion with other
    searchers. With several documents, the fronts are an ordinary ranking, with all first chunks before the second ones.
    """

    name: ClassVar[str] = "front_page_search"
    config_class = FrontPageConfig
    config: FrontPageConfig

    def __init__(self, cfg: FrontPageConfig | Mapping[str, object] | None = None, **settings: Any) -> None:
        super().__init__(cfg, **settings)
        self._indexes: IndexCache[Fronts] = IndexCache()

    async def search(
        self,
        query: str,  # noqa: ARG002 - see above
        corpus: Corpus,
        *,
        limit: int,
        where: Where | None = None,
    ) -> list[Hit]:
        """Search as described in `Searcher`, ignoring the query.

        With a filter, only the selected documents share `max_ref_token`.
        """
        if not corpus.chunks or limit < 1:
            return []
        best = (await in_worker(partial(self._found, corpus, where)))[:limit]
        return [
            Hit(corpus.chunks[number], score, {self.name: rank}) for rank, (score, number) in enumerate(best, start=1)
        ]

    def _found(self, corpus: Corpus, where: Where | None) -> Fronts:
        if where is None:
            return self._indexes.get(corpus, lambda chunks: self._fronts(enumerate(chunks)))
        return self._fronts((number, corpus.chunks[number]) for number in corpus.select(where).numbers)

    def _fronts(self, chunks: Iterable[tuple[int, Chunk]]) -> Fronts:
        firsts: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        for number, chunk in chunks:
            first = firsts[chunk.source]
            if len(firsts) > self.config.documents:
                return []  # the rest is not read, because it may be a million chunks
            if len(first) < self.config.chunks:
                first.append((number, chunk.tokens))
        most = self.config.max_ref_token / (_SHARE * max(1, len(firsts)))
        found = [pair for first in firsts.values() for pair in _front(first, most, is_only=len(firsts) == 1)]
        return sorted(found, key=lambda pair: (-pair[0], pair[1]))


def _front(first: Sequence[tuple[int, int]], most: float, *, is_only: bool) -> Fronts:
    found: Fronts = []
    for depth, (number, tokens) in enumerate(first, start=1):
        if tokens > most:
            break
        found.append((math.inf if is_only else 1 / depth, number))
    return found
