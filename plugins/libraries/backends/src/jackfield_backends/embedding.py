"""Embed any number of texts with a server that takes a limited number at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from jackfield.errors import ModelResponseError
from jackfield.messages import Usage
from jackfield.models import retry_request
from jackfield.retrieval import Embedded

_WORKERS_PER_REQUEST = 4

Ask = Callable[[Sequence[str]], Awaitable[Embedded]]


async def embed_in_batches(
    texts: Sequence[str],
    ask: Ask,
    *,
    backend: str,
    size: int,
    concurrency: int,
    max_retries: int = 0,
    dimension: int | None = None,
) -> Embedded:
    """The vectors of texts, in order, from several requests; if one request fails, the others are cancelled.

    Args:
        texts: None of them empty.
        ask: Sends one request.
        backend: The backend's name, for errors.
        size: The most texts in one request.
        concurrency: The most requests in flight; a request that waits for its retry does not count.
        max_retries: How often a failed request is sent again, where that can help.
        dimension: The length that every vector must have; None if the model decides.

    Raises:
        ValueError: A text is empty, or `texts` is a single text.
        ModelResponseError: The vectors differ in length, or have another length than `dimension`.
    """
    check_texts(texts)
    starts = iter(range(0, len(texts), size))
    parts: dict[int, Embedded] = {}
    free = asyncio.Semaphore(concurrency)

    async def in_turn(batch: Sequence[str]) -> Embedded:
        async with free:
            return await ask(batch)

    async def work() -> None:
        for start in starts:  # one loop for all workers: each takes the next batch
            batch = texts[start : start + size]
            parts[start] = await retry_request(partial(in_turn, batch), max_retries=max_retries)

    # More than may ask at once: some of them may be waiting to ask again.
    count = min(_WORKERS_PER_REQUEST * concurrency, -(-len(texts) // size))
    workers = [asyncio.create_task(work()) for _ in range(count)]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    vectors = tuple(vector for start in sorted(parts) for vector in parts[start].vectors)
    _check_lengths(sorted({len(vector) for vector in vectors}), dimension, backend)
    return Embedded(vectors, sum((part.usage for part in parts.values()), Usage()))


def check_texts(texts: Sequence[str]) -> None:
    """Refuse what no embedder takes.

    Raises:
        ValueError: A text is empty, or `texts` is a single text.
    """
    if isinstance(texts, str):
        raise ValueError("texts is one text: put it into a list")
    empty = next((index for index, text in enumerate(texts) if not text), None)
    if empty is not None:
        raise ValueError(f"text {empty} is empty: leave it out, or put something in its place")


def _check_lengths(lengths: Sequence[int], dimension: int | None, backend: str) -> None:
    """Check of what lengths the vectors are, each length named once."""
    if len(lengths) > 1 or lengths == [0]:
        raise _wrong(backend, f"sent vectors of different lengths, or empty ones ({', '.join(map(str, lengths))})")
    if dimension and lengths and lengths != [dimension]:
        raise _wrong(
            backend,
            f"sent vectors of {lengths[0]} numbers, where {dimension} were asked for: "
            "the model has one dimension; leave out `dimension`",
        )


def _wrong(backend: str, what: str) -> ModelResponseError:
    return ModelResponseError(f"{backend}: the server {what}", backend=backend)
