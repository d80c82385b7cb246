"""Documents and search: files → blocks → chunks → hits → what fits into a request.

Parsers import the values of this package, also in processes of their own: what they do
not need is imported when it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from jackfield.retrieval.base import (
    Block,
    BlockKind,
    Chunk,
    Corpus,
    Document,
    Embedded,
    Embedder,
    Hit,
    Parser,
    Purpose,
    Searcher,
    Vector,
)
from jackfield.retrieval.fuse import fuse  # here, because its module has its name

if TYPE_CHECKING:
    from jackfield.retrieval.batches import embed_in_batches
    from jackfield.retrieval.budget import Passage, best_within, choose, fits_whole, front_part, passages
    from jackfield.retrieval.chunking import chunk_document, corpus_of
    from jackfield.retrieval.documents import DocumentReader, Reading
    from jackfield.retrieval.keep import IndexCache, Kept
    from jackfield.retrieval.parsing import ParserLimits
    from jackfield.retrieval.searchers import make_searcher

__all__ = [
    "Block",
    "BlockKind",
    "Chunk",
    "Corpus",
    "Document",
    "DocumentReader",
    "Embedded",
    "Embedder",
    "Hit",
    "IndexCache",
    "Kept",
    "Parser",
    "ParserLimits",
    "Passage",
    "Purpose",
    "Reading",
    "Searcher",
    "Vector",
    "best_within",
    "choose",
    "chunk_document",
    "corpus_of",
    "embed_in_batches",
    "fits_whole",
    "front_part",
    "fuse",
    "make_searcher",
    "passages",
]

_HOME = {
    "embed_in_batches": "batches",
    "Passage": "budget",
    "best_within": "budget",
    "choose": "budget",
    "fits_whole": "budget",
    "front_part": "budget",
    "passages": "budget",
    "chunk_document": "chunking",
    "corpus_of": "chunking",
    "DocumentReader": "documents",
    "Reading": "documents",
    "IndexCache": "keep",
    "Kept": "keep",
    "ParserLimits": "parsing",
    "make_searcher": "searchers",
}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'jackfield.retrieval' has no attribute {name!r}")
    value = getattr(import_module(f"jackfield.retrieval.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
