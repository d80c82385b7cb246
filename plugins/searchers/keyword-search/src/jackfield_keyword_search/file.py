"""Store an index in a memory-mapped file, which opens in constant time regardless of its size.

The file is a line of JSON that describes the arrays, followed by the arrays. It contains only numbers and text, so
loading it never executes code.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MAGIC = "jackfield-keyword-search"
_VERSION = 1
_ALIGNED = 64
_HEADER_BYTES = 4096
_TYPES = {"i4": np.int32, "i8": np.int64, "f8": np.float64, "u1": np.uint8}


class Terms(Mapping[str, int]):
    """Maps terms to their numbers by searching sorted text, without building a dict."""

    def __init__(self, text: NDArray[np.uint8], ends: NDArray[np.int64], numbers: NDArray[np.int64]) -> None:
        self._text = memoryview(text)  # type: ignore[arg-type] # an array has the buffer protocol
        self._ends = ends
        self._numbers = numbers

    @classmethod
    def arrays(cls, terms: Mapping[str, int]) -> dict[str, NDArray[Any]]:
        """Return the arrays from which the mapping can be restored."""
        ordered = sorted((term.encode(), number) for term, number in terms.items())
        return {
            "terms": np.frombuffer(b"".join(term for term, _ in ordered), np.uint8),
            "ends": np.cumsum([0, *(len(term) for term, _ in ordered)], dtype=np.int64),
            "numbers": np.array([number for _, number in ordered], dtype=np.int64),
        }

    def __getitem__(self, term: str) -> int:
        wanted = term.encode("utf-8", "replace")
        place = bisect_left(range(len(self._numbers)), wanted, key=self._term)
        if place == len(self._numbers) or self._term(place) != wanted:
            raise KeyError(term)
        return int(self._numbers[place])

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[str]:
        return (self._term(place).decode() for place in range(len(self)))

    def by_number(self) -> list[str]:
        """Return all terms, ordered by number."""
        text, ends = bytes(self._text), self._ends.tolist()
        ordered = [""] * len(self)
        for place, number in enumerate(self._numbers.tolist()):
            ordered[number] = text[ends[place] : ends[place + 1]].decode()
        return ordered

    def _term(self, place: int) -> bytes:
        return bytes(self._text[int(self._ends[place]) : int(self._ends[place + 1])])


class LinesOf:
    """An iterable of texts stored in a byte array, decoded on each iteration."""

    def __init__(self, text: NDArray[np.uint8]) -> None:
        self._text = text

    @classmethod
    def array(cls, texts: Iterable[str]) -> NDArray[np.uint8]:
        """Encode texts as an array.

        A text that contains a line feed comes back as two texts, so the number of texts then differs.
        """
        return np.frombuffer("".join(f"{text}\n" for text in texts).encode("utf-8", "surrogatepass"), np.uint8)

    def __iter__(self) -> Iterator[str]:
        return iter(bytes(self._text).decode("utf-8", "surrogatepass").split("\n")[:-1])


def by_number(terms: Mapping[str, int]) -> list[str]:
    """Return the terms ordered by number. A dict must already be in this order."""
    return terms.by_number() if isinstance(terms, Terms) else list(terms)


def write_arrays(path: Path, size: int, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write the arrays of an index with `size` chunks.

    Raises:
        OSError: The file cannot be written.
    """
    described, place = [], _HEADER_BYTES
    for name, array in arrays.items():
        described.append((name, f"{array.dtype.kind}{array.dtype.itemsize}", place, len(array)))
        place += -(-array.nbytes // _ALIGNED) * _ALIGNED
    header = {"format": _MAGIC, "version": _VERSION, "size": size, "bytes": place, "arrays": described}
    with path.open("wb") as file:
        file.write(json.dumps(header).encode().ljust(_HEADER_BYTES - 1) + b"\n")
        for (_, _, start, _), array in zip(described, arrays.values(), strict=True):
            file.seek(start)
            np.ascontiguousarray(array).tofile(file)
        file.truncate(place)


def read_arrays(path: Path) -> tuple[int, dict[str, NDArray[Any]]]:
    """Return the number of chunks in an index and its memory-mapped arrays.

    Raises:
        FileNotFoundError: The file does not exist.
        ValueError: The file is not an index, has another version, or is truncated.
    """
    mapped = np.memmap(path, dtype=np.uint8, mode="r")  # which also refuses an empty file
    header = json.loads(bytes(mapped[:_HEADER_BYTES]))
    try:
        if (header["format"], header["version"], header["bytes"]) != (_MAGIC, _VERSION, len(mapped)):
            raise ValueError(f"{path} is incomplete, or not a version {_VERSION} index")
        arrays = {
            name: mapped[start : start + count * np.dtype(_TYPES[kind]).itemsize].view(_TYPES[kind])
            for name, kind, start, count in header["arrays"]
        }
        return int(header["size"]), arrays
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path} is not an index") from error
