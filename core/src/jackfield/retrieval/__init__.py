"""Documents and search: files → blocks → chunks → hits → what fits into a request."""

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
from jackfield.retrieval.batches import embed_in_batches
from jackfield.retrieval.budget import Passage, best_within, choose, front_part, passages
from jackfield.retrieval.chunking import chunk_document, corpus_of
from jackfield.retrieval.documents import DocumentReader, Reading
from jackfield.retrieval.fuse import fuse
from jackfield.retrieval.keep import IndexCache, Kept
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
    "front_part",
    "fuse",
    "make_searcher",
    "passages",
]
