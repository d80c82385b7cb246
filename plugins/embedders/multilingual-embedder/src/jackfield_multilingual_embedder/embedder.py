"""Embedder that runs the multilingual Universal Sentence Encoder in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from jackfield import sync
from jackfield.errors import ModelServiceError
from jackfield.messages import Usage
from jackfield.retrieval import Embedded, Embedder, Purpose, Vector
from jackfield_backends.embedding import check_texts
from jackfield_multilingual_embedder.batching import batches
from jackfield_multilingual_embedder.config import MODEL, MultilingualConfig
from jackfield_multilingual_embedder.weights import BACKEND

if TYPE_CHECKING:  # it loads numpy, which only the first call should do
    from jackfield_multilingual_embedder.model import Model

_CHARACTERS_AT_ONCE = 4000  # about 0.1 s, after which a cancelled call ends


class MultilingualEmbedder(Embedder):
    """Computes vectors with the multilingual Universal Sentence Encoder.

    The model is loaded on first use, shared by all embedders in the process, and kept until the last of them is closed.
    A cancelled call stops after the current batch.
    """

    backend: ClassVar[str] = BACKEND
    config_class = MultilingualConfig
    config: MultilingualConfig
    _model: Model | None = None

    def __repr__(self) -> str:
        return f"<MultilingualEmbedder {self.space}>"

    @property
    def space(self) -> str:
        """The model, and the version of the method that computes vectors."""
        return f"{self.backend}:{MODEL}:1"

    @property
    def dimension(self) -> int:
        """The vector dimension."""
        return 512

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:  # noqa: ARG002 - not used
        """Embed texts as described in `Embedder`.

        Documents and queries are embedded alike. Usage is counted in the model's own tokens.

        Raises:
            ValueError: A text is empty, or `texts` is a single string.
            ModelServiceError: The model is missing or damaged, or there is not enough memory.
        """
        check_texts(texts)
        vectors: list[Vector] = []
        tokens = 0
        for batch in batches(texts, _CHARACTERS_AT_ONCE):
            computed, count = await sync.in_worker(self._embed, batch)
            vectors += computed
            tokens += count
        return Embedded(tuple(vectors), Usage(prompt_tokens=tokens, total_tokens=tokens))

    async def aclose(self) -> None:
        """Release the model. The next call loads it again."""
        self._model = None

    def _embed(self, texts: Sequence[str]) -> tuple[list[Vector], int]:
        from jackfield_multilingual_embedder.model import shared_model

        try:
            model = self._model = self._model or shared_model()
            vectors, tokens = model.embed(texts)
        except MemoryError as error:
            text = f"{BACKEND}: out of memory: the model needs about 150 MB"
            raise ModelServiceError(text, backend=BACKEND) from error
        return [tuple(row) for row in vectors.tolist()], tokens
