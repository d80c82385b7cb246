"""Turn texts into vectors with a model shared by all embedders in the process."""

from __future__ import annotations

import io
import threading
from collections.abc import Sequence
from weakref import WeakValueDictionary

import numpy as np

from jackfield_multilingual_embedder.batching import batches
from jackfield_multilingual_embedder.config import MODEL
from jackfield_multilingual_embedder.encoder import Encoder, Floats
from jackfield_multilingual_embedder.sentencepiece import SentencePieces, parse_model
from jackfield_multilingual_embedder.weights import PIECES, WEIGHTS, read_checked

_AT_ONCE = 512  # pieces, whose intermediate results stay in the CPU cache
_LONGEST = 4096  # pieces of a text, which take 80 MB; a passage has about 500

_loading = threading.Lock()
_loaded: WeakValueDictionary[str, Model] = WeakValueDictionary()


class Model:
    """The tokenizer and the encoder.

    Raises:
        ModelServiceError: A model file is missing or damaged.
    """

    def __init__(self) -> None:
        self._pieces = SentencePieces(parse_model(read_checked(PIECES)))
        with np.load(
            io.BytesIO(read_checked(WEIGHTS)), allow_pickle=False
        ) as arrays:  # reads each array when it is needed
            self._encoder = Encoder(arrays)
        self._turn = threading.Lock()

    def embed(self, texts: Sequence[str]) -> tuple[Floats, int]:
        """Return a vector for each text, and the total number of tokens.

        Texts are truncated to 4,096 tokens. Only one thread computes at a time, because each multiplication uses all
        cores, and to limit memory use.
        """
        with self._turn:
            rows = [self._pieces.split(text)[:_LONGEST] for text in texts]
            vectors = [self._encoder.vectors(group) for group in batches(rows, _AT_ONCE)]
        return np.concatenate(vectors), sum(map(len, rows))


def shared_model() -> Model:
    """Return the shared model, loading it if no embedder in the process holds it.

    Raises:
        ModelServiceError: A model file is missing or damaged.
    """
    with _loading:
        model = _loaded.get(MODEL)
        if model is None:
            model = _loaded[MODEL] = Model()
        return model
