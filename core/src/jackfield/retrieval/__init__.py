"""Documents and search: what parsers, embedders and searchers promise, and the values that go between them.

Parsers import this package in processes of their own, so it loads little.
"""

from __future__ import annotations

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

if TYPE_CHECKING:
    from jackfield.retrieval.searchers import make_searcher

__all__ = [
    "Block",
    "BlockKind",
    "Chunk",
    "Corpus",
    "Document",
    "Embedded",
    "Embedder",
    "Hit",
    "Parser",
    "Purpose",
    "Searcher",
    "Vector",
    "make_searcher",
]


def __getattr__(name: str) -> Any:
    if name != "make_searcher":
        raise AttributeError(f"module 'jackfield.retrieval' has no attribute {name!r}")
    from jackfield.retrieval.searchers import make_searcher  # at first use: it loads the host

    return make_searcher
