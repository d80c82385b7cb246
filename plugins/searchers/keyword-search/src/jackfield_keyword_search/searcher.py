"""Searcher for keywords."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from jackfield.config import Config
from jackfield.retrieval import Chunk, Corpus, Hit, Searcher, Where
from jackfield.sync import in_worker
from jackfield_documents import IndexCache, OnShelf
from jackfield_documents.analyzer import Analyzer, Chinese
from jackfield_documents.queries import texts_of

if TYPE_CHECKING:  # it loads numpy, which only the first search should do
    from jackfield_keyword_search.index import Index


class KeywordConfig(Config):
    """Settings for term weights and Chinese word segmentation."""

    k1: float = Field(default=1.5, ge=0, description="Weight of repeated occurrences of a word; 0: ignore them")
    b: float = Field(default=0.75, ge=0, le=1, description="Penalty for long chunks")
    chinese: Chinese = Field(default="words", description="words (found with a dictionary) or bigrams")


class KeywordSearcher(Searcher):
    """Finds chunks by their words. The indexes of the last eight corpora are cached."""

    name: ClassVar[str] = "keyword_search"
    config_class = KeywordConfig
    config: KeywordConfig

    def __init__(self, cfg: KeywordConfig | Mapping[str, object] | None = None, **settings: Any) -> None:
        super().__init__(cfg, **settings)
        self._indexes: IndexCache[Index] = IndexCache()

    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        """Return chunks that share words with the query, best first.

        Args:
            query: Text, or JSON with any of `keywords_zh`, `keywords_en` and `text`.
            corpus: The corpus to search.
            limit: The maximum number of hits.
            where: A filter; see `Searcher`.
        """
        return await in_worker(partial(self._search, query, corpus, limit, where))

    def _search(self, query: str, corpus: Corpus, limit: int, where: Where | None) -> list[Hit]:
        if not corpus.chunks or limit < 1:
            return []
        selected = corpus.select(where).numbers if where else None
        index = self._indexes.get(corpus, self.build_index, self._on_shelf)
        return [
            Hit(corpus.chunks[number], score, {self.name: rank})
            for rank, (number, score) in enumerate(index.search(texts_of(query), limit, selected), start=1)
        ]

    def build_index(self, chunks: Sequence[Chunk]) -> Index:
        """Index chunks with this searcher's settings. A search does so itself when necessary."""
        from jackfield_keyword_search.index import Index

        return Index(chunks, Analyzer(self.config.chinese), k1=self.config.k1, b=self.config.b)

    @cached_property
    def _on_shelf(self) -> OnShelf[Index]:
        """Stores the index of an on-disk corpus next to the corpus."""
        versions = [metadata.version(name) for name in ("jackfield-keyword-search", "jackfield-documents")]
        digest = hashlib.sha256(f"{versions} {self.config.model_dump_json()}".encode()).hexdigest()
        return OnShelf(f"{self.name}-{digest[:8]}", self._read_index, _write_index, self._changed_index)

    def _read_index(self, path: Path) -> Index:
        from jackfield_keyword_search.index import Index

        return Index.from_file(path, Analyzer(self.config.chinese))

    def _changed_index(self, index: Index, chunks: Sequence[Chunk]) -> Index | None:
        return index.changed(chunks, k1=self.config.k1, b=self.config.b)


def _write_index(index: Index, path: Path) -> None:
    index.write(path)
