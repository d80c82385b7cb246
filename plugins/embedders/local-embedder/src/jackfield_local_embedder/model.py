"""Turn texts into vectors with a tokenizer, an engine and pooling."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from jackfield_local_embedder.config import TransformersEmbedderConfig
from jackfield_local_embedder.encoder import NumpyEncoder, why_not_numpy
from jackfield_local_embedder.onnx_encoder import GraphEncoder, OnnxFileEncoder, has_onnx_file, has_onnxruntime
from jackfield_local_embedder.pooling import Pooler
from jackfield_local_embedder.recipe import Recipe, read_json, read_recipe, unusable
from jackfield_local_embedder.torch_encoder import TorchEncoder, tokenizer_by_transformers
from jackfield_local_embedder.weights import has_weights

if TYPE_CHECKING:
    from jackfield_local_embedder.arrays import Floats


_UNKNOWN = ("[UNK]", "<unk>")
# In English text, an English tokenizer knows every letter; in almost all Chinese text, 10 % to 85 % are unknown.
_MOST_UNKNOWN = 0.1


class Encoder(Protocol):
    """Computes token vectors."""

    @property
    def longest(self) -> int | None:
        """The maximum number of tokens per text, or None if there is no limit."""

    def encode(self, rows: Sequence[Sequence[int]]) -> list[Floats]:
        """Return an array per row, with a vector for each token."""


class SentenceModel:
    """Turns texts into vectors as specified by the files in the model folder.

    Args:
        root: The model folder.
        config: The settings.

    Raises:
        ModelServiceError: The model is unusable, or requires torch, which is not installed.
    """

    def __init__(self, root: Path, config: TransformersEmbedderConfig) -> None:
        recipe = read_recipe(root, config.model)
        self.recipe = replace(recipe, pooling=(config.pooling,)) if config.pooling else recipe
        self._encoder = _encoder(root, self.recipe, config)
        self._pooler = Pooler(self.recipe, config.model, dimension=config.dimension)
        self._tokenizer = _tokenizer(self.recipe.folder, config)
        limits = [config.max_tokens or self.recipe.max_tokens, self._encoder.longest]
        self._longest = min((limit for limit in limits if limit), default=None)
        # The files often contain settings from training, such as a fixed length or another limit than the model's.
        self._tokenizer.no_padding()
        if self._longest is None:
            self._tokenizer.no_truncation()
        else:
            self._tokenizer.enable_truncation(self._longest)

    def tokens(self, texts: Sequence[str], *, prefix: str = "") -> list[list[int]]:
        """Return the token ids of each text after a prefix, or none for a text that the model cannot read."""
        # A lone surrogate is not valid UTF-8.
        clean = [(prefix + text).encode("utf-8", "replace").decode() for text in texts]
        lowered = [text.lower() for text in clean] if self.recipe.lower_case else clean
        encodings = zip(self._tokenizer.encode_batch(lowered), lowered, strict=True)
        unknown = unknown_tokens(self._tokenizer)
        # A text whose characters the tokenizer drops has no tokens, unless the tokenizer adds some.
        return [
            (encoding.ids or [0]) if can_read(encoding, text, unknown, start=len(prefix)) else []
            for encoding, text in encodings
        ]

    def vectors(self, rows: Sequence[Sequence[int]]) -> Floats:
        """Return the vectors of tokenized texts. Rows of similar length are the most efficient.

        A row without tokens gets a vector of zeros.
        """
        vectors = self._pooler.vectors(self._encoder.encode([row or [0] for row in rows]))
        vectors[[not row for row in rows]] = 0
        return vectors


def batches_by_length(lengths: Sequence[int], tokens_at_once: int) -> Iterator[list[int]]:
    """Yield batches of text numbers with similar lengths, of about `tokens_at_once` tokens including padding."""
    batch: list[int] = []
    for number in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[number] > tokens_at_once:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


def _encoder(root: Path, recipe: Recipe, config: TransformersEmbedderConfig) -> Encoder:
    """Return the engine for a model.

    Unless the settings ask for torch, ONNX Runtime or numpy is used if they can run the model.
    """
    engine, folder, name = config.engine, recipe.folder, config.model
    if engine == "torch" or (engine == "auto" and config.device not in ("auto", "cpu")):
        return TorchEncoder(folder, config)
    if config.onnx_file:
        return OnnxFileEncoder(root, config.onnx_file, name)
    why_not = _why_not_numpy(folder, name)
    int8 = config.precision == "int8"
    if not why_not:
        if engine == "onnx" or int8 or (engine == "auto" and has_onnxruntime()):
            return GraphEncoder(folder, name, int8=int8)
        return NumpyEncoder(folder, name)
    if int8:
        raise unusable(name, f"cannot be run in 8 bits, because {why_not}: set precision to full")
    if engine == "numpy":
        raise unusable(name, f"cannot be run by numpy, because {why_not}: set engine to auto or torch")
    if has_onnx_file(root):
        return OnnxFileEncoder(root, "", name)
    if engine == "onnx":
        raise unusable(name, f"cannot be run by ONNX Runtime, because {why_not}, and there is no ONNX file")
    return TorchEncoder(folder, config)


def _why_not_numpy(folder: Path, name: str) -> str:
    """Return the reason why numpy cannot run the model in a folder, or '' if it can."""
    if not (folder / "config.json").is_file() and has_onnx_file(folder):
        return "it has no config.json"
    why_not = why_not_numpy(read_json(folder / "config.json", name))
    return why_not or ("" if has_weights(folder) else "it has no model.safetensors")


def _tokenizer(folder: Path, config: TransformersEmbedderConfig) -> Any:
    if not (folder / "tokenizer.json").is_file():
        return tokenizer_by_transformers(folder, config)
    return read_tokenizer(folder, config.model)


def unknown_tokens(tokenizer: Any) -> frozenset[int]:
    """Return the ids of the tokens that replace what the tokenizer does not know."""
    return frozenset(id_ for name in _UNKNOWN if (id_ := tokenizer.token_to_id(name)) is not None)


def can_read(encoding: Any, text: str, unknown: frozenset[int], *, start: int = 0, sequence: int = 0) -> bool:
    """Return True if the tokenizer knows at least nine tenths of a text's letters.

    An English model knows only some Chinese characters. Its vectors of such a text say more about the rest, such as
    digits and names, than about the text. Symbols do not count, because a table of them is still in a language.

    Args:
        encoding: The tokens, of this text alone or together with another one.
        text: The text.
        unknown: The ids of unknown tokens.
        start: The number of characters at the start that do not count.
        sequence: The text's number in the encoding.
    """
    if unknown.isdisjoint(encoding.ids):
        return True
    letters = unknown_letters = 0
    for id_, (begin, end), number in zip(encoding.ids, encoding.offsets, encoding.sequence_ids, strict=True):
        if number == sequence and begin >= start:
            count = sum(map(str.isalpha, text[begin:end]))
            letters += count
            unknown_letters += count if id_ in unknown else 0
    return unknown_letters <= _MOST_UNKNOWN * letters


def read_tokenizer(folder: Path, name: str) -> Any:
    """Load the tokenizer from a folder's `tokenizer.json`.

    Raises:
        ModelRequestError: The file is missing or damaged.
    """
    from tokenizers import Tokenizer

    path = folder / "tokenizer.json"
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises no specific exceptions
        raise unusable(name, f"has a tokenizer that cannot be read, {path}: {error}") from error
