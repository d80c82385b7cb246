"""Documents and search: the contracts of parsers, embedders and searchers, and the values they exchange.

Parsers import this package in processes of their own, so it loads little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackfield._lazy import fetching
from jackfield.retrieval._base import (
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
    shown_path,
)

if TYPE_CHECKING:
    from jackfield.retrieval._searchers import make_searcher

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
    "shown_path",
]

# It loads the host, which parsers do not need.
__getattr__, _ = fetching(__name__, {"make_searcher": "retrieval._searchers"})
