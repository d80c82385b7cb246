"""Score passages for a question with a cross-encoder in ONNX format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jackfield_local_embedder.config import LocalRerankConfig
from jackfield_local_embedder.model import can_read, read_tokenizer, unknown_tokens
from jackfield_local_embedder.onnx_encoder import find_onnx_file, longest_of, open_session, pad_rows
from jackfield_local_embedder.recipe import read_json, unusable


class CrossEncoder:
    """A model that reads a question and a passage together. Its output is a single score, or scores for two classes.

    Args:
        root: The model folder.
        config: The settings.

    Raises:
        ModelServiceError: The model is unusable, or ONNX Runtime is not installed.
    """

    def __init__(self, root: Path, config: LocalRerankConfig) -> None:
        self._name = config.model
        settings = read_json(root / "config.json", config.model, otherwise={})
        self._padding = int(settings.get("pad_token_id") or 0)
        self._tokenizer = read_tokenizer(root, config.model)
        self._tokenizer.no_padding()
        limits = [config.max_tokens, longest_of(settings)]
        self._tokenizer.enable_truncation(min(limit for limit in limits if limit))
        self._session = open_session(find_onnx_file(root, config.onnx_file or "", config.model), config.model)
        self._inputs = [one.name for one in self._session.get_inputs()]

    def tokens(self, query: str, passages: Sequence[str]) -> list[Any | None]:
        """Tokenize the question together with each passage. A pair is None if the model cannot read one of the two."""
        query, *clean = (text.encode("utf-8", "replace").decode() for text in (query, *passages))
        unknown = unknown_tokens(self._tokenizer)
        encodings = self._tokenizer.encode_batch([(query, passage) for passage in clean])
        return [
            encoding
            if can_read(encoding, query, unknown) and can_read(encoding, passage, unknown, sequence=1)
            else None
            for encoding, passage in zip(encodings, clean, strict=True)
        ]

    def scores(self, pairs: Sequence[Any]) -> list[float]:
        """Return the relevance of each pair, from 0 to 1.

        Raises:
            ModelRequestError: The model returns more than two numbers per pair.
        """
        inputs = pad_rows([pair.ids for pair in pairs], self._padding, [pair.type_ids for pair in pairs])
        numbers = np.asarray(self._session.run(None, {key: inputs[key] for key in self._inputs})[0], np.float32)
        logits = numbers.reshape(len(pairs), -1)
        match logits.shape[1]:
            case 1:
                relevance = logits[:, 0]
            case 2:
                relevance = logits[:, 1] - logits[:, 0]
            case other:
                raise unusable(
                    self._name,
                    f"returns {other} scores per pair instead of 1 or 2: use a cross-encoder trained for reranking",
                )
        scores: list[float] = (1 / (1 + np.exp(-np.clip(relevance, -60, 60)))).tolist()
        return scores
