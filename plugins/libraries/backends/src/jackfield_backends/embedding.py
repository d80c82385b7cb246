"""Embed any number of texts, even if the server limits the number per request."""

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
    """Embed texts in batches and return the vectors in input order. If one request fails, the others are cancelled.

    Args:
        texts: The texts, none of them empty.
        ask: Sends one request.
        backend: The backend's name, for errors.
        size: The maximum number of texts per request.
        concurrency: The maximum number of requests in flight. Requests waiting to be retried do not count.
        max_retries: The maximum number of retries per request, for failures that a retry may fix.
        dimension: The required vector length. If None, the model decides.

    Raises:
        ValueError: A text is empty, or `texts` is a single string.
        ModelResponseError: The vectors are empty, differ in length, or do not have `dimension` numbers.
    """
    check_texts(texts)
    starts = iter(range(0, len(texts), size))
    parts: dict[int, Embedded] = {}
    free = asyncio.Semaphore(concurrency)

    async def ask_in_turn(batch: Sequence[str]) -> Embedded:
        async with free:
            return await ask(batch)

    async def work() -> None:
        try:
            for start in starts:  # shared by all workers, so each takes the next batch
                batch = texts[start : start + size]
                parts[start] = await retry_request(partial(ask_in_turn, batch), max_retries=max_retries)
        except BaseException:
            own = asyncio.current_task()
            # Cancelled at once: before `gather` wakes up, a waiting worker would send one more request. But a worker
            # that was itself cancelled leaves the others alone, because they may be closing their connections.
            if own is None or not own.cancelling():
                for worker in workers:
                    if worker is not own:
                        worker.cancel()
            raise

    # More workers than requests in flight, because some may wait for a retry.
    count = min(_WORKERS_PER_REQUEST * concurrency, -(-len(texts) // size))
    workers = [asyncio.create_task(work()) for _ in range(count)]
    try:
        await asyncio.gather(*workers)
    finally:
        await asyncio.gather(*workers, return_exceptions=True)
    vectors = tuple(vector for start in sorted(parts) for vector in parts[start].vectors)
    _check_lengths(sorted({len(vector) for vector in vectors}), dimension, backend)
    return Embedded(vectors, sum((part.usage for part in parts.values()), Usage()))


def check_texts(texts: Sequence[str]) -> None:
    """Reject texts that cannot be embedded.

    Raises:
        ValueError: A text is empty, or `texts` is a single string.
    """
    if isinstance(texts, str):
        raise ValueError("texts must be a list of strings, got a single string")
    for index, text in enumerate(texts):
        if not text:
            raise ValueError(f"text {index} is empty: remove it, or replace it with a placeholder")


def _check_lengths(lengths: Sequence[int], dimension: int | None, backend: str) -> None:
    """Check the distinct lengths of the vectors."""
    problem = ""
    if len(lengths) > 1 or lengths == [0]:
        problem = f"sent vectors of different lengths, or empty ones ({', '.join(str(length) for length in lengths)})"
    elif dimension and lengths and lengths != [dimension]:
        problem = (
            f"sent vectors of {lengths[0]} numbers instead of the requested {dimension}: "
            "the model has a fixed dimension; remove `dimension`"
        )
    if problem:
        raise ModelResponseError(f"{backend}: the server {problem}", backend=backend)
