"""Agents that work together: as tools, in group chats, and reading parts of documents in parallel."""

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
    """Return all rows."""
    return [*agent_as_tool(), *deep_trees(), *group_chat(), *parallel_parts()]


@tool(name="helper")
async def plain(request: str) -> str:
    """Help."""
    return f"done: {request}"


def agent_as_tool() -> list[Row]:
    """Make twenty calls of an agent that answers immediately, compared to twenty of such a tool: CPU time per call."""
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
    """Run chains of 20 and 150 agents, each of which asks the next: CPU time per agent."""
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
    """Run a chat of four agents for 4 and 20 rounds of four messages each: CPU time per message."""
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
    """Run ParallelDocQA over 200 parts, 16 at a time, with a model that takes 0.1 s, compared to waiting alone."""
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
            rounds = -(-parts // AT_ONCE) + 1  # the answer follows the parts
            for _ in range(rounds):
                await asyncio.sleep(ANSWER_S)

        loop.run_until_complete(ours())  # parsed documents are cached
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
    """A model that takes a while and says the same about each part."""

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
