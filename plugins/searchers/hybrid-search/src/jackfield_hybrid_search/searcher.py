"""Searcher that combines other searchers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, ClassVar, Self, TypeVar

from pydantic import Field, field_validator, model_validator

from jackfield import sync
from jackfield.config import ComponentSettings, Config
from jackfield.errors import ConfigError, JackfieldError, ModelServiceError, ToolServiceError
from jackfield.plugins import Plugins, default_host
from jackfield.retrieval import Chunk, Corpus, Hit, Searcher, Where, make_searcher
from jackfield_documents import (
    Fusion,
    IndexCache,
    Shelf,
    ask_all,
    check_weights,
    fuse,
    note_failure,
    searchers_by_name,
    weights_of,
)

T = TypeVar("T")

NAME = "hybrid_search"
ADDRESS = f"jackfield-hybrid-search/{NAME}"

# True within a search of this class, whose searchers may ask others, but not this one again.
_is_asked: ContextVar[bool] = ContextVar("jackfield_hybrid_search_is_asked", default=False)


class HybridConfig(Config):
    """Settings for the searchers, their weights and the reranker."""

    searchers: tuple[str | ComponentSettings, ...] = Field(
        min_length=1,
        description="Names of searchers, or dicts of `name` and settings; required",
    )
    weights: dict[str, float] = Field(
        default_factory=dict,
        description="Weight of each searcher: 1.75 for vector_search and 1 for others; 0 disables a searcher",
    )
    fusion: Fusion = Field(
        default="scores", description="Method of merging rankings: by standardised scores, or by reciprocal ranks"
    )
    k: int = Field(default=60, ge=1, description="Weight of low ranks; the larger the value, the more they count")
    candidates: int = Field(default=200, ge=1, description="Hits of each searcher to fuse")
    rerank: str | ComponentSettings | None = Field(
        default=None,
        description="A searcher that reranks the hits: its name, or a dict of `name` and settings",
    )

    @field_validator("searchers")
    @classmethod
    def _others_are_named(cls, searchers: tuple[str | dict[str, Any], ...]) -> tuple[str | dict[str, Any], ...]:
        _check_others(searchers_by_name(searchers))
        return searchers

    @field_validator("rerank")
    @classmethod
    def _another_reranks(cls, rerank: str | dict[str, Any] | None) -> str | dict[str, Any] | None:
        if rerank is not None:
            ((_, settings),) = _check_others(searchers_by_name([rerank])).items()
            if taken := [name for name in ("searcher", "searcher_settings") if name in settings]:
                raise ValueError(f"remove {taken[0]!r}: the reranker gets its hits from `searchers`")
        return rerank

    @model_validator(mode="after")
    def _weights_are_of_searchers(self) -> Self:
        try:
            check_weights(self.weights, searchers_by_name(self.searchers))
        except ValueError as error:
            raise ValueError(f"weights: {error}") from error
        return self


class HybridSearcher(Searcher):
    """Queries several searchers concurrently, and fuses their rankings with `jackfield_documents.fuse`.

    The `ranks` of a hit include its rank from each searcher. A searcher or reranker whose service fails is skipped; the
    failure is passed to `jackfield_documents.failures_noted`, or else logged. The search fails only if all searchers
    fail.

    Args:
        cfg: The settings of `HybridConfig`. `searchers` is required.
        host: The plugin host that provides the searchers. Defaults to the installed plugins.

    Raises:
        ConfigError: A setting is invalid.
    """

    name: ClassVar[str] = NAME
    config_class = HybridConfig
    config: HybridConfig

    def __init__(
        self, cfg: HybridConfig | Mapping[str, object] | None = None, *, host: Plugins | None = None, **settings: Any
    ) -> None:
        super().__init__(cfg, **settings)
        self._host = host or default_host()
        self._places: IndexCache[Mapping[str, int]] = IndexCache()
        self._lock = threading.Lock()
        self._searchers: dict[str, Searcher] = {}
        self._asked: Mapping[str, Searcher] | None = None

    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        """Search as described in `Searcher`. `limit` truncates the ranking but does not change it.

        Raises:
            ModelServiceError, ToolServiceError: The services of all searchers failed.
            PluginError: A searcher is not installed or failed to load.
            ConfigError: A searcher's settings are invalid, or a searcher queries this one recursively.
        """
        if not corpus.chunks or limit < 1:
            return []
        if self.config.rerank is None:
            hits = await self._fused(query, corpus, where)
        else:
            hits = await self._reranked(query, corpus, limit, where)
        return [Hit(hit.chunk, hit.score, {**hit.ranks, NAME: rank}) for rank, hit in enumerate(hits[:limit], start=1)]

    async def prepare(self, corpus: Corpus, *, on_progress: Callable[[int, int], None] | None = None) -> None:
        """Prepare all searchers in turn, as described in `Searcher`. A failure does not stop the others.

        Raises:
            JackfieldError: The first failure, raised once all searchers are done.
        """
        if self.config.rerank is not None:
            reranker = await sync.in_worker(self._reranker)
            await reranker.prepare(corpus, on_progress=on_progress)
            return
        with _not_again():
            searchers = list((await self._others()).values())
            failures: list[JackfieldError] = []
            for number, searcher in enumerate(searchers):
                part = _Part(on_progress, number, len(searchers))
                try:
                    await searcher.prepare(corpus, on_progress=part)
                except JackfieldError as error:
                    failures.append(error)
                else:
                    part(len(corpus.chunks), len(corpus.chunks))
        if failures:
            raise failures[0]

    async def aclose(self) -> None:
        """Close all searchers."""
        for searcher in list(self._searchers.values()):
            await searcher.aclose()

    async def _reranked(self, query: str, corpus: Corpus, limit: int, where: Where | None) -> list[Hit]:
        reranker = await sync.in_worker(self._reranker)
        try:
            return await reranker.search(query, corpus, limit=limit, where=where)
        except (ModelServiceError, ToolServiceError) as error:
            hits = await self._fused(query, corpus, where)  # which may fail for the same reason
            note_failure(f"results were not reranked, because the reranker failed: {error}")
            return hits

    async def _fused(self, query: str, corpus: Corpus, where: Where | None) -> list[Hit]:
        with _not_again():
            limit = self.config.candidates
            searchers = await self._others()
            rankings = await ask_all(
                {name: partial(one.search, query, corpus, limit=limit, where=where) for name, one in searchers.items()}
            )
        weights = weights_of(self.config.weights, rankings)
        hits = fuse(rankings, weights=weights, k=self.config.k, by=self.config.fusion)
        if isinstance(getattr(corpus, "shelf", None), Shelf):
            return hits  # its documents are in the order of their paths, as in `fuse`
        places = await sync.in_worker(self._places.get, corpus, _places_of)
        return sorted(hits, key=lambda hit: (-hit.score, places[hit.chunk.source]))  # within a document, as `fuse`

    # --- making the searchers ---

    async def _others(self) -> Mapping[str, Searcher]:
        """Return the searchers by name, creating them on first use.

        They are created in a worker thread, because this imports their packages.
        """
        if self._asked is None:
            self._asked = await sync.in_worker(self._made)
        return self._asked

    def _made(self) -> Mapping[str, Searcher]:
        named = searchers_by_name(self.config.searchers)
        counted = {name: settings for name, settings in named.items() if self.config.weights.get(name, 1)}
        return {name: self._one(name, settings) for name, settings in counted.items()}

    def _reranker(self) -> Searcher:
        """Return the reranker, which takes its candidates from a second instance of this class."""
        assert self.config.rerank is not None  # noqa: S101 - only then it is asked for
        ((name, settings),) = searchers_by_name([self.config.rerank]).items()
        inner = {key: getattr(self.config, key) for key in self.config.model_fields_set if key != "rerank"}
        try:
            return self._one(name, {**settings, "searcher": ADDRESS, "searcher_settings": inner})
        except ConfigError as error:
            raise ConfigError(f"{NAME}: rerank: {error}") from error

    def _one(self, name: str, settings: Mapping[str, object]) -> Searcher:
        with self._lock:
            if name not in self._searchers:
                if self._host.load_row(self._host.find("searcher", name)) is type(self):
                    raise ConfigError(_itself(name))
                self._searchers[name] = make_searcher(name, settings, host=self._host)
            return self._searchers[name]


class _Part:
    """Reports the progress of one searcher as a share of the total."""

    def __init__(self, on_progress: Callable[[int, int], None] | None, number: int, count: int) -> None:
        self._on_progress = on_progress
        self._number, self._count = number, count

    def __call__(self, done: int, total: int) -> None:
        if self._on_progress:
            self._on_progress((self._number * total + done) // self._count, total)


@contextmanager
def _not_again() -> Iterator[None]:
    if _is_asked.get():
        raise ConfigError(
            f"{NAME} is used by one of its own searchers, which would recurse forever: in the settings of that "
            f"searcher, specify a different searcher"
        )
    token = _is_asked.set(True)
    try:
        yield
    finally:
        _is_asked.reset(token)


def _check_others(searchers: Mapping[str, T]) -> Mapping[str, T]:
    for name in (NAME, ADDRESS):
        if name in searchers:
            raise ValueError(_itself(name))
    return searchers


def _itself(name: str) -> str:
    return f"{name!r} cannot search with itself: specify other searchers, such as keyword_search"


def _places_of(chunks: Sequence[Chunk]) -> Mapping[str, int]:
    """Return the position of each document in the corpus, which breaks ties between equal scores."""
    places: dict[str, int] = {}
    for chunk in chunks:
        places.setdefault(chunk.source, len(places))
    return places
