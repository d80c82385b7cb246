"""Compute BERT-like models with numpy instead of torch, which is enough for most sentence-embedding models.

Sources: Devlin et al., "BERT" (2018); Liu et al., "RoBERTa" (2019); Sanh et al., "DistilBERT" (2019); Song et al.,
"MPNet" (2020), with the relative positions of Raffel et al., "T5" (2019). Weight names follow Hugging Face
transformers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jackfield_local_embedder.arrays import ACTIVATIONS, Floats, normalize_layer, softmax
from jackfield_local_embedder.recipe import read_json, unusable
from jackfield_local_embedder.weights import read_weights

_FORBIDDEN = np.float32(-1e30)  # the score, before softmax, of a position that is masked


@dataclass(frozen=True, slots=True)
class _Family:
    """The names of weights and settings in a family of models.

    Attributes:
        prefixes: The prefixes that the weight names in a file may share.
        layer: The name prefix of a layer, with `{}` for its number.
        parts: Names within a layer: query, key, value, output and its norm, the two feed-forward layers and their norm.
        first_position: The index of a text's first position, or None if it follows the id of the padding token.
        sizes: The settings for the number of layers, the number of heads and the activation function.
    """

    prefixes: tuple[str, ...]
    layer: str
    parts: tuple[str, str, str, str, str, str, str, str]
    first_position: int | None
    sizes: tuple[str, str, str] = ("num_hidden_layers", "num_attention_heads", "hidden_act")


_BERT_PARTS = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "attention.output.LayerNorm",
    "intermediate.dense",
    "output.dense",
    "output.LayerNorm",
)
_MPNET_PARTS = ("attention.attn.q", "attention.attn.k", "attention.attn.v", "attention.attn.o", "attention.LayerNorm")
_DISTIL_PARTS = (
    "attention.q_lin",
    "attention.k_lin",
    "attention.v_lin",
    "attention.out_lin",
    "sa_layer_norm",
    "ffn.lin1",
    "ffn.lin2",
    "output_layer_norm",
)
_ROBERTA = _Family(("", "roberta."), "encoder.layer.{}.", _BERT_PARTS, None)
_FAMILIES: Mapping[str, _Family] = {
    "bert": _Family(("", "bert."), "encoder.layer.{}.", _BERT_PARTS, 0),
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "camembert": _ROBERTA,
    "distilbert": _Family(
        ("", "distilbert."), "transformer.layer.{}.", _DISTIL_PARTS, 0, ("n_layers", "n_heads", "activation")
    ),
    "mpnet": _Family(("", "mpnet."), "encoder.layer.{}.", (*_MPNET_PARTS, *_BERT_PARTS[5:]), None),
}


def why_not_numpy(config: Mapping[str, Any]) -> str:
    """Return the reason why numpy cannot run the model with this `config.json`, or '' if it can."""
    family = _FAMILIES.get(str(config.get("model_type")))
    if family is None:
        return f"its architecture is {config.get('model_type')!r}"
    activation = config.get(family.sizes[2], "gelu")
    if activation not in ACTIVATIONS:
        return f"its activation function is {activation!r}"
    if config.get("position_embedding_type", "absolute") != "absolute":
        return f"it uses the position embeddings {config['position_embedding_type']!r}"
    if config.get("is_decoder"):
        return "it is a decoder"
    return ""


class NumpyEncoder:
    """A BERT-like model with its weights.

    Args:
        folder: The folder with `config.json` and the weights.
        name: The model's name, for errors.

    Raises:
        ModelRequestError: The files are damaged, incomplete, or of an unsupported model.
    """

    def __init__(self, folder: Path, name: str) -> None:
        config = read_json(folder / "config.json", name)
        self._family = _FAMILIES[config["model_type"]]
        layers, heads, activation = self._family.sizes
        self._heads = _positive(config, heads, name)
        self._layers = _positive(config, layers, name, least=0)
        self._activation_name = str(config.get(activation, "gelu"))
        self._activation = ACTIVATIONS[self._activation_name]()
        self._epsilon = float(config.get("layer_norm_eps", 1e-12))
        self._weights = read_weights(folder, name, self._family.prefixes, "embeddings.word_embeddings.weight")
        self._check(name)
        self._padding = int(config.get("pad_token_id") or 0)
        first = self._family.first_position
        self._first_position = self._padding + 1 if first is None else first
        self.longest = len(self._weights["embeddings.position_embeddings.weight"]) - self._first_position

    def _check(self, name: str) -> None:
        for part in ("position_embeddings.weight", "LayerNorm.weight", "LayerNorm.bias"):
            self._weights.check(f"embeddings.{part}", name)
        for number in range(self._layers):
            for part in self._family.parts:
                self._weights.check(self._family.layer.format(number) + part + ".weight", name)
                self._weights.check(self._family.layer.format(number) + part + ".bias", name)

    def encode(self, rows: Sequence[Sequence[int]]) -> list[Floats]:
        """Return an array per row, with a vector for each token.

        Args:
            rows: Token ids. Rows should have similar lengths, because shorter ones are padded.
        """
        lengths = [len(row) for row in rows]
        longest = max(lengths)
        ids = np.full((len(rows), longest), self._padding, np.intp)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = row
        hidden = self._compute_layers(self._embed(ids), lengths, longest).reshape(len(rows), longest, -1)
        return [hidden[number, :length] for number, length in enumerate(lengths)]

    def _compute_layers(self, hidden: Floats, lengths: Sequence[int], longest: int) -> Floats:
        """Return the token vectors after all layers. `hidden` has a row per token, including padding."""
        allowed = np.zeros((len(lengths), 1, 1, longest), np.float32)
        for number, length in enumerate(lengths):
            allowed[number, ..., length:] = _FORBIDDEN
        bias = allowed + self._relative_bias(longest)
        for number in range(self._layers):
            hidden = self._layer(hidden, bias, self._family.layer.format(number), len(lengths))
        return hidden

    def _embed(self, ids: np.ndarray[Any, Any]) -> Floats:
        weights = self._weights
        positions = weights["embeddings.position_embeddings.weight"]
        hidden = weights["embeddings.word_embeddings.weight"][ids]
        hidden = hidden + positions[self._first_position : self._first_position + ids.shape[1]]
        if "embeddings.token_type_embeddings.weight" in weights:
            hidden += weights["embeddings.token_type_embeddings.weight"][0]
        return self._normalize(hidden.reshape(ids.size, -1), "embeddings.LayerNorm")

    def _layer(self, hidden: Floats, bias: Floats, layer: str, rows: int) -> Floats:
        query, key, value, output, norm, wide, narrow, last = (layer + part for part in self._family.parts)
        size = hidden.shape[1] // self._heads

        def by_head(name: str) -> Floats:
            parts = self._linear(hidden, name).reshape(rows, -1, self._heads, size)
            return np.ascontiguousarray(parts.transpose(0, 2, 1, 3))

        scores: Floats = np.matmul(by_head(query), by_head(key).transpose(0, 1, 3, 2))
        scores *= np.float32(1 / math.sqrt(size))
        scores += bias
        attended = (softmax(scores) @ by_head(value)).transpose(0, 2, 1, 3).reshape(hidden.shape)
        hidden = self._normalize(hidden + self._linear(attended, output), norm)
        inner = self._activation(self._linear(hidden, wide))
        return self._normalize(hidden + self._linear(inner, narrow), last)

    def _relative_bias(self, length: int) -> Floats:
        table = self._weights.get("encoder.relative_attention_bias.weight")
        if table is None:
            return np.zeros((1, 1, 1, 1), np.float32)
        distance = np.arange(length)[:, None] - np.arange(length)[None, :]
        bias: Floats = table[_buckets(distance, len(table))].transpose(2, 0, 1)[None]
        return bias

    def _linear(self, numbers: Floats, name: str) -> Floats:
        result: Floats = numbers @ self._weights[f"{name}.weight"].T
        result += self._weights[f"{name}.bias"]
        return result

    def _normalize(self, numbers: Floats, name: str) -> Floats:
        weights = self._weights
        return normalize_layer(numbers, weights[f"{name}.weight"], weights[f"{name}.bias"], self._epsilon)


def _positive(config: Mapping[str, Any], key: str, name: str, *, least: int = 1) -> int:
    value = config.get(key)
    if not isinstance(value, int) or value < least:
        raise unusable(name, f"has a config.json in which {key} is not a valid number: {value!r}")
    return value


def _buckets(distance: np.ndarray[Any, Any], count: int, *, furthest: int = 128) -> np.ndarray[Any, Any]:
    """Return rows in the table of relative positions. Near distances have a row each, far distances share rows."""
    half = count // 2
    near = half // 2
    far = np.maximum(np.abs(distance), 1).astype(np.float32)
    steps = np.log(far / np.float32(near)) / np.float32(math.log(furthest / near)) * np.float32(half - near)
    spread = np.minimum(near + steps.astype(np.intp), half - 1)
    rows: np.ndarray[Any, Any] = np.where(np.abs(distance) < near, np.abs(distance), spread)
    rows += half * (distance < 0)
    return rows
