"""Map the chunks of a corpus to points of a collection."""

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
    """The ids of the points of chunks, in the order of the chunks; several chunks may be one point.

    Args:
        ids: 16 bytes each; zeros for a chunk without text, which has no point.
    """

    def __init__(self, ids: NDArray[np.void]) -> None:
        self._ids = ids
        self._order = np.argsort(ids, kind="stable")

    @classmethod
    def of(cls, texts: Sequence[str]) -> Points:
        """Points by their texts."""
        joined = b"".join(id_of(text).bytes if text else bytes(_ID_BYTES) for text in texts)
        return cls(np.frombuffer(joined, f"S{_ID_BYTES}"))

    @classmethod
    def read(cls, path: Path) -> Points:
        """Points from a file that `write` made.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file is truncated.
        """
        return cls(np.frombuffer(path.read_bytes(), f"S{_ID_BYTES}"))

    def write(self, path: Path) -> None:
        """Write them to a file."""
        path.write_bytes(self._ids.tobytes())

    def __len__(self) -> int:
        """The number of different points."""
        return len(np.unique(self._ids[self._ids != b""]))

    def of_chunks(self, numbers: Sequence[int]) -> list[str]:
        """Return the ids of the points of chunks, each once."""
        ids = np.unique(self._ids[np.asarray(numbers, np.int64)])
        return [str(UUID(bytes=bytes(one).ljust(_ID_BYTES, b"\0"))) for one in ids if one != b""]

    def places(self, point: str) -> list[int]:
        """Return the numbers of the chunks of a point, ascending."""
        wanted = np.array(UUID(point).bytes, f"S{_ID_BYTES}")
        first, end = (np.searchsorted(self._ids, wanted, side, sorter=self._order) for side in ("left", "right"))
        places: list[int] = self._order[first:end].tolist()
        return places


def id_of(text: str) -> UUID:
    """Return the id of the point of a text."""
    # With a version at the end, because numpy would drop trailing zero bytes.
    return UUID(bytes=hashlib.sha256(text.encode()).digest()[: _ID_BYTES - 1] + b"\x01")
