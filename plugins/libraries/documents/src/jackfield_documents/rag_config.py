"""`rag_cfg`: how documents are cut, which searchers are asked, and how much of them a model is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from jackfield.config import ComponentSettings, Config

_KEYWORD, _VECTOR = "keyword_search", "vector_search"


class RAGConfig(Config):
    """How documents are cut, searched and given to a model. Sizes are in tokens."""

    retrieval_type: Literal["keyword", "vector", "hybrid"] | None = Field(
        default=None, description="Stands for the searchers of that name, over rag_searchers"
    )
    rag_searchers: tuple[str | ComponentSettings, ...] = Field(
        default=(_KEYWORD,),
        description="Names or addresses of searchers, or dicts of `name` and settings; several are fused",
    )
    rag_keygen_strategy: Literal["none"] = Field(
        default="none", description="How a question becomes keywords: as it is; there is no other way yet"
    )
    max_ref_token: int = Field(default=20_000, ge=1, description="The most tokens of documents in one request")
    parser_page_size: int = Field(default=500, ge=1, description="The size of a chunk; `chunk_size` is the same")
    chunk_overlap: int = Field(default=150, ge=0, description="Characters repeated at the start of the next chunk")
    top_k: int | None = Field(default=None, ge=1, description="The most passages")
    score_threshold: float | None = Field(default=None, description="The lowest score of a passage")
    embedding_model: str | None = Field(
        default=None, description="Given to the searcher with vectors that retrieval_type stands for"
    )
    index_path: str | None = Field(default=None, description="Where that searcher keeps its index; as embedding_model")
    fetch_cfg: Mapping[str, Any] = Field(
        default_factory=dict, description="How URLs are fetched; the settings of jackfield-fetch, such as `allow`"
    )

    @field_validator("rag_searchers")
    @classmethod
    def _searchers_have_names(cls, searchers: tuple[str | dict[str, Any], ...]) -> tuple[str | dict[str, Any], ...]:
        names = [entry if isinstance(entry, str) else entry.get("name") for entry in searchers]
        if not all(isinstance(name, str) and name for name in names):
            raise ValueError("a searcher given as a dict needs 'name', besides its settings")
        if len(set(names)) < len(names):
            raise ValueError("a searcher is named twice: leave one out")
        return searchers

    @model_validator(mode="after")
    def _somebody_reads_them(self) -> Self:
        if self._of_vectors and self.retrieval_type not in ("vector", "hybrid"):
            name = next(iter(self._of_vectors))
            raise ValueError(
                f"{name} is read with retrieval_type 'vector' or 'hybrid' only; "
                f"otherwise write it beside the searcher's name: rag_searchers=[{{'name': …, {name!r}: …}}]"
            )
        return self

    @property
    def _of_vectors(self) -> dict[str, object]:
        settings = {"embedding_model": self.embedding_model, "index_path": self.index_path}
        return {name: value for name, value in settings.items() if value is not None}

    @property
    def searchers(self) -> dict[str, dict[str, object]]:
        """The searchers to ask, each with its settings: what `retrieval_type` stands for, else `rag_searchers`."""
        match self.retrieval_type:
            case "keyword":
                return {_KEYWORD: {}}
            case "vector":
                return {_VECTOR: self._of_vectors}
            case "hybrid":
                return {_KEYWORD: {}, _VECTOR: self._of_vectors}
        entries = ({"name": entry} if isinstance(entry, str) else entry for entry in self.rag_searchers)
        return {str(one["name"]): {key: value for key, value in one.items() if key != "name"} for one in entries}

    @classmethod
    def parse(cls, value: Mapping[str, Any] | Self | None, *, what: str = "rag_cfg") -> Self:
        """As `Config.parse`; `chunk_size` is taken for `parser_page_size`."""
        if isinstance(value, Mapping) and "chunk_size" in value:
            rest = {key: entry for key, entry in value.items() if key != "chunk_size"}
            value = {**rest, "parser_page_size": value["chunk_size"]}
        return super().parse(value, what=what)
