"""Retry what can succeed: decided by the class of the error, never by its text."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from jackfield.errors import ModelResponseError, ModelServiceError, ModelTimeoutError, RateLimitedError
from jackfield.events import (
    ModelEvent,
    ModelFinished,
    RetryScheduled,
    StreamReset,
)
from jackfield.processors._base import CallNext, Processor
from jackfield.request import ChatRequest
from jackfield.streams import Interrupted, closing, interruptible

MAX_BACKOFF_S = 60.0
MAX_DELAY_S = 120.0
"""The longest wait that a server may ask for, in seconds, unless the caller sets another one."""
RATE_LIMIT_FLOOR_S = 2.0
ONLY_BEFORE_OUTPUT = (
    "retry_only_before_output"  # a key of ChatRequest.metadata: this consumer cannot be told of a reset
)

_TOO_LONG = (
    "the server asks for a wait of {asked:g} s, longer than max_retry_delay={most:g}, so there was no retry; "
    "raise that setting, ask another model, or try again later"
)

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]


def wait_before_retry(
    error: ModelServiceError, attempt: int, *, max_retries: int, max_delay_s: float = MAX_DELAY_S, jitter: float
) -> float | None:
    """How long to wait before attempt `attempt + 1`, in seconds; None if there will be none.

    It doubles from half a second up to a minute. What the server asks for is a lower bound; without it, a rate limit
    waits at least two seconds. If a server asks for more than `max_delay_s`, there is no retry, and a note in the error
    says why.

    Args:
        error: How the last attempt ended.
        attempt: Its number, from 1.
        max_retries: How often a request is repeated.
        max_delay_s: The longest wait.
        jitter: From 0 to 1.
    """
    if not error.retryable or attempt > max_retries:
        return None
    asked = error.retry_after_s
    if asked is not None and not asked <= max_delay_s:  # "not a number" is no time to wait for, either
        error.add_note(_TOO_LONG.format(asked=asked, most=max_delay_s))
        return None
    backoff = min(MAX_BACKOFF_S, 0.5 * 2.0 ** (attempt - 1)) * (0.5 + jitter / 2)
    return min(max_delay_s, max(_least_s(error), backoff))


def _least_s(error: ModelServiceError) -> float:
    if error.retry_after_s is not None:
        return error.retry_after_s
    return RATE_LIMIT_FLOOR_S if isinstance(error, RateLimitedError) or error.status == 429 else 0.0


async def retry_request(
    ask: Callable[[], Awaitable[T]],
    *,
    max_retries: int,
    max_delay_s: float = MAX_DELAY_S,
    sleep: Sleep = asyncio.sleep,
    jitter: Callable[[], float] = random.random,
) -> T:
    """Send a request that is not for a chat model (embeddings, images), and retry it as `Retry` does.

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


class Retry(Processor):
    """Repeats a failed call up to `max_retries` times (2 by default), within `deadline` seconds.

    It announces each retry (`RetryScheduled`), and withdraws the part of an answer that was already passed on
    (`StreamReset`). An error that waiting cannot repair is raised at once, and so is one whose wait would pass the
    deadline, or for which the server asks for a longer one than `max_retry_delay`: its `retry_after_s` says how long.
    The error of the last attempt is raised as it was.
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
        now = asyncio.get_running_loop().time
        ends_at = math.inf if request.config.deadline is None else now() + request.config.deadline
        attempt = 1
        while True:
            produced = False
            last: ModelEvent | None = None
            try:
                async with closing(_until(ends_at, call_next(request))) as events:
                    async for event in events:
                        if not produced:
                            produced = event.is_delta or isinstance(event, ModelFinished)
                        last = event
                        yield event
                if isinstance(last, ModelFinished):
                    return
                raise ModelResponseError(f"{request.model} ended its answer in the middle")
            except Interrupted as error:
                raise _too_late(request) from error
            except ModelServiceError as error:
                wait_s = self._wait_s(request, error, attempt, produced=produced)
                if wait_s is None or now() + wait_s >= ends_at:
                    raise
                yield RetryScheduled(attempt, wait_s, str(error))
                if produced:
                    yield StreamReset(str(error))
                await self._sleep(wait_s)
                attempt += 1

    def _wait_s(self, request: ChatRequest, error: ModelServiceError, attempt: int, *, produced: bool) -> float | None:
        """How long to wait before another attempt; None if there will be none."""
        if produced and request.metadata.get(ONLY_BEFORE_OUTPUT):
            return None
        config = request.config
        return wait_before_retry(
            error,
            attempt,
            max_retries=config.max_retries,
            max_delay_s=config.max_retry_delay,
            jitter=self._jitter(),
        )


def _until(ends_at: float, events: AsyncIterator[ModelEvent]) -> AsyncIterator[ModelEvent]:
    """The events up to a time, where `Interrupted` is raised."""
    # Who sets no deadline pays for none: a scope around each event costs more than all the rest here.
    return events if ends_at == math.inf else interruptible(events, ends_at=ends_at)


def _too_late(request: ChatRequest) -> ModelTimeoutError:
    return ModelTimeoutError(
        f"{request.model}: no complete answer in {request.config.deadline:g} s; raise `deadline` or ask for less"
    )
