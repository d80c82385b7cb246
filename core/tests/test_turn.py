"""The calls of one turn: reports from threads, the time of failed calls, and the end of a turn."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

from jackfield import FnCallAgent, Message
from jackfield.events import ToolFinished, ToolProgress
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import ToolContext
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
