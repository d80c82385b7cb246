"""Embedder that runs models in this process."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from jackfield import sync
from jackfield.errors import JackfieldError, ModelResponseError, ModelServiceError
from jackfield.messages import Usage
from jackfield.plugins import Plugins, default_host
from jackfield.quoting import quote_text
from jackfield.retrieval import Embedded, Embedder, Purpose, Vector
from jackfield_backends.embedding import check_texts
from jackfield_local_embedder.config import TransformersEmbedderConfig

if TYPE_CHECKING:  # it loads numpy, which only the first call should do
    from jackfield_local_embedder.model import SentenceModel

KEY_VARIABLE = "HF_TOKEN"


class TransformersEmbedder(Embedder):
    """Embeds texts with a local model, which is loaded on first use and kept until `aclose`.

    Texts of similar length are batched. Batches run one at a time because each uses all cores. A cancelled call stops
    after the current batch.

    Args:
        host: The plugin host that provides the hub token.
        settings: The settings of `TransformersEmbedderConfig`.
    """

    backend: ClassVar[str] = "transformers"
    config_class = TransformersEmbedderConfig
    config: TransformersEmbedderConfig

    def __init__(
        self,
        cfg: TransformersEmbedderConfig | Mapping[str, Any] | None = None,
        *,
        host: Plugins | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(cfg, **settings)
        self._host = host
        self._turn = threading.Lock()
        self._model: SentenceModel | None = None

    def __repr__(self) -> str:
        return f"<TransformersEmbedder {self.space}>"

    @property
    def space(self) -> str:
        """The model, its revision, and every setting that affects document vectors."""
        config = self.config
        model = config.model
        if model.startswith((".", "~")):  # the same path may be another folder elsewhere
            model = os.path.abspath(Path(model).expanduser())  # noqa: PTH100 - `resolve` would read the disk
        parts = [
            self.backend,
            model,
            config.revision or "",
            config.dimension or "",
            config.max_tokens or "",
            "" if config.document_prefix is None else repr(config.document_prefix),
            config.onnx_file or ("int8" if config.precision == "int8" else ""),
            config.pooling or "",
        ]
        return ":".join(str(part) for part in parts).rstrip(":")

    @property
    def dimension(self) -> int | None:
        """The configured dimension, or None if the model determines it."""
        return self.config.dimension

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Embedded:
        """Embed texts as described in `Embedder`. Usage is counted in the model's own tokens.

        A text in a script that the model's tokenizer does not know gets a vector of zeros, which is similar to nothing.

        Raises:
            ValueError: A text is empty, or `texts` is a single string.
            ModelServiceError: The model cannot be loaded, or failed.
        """
        check_texts(texts)
        if not texts:
            return Embedded(())
        from jackfield_local_embedder.model import batches_by_length

        rows = await sync.in_worker(self._tokens, texts, purpose)
        vectors: dict[int, Vector] = {}
        for batch in batches_by_length([len(row) for row in rows], self.config.tokens_at_once):
            computed = await sync.in_worker(self._vectors, [rows[number] for number in batch])
            vectors.update(zip(batch, computed, strict=True))
        tokens = sum(len(row) for row in rows)
        usage = Usage(prompt_tokens=tokens, total_tokens=tokens)
        return Embedded(tuple(vectors[number] for number in range(len(rows))), usage)

    async def aclose(self) -> None:
        """Free the weights. The next call loads them again."""
        await sync.in_worker(self._forget)

    # --- in a worker thread, one at a time ---

    def _forget(self) -> None:
        with self._turn:
            self._model = None

    def _tokens(self, texts: Sequence[str], purpose: Purpose) -> list[list[int]]:
        with self._turn, translate_errors(self.config.model):
            model = self._load()
            return model.tokens(texts, prefix=_prefix(self.config, model, purpose))

    def _vectors(self, rows: Sequence[Sequence[int]]) -> list[Vector]:
        import numpy as np

        with self._turn, translate_errors(self.config.model):
            vectors = self._load().vectors(rows)
        if not np.isfinite(vectors).all():
            raise ModelResponseError(
                f"{self.backend}: {self.config.model!r} produced infinite or undefined numbers, so its weights may be "
                "corrupted: download the model again",
                backend=self.backend,
            )
        return [tuple(row) for row in vectors.tolist()]

    def _load(self) -> SentenceModel:
        if self._model is None:
            from jackfield_local_embedder.hub import folder_of
            from jackfield_local_embedder.model import SentenceModel

            configured = self.config.api_key.get_secret_value() if self.config.api_key else ""
            key = configured or (self._host or default_host()).settings.secret(KEY_VARIABLE) or ""
            self._model = SentenceModel(folder_of(self.config, key=key.strip()), self.config)
        return self._model


def _prefix(config: TransformersEmbedderConfig, model: SentenceModel, purpose: Purpose) -> str:
    match purpose:
        case "query":
            return model.recipe.query_prompt if config.query_prefix is None else config.query_prefix
        case _:
            return model.recipe.document_prompt if config.document_prefix is None else config.document_prefix


@contextmanager
def translate_errors(name: str) -> Iterator[None]:
    """Translate library errors into Jackfield's."""
    try:
        yield
    except JackfieldError:
        raise
    except (Exception, MemoryError) as error:
        raise _failure(error, name) from error


def _failure(error: BaseException, name: str) -> ModelServiceError:
    if isinstance(error, MemoryError) or "memory" in str(error).lower():
        return ModelServiceError(
            f"transformers: {name!r} ran out of memory: lower tokens_at_once or max_tokens", backend="transformers"
        )
    text = quote_text(str(error), "", 300) or type(error).__name__
    return ModelServiceError(f"transformers: {name!r} failed: {type(error).__name__}: {text}", backend="transformers")
