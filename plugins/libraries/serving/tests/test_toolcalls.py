"""Runs that make one call of a tool."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from jackfield import FnCallAgent, tool
from jackfield.messages import FunctionCall, Message
from jackfield.testing import ScriptedModel
from jackfield_serving import OptionsRefusedError, Serving
from jackfield_serving.toolcalls import agent_of_call

paid: list[int] = []


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay a sum."""
    paid.append(amount)
    return f"paid {amount}"


def make_agents() -> dict[str, FnCallAgent[Any]]:
    return {"helper": FnCallAgent([pay], ScriptedModel([]), name="helper")}


async def read(serving: Serving, run_id: str) -> Any:
    async for _ in serving.attach(run_id):
        pass
    return await serving.run(run_id)


def test_a_call_waits_for_approval_and_continues_in_another_process(tmp_path: Path) -> None:
    async def run() -> Any:
        store = {"name": "sqlite", "path": str(tmp_path / "runs.sqlite")}
        async with Serving(make_agents(), store=store) as serving:
            call = FunctionCall("pay", '{"amount": 7}')
            run_id = await serving.start("helper", [Message("user", "Pay")], call=call)
            waiting = await read(serving, run_id)
        async with Serving(make_agents(), store=store) as serving:
            await serving.answer(run_id, {waiting.waiting[0].call_id: True})
            return await read(serving, run_id)

    paid.clear()
    run_info = asyncio.run(run())
    assert paid == [7]
    assert [message.get_text_content() for message in run_info.response if message.role == "function"] == ["paid 7"]


def test_a_tool_that_the_agent_lacks_is_refused() -> None:
    async def run() -> None:
        async with Serving(make_agents()) as serving:
            await serving.start("helper", [Message("user", "x")], call=FunctionCall("steal", "{}"))

    with pytest.raises(OptionsRefusedError, match="no tool 'steal'"):
        asyncio.run(run())


def test_a_call_is_made_with_the_workspace_and_the_limits_of_its_agent() -> None:
    agent = FnCallAgent([pay], ScriptedModel([]), name="helper", workspace="below", limits={"seconds": 7})
    caller = agent_of_call(agent, FunctionCall("pay", "{}"))
    assert caller.workspace.root.name == "below"
    assert (caller.name, caller.limits, caller.store, caller.host) == (
        agent.name, agent.limits, agent.store, agent.host,
    )  # fmt: skip
    assert caller.llm is not None
    assert caller.llm.facts.native_tools, "its calls are read from no text"
