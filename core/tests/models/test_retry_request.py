"""What is no chat is repeated as a chat is."""

from __future__ import annotations

import asyncio

import pytest

from jackfield.errors import ModelConnectionError, RateLimitedError
from jackfield.models import retry_request


@pytest.mark.parametrize("asked", [1.0, 1e9])
def test_what_is_no_model_waits_by_the_same_rule(asked: float) -> None:
    async def ask() -> str:
        if not asked_times:
            asked_times.append(1)
            raise RateLimitedError("slow", retry_after_s=asked)
        return "well"

    asked_times: list[int] = []
    slept_s: list[float] = []

    async def nap(seconds: float) -> None:
        slept_s.append(seconds)

    wait = retry_request(ask, max_retries=3, sleep=nap)
    if asked == 1:
        assert asyncio.run(wait) == "well"
    else:
        with pytest.raises(RateLimitedError):
            asyncio.run(wait)
    assert slept_s == ([1.0] if asked == 1 else [])


def test_no_wait_is_longer_than_the_caller_allows() -> None:
    errors = [ModelConnectionError("down"), RateLimitedError("slow", retry_after_s=2.0), ModelConnectionError("down")]
    slept_s: list[float] = []

    async def ask() -> str:
        if errors:
            raise errors.pop(0)
        return "well"

    async def nap(seconds: float) -> None:
        slept_s.append(seconds)

    wait = retry_request(ask, max_retries=3, max_delay_s=2.0, sleep=nap, jitter=lambda: 1.0)
    assert asyncio.run(wait) == "well"
    assert max(slept_s) == 2.0
    errors += [RateLimitedError("slow", retry_after_s=2.1)]
    with pytest.raises(RateLimitedError):
        asyncio.run(retry_request(ask, max_retries=3, max_delay_s=2.0, sleep=nap))
    assert len(slept_s) == 3
