"""Embed chunks and questions, for searchers whose engine compares vectors."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence

from jackfield.errors import ConfigError, ModelResponseError
from jackfield.plugins import Plugins
from jackfield.retrieval import Chunk, Embedder, Purpose, Vector, make_embedder
from jackfield.work import part_of_run

_MAX_FLOAT32 = 3.4e38


class ChunkEmbedder:
    """Embeds texts with an embedder that is loaded on first use, and validates the vectors.

    Args:
        embedding_model: The embedder and its model, such as `openai:text-embedding-3-small`.
        settings: Additional embedder settings.
        host: The plugin host that provides the embedder.
        max_chars: The number of leading characters of a text to embed.
    """

    def __init__(self, embedding_model: str, settings: Mapping[str, object], *, host: Plugins, max_chars: int) -> None:
        self._name = embedding_model
        self._settings = settings
        self._host = host
        self._max_chars = max_chars
        self._lock = threading.Lock()
        self._embedder: Embedder | None = None

    @property
    def space(self) -> str:
        """The embedder's vector space, including `max_chars`. Vectors from different spaces must not be compared.

        Raises:
            ConfigError: `embedding_model` lacks the embedder or the model, or the settings are invalid.
            PluginError: The embedder is not installed, or cannot be loaded.
        """
        return f"{self._load().space} {self._max_chars}"

    def text_of(self, chunk: Chunk) -> str:
        """Return a chunk's text to embed, after its title and headings for context, or '' if it has no text."""
        if not chunk.text.strip():
            return ""
        context = dict.fromkeys(part for part in (chunk.title, *chunk.headings) if part)
        return self._clean("\n".join((*context, chunk.text)))

    def question_in(self, query: str) -> str:
        """Return the question in a query, which may be JSON with additional keywords, or '' if there is none."""
        if not query.lstrip().startswith("{"):
            return self._clean(query)
        try:
            value = json.loads(query)
        except (ValueError, RecursionError):
            return self._clean(query)
        text = value.get("text")
        return self._clean(text if isinstance(text, str) else query)

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Vector]:
        """Return one vector per text, all of the same length and with finite numbers.

        Raises:
            ModelServiceError: The embedder failed, or returned invalid vectors.
            ConfigError, PluginError: See `space`.
        """
        embedder, model = self._load(), self._name.partition(":")[2]
        with part_of_run("embedding", embedder.backend, model=model, texts=len(texts)) as work:
            embedded = await embedder.embed(texts, purpose=purpose)
            fault = _fault_of(embedded.vectors, len(texts))
            if fault:
                raise ModelResponseError(f"embedder {self._name}: {fault}", backend=self._name)
            if embedded.vectors:
                work.facts["dimension"] = len(embedded.vectors[0])
            if embedded.usage.prompt_tokens:
                work.facts["prompt_tokens"] = embedded.usage.prompt_tokens
        return embedded.vectors

    async def aclose(self) -> None:
        """Close the embedder's connections; the next call opens new ones."""
        if self._embedder is not None:
            await self._embedder.aclose()

    def _load(self) -> Embedder:
        with self._lock:
            if self._embedder is None:
                name, colon, model = self._name.partition(":")
                if not colon or not model:
                    raise ConfigError(
                        f"embedding_model {self._name!r}: specify the embedder and its model, "
                        f"as in openai:text-embedding-3-small"
                    )
                settings = {"model": model, **self._settings}
                self._embedder = make_embedder(name, settings, host=self._host)
            return self._embedder

    def _clean(self, text: str) -> str:
        # A file's text may contain lone surrogates, which UTF-8 cannot encode.
        return text[: self._max_chars].encode("utf-8", "replace").decode().strip()


def _fault_of(vectors: Sequence[Vector], count: int) -> str:
    """Return the reason why the vectors are unusable, or '' if they are valid."""
    if len(vectors) != count:
        return f"received {len(vectors)} vectors for {count} texts"
    lengths = {len(vector) for vector in vectors}
    if len(lengths) > 1 or 0 in lengths:
        return "received vectors that are empty or differ in length"
    for vector in vectors:
        if not all(abs(number) <= _MAX_FLOAT32 for number in vector):  # false for NaN as well
            return "a vector contains a number that is not finite"
    return ""
