"""Vectors of a corpus, and which of them are nearest to another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float32]

# Vectors have 32 bits, and the last of them depend on the order in which products are summed.
_DIGITS = 6


class Index:
    """Compares a vector with all vectors of a corpus: exact, and as fast as one product of a matrix.

    Args:
        vectors: One in each row, of any length but 0; they are made of length 1.
        numbers: Which chunk of the corpus each row is of, ascending.
    """

    def __init__(self, vectors: Matrix, numbers: Sequence[int]) -> None:
        self._rows = normalized(vectors)
        self._numbers = np.asarray(numbers, dtype=np.intp)

    @property
    def dimension(self) -> int | None:
        """The length of a vector; None if there are none."""
        return self._rows.shape[1] if len(self._numbers) else None

    def search(self, vector: Matrix, limit: int) -> list[tuple[int, float]]:
        """The chunks nearest to a vector, with their cosines (1: the same direction); equal ones in their order."""
        if not len(self._numbers):
            return []
        query = normalized(vector.reshape(1, -1))[0]
        scores = np.round((self._rows @ query).astype(np.float64), _DIGITS)
        if limit < len(scores):
            # All that are as good as the last one: which of them stands first is decided below, and not by chance.
            least = np.partition(scores, len(scores) - limit)[len(scores) - limit]
            candidates = np.flatnonzero(scores >= least)
        else:
            candidates = np.arange(len(scores))
        best = candidates[np.lexsort((self._numbers[candidates], -scores[candidates]))][:limit]
        return [(int(self._numbers[row]), float(scores[row])) for row in best]


def normalized(vectors: Matrix) -> Matrix:
    """Vectors of length 1 in the same directions; one of length 0 stays, and is near to nothing."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    divided: Matrix = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return divided
