"""Embed texts with DashScope's text-embedding models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from jackfield.errors import ModelResponseError
from jackfield.messages import Usage
from jackfield.plugins import Plugins, default_host
from jackfield.retrieval import Embedded, Embedder, Purpose, Vector
from jackfield.secrets import ForgetLocals
from jackfield_backends.embedding import embed_in_batches
from jackfield_dashscope.config import EmbedderConfig
from jackfield_dashscope.service import Service

PATH = "/services/embeddings/text-embedding/text-embedding"


class _Item(msgspec.Struct):
    text_index: int
    embedding: Vector


class _Output(msgspec.Struct):
    embeddings: list[_Item]


class _Usage(msgspec.Struct):
    total_tokens: int = 0


class _Answer(msgspec.Struct):
    output: _Output
    usage: _Usage | None = None
    request_id: str | None = None


class DashScopeEmbedder(Embedder):
    """Embedder that sends `batch_size` texts per request and up to `concurrency` requests in parallel.

    Args:
        host: The plugin host that provides the API key.
        settings: The keys of `EmbedderConfig`.
    """

    backend: ClassVar[str] = "dashscope"
    config_class = EmbedderConfig
    config: EmbedderConfig

    def __init__(
        self, cfg: EmbedderConfig | Mapping[str, Any] | None = None, *, host: Plugins | None = None, **settings: Any
    ) -> None:
        with ForgetLocals():  # the settings may include a key
            super().__init__(cfg, **settings)
        self._service = Service(
            PATH,
            _Answer,
            self.config,
            backend=self.backend,
            name="embedder dashscope",
            settings=lambda: (host or default_host()).settings,
        )

    @property
    def space(self) -> str:
        """The backend, the model, and the dimension if configured."""
        dimension = f"/{self.config.dimension}" if self.config.dimension else ""
        return f"{self.backend}:{self.config.model}{dimension}"

    @property
    def dimension(self) -> int | None:
        """The configured vector length, or None for the model's default."""
        return self.config.dimension

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
        """See `Embedder`. If one request fails, the others are cancelled."""
        return await embed_in_batches(
            texts,
            lambda batch: self._batch(batch, purpose),
            backend=self.backend,
            size=self.config.batch_size,
            concurrency=self.config.concurrency,
            dimension=self.config.dimension,
        )

    async def aclose(self) -> None:
        """See `Embedder`."""
        await self._service.aclose()

    async def _batch(self, texts: Sequence[str], purpose: Purpose) -> Embedded:
        """Embed the texts of one request."""
        parameters = {
            "text_type": purpose,
            "dimension": self.config.dimension,
            "output_type": "dense",
            # An instruction describes the query's purpose; documents are embedded once, for all queries.
            "instruct": self.config.instruct if purpose == "query" else None,
        }
        answer = await self._service.ask({"texts": list(texts)}, parameters)
        vectors = {item.text_index: item.embedding for item in answer.output.embeddings}
        if len(answer.output.embeddings) != len(texts) or vectors.keys() != set(range(len(texts))):
            raise self._wrong(
                f"sent {len(answer.output.embeddings)} vectors for {len(texts)} texts, or numbered them incorrectly",
                answer,
            )
        tokens = answer.usage.total_tokens if answer.usage else 0
        in_order = tuple(vectors[index] for index in range(len(texts)))
        return Embedded(in_order, Usage(prompt_tokens=tokens, total_tokens=tokens))

    def _wrong(self, what: str, answer: _Answer) -> ModelResponseError:
        return ModelResponseError(
            f"{self.backend}: the server {what}",
            backend=self.backend,
            request_id=answer.request_id,
        )
