"""The calls of one turn: reports from threads, the time of failed calls, and the end of a turn."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from jackfield import BaseTool, FnCallAgent, Message
from jackfield.events import ToolFinished, ToolProgress
from jackfield.messages import FunctionCall
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import PlannedCall, ToolContext, ToolExecutor
from jackfield.tools._turn import Turn

ASK = [Message("user", "go")]


def test_a_report_from_a_thread_is_passed_on_while_the_tool_works() -> None:
    seen = threading.Event()

    def work(context: ToolContext) -> str:
        """Work."""
        context.report("half")
        return f"passed on: {seen.wait(5)}"

    async def follow() -> list[Any]:
        agent = FnCallAgent([work], ScriptedModel([calls(("work", {})), answer("done")]))
        events = []
        async for event in agent.astream(ASK):
            if isinstance(event.event, ToolProgress):
                seen.set()
            events.append(event.event)
        return events

    (finished,) = (event for event in asyncio.run(follow()) if isinstance(event, ToolFinished))
    assert "passed on: True" in str(finished.message.content)


def test_a_failed_call_has_the_seconds_that_it_took() -> None:
    def work() -> str:
        """Work."""
        raise ValueError("no")

    async def follow() -> list[Any]:
        agent = FnCallAgent([work], ScriptedModel([calls(("work", {})), answer("done")]))
        return [event.event async for event in agent.astream(ASK)]

    (finished,) = (event for event in asyncio.run(follow()) if isinstance(event, ToolFinished))
    assert 0 < finished.seconds < 60


def test_no_call_begins_after_the_end_of_a_turn() -> None:
    made: list[Any] = []

    async def make(*call: Any) -> Any:
        made.append(call)

    async def refusal(planned: Any) -> None:
        made.append(planned)

    async def close() -> None:
        turn: Any = Turn(make, lambda *call: made.append(call), refusal, 1.0)  # type: ignore[arg-type,return-value]
        planned = SimpleNamespace(index=3, call_id="c", call=SimpleNamespace(name="work"))
        safety: Any = SimpleNamespace(concurrent=False, timeout_s=None)
        turn.start([SimpleNamespace(planned=planned, safety=safety)])
        turn.events.get_nowait()
        assert turn.is_open
        await turn.aclose()
        assert not turn.is_open
        turn.begin_soon(3)
        await asyncio.sleep(0.01)

    asyncio.run(close())
    assert made == []


class Works(BaseTool):
    """Says how many of its calls ran at once at most, and how many files it got."""

    name = "work"
    description = "Works."
    file_access = True

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.running = self.most = 0

    async def call(self, params: Any, *, context: ToolContext | None = None) -> str:
        self.running += 1
        self.most = max(self.most, self.running)
        for _ in range(5):
            await asyncio.sleep(0)
        self.running -= 1
        return f"{self.most} at once, {0 if context is None else len(context.files)} files"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "2 at once, 1 files"),
        ({"concurrent": False}, "1 at once, 1 files"),
        ({"file_access": False}, "2 at once, 0 files"),
    ],
)
def test_the_settings_of_a_tool_hold_for_its_calls(settings: dict[str, Any], said: str) -> None:
    executor = ToolExecutor({"work": Works(**settings)})

    async def run() -> list[str]:
        plan = await executor.plan([PlannedCall(n, f"c{n}", FunctionCall("work", "{}")) for n in range(2)])
        events = executor.run(plan, ToolContext[Any](files=("a.md",)))
        return [event.message.get_text_content() async for event in events if isinstance(event, ToolFinished)]

    assert asyncio.run(run())[-1] == said


@pytest.mark.parametrize(
    ("of_tools", "of_the_tool", "is_over"), [(0.01, 60.0, False), (60.0, 0.01, True), (0.01, None, True)]
)
def test_the_time_of_a_tool_replaces_the_time_of_all_tools(
    of_tools: float, of_the_tool: float | None, is_over: bool
) -> None:
    class Waits(Works):
        async def call(self, params: Any, *, context: ToolContext | None = None) -> str:
            await (asyncio.Event().wait() if is_over else asyncio.sleep(0.05))
            return "done"

    executor = ToolExecutor({"work": Waits(timeout_s=of_the_tool)}, timeout_s=of_tools)
    work = executor.finish(PlannedCall(0, "c", FunctionCall("work", "{}")), ToolContext[Any]())
    result = asyncio.run(asyncio.wait_for(work, 60))
    assert ("did not finish within 0.01 s" in result.message.get_text_content()) == is_over
