"""Settings of the document tools."""

from __future__ import annotations

from pydantic import Field

from jackfield.config import ComponentSettings, Config, PathText
from jackfield_documents.rag_config import ChunkSizeConfig


class ReadingConfig(Config):
    """Settings shared by all document tools: result size, cache, picture descriptions and fetching."""

    max_ref_token: int = Field(default=20_000, ge=1, description="Maximum number of document tokens in one result")
    path: PathText | None = Field(
        default=None,
        min_length=1,
        description="Folder for parsed documents; by default, jackfield/documents in $XDG_CACHE_HOME or ~/.cache",
    )
    cache_max_bytes: int = Field(
        default=256 * 1024 * 1024,
        ge=0,
        description="Maximum total size of parsed documents in bytes; the least recently used are deleted first; "
        "0: none are kept",
    )
    describe_images: bool = Field(
        default=False,
        description="Describe the pictures in documents with the agent's model; each picture costs one request",
    )
    max_images: int = Field(
        default=10, ge=1, le=100, description="Maximum number of pictures described in one document"
    )
    fetch_cfg: ComponentSettings = Field(
        default_factory=dict, description="Settings of jackfield-fetch for fetching URLs, such as `allow`"
    )


class SimpleDocParserConfig(ReadingConfig):
    """Settings for reading whole documents."""

    structured_doc: bool = Field(default=False, description="Return a list of pages with their texts and tables")


class DocParserConfig(ChunkSizeConfig, ReadingConfig):
    """Settings for splitting documents into chunks."""

    parser_page_size: int = Field(default=500, ge=1, description="Size of a chunk, in tokens; `chunk_size` is an alias")
    chunk_overlap: int = Field(
        default=150, ge=0, description="Number of characters repeated at the start of the next chunk"
    )


class VocabularyConfig(ReadingConfig):
    """Settings for extracting a vocabulary."""

    max_words: int = Field(default=500, ge=1, description="Maximum number of words")


class QueryTableConfig(ReadingConfig):
    """Settings for querying tables."""

    max_rows: int = Field(default=200, ge=1, description="Maximum number of rows in a result")


class SummaryConfig(ReadingConfig):
    """Settings for summarising documents."""

    llm: str | ComponentSettings | None = Field(
        default=None, description="Model that writes the summary; if unset, the model of the calling agent"
    )
    part_tokens: int = Field(default=6000, ge=100, description="Size of each part that the model reads, in tokens")
    max_parts: int = Field(
        default=100, ge=1, description="Maximum number of parts in a document; longer documents are rejected"
    )
    at_once: int = Field(default=4, ge=1, description="Number of parts read concurrently")
