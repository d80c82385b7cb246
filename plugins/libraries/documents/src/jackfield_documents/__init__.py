"""Documents for agents: files become blocks, blocks become chunks, and what is found is fitted into a request.

Importing it loads nothing, because parsers import it in processes of their own.

- `rag_config`: `RAGConfig`, what is said about documents under `rag_cfg`.
- `documents`: `DocumentReader`, which reads files through whatever parsers are installed, and keeps what it has read.
- `expanding`: which files are meant by names of files, folders and patterns.
- `naming`: which file a model means by a name.
- `parsing`: parsers in processes of their own, with limits.
- `places`: where each block of a document stands: page, headings, offsets, cells of tables.
- `chunking`: documents cut into chunks.
- `budget`: which chunks fit into a request, and how they are shown.
- `fuse`: one ranking out of several.
- `named_searchers`: searchers as settings name them.
- `strategies`: several searchers at the same time, and what is done if one fails.
- `keep`: what a searcher keeps of a corpus.
- `embedding`: `ChunkEmbedder`, chunks and questions as vectors of any embedder.
- `archives`, `decoding`, `tables`: for parsers: zip files with limits, texts in any encoding, tables as Markdown.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from jackfield_documents.fuse import fuse, score_as_json  # here, because its module has its name

if TYPE_CHECKING:
    from jackfield_documents.archives import Archive
    from jackfield_documents.budget import Passage, best_within, choose, fits_whole, front_part, passages
    from jackfield_documents.chunking import chunk_document, corpus_of
    from jackfield_documents.decoding import Decoded, decode
    from jackfield_documents.documents import DocumentReader, Fingerprint, Reading, file_signature, is_settled
    from jackfield_documents.encodings import codec_of
    from jackfield_documents.expanding import Expanded, Skipped, WhyNot, expand, has_scheme, why_nothing_reads
    from jackfield_documents.keep import IndexCache, Kept, OnShelf, Shelf
    from jackfield_documents.named_searchers import check_weights, searchers_by_name
    from jackfield_documents.naming import file_meant
    from jackfield_documents.parsing import ParserLimits
    from jackfield_documents.places import Place, cells_of, places_of, text_of
    from jackfield_documents.rag_config import RAGConfig
    from jackfield_documents.strategies import ask_all, failures_noted, note_failure
    from jackfield_documents.tables import pipe_table
    from jackfield_documents.urls import is_url

__all__ = [
    "Archive",
    "Decoded",
    "DocumentReader",
    "Expanded",
    "Fingerprint",
    "IndexCache",
    "Kept",
    "OnShelf",
    "ParserLimits",
    "Passage",
    "Place",
    "RAGConfig",
    "Reading",
    "Shelf",
    "Skipped",
    "WhyNot",
    "ask_all",
    "best_within",
    "cells_of",
    "check_weights",
    "choose",
    "chunk_document",
    "codec_of",
    "corpus_of",
    "decode",
    "expand",
    "failures_noted",
    "file_meant",
    "file_signature",
    "fits_whole",
    "front_part",
    "fuse",
    "has_scheme",
    "is_settled",
    "is_url",
    "note_failure",
    "passages",
    "pipe_table",
    "places_of",
    "score_as_json",
    "searchers_by_name",
    "text_of",
    "why_nothing_reads",
]

_HOME = {
    "Archive": "archives",
    "Passage": "budget",
    "best_within": "budget",
    "choose": "budget",
    "fits_whole": "budget",
    "front_part": "budget",
    "passages": "budget",
    "chunk_document": "chunking",
    "corpus_of": "chunking",
    "Decoded": "decoding",
    "decode": "decoding",
    "codec_of": "encodings",
    "DocumentReader": "documents",
    "Fingerprint": "documents",
    "Reading": "documents",
    "file_signature": "documents",
    "is_settled": "documents",
    "is_url": "urls",
    "Expanded": "expanding",
    "Skipped": "expanding",
    "WhyNot": "expanding",
    "expand": "expanding",
    "has_scheme": "expanding",
    "why_nothing_reads": "expanding",
    "IndexCache": "keep",
    "Kept": "keep",
    "OnShelf": "keep",
    "Shelf": "keep",
    "check_weights": "named_searchers",
    "searchers_by_name": "named_searchers",
    "file_meant": "naming",
    "ParserLimits": "parsing",
    "Place": "places",
    "cells_of": "places",
    "places_of": "places",
    "text_of": "places",
    "RAGConfig": "rag_config",
    "ask_all": "strategies",
    "failures_noted": "strategies",
    "note_failure": "strategies",
    "pipe_table": "tables",
}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'jackfield_documents' has no attribute {name!r}")
    value = getattr(import_module(f"jackfield_documents.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
