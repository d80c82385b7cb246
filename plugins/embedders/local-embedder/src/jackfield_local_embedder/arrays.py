"""Functions on 32-bit arrays that numpy lacks."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Activation = Callable[[Floats], Floats]

# A gate is looked up in steps of 1/256 from -8 to 8, with a straight line in between: off by at most 5e-7.
_REACH, _STEPS = 8, 256
_AT_ONCE = 16_384  # numbers that stay in the cache from one step to the next


class Gated:
    """A function of the form `x * gate(x)` with a gate that rises from 0 to 1, such as GELU and its relatives.

    The gate is looked up in a table. numpy has no error function, and a polynomial approximation takes three times as
    long.
    """

    def __init__(self, gate: Callable[[float], float]) -> None:
        values = np.array([gate(step / _STEPS) for step in range(-_REACH * _STEPS, _REACH * _STEPS + 2)])
        values[0], values[-2:] = 0, 1  # outside the table, a gate is fully shut or fully open
        self._values = values[:-1].astype(np.float32)
        self._slopes = np.diff(values).astype(np.float32)

    def __call__(self, numbers: Floats) -> Floats:
        flat = numbers.reshape(-1)
        result = np.empty_like(flat)
        for start in range(0, len(flat), _AT_ONCE):
            part = flat[start : start + _AT_ONCE]
            position = part * np.float32(_STEPS)
            position += np.float32(_REACH * _STEPS)
            # These replace NaN by a limit; `part`, by which it is multiplied below, still has the NaN.
            np.fmin(np.fmax(position, 0, out=position), 2 * _REACH * _STEPS, out=position)
            index = position.astype(np.intp)
            position -= index
            position *= self._slopes.take(index)
            position += self._values.take(index)
            np.multiply(part, position, out=result[start : start + _AT_ONCE])
        return result.reshape(numbers.shape)


def _gate_of_gelu(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def _gate_of_gelu_by_tanh(x: float) -> float:
    return (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


def _relu(numbers: Floats) -> Floats:
    return np.maximum(numbers, np.float32(0))


ACTIVATIONS: dict[str, Callable[[], Activation]] = {
    "gelu": lambda: Gated(_gate_of_gelu),
    "gelu_new": lambda: Gated(_gate_of_gelu_by_tanh),
    "gelu_pytorch_tanh": lambda: Gated(_gate_of_gelu_by_tanh),
    "relu": lambda: _relu,
}
"""Activation functions by their names in model configurations."""


def normalize_layer(numbers: Floats, weight: Floats, bias: Floats, epsilon: float) -> Floats:
    """Apply layer normalisation over the last axis."""
    numbers = numbers - numbers.mean(-1, keepdims=True)
    scale = np.sqrt(np.square(numbers).mean(-1, keepdims=True) + np.float32(epsilon))
    numbers /= scale
    numbers *= weight
    numbers += bias
    return numbers


def softmax(scores: Floats) -> Floats:
    """Compute the softmax over the last axis in place, and return the array."""
    scores -= scores.max(-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(-1, keepdims=True)
    return scores


def unit_length(vectors: Floats) -> Floats:
    """Scale vectors to unit length. Zero vectors stay unchanged."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled: Floats = vectors / np.maximum(lengths, np.float32(1e-12))
    return scaled
