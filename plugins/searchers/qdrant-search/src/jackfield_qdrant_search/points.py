"""Map the chunks of a corpus to points in a Qdrant collection."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ID_BYTES = 16


class Points:
    """The point id of each chunk, in chunk order. Chunks with the same text share a point.

    Args:
        ids: 16 bytes per chunk. Zeros mark a chunk without text, which has no point.
    """

    def __init__(self, ids: NDArray[np.void]) -> None:
        self._ids = ids
        self._order = np.argsort(ids, kind="stable")

    @classmethod
    def of(cls, texts: Sequence[str]) -> Points:
        """Derive the points from the texts of the chunks."""
        joined = b"".join(id_of(text).bytes if text else bytes(_ID_BYTES) for text in texts)
        return cls(np.frombuffer(joined, f"S{_ID_BYTES}"))

    @classmethod
    def read(cls, path: Path) -> Points:
        """Read a file written by `write`.

        Raises:
            FileNotFoundError: The file does not exist.
            ValueError: The file is truncated.
        """
        return cls(np.frombuffer(path.read_bytes(), f"S{_ID_BYTES}"))

    def write(self, path: Path) -> None:
        """Write the ids to a file."""
        path.write_bytes(self._ids.tobytes())

    def __len__(self) -> int:
        """The number of distinct points."""
        return len(np.unique(self._ids[self._ids != b""]))

    def of_chunks(self, numbers: Sequence[int]) -> list[str]:
        """Return the distinct point ids of some chunks."""
        ids = np.unique(self._ids[np.asarray(numbers, np.int64)])
        return [str(UUID(bytes=bytes(one).ljust(_ID_BYTES, b"\0"))) for one in ids if one != b""]

    def places(self, point: str) -> list[int]:
        """Return the numbers of the chunks that share a point, in ascending order."""
        wanted = np.array(UUID(point).bytes, f"S{_ID_BYTES}")
        first, end = (np.searchsorted(self._ids, wanted, side, sorter=self._order) for side in ("left", "right"))
        places: list[int] = self._order[first:end].tolist()
        return places


def id_of(text: str) -> UUID:
    """Return the point id for a text."""
    # With a version at the end, because numpy would drop trailing zero bytes.
    return UUID(bytes=hashlib.sha256(text.encode()).digest()[: _ID_BYTES - 1] + b"\x01")
