"""Compute the multilingual Universal Sentence Encoder with numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

DIMENSION = 512
_BLOCKS = 17  # of the table; the piece with the number n has row n // 17 of block n % 17
_ROWS = 7530
_WIDTH = 256  # of a branch
_EPSILON = np.float32(1e-12)


@dataclass(frozen=True, slots=True)
class _Branch:
    """A part of the network that combines each token with its neighbours.

    Attributes:
        size: The number of tokens combined, including the token itself.
        before: The number of them that precede the token.
    """

    size: int
    before: int


_BRANCHES = (_Branch(2, 0), _Branch(3, 1), _Branch(5, 2))
_SIZES = tuple(branch.size for branch in _BRANCHES)
_FEATURES = DIMENSION + len(_BRANCHES) * _WIDTH

_NEIGHBOURS = ("proj", "proj_b", "ln_g", "ln_b")  # the arrays that compute the input of the branches
_LAYERS = (
    *(f"{name}{layer}_{size}" for name in ("w", "b") for layer in (1, 2) for size in _SIZES),
    *("lo", "scale", "ln_g", "ln_b", "cnn_W", "cnn_b", "d0", "d1", "d2", "d3", "p1", "p3"),
)


class Encoder:
    """Turns token numbers into unit vectors.

    Each token has a row in the embedding table. Three branches add features from neighbouring tokens. The features are
    averaged over all tokens and passed through four dense layers. An encoder has no mutable state and can be shared by
    threads.

    Args:
        arrays: The arrays in `weights.npz` by name.

    Source: Yang et al., Multilingual Universal Sentence Encoder for Semantic Retrieval, ACL 2020.
    """

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        # In 8 bits it takes 65 MB; as floats it would take 262 MB, of which a text needs a few rows.
        self._table = np.empty((_ROWS, _BLOCKS, DIMENSION), np.uint8)
        for number in range(_BLOCKS):
            self._table[:, number] = arrays[f"q{number + 1}"]
        self._layers: dict[str, Floats] = {name: arrays[name] for name in _LAYERS}
        for name in _NEIGHBOURS:  # the branches are projected and normalised together
            parts = [arrays[f"{name}{size}"] for size in _SIZES]
            self._layers[f"{name} of branches"] = np.concatenate(parts, axis=-1)

    def vectors(self, texts: Sequence[Sequence[int]]) -> Floats:
        """Return a row for each text, which must have at least one token."""
        layers = self._layers
        lengths = np.array([len(pieces) for pieces in texts])
        starts = np.cumsum(lengths) - lengths
        pieces = np.concatenate([np.asarray(one, np.intp) for one in texts])
        features = np.empty((len(pieces), _FEATURES), np.float32)
        features[:, :DIMENSION] = self._look_up(pieces)
        projected = features[:, :DIMENSION] @ layers["proj of branches"]
        projected += layers["proj_b of branches"]
        _normalize(projected, layers["ln_g of branches"], layers["ln_b of branches"])
        # Positions of each piece's text, because a branch must not read other texts.
        first, end = np.repeat(starts, lengths), np.repeat(starts + lengths, lengths)
        for number, branch in enumerate(_BRANCHES):
            columns = slice(number * _WIDTH, (number + 1) * _WIDTH)
            neighbours = _neighbours(branch, first, end)
            features[:, DIMENSION:][:, columns] = self._branch(branch, projected[:, columns], neighbours)
        _normalize(features, layers["ln_g"], layers["ln_b"])
        sums: Floats = np.add.reduceat(features, starts, axis=0)
        root: Floats = np.sqrt(lengths).astype(np.float32)[:, None]
        averages: Floats = sums @ layers["cnn_W"] / root + root * layers["cnn_b"]
        return self._dense(averages)

    def _look_up(self, pieces: NDArray[np.intp]) -> Floats:
        rows, blocks = np.divmod(pieces, _BLOCKS)
        numbers = self._table[rows, blocks].astype(np.float32)
        numbers *= self._layers["scale"][blocks, None]
        numbers += self._layers["lo"][blocks, None]
        return numbers

    def _branch(self, branch: _Branch, projected: Floats, neighbours: NDArray[np.intp]) -> Floats:
        padded = np.zeros((len(projected) + 1, _WIDTH), np.float32)
        for layer in (1, 2):
            padded[:-1] = projected
            seen = padded[neighbours].reshape(len(projected), -1)
            added = seen @ self._layers[f"w{layer}_{branch.size}"]
            added += self._layers[f"b{layer}_{branch.size}"]
            projected = np.maximum(added, 0, out=added) + projected
        return projected

    def _dense(self, averages: Floats) -> Floats:
        layers = self._layers
        first = np.maximum(averages @ layers["d0"], 0)
        second = np.maximum(first @ layers["d1"] + averages @ layers["p1"], 0)
        third = np.maximum(second @ layers["d2"], 0)
        vectors = np.tanh(third @ layers["d3"] + second @ layers["p3"])
        unit: Floats = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), _EPSILON)
        return unit


def _neighbours(branch: _Branch, first: NDArray[np.intp], end: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the positions that a branch reads for each token. Positions outside the text become one past the last."""
    places = np.arange(len(first))[:, None] + np.arange(-branch.before, branch.size - branch.before)
    is_outside = (places < first[:, None]) | (places >= end[:, None])
    return np.where(is_outside, len(first), places)


def _normalize(rows: Floats, weight: Floats, bias: Floats) -> None:
    """Apply layer normalisation to each row, in place."""
    rows -= rows.mean(axis=1, keepdims=True)
    variance = np.einsum("ij,ij->i", rows, rows) / np.float32(rows.shape[1])
    rows /= np.sqrt(variance + _EPSILON)[:, None]
    rows *= weight
    rows += bias
