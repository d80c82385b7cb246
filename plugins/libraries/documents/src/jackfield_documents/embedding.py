"""Chunks and questions as vectors, for searchers that leave the comparing to an engine."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence

from jackfield.errors import ConfigError, ModelResponseError
from jackfield.plugins import Plugins
from jackfield.retrieval import Chunk, Embedder, Purpose, Vector

_LARGEST = 3.4e38  # of 32 bits


class ChunkEmbedder:
    """Any embedder, found by `NAME:MODEL` at the first use, whose vectors are checked.

    Args:
        embedding_model: The embedder and its model, `openai:text-embedding-3-small`.
        settings: Further settings of the embedder.
        host: Where it is looked up.
        max_chars: How much of a text is embedded, from its beginning.
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
        """Changes whenever the vector of a chunk may: the embedder's space, and how much of a text is embedded.

        Raises:
            ConfigError: No embedder and model are named, or its settings do not fit.
            PluginError: It is not installed, or cannot be loaded.
        """
        return f"{self._made().space} {self._max_chars}"

    def text_of(self, chunk: Chunk) -> str:
        """What is embedded of a chunk: its text, under the title and headings that say what it is about, or ''."""
        if not chunk.text.strip():
            return ""
        above = dict.fromkeys(part for part in (chunk.title, *chunk.headings) if part)
        return self._cut("\n".join((*above, chunk.text)))

    def question_in(self, query: str) -> str:
        """The question of a query, which may be JSON with keywords beside it; '' for none."""
        if not query.lstrip().startswith("{"):
            return self._cut(query)
        try:
            value = json.loads(query)
        except (ValueError, RecursionError):
            return self._cut(query)
        text = value.get("text")
        return self._cut(text if isinstance(text, str) else query)

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Vector]:
        """A vector for each text, all of one length, with finite numbers.

        Raises:
            ModelServiceError: The embedder failed, or sent something that is not vectors.
            ConfigError, PluginError: As `space`.
        """
        vectors = (await self._made().embed(texts, purpose=purpose)).vectors
        fault = _fault_of(vectors, len(texts))
        if fault:
            raise ModelResponseError(f"embedder {self._name}: {fault}", backend=self._name)
        return vectors

    async def aclose(self) -> None:
        """Close what the embedder has open; the next call opens it again."""
        if self._embedder is not None:
            await self._embedder.aclose()

    def _made(self) -> Embedder:
        with self._lock:
            if self._embedder is None:
                name, colon, model = self._name.partition(":")
                if not colon or not model:
                    raise ConfigError(
                        f"embedding_model {self._name!r}: name the embedder and its model, "
                        f"as in openai:text-embedding-3-small"
                    )
                settings = {"model": model, **self._settings}
                self._embedder = self._host.make(self._host.find("embedder", name), settings, Embedder)
            return self._embedder

    def _cut(self, text: str) -> str:
        # Half of a surrogate pair can be in a file's text, and is not UTF-8.
        return text[: self._max_chars].encode("utf-8", "replace").decode().strip()


def _fault_of(vectors: Sequence[Vector], count: int) -> str:
    """Why these are not so many vectors that can be compared; '' if they are."""
    if len(vectors) != count:
        return f"{len(vectors)} vectors came for {count} texts"
    lengths = set(map(len, vectors))
    if len(lengths) > 1 or 0 in lengths:
        return "vectors of different lengths came, or empty ones"
    if not all(map(_is_finite, vectors)):
        return "a vector has a number that is not finite"
    return ""


def _is_finite(vector: Vector) -> bool:
    return all(abs(number) <= _LARGEST for number in vector)  # NaN is not
