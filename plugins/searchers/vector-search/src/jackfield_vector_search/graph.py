"""Find candidates for the nearest vectors with usearch's neighbour graph, without comparing every vector."""

from __future__ import annotations

import logging
import threading
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float32]
NEIGHBOURS = 16
_LOOKED_AT = 128  # neighbours examined when adding a vector, and at least for each query
_THREADS = 0  # all cores

_log = logging.getLogger(__name__)


def can_be_made() -> bool:
    """Return True if usearch is installed."""
    return find_spec("usearch") is not None


class Graph:
    """An approximate nearest-neighbour index.

    Comparing its candidates exactly finds almost all of the nearest vectors.
    """

    def __init__(self, index: Any) -> None:
        self._index = index
        # The index limits the number of threads that search at once, and a search takes less than a millisecond.
        self._one_at_a_time = threading.Lock()

    @classmethod
    def of(cls, rows: Matrix) -> Graph | None:
        """Build a graph of unit vectors, or log a warning and return None if usearch is not installed."""
        if not can_be_made():
            _log.warning(
                "each search compares %s vectors: to make searches faster, run: pip install "
                "'jackfield-vector-search[approximate]'",
                f"{len(rows):,}",
            )
            return None
        from usearch.index import Index

        index = Index(ndim=rows.shape[1], metric="ip", dtype="f16", connectivity=NEIGHBOURS, expansion_add=_LOOKED_AT)
        index.add(np.arange(len(rows)), rows, threads=_THREADS)
        return cls(index)

    @classmethod
    def of_bytes(cls, data: npt.NDArray[np.uint8]) -> Graph | None:
        """Load a graph written by `to_bytes`, or return None if usearch is not installed.

        The data may be memory-mapped and is not copied.

        Raises:
            ValueError: The graph is incomplete.
        """
        if not can_be_made():
            return None
        from usearch.index import Index

        try:
            index = Index.restore(memoryview(data), view=True)  # type: ignore[arg-type] # an array is a buffer
        except RuntimeError as error:
            raise ValueError(str(error)) from error
        if index is None:
            raise ValueError("not a graph")
        return cls(index)

    def to_bytes(self) -> bytes:
        """Serialise the graph."""
        return bytes(self._index.save())

    def near(self, vector: Matrix, count: int) -> npt.NDArray[np.intp]:
        """Return the row numbers of candidates for the nearest `count` vectors, in ascending order."""
        wanted = max(count, _LOOKED_AT)
        with self._one_at_a_time:
            self._index.expansion_search = wanted
            keys = self._index.search(vector, wanted).keys
        return np.sort(np.asarray(keys, np.intp))
