"""Retry failed requests that may succeed later. Retries depend on the error's class, never on its text."""

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
"""Default for the longest wait that a server may request, in seconds."""
RATE_LIMIT_FLOOR_S = 2.0
ONLY_BEFORE_OUTPUT = "retry_only_before_output"
"""A `ChatRequest.metadata` key that disables retries after the first output, for consumers that cannot withdraw it."""

_TOO_LONG = (
    "the server asked for a wait of {wait_s:g} s, longer than max_retry_delay={limit:g}, so the call was not retried; "
    "increase max_retry_delay, use another model, or try again later"
)

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]


def wait_before_retry(
    error: ModelServiceError, attempt: int, *, max_retries: int, max_delay_s: float = MAX_DELAY_S, jitter: float
) -> float | None:
    """Return the number of seconds to wait before the next attempt, or None to give up.

    The wait is chosen at random between half of an upper bound and the bound itself. The bound starts at half a second
    and doubles with each attempt, up to one minute. A wait that the server requests is the minimum. Otherwise, the
    minimum after a rate limit error is two seconds. If the server requests more than `max_delay_s`, there is no retry,
    and a note on the error explains why.

    Args:
        error: The error of the last attempt.
        attempt: The number of the last attempt, starting at 1.
        max_retries: The maximum number of retries.
        max_delay_s: The longest wait to accept from a server, in seconds. All other waits are capped at `max_delay_s`.
        jitter: A random number from 0 to 1.
    """
    if not error.retryable or attempt > max_retries:
        return None
    backoff_s = min(MAX_BACKOFF_S, 0.5 * 2.0 ** (attempt - 1)) * (0.5 + jitter / 2)
    floor_s = error.retry_after_s
    if floor_s is None:
        floor_s = RATE_LIMIT_FLOOR_S if isinstance(error, RateLimitedError) or error.status == 429 else 0.0
    elif not floor_s <= max_delay_s:  # NaN counts as too long
        error.add_note(_TOO_LONG.format(wait_s=floor_s, limit=max_delay_s))
        return None
    return min(max_delay_s, max(floor_s, backoff_s))


async def retry_request(
    ask: Callable[[], Awaitable[T]],
    *,
    max_retries: int,
    max_delay_s: float = MAX_DELAY_S,
    sleep: Sleep = asyncio.sleep,
    jitter: Callable[[], float] = random.random,
) -> T:
    """Send a request to a service that is not a chat model (embeddings, images) with the same retries as `Retry`.

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
    """Processor that retries a failed call up to `max_retries` times (2 by default), within `deadline` seconds.

    Each retry is announced with `RetryScheduled`. If part of an answer has already been sent, `StreamReset` withdraws
    it. An error is raised immediately if waiting cannot help, if the wait would exceed the deadline, or if the server
    requests a wait longer than `max_retry_delay`. In the last case, the error's `retry_after_s` is the requested wait.
    The error of the last attempt is raised unchanged.
    """

    name = "retry"
    phase = "transport"

    def __init__(self, *, sleep: Sleep = asyncio.sleep, jitter: Callable[[], float] = random.random) -> None:
        self._sleep = sleep
        self._jitter = jitter

    def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        """Forward events, and retry the call until an answer is complete."""
        if request.config.max_retries == 0 and request.config.deadline is None:
            return call_next(request)
        return self._repeat(request, call_next)

    async def _repeat(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        now = asyncio.get_running_loop().time
        ends_at = math.inf if request.config.deadline is None else now() + request.config.deadline
        attempt = 1
        while True:
            has_output = False
            last: ModelEvent | None = None
            try:
                async with closing(_until(ends_at, call_next(request))) as events:
                    async for event in events:
                        if not has_output:
                            has_output = event.is_delta or isinstance(event, ModelFinished)
                        last = event
                        yield event
                if isinstance(last, ModelFinished):
                    return
                raise ModelResponseError(f"the response from {request.model} was cut off")
            except Interrupted as error:
                raise ModelTimeoutError(
                    f"{request.model}: no complete response within {request.config.deadline:g} s; increase `deadline` "
                    "or ask for less"
                ) from error
            except (AttributeError, ImportError) as error:
                from jackfield.plugins._misfits import explain_error  # only needed for errors

                raise explain_error(error)  # noqa: B904 - with the error as its cause, or the error itself
            except ModelServiceError as error:
                wait_s = self._wait_s(request, error, attempt, has_output=has_output)
                if wait_s is None or now() + wait_s >= ends_at:
                    raise
                yield RetryScheduled(attempt, wait_s, str(error))
                if has_output:
                    yield StreamReset(str(error))
                await self._sleep(wait_s)
                attempt += 1

    def _wait_s(
        self, request: ChatRequest, error: ModelServiceError, attempt: int, *, has_output: bool
    ) -> float | None:
        if has_output and request.metadata.get(ONLY_BEFORE_OUTPUT):
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
    """Yield events until `ends_at` in the event loop's time, then raise `Interrupted`."""
    # A timeout around each event costs more than everything else here, so requests without a deadline have none.
    return events if ends_at == math.inf else interruptible(events, ends_at=ends_at)
