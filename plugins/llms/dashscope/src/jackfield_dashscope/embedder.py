"""Texts as vectors, by DashScope's text-embedding models."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec

from jackfield.errors import ModelResponseError
from jackfield.messages import Usage
from jackfield.plugins.host import PluginHost, default_host
from jackfield.retrieval import Embedded, Embedder, Purpose, Vector
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
    """Asks for `batch_size` texts at a time, and has `concurrency` requests on their way for one call.

    Args:
        host: Where the key is looked up.
        settings: The keys of `EmbedderConfig`.
    """

    backend: ClassVar[str] = "dashscope"

    def __init__(self, *, host: PluginHost | None = None, **settings: Any) -> None:
        self.config = EmbedderConfig.parse(settings, what="settings of embedder 'dashscope'")
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
        """The model, and the dimension if one is configured."""
        dimension = f"/{self.config.dimension}" if self.config.dimension else ""
        return f"{self.backend}:{self.config.model}{dimension}"

    @property
    def dimension(self) -> int | None:
        """As configured."""
        return self.config.dimension

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
        """See `Embedder`. If one request fails, the others are cancelled."""
        empty = next((index for index, text in enumerate(texts) if not text), None)
        if empty is not None:
            raise ValueError(f"text {empty} is empty: leave it out, or put something in its place")
        size = self.config.batch_size
        batches = [texts[start : start + size] for start in range(0, len(texts), size)]
        free = asyncio.Semaphore(self.config.concurrency)
        tasks = [asyncio.create_task(self._batch(batch, purpose, free)) for batch in batches]
        try:
            embedded = await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        vectors = tuple(vector for vectors, _ in embedded for vector in vectors)
        self._check_lengths(vectors)
        tokens = sum(tokens for _, tokens in embedded)
        return Embedded(vectors, Usage(prompt_tokens=tokens, total_tokens=tokens))

    async def aclose(self) -> None:
        """See `Embedder`."""
        await self._service.aclose()

    async def _batch(self, texts: Sequence[str], purpose: Purpose, free: asyncio.Semaphore) -> tuple[list[Vector], int]:
        """The vectors of one request, and its tokens."""
        parameters = {
            "text_type": purpose,
            "dimension": self.config.dimension,
            "output_type": "dense",
            # It says what the query is for. Documents are embedded once, for all queries.
            "instruct": self.config.instruct if purpose == "query" else None,
        }
        async with free:
            answer = await self._service.ask({"texts": list(texts)}, parameters)
        found = {item.text_index: item.embedding for item in answer.output.embeddings}
        if len(answer.output.embeddings) != len(texts) or found.keys() != set(range(len(texts))):
            raise self._wrong(
                f"sent {len(answer.output.embeddings)} vectors for {len(texts)} texts, or numbered them wrongly", answer
            )
        return [found[index] for index in range(len(texts))], answer.usage.total_tokens if answer.usage else 0

    def _check_lengths(self, vectors: Sequence[Vector]) -> None:
        lengths = set(map(len, vectors))
        if len(lengths) > 1 or 0 in lengths:
            raise self._wrong("sent vectors of different lengths, or empty ones")
        if self.config.dimension and lengths - {self.config.dimension}:
            raise self._wrong(f"sent vectors of length {lengths.pop()}, and dimension is {self.config.dimension}")

    def _wrong(self, what: str, answer: _Answer | None = None) -> ModelResponseError:
        return ModelResponseError(
            f"{self.backend}: the server {what}",
            backend=self.backend,
            request_id=answer.request_id if answer else None,
        )
