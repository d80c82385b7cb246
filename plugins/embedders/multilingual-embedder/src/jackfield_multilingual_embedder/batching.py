"""Group items into batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

Item = TypeVar("Item", bound=Sequence[Any])


def batches(items: Sequence[Item], most: int) -> Iterator[list[Item]]:
    """Yield all items in order, in batches of at most `most` total length. A longer item forms its own batch."""
    batch: list[Item] = []
    size = 0
    for item in items:
        if batch and size + len(item) > most:
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += len(item)
    if batch:
        yield batch
