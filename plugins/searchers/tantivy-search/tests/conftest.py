"""Corpora made of texts, in memory and on disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from jackfield.retrieval import Chunk, Corpus
from jackfield_documents import Shelf
from jackfield_tantivy_search.searcher import TantivySearcher


@dataclass(frozen=True)
class KeptCorpus(Corpus):
    """A corpus that has a shelf, and knows its content without reading it."""

    shelf: Shelf

    @property
    def content_hash(self) -> str:  # type: ignore[override]
        """What the shelf says."""
        return self.shelf.content


@pytest.fixture(scope="session")
def in_memory() -> Callable[..., Corpus]:
    """Makes a corpus of texts; the id of a chunk is its text."""
    return lambda *texts: Corpus(_chunks(texts))


@pytest.fixture(scope="session")
def on_disk() -> Callable[..., Corpus]:
    """Makes a corpus of texts whose index is kept in a folder."""

    def make(folder: Path, *texts: str) -> Corpus:
        chunks = _chunks(texts)
        return KeptCorpus(chunks, Shelf(folder, Corpus(chunks).content_hash))

    return make


@pytest.fixture(scope="session")
def found() -> Callable[..., list[str]]:
    """The texts that a new searcher finds."""

    def find(corpus: Corpus, query: str, limit: int = 10, **settings: object) -> list[str]:
        hits = asyncio.run(TantivySearcher(settings).search(query, corpus, limit=limit))
        return [hit.chunk.text for hit in hits]

    return find


def _chunks(texts: Sequence[str]) -> tuple[Chunk, ...]:
    return tuple(Chunk(text, "x.md", text, number, 1) for number, text in enumerate(texts))
