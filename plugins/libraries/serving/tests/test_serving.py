"""Runs of a service: they live until they end, and readers get every event once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jackfield import FnCallAgent, tool
from jackfield.errors import RunNotFoundError
from jackfield.events import ApprovalNeeded, RunFinished, RunStarted, TextDelta, TurnFinished
from jackfield.testing import ScriptedModel, answer, calls
from jackfield_serving import NotWaitingError, Numbered, Serving


def agent(*script: Any, tools: Any = (), **options: Any) -> FnCallAgent:
    return FnCallAgent(list(tools), ScriptedModel(list(script)), name="helper", **options)


async def read(serving: Serving, run_id: str, after: int = 0, owner: str = "") -> list[Numbered]:
    return [one async for one in serving.attach(run_id, after=after, owner=owner)]


def test_a_run_is_started_followed_and_read() -> None:
    async def main() -> None:
        async with Serving({"a": agent(answer("The tide is low."))}) as serving:
            run_id = await serving.start("a", "Tide?")
            events = await read(serving, run_id)
            kinds = [type(one.event.event) for one in events]
            assert kinds[0] is RunStarted
            assert kinds[-2:] == [TurnFinished, RunFinished]
            texts = [one.event.event.text for one in events if isinstance(one.event.event, TextDelta)]
            assert len(texts) > 1
            assert "".join(texts) == "The tide is low."
            numbers = [one.number for one in events]
            assert numbers == sorted(set(numbers))
            info = await serving.run(run_id)
            assert (info.phase, info.stop_reason, info.text) == ("ended", "finished", "The tide is low.")

    asyncio.run(main())


def test_a_clients_tool_pauses_the_run_until_its_result_arrives() -> None:
    async def main() -> None:
        script = [calls(("locate", {"who": "Ada"})), answer("Ada is in Rome.")]
        async with Serving({"a": agent(*script)}) as serving:
            schema = {"name": "locate", "parameters": {"type": "object", "properties": {"who": {"type": "string"}}}}
            run_id = await serving.start("a", "Where is Ada?", client_tools=[schema])
            first = await read(serving, run_id)
            assert isinstance(first[-1].event.event, RunFinished)
            info = await serving.run(run_id)
            [waiting] = info.waiting
            assert (info.phase, waiting.kind, waiting.call.name) == ("waiting", "client_tool", "locate")
            with pytest.raises(NotWaitingError):
                await serving.answer(run_id, {"other": "x"})
            await serving.answer(run_id, {waiting.call_id: "Rome"})
            rest = await read(serving, run_id, after=first[-1].number)
            assert [one.number for one in first + rest] == sorted({one.number for one in first + rest})
            assert isinstance(rest[-1].event.event, RunFinished)
            assert (await serving.run(run_id)).text == "Ada is in Rome."
            with pytest.raises(NotWaitingError):
                await serving.answer(run_id, {waiting.call_id: "Rome"})

    asyncio.run(main())


@pytest.mark.parametrize("decision", [True, False])
def test_an_approval_continues_the_run(decision: bool) -> None:
    paid: list[str] = []

    @tool(needs_approval=True)
    def pay(to: str) -> str:
        """Pay."""
        paid.append(to)
        return "paid"

    async def main() -> None:
        script = [calls(("pay", {"to": "Ada"})), answer("Done.")]
        async with Serving({"a": agent(*script, tools=[pay])}) as serving:
            run_id = await serving.start("a", "Pay Ada.")
            events = await read(serving, run_id)
            assert any(isinstance(one.event.event, ApprovalNeeded) for one in events)
            [waiting] = (await serving.run(run_id)).waiting
            await serving.answer(run_id, {waiting.call_id: decision})
            await read(serving, run_id, after=events[-1].number)
            assert paid == (["Ada"] if decision else [])
            assert (await serving.run(run_id)).text == "Done."

    asyncio.run(main())


def test_another_owner_finds_no_run() -> None:
    async def main() -> None:
        async with Serving({"a": agent(answer("Hi."))}) as serving:
            run_id = await serving.start("a", "Hi", owner="ada", session="s")
            await read(serving, run_id, owner="ada")
            for call in (serving.run, serving.cancel, serving.delete, serving.fork):
                with pytest.raises(RunNotFoundError):
                    await call(run_id, owner="bob")
            with pytest.raises(RunNotFoundError):
                await read(serving, run_id, owner="bob")
            with pytest.raises(RunNotFoundError):
                await serving.answer(run_id, {"x": True}, owner="bob")
            with pytest.raises(RunNotFoundError):
                await serving.start("a", "Hi", owner="bob", continues=run_id)
            assert await serving.runs(owner="bob") == []
            assert await serving.sessions(owner="bob") == []
            assert [one.session for one in await serving.sessions(owner="ada")] == ["s"]

    asyncio.run(main())
