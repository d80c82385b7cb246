"""What the core's tests share: a folder for distributions, and a way to gather what is asynchronous."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import hypothesis
import pytest

from jackfield_testkit.site import site

# How long an example takes says more about the machine than about the code.
hypothesis.settings.register_profile("core", deadline=None)
hypothesis.settings.load_profile("core")

__all__ = ["site"]


@pytest.fixture
def gather() -> Callable[[AsyncIterator[Any]], list[Any]]:
    """Everything that an async iterator gives, in an event loop of its own."""

    async def collect(events: AsyncIterator[Any]) -> list[Any]:
        return [event async for event in events]

    def gathered(events: AsyncIterator[Any]) -> list[Any]:
        return asyncio.run(collect(events))

    return gathered
