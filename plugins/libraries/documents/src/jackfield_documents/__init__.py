"""Documents for agents: parse files into blocks, split blocks into chunks, and fit search results into a request.

Importing the package loads none of its modules, because parsing subprocesses import it.

- `rag_config`: `RAGConfig`, the settings under `rag_cfg`.
- `documents`: `DocumentReader`, which reads files with the installed parsers and caches the documents.
- `expanding`: expand names, folders and glob patterns to files.
- `naming`: resolve file names given by a model.
- `parsing`: run parsers in subprocesses with limits.
- `places`: locate blocks in a document by page, headings and offset, and read table cells.
- `chunking`: split documents into chunks.
- `budget`: choose and format the chunks that fit into a request.
- `followups`: recognise questions that depend on earlier turns, and build their search text.
- `wholes`: recognise questions about whole documents, and choose representative chunks.
- `scripts`: detect the scripts a text is written in.
- `fuse`: merge rankings.
- `named_searchers`: searchers and weights in settings.
- `selecting`: filter documents by metadata, and search within a selection.
- `surroundings`: add the chunks around hits.
- `strategies`: run several searchers in parallel and tolerate failures.
- `keep`: cache indexes in memory and on disk.
- `embedding`: `ChunkEmbedder`, which embeds chunks and questions.
- `archives`, `decoding`, `tables`: helpers for parsers: zip files with limits, encodings, Markdown tables.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from jackfield_documents.fuse import Fusion, fuse, score_as_json  # here, because its module has its name

if TYPE_CHECKING:
    from jackfield_documents.archives import Archive
    from jackfield_documents.budget import Passage, best_within, choose, fits_whole, front_part, passages
    from jackfield_documents.chunking import chunk_document, corpus_of
    from jackfield_documents.decoding import Decoded, decode
    from jackfield_documents.documents import DocumentReader, Fingerprint, Reading, file_signature, is_settled
    from jackfield_documents.encodings import codec_of
    from jackfield_documents.expanding import Expanded, Skipped, WhyNot, expand, has_scheme, why_nothing_reads
    from jackfield_documents.keep import IndexCache, Kept, OnShelf, Shelf
    from jackfield_documents.named_searchers import check_weights, searchers_by_name, weights_of
    from jackfield_documents.naming import file_meant
    from jackfield_documents.parsing import ParserLimits
    from jackfield_documents.places import Place, cells_of, headings_in_part, places_of, text_of
    from jackfield_documents.rag_config import RAGConfig
    from jackfield_documents.scripts import scripts_of
    from jackfield_documents.selecting import MetadataRules, metadata_of, search_selected, stated_metadata, with_rules
    from jackfield_documents.strategies import ask_all, failures_noted, note_failure
    from jackfield_documents.surroundings import with_surroundings
    from jackfield_documents.tables import pipe_table
    from jackfield_documents.urls import is_url
    from jackfield_documents.wholes import asks_for_whole, outline_of, overview

__all__ = [
    "Archive",
    "Decoded",
    "DocumentReader",
    "Expanded",
    "Fingerprint",
    "Fusion",
    "IndexCache",
    "Kept",
    "MetadataRules",
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
    "asks_for_whole",
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
    "headings_in_part",
    "is_settled",
    "is_url",
    "metadata_of",
    "note_failure",
    "outline_of",
    "overview",
    "passages",
    "pipe_table",
    "places_of",
    "score_as_json",
    "scripts_of",
    "search_selected",
    "searchers_by_name",
    "stated_metadata",
    "text_of",
    "weights_of",
    "why_nothing_reads",
    "with_rules",
    "with_surroundings",
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
    "weights_of": "named_searchers",
    "file_meant": "naming",
    "ParserLimits": "parsing",
    "Place": "places",
    "cells_of": "places",
    "headings_in_part": "places",
    "places_of": "places",
    "text_of": "places",
    "RAGConfig": "rag_config",
    "MetadataRules": "selecting",
    "metadata_of": "selecting",
    "search_selected": "selecting",
    "stated_metadata": "selecting",
    "with_rules": "selecting",
    "with_surroundings": "surroundings",
    "ask_all": "strategies",
    "failures_noted": "strategies",
    "note_failure": "strategies",
    "pipe_table": "tables",
    "asks_for_whole": "wholes",
    "outline_of": "wholes",
    "overview": "wholes",
    "scripts_of": "scripts",
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
