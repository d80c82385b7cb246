"""Searcher that uses tantivy."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from jackfield.config import Config
from jackfield.errors import ConfigError
from jackfield.retrieval import Corpus, Hit, Searcher, Where
from jackfield.sync import in_worker
from jackfield_documents import IndexCache, Shelf, search_selected
from jackfield_documents.analyzer import Analyzer, Chinese
from jackfield_documents.queries import texts_of
from jackfield_local_state.ownfile import BusyFileError, UnusableFileError

if TYPE_CHECKING:  # it loads tantivy and numpy, which only the first search should do
    from jackfield_tantivy_search.index import WordIndex
    from jackfield_tantivy_search.kept import KeptIndex

_QUICK_CHARS, _QUICK_HITS, _QUICK_CHUNKS = 300, 500, 20_000
_MOST_NAMED = 2000  # selected chunks that a query lists; beyond that, hits outside the selection are dropped
_DECIDE_THE_TERMS = ("jackfield-tantivy-search", "jackfield-documents", "tantivy")


class TantivyConfig(Config):
    """Settings for Chinese word segmentation."""

    chinese: Chinese = Field(default="words", description="words (found with a dictionary) or bigrams")


class TantivySearcher(Searcher):
    """Finds chunks by words and phrases. The index of an on-disk corpus is stored and updated next to the corpus."""

    name: ClassVar[str] = "tantivy_search"
    config_class = TantivyConfig
    config: TantivyConfig

    def __init__(self, cfg: TantivyConfig | Mapping[str, object] | None = None, **settings: Any) -> None:
        super().__init__(cfg, **settings)
        self._indexes: IndexCache[WordIndex] = IndexCache()

    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        """Return chunks that share words with the query, best first.

        Args:
            query: Text, or JSON with any of `keywords_zh`, `keywords_en` and `text`. There is no query syntax.
            corpus: The corpus to search.
            limit: The maximum number of hits.
            where: A filter; see `Searcher`.

        Raises:
            ConfigError: The on-disk index cannot be written or read.
        """
        index = self._indexes.peek(corpus)
        is_small = 0 < limit <= _QUICK_HITS and len(query) <= _QUICK_CHARS and len(corpus.chunks) <= _QUICK_CHUNKS
        # Not in a thread, because a search in a small index takes no longer than a thread switch.
        if index is not None and where is None and is_small and getattr(corpus, "shelf", None) is None:
            return self._hits(corpus, index.search(texts_of(query), limit))
        return await in_worker(partial(self._search, query, corpus, limit, where))

    async def prepare(self, corpus: Corpus, *, on_progress: Callable[[int, int], None] | None = None) -> None:
        """Build the index of a corpus, so that a search does not have to.

        Args:
            corpus: The corpus to prepare.
            on_progress: Called with the number of finished chunks and the total, from any thread.

        Raises:
            ConfigError: As in `search`.
        """
        total = len(corpus.chunks)
        on_read = (lambda done: on_progress(done, total)) if on_progress else None
        if total:
            await in_worker(partial(self._found, [], corpus, 1, on_read))
        if on_progress:
            on_progress(total, total)

    def _search(self, query: str, corpus: Corpus, limit: int, where: Where | None) -> list[Hit]:
        if not corpus.chunks or limit < 1:
            return []
        texts = texts_of(query)
        selection = corpus.select(where) if where else None
        if selection is None:
            found = self._found(texts, corpus, limit)
        elif len(selection) <= _MOST_NAMED:
            found = self._found(texts, corpus, limit, selected=selection.numbers) if len(selection) else []
        else:
            found = search_selected(partial(self._found, texts, corpus), limit, selection)
        return self._hits(corpus, found)

    def _hits(self, corpus: Corpus, found: Sequence[tuple[int, float]]) -> list[Hit]:
        chunks = corpus.chunks
        return [Hit(chunks[place], score, {self.name: rank}) for rank, (place, score) in enumerate(found, start=1)]

    def _found(
        self,
        texts: Sequence[str],
        corpus: Corpus,
        limit: int,
        on_read: Callable[[int], None] | None = None,
        *,
        selected: Sequence[int] | None = None,
    ) -> list[tuple[int, float]]:
        from jackfield_tantivy_search.index import DamagedIndexError, in_memory

        shelf = getattr(corpus, "shelf", None)
        if not isinstance(shelf, Shelf):
            return self._indexes.get(corpus, partial(in_memory, analyzer=self._analyzer)).search(texts, limit, selected)
        settings = self.config.model_dump_json()
        folder = shelf.folder / f"{self.name}-{hashlib.sha256(settings.encode()).hexdigest()[:8]}"
        try:
            kept = self._kept_in(folder)
            follow = partial(kept.following, shelf, on_read=on_read)
            index = self._indexes.get(corpus, follow)
            try:
                return index.search(texts, limit, selected)
            except DamagedIndexError:
                kept.remove()
                self._indexes = IndexCache()
                return self._indexes.get(corpus, follow).search(texts, limit, selected)
        except (OSError, sqlite3.Error, UnusableFileError, BusyFileError, DamagedIndexError) as error:
            raise ConfigError(f"{self.name}: cannot store an index in {folder}: {error}") from error

    def _kept_in(self, folder: Path) -> KeptIndex:
        from jackfield_tantivy_search.kept import KeptIndex

        return KeptIndex(folder, self._made_by, self._analyzer)

    @cached_property
    def _made_by(self) -> str:
        """An identifier of the terms in an index."""
        versions = [f"{name} {metadata.version(name)}" for name in _DECIDE_THE_TERMS]
        return " ".join((*versions, self.config.model_dump_json()))

    @cached_property
    def _analyzer(self) -> Analyzer:
        return Analyzer(self.config.chinese)
