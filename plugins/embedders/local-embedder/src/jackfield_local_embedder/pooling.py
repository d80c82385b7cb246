"""Pool token vectors into text vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from jackfield_local_embedder.arrays import ACTIVATIONS, Activation, Floats, unit_length
from jackfield_local_embedder.recipe import Dense, Pooling, Recipe, unusable
from jackfield_local_embedder.weights import read_weights


def _weighted_mean(tokens: Floats) -> Floats:
    weights = np.arange(1, len(tokens) + 1, dtype=np.float32)[:, None]
    mean: Floats = (tokens * weights).sum(0) / weights.sum()
    return mean


_POOLERS: Mapping[Pooling, Callable[[Floats], Floats]] = {
    "cls": lambda tokens: tokens[0],
    "max": lambda tokens: tokens.max(0),
    "mean": lambda tokens: tokens.mean(0),
    "mean_sqrt_len_tokens": lambda tokens: tokens.sum(0) / np.sqrt(np.float32(len(tokens))),
    "weightedmean": _weighted_mean,
    "lasttoken": lambda tokens: tokens[-1],
}


class Pooler:
    """Carries out the steps of a recipe after the model itself.

    Args:
        recipe: The recipe with the steps: pooling, further layers and normalisation.
        name: The model's name, for errors.
        dimension: The number of leading components to keep of each vector. If None, all are kept.

    Raises:
        ModelRequestError: The weights of a layer are missing or damaged.
    """

    def __init__(self, recipe: Recipe, name: str, *, dimension: int | None = None) -> None:
        self._recipe = recipe
        self._name = name
        self._dimension = dimension
        self._layers = [_layer(dense, name) for dense in recipe.dense]

    def vectors(self, texts: Sequence[Floats]) -> Floats:
        """Return an array with a vector for each text.

        Raises:
            ModelRequestError: The vectors are shorter than the configured dimension.
        """
        rows = [np.concatenate([_POOLERS[pooling](tokens) for pooling in self._recipe.pooling]) for tokens in texts]
        vectors: Floats = np.stack(rows).astype(np.float32, copy=False)
        for layer in self._layers:
            vectors = layer(vectors)
        vectors = self._shorten(vectors)
        return unit_length(vectors) if self._recipe.normalize else vectors

    def _shorten(self, vectors: Floats) -> Floats:
        kept = self._dimension or vectors.shape[1]
        if kept > vectors.shape[1]:
            raise unusable(
                self._name, f"has vectors of dimension {vectors.shape[1]}: set dimension to that or less, got {kept}"
            )
        return vectors[:, :kept]


def _layer(dense: Dense, name: str) -> Activation:
    weights = read_weights(dense.folder, name, ("",), "linear.weight")
    activation = _ACTIVATION_OF[dense.activation]()

    def layer(vectors: Floats) -> Floats:
        result: Floats = vectors @ weights["linear.weight"].T
        return activation(result + weights["linear.bias"] if "linear.bias" in weights else result)

    return layer


_ACTIVATION_OF: Mapping[str, Callable[[], Activation]] = {
    "Identity": lambda: lambda numbers: numbers,
    "Tanh": lambda: np.tanh,
    "ReLU": ACTIVATIONS["relu"],
    "GELU": ACTIVATIONS["gelu"],
}
