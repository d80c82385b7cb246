"""Contracts of document parsers, embedders and searchers, and the values that they exchange."""

from jackfield.retrieval._documents import Block, BlockKind, Document, Parser, shown_path, unread_parts
from jackfield.retrieval._embedding import Embedded, Embedder, Purpose, Vector
from jackfield.retrieval._searching import Chunk, Corpus, Hit, Searcher, make_searcher

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
    "unread_parts",
]
