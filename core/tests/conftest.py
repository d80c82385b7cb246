"""What the core's tests share: distributions, the command line, and a way to gather what is asynchronous."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.support.command_line import bare_python, command_line, open_terminal
from tests.support.site import site

__all__ = ["bare_python", "command_line", "open_terminal", "site"]


@pytest.fixture
def gather() -> Callable[[AsyncIterator[Any]], list[Any]]:
    """Everything that an async iterator gives, in an event loop of its own."""

    async def collect(events: AsyncIterator[Any]) -> list[Any]:
        return [event async for event in events]

    def gathered(events: AsyncIterator[Any]) -> list[Any]:
        return asyncio.run(collect(events))

    return gathered
