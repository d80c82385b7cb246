"""Try again what can succeed: by the class of the error, never by its text."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from jackfield.errors import ModelResponseError, ModelServiceError, ModelTimeoutError, RateLimitedError
from jackfield.events import (
    HistoryTrimmed,
    ModelEvent,
    ModelFinished,
    PluginEvent,
    RetryScheduled,
    StreamReset,
    UsageReported,
)
from jackfield.processors.base import CallNext, Processor
from jackfield.request import ChatRequest
from jackfield.streams import Interrupted, closing, interruptible

MAX_DELAY_S = 60.0
RATE_LIMIT_FLOOR_S = 2.0
ONLY_BEFORE_OUTPUT = (
    "retry_only_before_output"  # a key of ChatRequest.metadata: this consumer cannot be told of a reset
)

# Notes, and what an attempt cost: nobody has to forget them when another one begins.
_NOT_THE_ANSWER = (PluginEvent, RetryScheduled, HistoryTrimmed, UsageReported)

Sleep = Callable[[float], Awaitable[None]]
T = TypeVar("T")


def delay_s(error: ModelServiceError, attempt: int, *, jitter: float) -> float:
    """How long to wait before attempt `attempt + 1`, in seconds; attempts count from 1, `jitter` is from 0 to 1.

    It doubles from half a second up to a minute. What the server asks for is a lower bound, and is honoured even when
    it is longer; without it, a rate limit waits at least two seconds.
    """
    backoff = min(MAX_DELAY_S, 0.5 * 2.0 ** (attempt - 1)) * (0.5 + jitter / 2)
    if error.retry_after_s is not None:
        return max(error.retry_after_s, backoff)
    return max(RATE_LIMIT_FLOOR_S, backoff) if isinstance(error, RateLimitedError) or error.status == 429 else backoff


async def asked_again(
    ask: Callable[[], Awaitable[T]],
    *,
    max_retries: int,
    sleep: Sleep = asyncio.sleep,
    jitter: Callable[[], float] = random.random,
) -> T:
    """Ask something of a server that is no model (embeddings …), and again where that may succeed, as `Retry` does.

    Raises:
        ModelServiceError: Of the last attempt.
    """
    attempt = 1
    while True:
        try:
            return await ask()
        except ModelServiceError as error:
            if not error.retryable or attempt > max_retries:
                raise
            wait_s = delay_s(error, attempt, jitter=jitter())
        await sleep(wait_s)
        attempt += 1


class Retry(Processor):
    """Repeats a failed call up to `max_retries` times, inside `deadline` seconds.

    Before a repetition, it says so (`RetryScheduled`), and when some of the answer was already out, that it is void
    (`StreamReset`). An error that waiting cannot mend is raised at once, and so is one whose wait would pass the
    deadline. The error of the last attempt is raised as it was.
    """

    name = "retry"
    phase = "transport"

    def __init__(self, *, sleep: Sleep = asyncio.sleep, jitter: Callable[[], float] = random.random) -> None:
        self._sleep = sleep
        self._jitter = jitter

    def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        """Pass events on until the answer is complete."""
        if request.config.max_retries == 0 and request.config.deadline is None:
            return call_next(request)
        return self._repeat(request, call_next)

    async def _repeat(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        loop = asyncio.get_running_loop()
        ends_at = None if request.config.deadline is None else loop.time() + request.config.deadline
        attempt = 1
        while True:
            produced = complete = False
            try:
                async with closing(interruptible(call_next(request), ends_at=ends_at)) as events:
                    async for event in events:
                        produced = produced or not isinstance(event, _NOT_THE_ANSWER)
                        complete = isinstance(event, ModelFinished)
                        yield event
                if not complete:
                    raise ModelResponseError(f"{request.model} ended its answer in the middle")
            except Interrupted as error:
                raise ModelTimeoutError(
                    f"{request.model}: no complete answer in {request.config.deadline:g} s; "
                    f"raise `deadline` or ask for less"
                ) from error
            except ModelServiceError as error:
                wait_s = delay_s(error, attempt, jitter=self._jitter())
                out_of_time = ends_at is not None and loop.time() + wait_s >= ends_at
                may_reset = not produced or not request.metadata.get(ONLY_BEFORE_OUTPUT)
                if not error.retryable or attempt > request.config.max_retries or out_of_time or not may_reset:
                    raise
                yield RetryScheduled(attempt, wait_s, str(error))
                if produced:
                    yield StreamReset(str(error))
                await self._sleep(wait_s)
                attempt += 1
            else:
                return
