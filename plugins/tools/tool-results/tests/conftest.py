"""What the tests share: agents that make the calls of a script."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from jackfield import FnCallAgent
from jackfield.events import RunEvent, ToolFinished
from jackfield.testing import ScriptedModel, answer, calls
from tests.support.site import site

__all__ = ["finish", "site"]

Finish = Callable[..., list[ToolFinished]]


@pytest.fixture
def finish() -> Finish:
    """Make calls, one after the other, in one run, and give how they ended."""

    def run(entries: Sequence[Any], *wanted: tuple[str, dict[str, Any]], **options: Any) -> list[ToolFinished]:
        model = ScriptedModel([*(calls(one) for one in wanted), answer("done")])

        async def collect() -> list[RunEvent]:
            agent = FnCallAgent(entries, model, **{k: v for k, v in options.items() if k != "lang"})
            return [event async for event in agent.astream("go", lang=options.get("lang"))]

        return [event.event for event in asyncio.run(collect()) if isinstance(event.event, ToolFinished)]

    return run
