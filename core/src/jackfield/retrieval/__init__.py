"""Contracts for document parsers, embedders and searchers, and the values that they exchange."""

from jackfield.retrieval._documents import (
    Block,
    BlockKind,
    Document,
    PageImage,
    Parser,
    Part,
    shown_path,
    unread_parts,
)
from jackfield.retrieval._embedding import Embedded, Embedder, Purpose, Vector, make_embedder
from jackfield.retrieval._filtering import (
    RESERVED_KEYS,
    Condition,
    MetadataValue,
    Where,
    check_metadata,
    document_values,
    kinds_in,
    position_values,
)
from jackfield.retrieval._searching import Chunk, Corpus, Hit, Searcher, Selection, chunk_values, make_searcher

__all__ = [
    "RESERVED_KEYS",
    "Block",
    "BlockKind",
    "Chunk",
    "Condition",
    "Corpus",
    "Document",
    "Embedded",
    "Embedder",
    "Hit",
    "MetadataValue",
    "PageImage",
    "Parser",
    "Part",
    "Purpose",
    "Searcher",
    "Selection",
    "Vector",
    "Where",
    "check_metadata",
    "chunk_values",
    "document_values",
    "kinds_in",
    "make_embedder",
    "make_searcher",
    "position_values",
    "shown_path",
    "unread_parts",
]
