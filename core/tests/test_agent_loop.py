"""The loop of an agent: how an answer ends, the order of results, and which requests it sends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import permutations
from typing import Any

import pytest

from jackfield import FnCallAgent, Message, tool
from jackfield.agents import CancelToken, RunState
from jackfield.agents._loop import Loop
from jackfield.events import (
    FunctionCallDelta,
    MediaDelta,
    ModelEvent,
    ModelFinished,
    ReasoningDelta,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from jackfield.messages import FUNCTION, ContentItem, FunctionCall, Usage
from jackfield.processors import Preprocessor
from jackfield.request import ChatRequest
from jackfield.streams import closing
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import ToolContext, toolset
from jackfield_testkit.records import MemoryStore
from tests.support.agents import read, results_in

PATIENCE_S = 30


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([ReasoningDelta("Hm."), ModelFinished("stop")], "empty_reply"),
        ([ReasoningDelta("Hm."), TextDelta("Yes."), ModelFinished("stop")], "finished"),
        ([TextDelta("Yes."), ModelFinished("stop")], "finished"),
        ([MediaDelta(ContentItem(image="a.png")), ModelFinished("stop")], "finished"),
        ([ModelFinished("stop")], "empty_reply"),
    ],
)
def test_an_agent_and_its_model_call_the_same_replies_empty(events: list[ModelEvent], reason: str) -> None:
    """Reasoning alone is an empty reply: `result.text` is ''."""
    assert FnCallAgent(llm=ScriptedModel([events])).ask("Go.").stop_reason == reason
    assert ScriptedModel([events]).ask("Go.").stop_reason == reason


class Halted(ScriptedModel):
    """Says something, begins a call, and is cancelled there."""

    def __init__(self, cancel: CancelToken) -> None:
        super().__init__([])
        self._cancel = cancel

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        yield TextDelta("Let me see.")
        yield FunctionCallDelta(0, id="c1", name="read", arguments='{"path": "a"}')
        self._cancel.cancel()
        await asyncio.Event().wait()


def test_a_call_of_an_answer_that_was_stopped_is_no_call() -> None:
    cancel = CancelToken()
    result = FnCallAgent([read], Halted(cancel)).ask("Go.", cancel=cancel)
    assert result.stop_reason == "cancelled"
    assert [(message.role, message.content) for message in result.messages] == [("assistant", "Let me see.")]
    assert not any(message.function_call for message in result.messages)


# --- results ---


@pytest.mark.parametrize("order", list(permutations(range(1, 4))), ids=str)
def test_results_after_a_missing_one_keep_the_order_of_the_calls(order: tuple[int, ...]) -> None:
    state = RunState(history=[Message("user", "Go.")], start=1)
    called = [
        Message("assistant", "", function_call=FunctionCall("add", "{}"), extra={"function_id": f"c{number}"})
        for number in range(4)
    ]
    state.apply(TurnFinished(1, tuple(called), Usage()))
    for number in order:  # the first call has no result
        message = Message(FUNCTION, str(number), name="add", extra={"function_id": f"c{number}"})
        assert state.apply(ToolFinished(number, f"c{number}", message, 0.0)) is False
    assert state.settle() is True
    assert results_in(state.made) == ["1", "2", "3"]
    assert state.settle() is False


@pytest.mark.parametrize("leaves", ["the reader", "the task"])
def test_the_results_of_calls_that_had_ended_are_recorded_although_nobody_reads_on(leaves: str) -> None:
    store = MemoryStore()

    async def run() -> None:
        done, hang = asyncio.Event(), asyncio.Event()

        @tool
        async def pay(to: str) -> str:
            """Pay."""
            if to == "Bob":
                await hang.wait()
            done.set()
            return f"paid {to}"

        script = [calls(("pay", {"to": "Ada"}), ("pay", {"to": "Bob"}))]
        agent = FnCallAgent([pay], ScriptedModel(script), name="clerk", store=store)
        events = agent.astream("Pay them.")
        async for event in events:
            if isinstance(event.event, ToolStarted) and event.event.index == 1:
                break
        await done.wait()
        for _ in range(5):
            await asyncio.sleep(0)
        if leaves == "the reader":
            await events.aclose()  # type: ignore[attr-defined]
            return
        async with closing(events):
            async for event in events:
                if isinstance(event.event, ToolFinished):
                    break
            waiting = asyncio.ensure_future(anext(events))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait([waiting])

    asyncio.run(asyncio.wait_for(run(), PATIENCE_S))
    results = [entry["message"]["content"] for entry in store.events("ToolFinished")]
    assert results == ["paid Ada"], "nothing is known of the other"


def test_a_call_that_had_not_begun_when_a_run_was_left_is_not_recorded() -> None:
    store = MemoryStore()

    async def run() -> None:
        began = asyncio.Event()

        @tool(concurrent=False)
        async def pay(to: str) -> str:
            """Pay."""
            began.set()
            await asyncio.Event().wait()
            return f"paid {to}"

        script = [calls(("pay", {"to": "Ada"}), ("pay", {"to": "Bob"}))]
        async with closing(FnCallAgent([pay], ScriptedModel(script), store=store).astream("Pay them.")) as events:
            async for event in events:
                if isinstance(event.event, ToolStarted):
                    break
            waiting = asyncio.ensure_future(anext(events))
            await began.wait()
            waiting.cancel()
            await asyncio.wait([waiting])

    asyncio.run(asyncio.wait_for(run(), PATIENCE_S))
    assert not store.events("ToolFinished"), "both are made, or asked about, when the run goes on"


# --- requests ---


def test_processors_of_a_loop_act_beside_those_of_sets_that_are_made_for_a_run() -> None:
    class Notes(Preprocessor):
        name = "notes"

        def __init__(self) -> None:
            self.seen = 0

        def prepare(self, request: ChatRequest) -> ChatRequest:
            self.seen += 1
            return request

    notes = Notes()

    class Noting(FnCallAgent):
        def make_loop(self, **options: Any) -> Loop:
            loop = super().make_loop(**options)
            loop.around = (notes,)
            return loop

    @toolset
    async def made(context: ToolContext[Any]) -> list[Any]:
        return [read]

    result = Noting([made], ScriptedModel([calls(("read", {"path": "a"})), answer("Done.")])).ask("Go.")
    assert results_in(result.messages) == ["a"]
    assert notes.seen == 2


def test_a_cancelled_run_asks_its_model_nothing_more_wherever_it_was_cancelled() -> None:
    script = [calls(("read", {"path": "a"})), calls(("read", {"path": "b"})), answer("c")]

    events = len(list(FnCallAgent([read], ScriptedModel(script)).stream("Go.")))

    async def cancelled_at(step: int) -> tuple[int, int]:
        """Return the requests until the cancel, and those of the whole run."""
        cancel, model = CancelToken(), ScriptedModel(script)
        asked = number = 0
        async with closing(FnCallAgent([read], model).astream("Go.", cancel=cancel)) as run:
            async for _ in run:
                number += 1
                if number == step:
                    cancel.cancel()
                    asked = len(model.requests)
        return asked, len(model.requests)

    counts = [asyncio.run(cancelled_at(step)) for step in range(1, events + 1)]
    assert [before for before, after in counts] == [after for before, after in counts]
    assert {before for before, _ in counts} == {0, 1, 2, 3}


def test_a_tool_sees_the_conversation_up_to_its_own_call() -> None:
    seen: list[list[str]] = []

    @tool
    def look(context: ToolContext) -> str:
        """Look."""
        seen.append([message.role for message in context.messages])
        return "seen"

    model = ScriptedModel([calls(("look", {})), calls(("look", {})), answer("Done.")])
    FnCallAgent([look], model).ask("Look twice.")
    first = ["user", "assistant"]
    assert seen == [first, [*first, "function", "assistant"]]
