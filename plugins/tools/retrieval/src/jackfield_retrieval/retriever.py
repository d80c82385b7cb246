"""From a query and files to passages: read, cut, search, fuse, choose."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from jackfield.errors import DocParserError
from jackfield.plugins import PluginHost
from jackfield.retrieval import Corpus, Document, Hit, Searcher, make_searcher
from jackfield.sync import in_worker
from jackfield_documents import (
    DocumentReader,
    Kept,
    Passage,
    RAGConfig,
    choose,
    corpus_of,
    fits_whole,
    fuse,
    passages,
)

_KEPT_CORPORA = 8


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """What was found.

    Attributes:
        passages: By source, in document order.
        hits: Best first; () when all documents fit together and nothing had to be searched.
        errors: One for each file that could not be read.
    """

    passages: list[Passage]
    hits: tuple[Hit, ...] = ()
    errors: tuple[DocParserError, ...] = ()


class Retriever:
    """Retrieves from local files. Documents, their chunks and the searchers' indexes are kept by content.

    Args:
        config: Sizes, searchers and limits.
        host: The host whose parsers and searchers are used.
    """

    def __init__(self, config: RAGConfig, host: PluginHost) -> None:
        self._config = config
        self._host = host
        self._reader = DocumentReader(host)
        self._corpora: Kept[tuple[str, ...], Corpus] = Kept(_KEPT_CORPORA)
        self._searchers: dict[str, Searcher] = {}

    async def retrieve(self, query: str, files: Iterable[str]) -> RetrievalResult:
        """Find what fits a query.

        Raises:
            PluginError: A searcher is not installed, or cannot be loaded.
        """
        reading = await self._reader.read_all(files)
        errors = tuple(reading.errors.values())
        if not reading.documents:
            return RetrievalResult([], errors=errors)
        corpus = await in_worker(self._corpus, reading.documents)
        selective = self._config.top_k is not None or self._config.score_threshold is not None
        hits = await self._hits(query, corpus, always=selective)
        if selective and not hits:
            return RetrievalResult([], errors=errors)
        chosen = choose(corpus, hits, max_tokens=self._config.max_ref_token, all_if_it_fits=not selective)
        return RetrievalResult(passages(chosen), tuple(hits), errors)

    def _corpus(self, documents: Sequence[Document]) -> Corpus:
        key = tuple(part for document in documents for part in (document.source, document.content_hash))

        def cut() -> Corpus:
            size, overlap = self._config.parser_page_size, self._config.chunk_overlap
            return corpus_of(documents, size_tokens=size, overlap_chars=overlap)

        return self._corpora.get(key, cut)

    async def _hits(self, query: str, corpus: Corpus, *, always: bool) -> list[Hit]:
        if not query.strip() or (not always and fits_whole(corpus, max_tokens=self._config.max_ref_token)):
            return []
        wanted = self._config.searchers
        limit = self._config.top_k or max(50, self._config.max_ref_token // 50)
        searchers = [self._searcher(name, settings) for name, settings in wanted.items()]
        found = await asyncio.gather(*(searcher.search(query, corpus, limit=limit) for searcher in searchers))
        hits = found[0] if len(wanted) == 1 else fuse(dict(zip(wanted, found, strict=True)))
        threshold = self._config.score_threshold
        return [hit for hit in hits[:limit] if threshold is None or hit.score >= threshold]

    def _searcher(self, name: str, settings: Mapping[str, object]) -> Searcher:
        if name not in self._searchers:
            self._searchers[name] = make_searcher(name, settings, host=self._host)
        return self._searchers[name]
