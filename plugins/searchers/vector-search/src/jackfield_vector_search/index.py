"""Find the nearest vectors in a corpus."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from jackfield_vector_search.graph import Graph, Matrix

# The lowest bits of 32-bit numbers depend on the order of summation.
_DIGITS = 6
_CANDIDATES = 4  # per hit, because the graph has only 16-bit precision and misses some
_COPIED = 8  # below one row in this many, copying the rows is faster than multiplying all of them
_HEADER = np.dtype([("magic", "S24"), ("rows", "<i8"), ("columns", "<i8"), ("graph", "<i8"), ("rest", "V16")])
_MAGIC = b"jackfield-vectors 1"


class Index:
    """Compares a query vector with all vectors of a corpus, exactly, at the cost of one matrix product.

    From a certain size on, only candidates are compared if usearch is installed, so one of the nearest may be missed.

    Args:
        vectors: The vectors, one per row. They are scaled to unit length.
        numbers: The chunk number of each row, in ascending order.
        approximate_from: The number of vectors from which only candidates are compared. None means never.
    """

    def __init__(self, vectors: Matrix, numbers: Sequence[int], *, approximate_from: int | None = None) -> None:
        self._rows = normalized(vectors)
        self._numbers: npt.NDArray[np.int64] = np.asarray(numbers, dtype=np.int64)
        self._graph: Graph | None = None
        if approximate_from is not None and len(self._rows) >= approximate_from:
            self._graph = Graph.of(self._rows)

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Load an index written by `write`. The file is memory-mapped, so data is read only during a search.

        Raises:
            FileNotFoundError: The file does not exist.
            ValueError: The file is not an index, has another version, or is truncated.
        """
        mapped = np.memmap(path, dtype=np.uint8, mode="r")  # which also refuses an empty file
        if len(mapped) < _HEADER.itemsize:
            raise ValueError(f"{path} is truncated")
        header = mapped[: _HEADER.itemsize].view(_HEADER)[0]
        rows, columns = int(header["rows"]), int(header["columns"])
        ends = np.cumsum([_HEADER.itemsize, 8 * rows, 4 * rows * columns, int(header["graph"])]).tolist()
        if header["magic"] != _MAGIC or min(rows, columns, int(header["graph"])) < 0 or ends[-1] != len(mapped):
            raise ValueError(f"{path} is incomplete or was created by another version")
        index = cls.__new__(cls)
        index._numbers = mapped[ends[0] : ends[1]].view(np.int64)
        index._rows = mapped[ends[1] : ends[2]].view(np.float32).reshape(rows, columns)
        index._graph = Graph.of_bytes(mapped[ends[2] :]) if header["graph"] else None
        return index

    def write(self, path: Path) -> None:
        """Write the index to a file.

        Raises:
            OSError: The file cannot be written.
        """
        graph = self._graph.to_bytes() if self._graph else b""
        rows, columns = self._rows.shape
        header = np.array([(_MAGIC, rows, columns, len(graph), b"")], _HEADER)
        with path.open("wb") as file:
            for array in (header, self._numbers, np.ascontiguousarray(self._rows)):
                array.tofile(file)
            file.write(graph)

    @property
    def dimension(self) -> int | None:
        """The vector dimension, or None if there are no vectors."""
        return self._rows.shape[1] if len(self._numbers) else None

    def search(self, vector: Matrix, limit: int, selected: Sequence[int] | None = None) -> list[tuple[int, float]]:
        """Return the nearest chunks with their cosines, nearest first. Ties keep chunk order.

        Args:
            vector: The query vector.
            limit: The maximum number of chunks.
            selected: The numbers of the chunks to consider, in ascending order. These are always compared exactly. If
                None, all chunks are searched.
        """
        if not len(self._numbers):
            return []
        query = normalized(vector.reshape(1, -1))[0]
        rows, numbers = self._rows, self._numbers
        is_selected = None
        if selected is not None:
            is_selected = np.isin(numbers, np.asarray(selected, np.int64), assume_unique=True)
            if _COPIED * np.count_nonzero(is_selected) < len(rows):
                rows, numbers, is_selected = rows[is_selected], numbers[is_selected], None
        elif self._graph and _CANDIDATES * limit < len(rows):
            near = self._graph.near(query, _CANDIDATES * limit)
            rows, numbers = rows[near], numbers[near]
        scores = np.round((rows @ query).astype(np.float64), _DIGITS)
        if is_selected is not None:
            scores, numbers = scores[is_selected], numbers[is_selected]
        if limit < len(scores):
            # All ties with the last one, because their order is decided below, not by chance.
            least = np.partition(scores, len(scores) - limit)[len(scores) - limit]
            candidates = np.flatnonzero(scores >= least)
        else:
            candidates = np.arange(len(scores))
        best = candidates[np.lexsort((numbers[candidates], -scores[candidates]))][:limit]
        return [(int(numbers[row]), float(scores[row])) for row in best]


def normalized(vectors: Matrix) -> Matrix:
    """Scale vectors to unit length. A zero vector stays zero and is similar to nothing."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    divided: Matrix = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return divided
