"""`rag_cfg`: how documents are cut, which searchers are asked, and how much of them a model is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from jackfield.config import ComponentSettings, Config, PathText
from jackfield.errors import AmbiguousPluginError, ConfigError, PluginError
from jackfield_documents.named_searchers import check_weights, searchers_by_name

if TYPE_CHECKING:  # they load what reading takes, which a configuration does not need
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


class ChunkSizeConfig(Config):
    """Settings that take `chunk_size` for `parser_page_size`."""

    called: ClassVar[str] = ""  # in errors

    @classmethod
    def parse(cls, value: Mapping[str, Any] | Self | None, *, what: str = "") -> Self:
        """As `Config.parse`; `chunk_size` is taken for `parser_page_size`."""
        if isinstance(value, Mapping) and "chunk_size" in value:
            rest = {key: entry for key, entry in value.items() if key != "chunk_size"}
            value = {**rest, "parser_page_size": value["chunk_size"]}
        return super().parse(value, what=what or cls.called)


class RAGConfig(ChunkSizeConfig):
    """How documents are cut, searched and given to a model. Sizes are in tokens."""

    called: ClassVar[str] = "rag_cfg"

    retrieval_type: Literal["keyword", "vector", "hybrid"] | None = Field(
        default=None, description="Stands for the searchers of that name, over rag_searchers"
    )
    rag_searchers: tuple[str | ComponentSettings, ...] = Field(
        default=(_KEYWORD,),
        description="Names or addresses of searchers, or dicts of `name` and settings; several are fused",
    )
    rag_keygen_strategy: KeygenStrategy = Field(
        default="none", description="How an agent makes keywords of a question, by asking its model; none: as it is"
    )
    searcher_weights: dict[str, float] = Field(
        default_factory=dict, description="How much each searcher counts where several are fused: 1 if not named, or 0"
    )
    fusion_k: int = Field(default=60, ge=1, description="How much low ranks count where several are fused")
    rerank: str | ComponentSettings | None = Field(
        default=None,
        description="A searcher that has the last word on the order: its name, or a dict of `name` and settings",
    )
    max_ref_token: int = Field(default=20_000, ge=1, description="The most tokens of documents in one request")
    parser_page_size: int = Field(default=500, ge=1, description="The size of a chunk; `chunk_size` is the same")
    chunk_overlap: int = Field(default=150, ge=0, description="Characters repeated at the start of the next chunk")
    top_k: int | None = Field(default=None, ge=1, description="The most passages")
    score_threshold: float | None = Field(default=None, description="The lowest score of a passage")
    embedding_model: str | None = Field(
        default=None, description="Given to the searcher with vectors that retrieval_type stands for"
    )
    embedder_settings: ComponentSettings | None = Field(
        default=None, description="Settings of that embedder, such as base_url; as embedding_model"
    )
    index_path: PathText | None = Field(
        default=None, description="Where that searcher keeps its index; as embedding_model"
    )
    parsers: dict[str, ComponentSettings] = Field(
        default_factory=dict, description="Settings of parsers, by their names: {'pdf': {'password': …}}"
    )
    parser_for: dict[str, str] = Field(
        default_factory=dict, description="Which parser reads which files: {'htm': 'acme-html/html'}"
    )
    fetch_cfg: ComponentSettings = Field(
        default_factory=dict, description="How URLs are fetched; the settings of jackfield-fetch, such as `allow`"
    )

    @field_validator("rag_searchers")
    @classmethod
    def _searchers_have_names(cls, searchers: tuple[str | dict[str, Any], ...]) -> tuple[str | dict[str, Any], ...]:
        searchers_by_name(searchers)
        return searchers

    @field_validator("rerank")
    @classmethod
    def _a_reranker_has_a_name(cls, rerank: str | dict[str, Any] | None) -> str | dict[str, Any] | None:
        if isinstance(rerank, dict):
            searchers_by_name([rerank])
            if taken := [name for name in ("searcher", "searcher_settings") if name in rerank]:
                raise ValueError(f"leave {taken[0]!r} out: what is reranked is what the other searchers find")
        return rerank

    @field_validator("parser_for")
    @classmethod
    def _of_extensions(cls, parser_for: dict[str, str]) -> dict[str, str]:
        return {extension.lower().removeprefix("."): parser for extension, parser in parser_for.items()}

    @model_validator(mode="after")
    def _weights_are_of_searchers(self) -> Self:
        try:
            check_weights(self.searcher_weights, self._fused)
        except ValueError as error:
            raise ValueError(f"searcher_weights: {error}") from error
        return self

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
        settings = {
            "embedding_model": self.embedding_model,
            "embedder_settings": self.embedder_settings,
            "index_path": self.index_path,
        }
        return {name: value for name, value in settings.items() if value is not None}

    @property
    def searchers(self) -> dict[str, dict[str, object]]:
        """The searchers to ask, each with its settings: what `retrieval_type` stands for, else `rag_searchers`.

        With `rerank` that is `hybrid_search`, which asks the others. Those of weight 0 are left out.
        """
        asked = {name: settings for name, settings in self._fused.items() if self.searcher_weights.get(name, 1)}
        if self.rerank is None:
            return asked
        return {_HYBRID: self._reranked(asked)}

    def _reranked(self, asked: Mapping[str, Mapping[str, object]]) -> dict[str, object]:
        return {
            "searchers": [{"name": name, **its} for name, its in asked.items()],
            "weights": {name: weight for name, weight in self.searcher_weights.items() if weight},
            "k": self.fusion_k,
            "rerank": self.rerank,
        }

    def reader(self, host: Plugins, *, kept_chars: int | None = None) -> DocumentReader:
        """A reader with these settings of parsers, and of fetching.

        Args:
            host: Whose parsers are used.
            kept_chars: As for `DocumentReader`.

        Raises:
            ConfigError: A parser that a setting names is not installed, or does not take its settings.
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

    @property
    def _fused(self) -> dict[str, dict[str, object]]:
        match self.retrieval_type:
            case "keyword":
                return {_KEYWORD: {}}
            case "vector":
                return {_VECTOR: self._of_vectors}
            case "hybrid":
                return {_KEYWORD: {}, _VECTOR: self._of_vectors}
        budget = {"max_ref_token": self.max_ref_token}
        named = searchers_by_name(self.rag_searchers)
        return {name: {**(budget if _of_front(name) else {}), **settings} for name, settings in named.items()}


def _of_front(name: str) -> bool:
    """Whether it is the searcher that must know how much a request may hold."""
    return name in ("front_page_search", "jackfield-front-page-search/front_page_search")


def _check_parser(host: Plugins, where: str, name: str, settings: Mapping[str, object] | None = None) -> None:
    """Find out before the first file whether a parser is there, and takes its settings."""
    from jackfield.plugins import ParserSpec

    try:
        row = host.find("parser", name)
        config = host.spec_of(row, ParserSpec).config
        config_class = host.load_target(row, config) if config and settings else None
    except AmbiguousPluginError as error:
        if settings is None:
            raise ConfigError(f"rag_cfg: {where}: {error}") from error
        return  # each of them gets the settings
    except PluginError as error:
        raise ConfigError(f"rag_cfg: {where}: {error}") from error
    if config_class is not None:
        config_class.parse(settings, what=f"rag_cfg: {where}: {name}")
