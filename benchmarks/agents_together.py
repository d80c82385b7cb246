"""Agents together: as tools, in group chats, and reading parts of documents side by side."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from benchmarks.measure import Row, in_turns, wall_ms
from jackfield import FnCallAgent, tool
from jackfield.agents import Agent
from jackfield.events import ModelEvent, PluginEvent
from jackfield.request import ChatRequest
from jackfield.testing import ScriptedModel, answer, calls

CALLS = 20
PARTS, AT_ONCE, ANSWER_S = 200, 16, 0.1


def together() -> list[Row]:
    """All rows."""
    return [*agent_as_tool(), *deep_trees(), *group_chat(), *parallel_parts()]


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


def deep_trees() -> list[Row]:
    """Chains of 20 and of 150 agents, each of which asks the next: CPU of each agent."""
    loop = asyncio.new_event_loop()
    chains = {str(depth): _chain(depth) for depth in (20, 150)}
    works = {depth: lambda agent=agent: loop.run_until_complete(agent.arun("go")) for depth, agent in chains.items()}
    took = in_turns(works, rounds=7)
    loop.close()
    few, many = took["20"] / 20, took["150"] / 150
    return [Row("an agent in a chain of 150", f"{many:.2f} ms", f"of 20 {few:.2f} ms", many / few, "about 1")]


def _chain(depth: int) -> Agent:
    agent = FnCallAgent(llm=_scripted(lambda _: answer("done")), name="a0", description="Help.")
    for number in range(1, depth):

        def script(request: ChatRequest, helper: str = f"a{number - 1}") -> list[ModelEvent]:
            is_done = any(message.role == "function" for message in request.messages)
            return answer("done") if is_done else calls((helper, {"request": "go"}))

        agent = FnCallAgent([agent.as_tool()], _scripted(script), name=f"a{number}", description="Help.")
    return agent


def group_chat() -> list[Row]:
    """A chat of four agents with 4 and with 20 rounds, four speeches each: CPU of each speech."""
    from jackfield_multi_agent import GroupChat

    members = [FnCallAgent(llm=_scripted(lambda _: answer("I see.")), name=f"agent{number}") for number in range(4)]
    chat = GroupChat(members, "round_robin")
    loop = asyncio.new_event_loop()

    async def talk(speeches: int) -> None:
        async for _ in chat.astream("Hello", max_round=speeches):
            pass

    works = {rounds: lambda rounds=rounds: loop.run_until_complete(talk(4 * rounds)) for rounds in (4, 20)}
    took = in_turns({str(rounds): work for rounds, work in works.items()}, rounds=15)
    loop.close()
    few, many = took["4"] / 16, took["20"] / 80
    return [
        Row(
            "a speech in a group chat of 20 rounds",
            f"{many:.2f} ms",
            f"of 4 rounds {few:.2f} ms",
            many / few,
            "about 1",
        )
    ]


def parallel_parts() -> list[Row]:
    """ParallelDocQA over 200 parts, 16 at a time, a model that takes 0.1 s, beside nothing but the waiting."""
    from jackfield_assistant import ParallelDocQA

    with tempfile.TemporaryDirectory() as folder:
        book = Path(folder, "book.md")
        book.write_text("\n\n".join(f"# Part {n}\n\n" + f"word{n} " * 200 for n in range(PARTS)), encoding="utf-8")
        agent = ParallelDocQA(llm=_Slow(), files=[str(book)], at_once=AT_ONCE)
        loop = asyncio.new_event_loop()
        parts = 0

        async def ours() -> None:
            nonlocal parts
            async for event in agent.astream("Which part?"):
                if isinstance(event.event, PluginEvent) and event.event.name == "jackfield-assistant.parts_read":
                    parts = event.event.data["of"]

        async def ideal() -> None:
            rounds = -(-parts // AT_ONCE) + 1  # the answer comes after the parts
            for _ in range(rounds):
                await asyncio.sleep(ANSWER_S)

        loop.run_until_complete(ours())  # what is parsed is kept
        took = in_turns(
            {"ours": lambda: loop.run_until_complete(ours()), "ideal": lambda: loop.run_until_complete(ideal())},
            rounds=5,
            clock=wall_ms,
        )
        loop.close()
    name = f"{parts} parts read, {AT_ONCE} at once"
    return [
        Row(name, f"{took['ours']:.0f} ms", f"the waiting {took['ideal']:.0f} ms", took["ours"] / took["ideal"], "1.10")
    ]


class _Slow(ScriptedModel):
    """Takes its time, and says the same of each part."""

    def __init__(self) -> None:
        super().__init__(lambda _: answer('{"res": "none", "content": ""}'), processors=[])

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        await asyncio.sleep(ANSWER_S)
        async for event in super().stream(request):
            yield event


def _asking(helper: object) -> Agent:
    def script(request: ChatRequest) -> list[ModelEvent]:
        done = sum(message.role == "function" for message in request.messages)
        return answer("all done") if done == CALLS else calls(("helper", {"request": "help"}))

    return FnCallAgent([helper], _scripted(script), limits={"turns": None})  # type: ignore[list-item]


def _scripted(script: Callable[[ChatRequest], list[ModelEvent]]) -> ScriptedModel:
    return ScriptedModel(script, processors=[])
