"""What is no chat is repeated as a chat is."""

from __future__ import annotations

import asyncio

import pytest

from jackfield.errors import RateLimitedError
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
