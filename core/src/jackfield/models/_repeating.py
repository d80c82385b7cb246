"""Requests that are not for a chat model (embeddings …), repeated as those for one are."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from jackfield.errors import ModelServiceError
from jackfield.models import MAX_DELAY_S, wait_before_retry

T = TypeVar("T")


async def asked_again(
    ask: Callable[[], Awaitable[T]],
    *,
    max_retries: int,
    max_delay_s: float = MAX_DELAY_S,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    jitter: Callable[[], float] = random.random,
) -> T:
    """Send a request, and repeat it if that may succeed, as `jackfield.models.Retry` does.

    Raises:
        ModelServiceError: The error of the last attempt.
    """
    attempt = 1
    while True:
        try:
            return await ask()
        except ModelServiceError as error:
            wait_s = wait_before_retry(
                error, attempt, max_retries=max_retries, max_delay_s=max_delay_s, jitter=jitter()
            )
            if wait_s is None:
                raise
        await sleep(wait_s)
        attempt += 1
