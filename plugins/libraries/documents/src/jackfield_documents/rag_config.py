"""`rag_cfg`: settings for splitting and searching documents, and for fitting the results into a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from jackfield.config import ComponentSettings, Config, PathText
from jackfield.errors import AmbiguousPluginError, ConfigError, PluginError
from jackfield.retrieval import Where, check_metadata
from jackfield.suggestions import close_names, list_names
from jackfield_documents.fuse import Fusion
from jackfield_documents.named_searchers import check_weights, searchers_by_name, weights_of
from jackfield_documents.selecting import MetadataRules

if TYPE_CHECKING:  # heavy, and a configuration does not need them
    from jackfield.plugins import Plugins
    from jackfield_documents.documents import DocumentReader

_KEYWORD, _VECTOR = "keyword_search", "vector_search"
_HYBRID = "hybrid_search"


KeygenStrategy = Literal[
    "none",
    "GenKeyword",
    "SplitQueryThenGenKeyword",
    "GenKeywordWithKnowledge",
    "SplitQueryThenGenKeywordWithKnowledge",
]

Rewriting = Literal["none", "words", "model"]


class ChunkSizeConfig(Config):
    """Settings that accept `chunk_size` as an alias of `parser_page_size`."""

    called: ClassVar[str] = ""  # the name in errors

    @classmethod
    def parse(cls, value: Mapping[str, Any] | Self | None, *, what: str = "") -> Self:
        """Parse settings like `Config.parse`, with `chunk_size` as an alias of `parser_page_size`."""
        if isinstance(value, Mapping) and "chunk_size" in value:
            rest = {key: entry for key, entry in value.items() if key != "chunk_size"}
            value = {**rest, "parser_page_size": value["chunk_size"]}
        what = what or cls.called
        if isinstance(value, Mapping):
            for key in value:
                if key not in cls.model_fields and close_names(str(key), ["chunk_size"]):
                    raise ConfigError(f"{what}: unknown setting {key!r}; did you mean 'chunk_size'?")
        return super().parse(value, what=what)


class RAGConfig(ChunkSizeConfig):
    """Settings for splitting, searching and showing documents. Sizes are in tokens."""

    called: ClassVar[str] = "rag_cfg"

    retrieval_type: Literal["keyword", "vector", "hybrid"] | None = Field(
        default=None,
        description="Shorthand for keyword and/or vector search; overrides rag_searchers; unset: hybrid if "
        "embedding_model is set, or an installed embedder includes a model, and rag_searchers is not set",
    )
    rag_searchers: tuple[str | ComponentSettings, ...] = Field(
        default=(_KEYWORD,),
        description="Names or addresses of searchers, or dicts of `name` and settings; results are fused",
    )
    rag_keygen_strategy: KeygenStrategy = Field(
        default="none", description="Strategy for turning a question into keywords with the model; none: no change"
    )
    question_rewriting: Rewriting = Field(
        default="words",
        description="How to search for follow-ups: with words of earlier turns, or rewritten by the model; none: as is",
    )
    searcher_weights: dict[str, float] = Field(
        default_factory=dict,
        description="Weight of each searcher in the fusion: 1.75 for vector_search and 1 for others; 0 disables it",
    )
    fusion: Fusion = Field(
        default="scores", description="How results of several searchers are merged: by standardised scores, or by ranks"
    )
    fusion_k: int = Field(default=60, ge=1, description="Constant of the rank fusion; larger values favour low ranks")
    rerank: str | ComponentSettings | None = Field(
        default=None,
        description="Searcher that reranks the results: its name, or a dict of `name` and settings",
    )
    max_ref_token: int = Field(default=20_000, ge=1, description="Maximum number of document tokens in one request")
    parser_page_size: int = Field(default=500, ge=1, description="Chunk size; alias `chunk_size`")
    chunk_overlap: int = Field(default=150, ge=0, description="Characters repeated at the start of the next chunk")
    top_k: int | None = Field(default=None, ge=1, description="The most passages")
    neighbours: int = Field(
        default=0, ge=0, le=20, description="Number of neighbouring chunks to show before and after each hit"
    )
    whole_sections: bool = Field(
        default=False, description="Show the whole section in which a chunk was found, within max_ref_token"
    )
    score_threshold: float | None = Field(default=None, description="Minimum score of a passage")
    where: dict[str, Any] | None = Field(
        default=None,
        description="Filter for documents: {'year': {'gte': 2023}, 'path': 'reports/*', 'author': ['Ada', 'Bob']}",
    )
    metadata: dict[str, dict[str, Any]] = Field(
        default_factory=dict,
        description="Metadata for filters, by path pattern: {'reports/*': {'team': 'sales'}}",
    )
    embedding_model: str | None = Field(
        default=None,
        description="Embedding model; search then uses words and vectors, unless retrieval_type is 'vector'",
    )
    embedder_settings: ComponentSettings | None = Field(
        default=None, description="Settings for its embedder, such as base_url; likewise"
    )
    index_path: PathText | None = Field(default=None, description="Path of the vector index; likewise")
    parsers: dict[str, ComponentSettings] = Field(
        default_factory=dict, description="Parser settings by name: {'pdf': {'password': …}}"
    )
    parser_for: dict[str, str] = Field(
        default_factory=dict, description="Parsers by file extension: {'htm': 'acme-html/html'}"
    )
    fetch_cfg: ComponentSettings = Field(
        default_factory=dict, description="Settings for jackfield-fetch, such as `allow`"
    )

    @field_validator("rag_keygen_strategy", mode="before")
    @classmethod
    def _read_no_strategy(cls, strategy: object) -> object:
        return "none" if strategy is None else strategy

    @field_validator("where")
    @classmethod
    def _check_where(cls, where: dict[str, Any] | None) -> dict[str, Any] | None:
        _as_value_error(lambda: Where.parse(where or {}))
        return where

    @field_validator("metadata")
    @classmethod
    def _check_metadata(cls, metadata: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        for pattern, values in metadata.items():
            _as_value_error(partial(check_metadata, values, what=f"metadata of {pattern!r}"))
        return metadata

    @field_validator("rag_searchers")
    @classmethod
    def _check_searcher_names(cls, searchers: tuple[str | dict[str, Any], ...]) -> tuple[str | dict[str, Any], ...]:
        for name, settings in searchers_by_name(searchers).items():
            if name.rpartition("/")[2] == _HYBRID and not settings.get("searchers"):
                raise ValueError(
                    f"{_HYBRID!r} combines other searchers: list those instead, as in {[_KEYWORD, _VECTOR]}, or use "
                    f"{{'name': {_HYBRID!r}, 'searchers': [...]}} or retrieval_type 'hybrid'"
                )
        return searchers

    @field_validator("rerank")
    @classmethod
    def _check_reranker(cls, rerank: str | dict[str, Any] | None) -> str | dict[str, Any] | None:
        if isinstance(rerank, dict):
            searchers_by_name([rerank])
            for name in ("searcher", "searcher_settings"):
                if name in rerank:
                    raise ValueError(f"remove {name!r}: rerank reorders the results of the other searchers")
        return rerank

    @field_validator("parser_for")
    @classmethod
    def _normalise_extensions(cls, parser_for: dict[str, str]) -> dict[str, str]:
        return {extension.lower().removeprefix("."): parser for extension, parser in parser_for.items()}

    @model_validator(mode="before")
    @classmethod
    def _search_with_the_named_model(cls, values: object) -> object:
        """Combine a configured embedding model with keyword search, which is better at names and numbers."""
        if not isinstance(values, Mapping) or values.get("embedding_model") is None:
            return values
        is_chosen = values.get("retrieval_type") is not None or "rag_searchers" in values
        return values if is_chosen else {**values, "retrieval_type": "hybrid"}

    @model_validator(mode="after")
    def _check_weights(self) -> Self:
        try:
            check_weights(self.searcher_weights, self._base_searchers)
        except ValueError as error:
            raise ValueError(f"searcher_weights: {error}") from error
        return self

    @model_validator(mode="after")
    def _check_vector_settings(self) -> Self:
        # Without a chosen searcher, an included model may use index_path; `with_included_model` knows.
        may_have_model = self.retrieval_type is None and "rag_searchers" not in self.model_fields_set
        for name in self._vector_settings:
            if self.retrieval_type not in ("vector", "hybrid") and not (may_have_model and name == "index_path"):
                raise ValueError(
                    f"{name} requires vector search. Either set embedding_model and remove retrieval_type and "
                    f"rag_searchers, or set {name} for a single searcher: rag_searchers=[{{'name': …, {name!r}: …}}]"
                )
        return self

    @property
    def _vector_settings(self) -> dict[str, object]:
        settings = {
            "embedding_model": self.embedding_model,
            "embedder_settings": self.embedder_settings,
            "index_path": self.index_path,
        }
        return {name: value for name, value in settings.items() if value is not None}

    @property
    def weights(self) -> dict[str, float]:
        """The weight in the fusion of each searcher in `searchers`."""
        return weights_of(self.searcher_weights, self.searchers)

    @property
    def searchers(self) -> dict[str, dict[str, object]]:
        """Each searcher's settings by name: those of `retrieval_type` if set, else `rag_searchers`.

        With `rerank`, `hybrid_search` is the only searcher, and queries the others. Searchers with weight 0 are
        omitted.
        """
        searchers = {
            name: settings for name, settings in self._base_searchers.items() if self.searcher_weights.get(name, 1)
        }
        if self.rerank is None:
            return searchers
        hybrid = {
            "searchers": [{"name": name, **settings} for name, settings in searchers.items()],
            "weights": {name: weight for name, weight in self.searcher_weights.items() if weight},
            "fusion": self.fusion,
            "k": self.fusion_k,
            "rerank": self.rerank,
        }
        return {_HYBRID: hybrid}

    @property
    def metadata_rules(self) -> MetadataRules:
        """The values in `metadata`, each with a filter for the files it applies to."""
        return [(Where.parse({"path": pattern}), check_metadata(values)) for pattern, values in self.metadata.items()]

    def reader(self, host: Plugins, *, kept_chars: int | None = None) -> DocumentReader:
        """Create a document reader with these parser and fetch settings.

        Args:
            host: The plugin host that provides the parsers.
            kept_chars: See `DocumentReader`.

        Raises:
            ConfigError: A configured parser is not installed, or rejects its settings.
        """
        from jackfield_documents.documents import DocumentReader

        for name, settings in self.parsers.items():
            _check_parser(host, "parsers", name, settings)
        for extension, name in self.parser_for.items():
            _check_parser(host, f"parser_for: {extension}", name)
        return DocumentReader(
            host,
            parser_cfg=self.parsers,
            parser_for=self.parser_for,
            kept_chars=kept_chars,
            fetch_cfg=self.fetch_cfg,
        )

    def with_included_model(self, host: Plugins) -> Self:
        """Return settings that add an installed embedder's model to keyword search, unless a searcher is configured.

        The settings are unchanged unless exactly one embedder includes a model and `vector_search` is installed.

        Raises:
            ConfigError: `index_path` is set, but there is no such model.
        """
        from jackfield.plugins import EmbedderSpec

        if self.retrieval_type is not None or "rag_searchers" in self.model_fields_set:
            return self
        specs = host.specs("embedder", EmbedderSpec)
        models = [f"{row.address}:{spec.included_model}" for row, spec in specs if spec.included_model]
        has_vectors = _VECTOR in host.names("searcher")
        if not has_vectors or len(models) != 1:
            if self.index_path is not None:
                raise ConfigError(
                    f"rag_cfg: index_path requires vector search: {_next_step(models, has_vectors=has_vectors)}"
                )
            return self
        return self.model_copy(update={"retrieval_type": "hybrid", "embedding_model": models[0]})

    @property
    def _base_searchers(self) -> dict[str, dict[str, object]]:
        match self.retrieval_type:
            case "keyword":
                return {_KEYWORD: {}}
            case "vector":
                return {_VECTOR: self._vector_settings}
            case "hybrid":
                return {_KEYWORD: {}, _VECTOR: self._vector_settings}
        searchers: dict[str, dict[str, object]] = {}
        for name, settings in searchers_by_name(self.rag_searchers).items():
            if name in ("front_page_search", "jackfield-front-page-search/front_page_search"):
                # It returns as many pages as fit into a request.
                searchers[name] = {"max_ref_token": self.max_ref_token, **settings}
            else:
                searchers[name] = {**settings}
        return searchers


def _next_step(models: Sequence[str], *, has_vectors: bool) -> str:
    """Return advice for a user who does not have exactly one usable included model."""
    if not has_vectors:
        return "pip install jackfield-vector-search"
    if models:
        return f"set embedding_model to one of the included models: {list_names(models)}"
    return (
        "set embedding_model, or install an embedder that includes a model: pip install jackfield-multilingual-embedder"
    )


def _as_value_error(check: Callable[[], object]) -> None:
    """Run a check so that pydantic reports its errors."""
    try:
        check()
    except ConfigError as error:
        raise ValueError(str(error)) from error


def _check_parser(host: Plugins, where: str, name: str, settings: Mapping[str, object] | None = None) -> None:
    """Check that a parser is installed and accepts its settings, before the first file needs it."""
    from jackfield.plugins import ParserSpec

    try:
        row = host.find("parser", name)
        config = host.spec_of(row, ParserSpec).config
        config_class = host.load_target(row, config) if config and settings else None
    except AmbiguousPluginError as error:
        if settings is None:
            raise ConfigError(f"rag_cfg: {where}: {error}") from error
        return  # every parser of that name gets the settings
    except PluginError as error:
        raise ConfigError(f"rag_cfg: {where}: {error}") from error
    if config_class is not None:
        config_class.parse(settings, what=f"rag_cfg: {where}: {name}")
