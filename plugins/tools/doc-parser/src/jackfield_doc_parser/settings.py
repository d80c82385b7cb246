"""Settings of the document tools."""

from __future__ import annotations

from pydantic import Field

from jackfield.config import ComponentSettings, Config, PathText
from jackfield_documents.rag_config import ChunkSizeConfig


class ReadingConfig(Config):
    """Settings shared by all document tools: result size, cache, picture descriptions and fetching."""

    max_ref_token: int = Field(default=20_000, ge=1, description="The most tokens of documents in one result")
    path: PathText | None = Field(
        default=None,
        min_length=1,
        description="The folder of parsed documents; jackfield/documents below $XDG_CACHE_HOME, or ~/.cache, if unset",
    )
    cache_max_bytes: int = Field(
        default=256 * 1024 * 1024,
        ge=0,
        description="The most bytes of parsed documents; the least recently used are deleted first; 0: none are kept",
    )
    describe_images: bool = Field(
        default=False,
        description="Describe the pictures in documents with the model of the agent, a request for each",
    )
    max_images: int = Field(default=10, ge=1, le=100, description="The most pictures described in one document")
    fetch_cfg: ComponentSettings = Field(
        default_factory=dict, description="How URLs are fetched; the settings of jackfield-fetch, such as `allow`"
    )


class SimpleDocParserConfig(ReadingConfig):
    """Settings for reading whole documents."""

    structured_doc: bool = Field(default=False, description="Give a list of pages with their texts and tables")


class DocParserConfig(ChunkSizeConfig, ReadingConfig):
    """Settings for splitting documents into chunks."""

    parser_page_size: int = Field(
        default=500, ge=1, description="The size of a chunk, in tokens; `chunk_size` is the same"
    )
    chunk_overlap: int = Field(default=150, ge=0, description="Characters repeated at the start of the next chunk")


class VocabularyConfig(ReadingConfig):
    """Settings for extracting a vocabulary."""

    max_words: int = Field(default=500, ge=1, description="The most words")


class QueryTableConfig(ReadingConfig):
    """Settings for querying tables."""

    max_rows: int = Field(default=200, ge=1, description="The most rows of a result")


class SummaryConfig(ReadingConfig):
    """Settings for summarising documents."""

    llm: str | ComponentSettings | None = Field(
        default=None, description="The model that summarizes; if unset, the model of the agent that calls the tool"
    )
    part_tokens: int = Field(default=6000, ge=100, description="The size of the parts that the model reads one by one")
    max_parts: int = Field(default=100, ge=1, description="The most parts of a document; a longer one is refused")
    at_once: int = Field(default=4, ge=1, description="How many parts are read at the same time")
