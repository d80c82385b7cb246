"""Deep trees: the work grows with the number of agents, and an event costs the same from any depth."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from jackfield import FnCallAgent
from jackfield.events import ModelEvent, ModelFinished, RunFinished, RunStarted, TextDelta, ToolFinished, ToolStarted
from jackfield.request import ChatRequest
from jackfield.testing import ScriptedModel, answer, calls
from jackfield_testkit.records import MemoryStore


def chain(depth: int, words: int = 1, **options: Any) -> FnCallAgent:
    """An agent that asks one that asks one …; the deepest answers in so many words."""
    said: list[ModelEvent] = [*(TextDelta("word ") for _ in range(words)), ModelFinished("stop")]
    agent = FnCallAgent(llm=ScriptedModel(lambda _: said, processors=[]), name="a0", description="Helps.")
    for number in range(1, depth):

        def script(request: ChatRequest, helper: str = f"a{number - 1}") -> list[ModelEvent]:
            is_done = any(message.role == "function" for message in request.messages)
            return answer("done") if is_done else calls((helper, {"request": "Go."}))

        own = options if number == depth - 1 else {}
        model = ScriptedModel(script, processors=[])
        agent = FnCallAgent([agent.as_tool()], model, name=f"a{number}", description="Helps.", **own)
    return agent


def work_of(agent: FnCallAgent) -> int:
    """Count the calls of Python functions in a run."""
    count = 0

    def profile(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    async def run() -> None:
        sys.setprofile(profile)
        try:
            async for _ in agent.astream("Go."):
                pass
        finally:
            sys.setprofile(None)

    asyncio.run(run())
    return count


@pytest.mark.parametrize("way", ["plain", "recorded", "limited"])
def test_four_times_as_many_agents_are_about_four_times_the_work(way: str) -> None:
    def work(depth: int) -> int:
        options: dict[str, Any] = {}
        if way == "recorded":
            options = {"store": MemoryStore()}
        if way == "limited":
            options = {"limits": {"tokens": 1_000_000}}
        return work_of(chain(depth, **options))

    work(5)  # what is loaded at the first use
    assert work(60) < 4 * work(15) * 1.5  # each event passes through the agents above


def test_a_word_costs_the_same_from_any_depth() -> None:
    def work_of_words(depth: int) -> int:
        return work_of(chain(depth, words=400)) - work_of(chain(depth, words=1))

    work_of_words(3)
    assert work_of_words(30) < 1.25 * work_of_words(3)


def test_an_event_from_below_never_overtakes_the_call_that_it_follows_from() -> None:
    async def run() -> list[tuple[int, str]]:
        return [(one.depth, type(one.event).__name__) async for one in chain(12).astream("Go.")]

    order = asyncio.run(run())
    for depth in range(1, 12):
        began, ended = order.index((depth, RunStarted.__name__)), order.index((depth, RunFinished.__name__))
        assert order.index((depth - 1, ToolStarted.__name__)) < began < ended
        assert ended < order.index((depth - 1, ToolFinished.__name__))


def test_a_limit_above_holds_for_the_deepest_run_while_it_runs() -> None:
    async def run() -> list[Any]:
        agent = chain(6, limits={"tool_calls": 3})
        return [one.event async for one in agent.astream("Go.") if isinstance(one.event, ToolStarted | RunFinished)]

    events = asyncio.run(run())
    assert sum(isinstance(event, ToolStarted) for event in events) == 3
    assert "tool_call_limit" in [event.stop_reason for event in events if isinstance(event, RunFinished)]


def test_the_usage_of_a_run_includes_all_below_it_whether_it_has_limits_or_not() -> None:
    totals = {}
    for name, limits in (("none", {}), ("tokens", {"tokens": 1_000_000})):

        async def run(limits: dict[str, Any] = limits) -> list[int]:
            events = [one async for one in chain(8, limits=limits).astream("Go.")]
            return [one.event.usage.total_tokens for one in events if isinstance(one.event, RunFinished)]

        totals[name] = asyncio.run(run())
    assert totals["none"] == totals["tokens"]
    assert totals["none"] == [4 * below for below in range(8)], "the deepest ends first, and used nothing"
