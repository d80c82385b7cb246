"""An agent as a tool of another, beside the same work as a plain tool."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from benchmarks.measure import Row, in_turns
from jackfield import FnCallAgent, tool
from jackfield.agents import Agent
from jackfield.events import ModelEvent
from jackfield.request import ChatRequest
from jackfield.testing import ScriptedModel, answer, calls

CALLS = 20


@tool(name="helper")
async def plain(request: str) -> str:
    """Help."""
    return f"done: {request}"


def agent_as_tool() -> list[Row]:
    """Twenty calls of an agent that answers at once, beside twenty of a tool that does: CPU of each call."""
    child = FnCallAgent(llm=_scripted(lambda _: answer("done")), name="helper", description="Help.")
    loop = asyncio.new_event_loop()
    works = {
        name: lambda agent=agent: loop.run_until_complete(agent.arun("go"))
        for name, agent in (("tool", _asking(plain)), ("agent", _asking(child.as_tool())))
    }
    took = in_turns(works, rounds=15)
    loop.close()
    more = (took["agent"] - took["tool"]) / CALLS
    return [Row("an agent as a tool, above a tool", f"{more:.3f} ms", "a tool at once", None, "1 ms or less")]


def _asking(helper: object) -> Agent:
    def script(request: ChatRequest) -> list[ModelEvent]:
        done = sum(message.role == "function" for message in request.messages)
        return answer("all done") if done == CALLS else calls(("helper", {"request": "help"}))

    return FnCallAgent([helper], _scripted(script), limits={"turns": None})  # type: ignore[list-item]


def _scripted(script: Callable[[ChatRequest], list[ModelEvent]]) -> ScriptedModel:
    return ScriptedModel(script, processors=[])
