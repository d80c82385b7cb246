"""A run that another agent continues, and a run below another one, keep everything that the caller passed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from jackfield import Agent, FnCallAgent, Message, tool
from jackfield.agents import CancelToken, Event, Handoff, Run, RunState, effects_of
from jackfield.events import (
    ApprovalNeeded,
    FunctionCallDelta,
    ModelEvent,
    ModelFinished,
    ReasoningDelta,
    RunFinished,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from jackfield.messages import FUNCTION, ContentItem, FunctionCall, Usage
from jackfield.request import ChatRequest
from jackfield.runs import Observer
from jackfield.streams import closing
from jackfield.testing import Script, ScriptedModel, answer, calls
from jackfield.tools import ToolContext
from jackfield_testkit.records import MemoryStore

PATIENCE_S = 30


class Seeing(FnCallAgent):
    """Remembers the runs whose events it gives."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.runs: list[Run] = []

    def events(self, run: Run) -> AsyncIterator[Event]:
        self.runs.append(run)
        return super().events(run)


def seeing(script: Script, name: str, tools: Sequence[Any] = (), **options: Any) -> Seeing:
    return Seeing(tools, ScriptedModel(script), name=name, description=f"Is {name}.", **options)


def results_in(messages: Sequence[Message]) -> list[str]:
    return [message.get_text_content() for message in messages if message.role == FUNCTION]


class Watch(Observer):
    name = "watch"

    def observe(self, event: Any) -> None:
        """Do nothing."""

    def observe_request(self, run_id: str, request: ChatRequest) -> None:
        """Do nothing, but get the requests."""


WAYS: dict[str, Callable[[Agent], tuple[str, dict[str, Any]]]] = {
    "handed over": lambda other: ("transfer_to_other", {"handoffs": [other]}),
    "below": lambda other: ("other", {"function_list": [other.as_tool()]}),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_the_caller_passed_holds_for_the_other_agent(way: str) -> None:
    other = seeing(lambda _: answer('{"far": true}'), "other")
    call, options = WAYS[way](other)
    steps = [calls((call, {"request": "Far?"} if way == "below" else {})), answer('{"far": true}')]
    desk = Seeing(
        llm=ScriptedModel(steps),
        name="desk",
        forbid=["network"],
        limits={"seconds": 900},
        observers=[Watch()],
        **options,
    )
    cancel, deps = CancelToken(), object()

    def approve(*_: object) -> bool:
        return True

    form = {"type": "object", "properties": {"far": {"type": "boolean"}}, "required": ["far"]}
    desk.ask(
        "Far?",
        output=form,
        lang="zh",
        cancel=cancel,
        deps=deps,
        approve=approve,
        config={"seed": 7},
    )
    [first], [run] = desk.runs, other.runs
    assert run.context.deps is deps
    assert run.context.resources is first.context.resources
    assert run.approve is approve
    assert "network" in (run.rules.forbid | run.rules_below.forbid)
    if way == "below":
        assert run.parent is not None
        assert run.depth == 1
        assert not run.ends_in_data, "its answer is a text for the agent that asks"
    else:
        assert (run.id, run.context.run_id) == (first.id, first.context.run_id)
        assert (run.cancel, run.ends_at, run.limits) == (first.cancel, first.ends_at, first.limits)
        assert first.ends_at is not None
        assert run.ends_in_data
        assert run.path == (desk,)
        assert run.observers is first.observers
        assert run.observers.names == {"watch"}
        assert run.lang == "zh"
        assert run.config is not None
        assert (run.config.lang, run.config.seed) == ("zh", 7)


def test_a_hand_off_of_the_question_keeps_the_callers_system_message() -> None:
    other = seeing([answer("Hello.")], "other")
    desk = FnCallAgent(llm=ScriptedModel([calls(("transfer_to_other", {}))]), handoffs=[Handoff(other, "question")])
    desk.ask([Message("system", "Rhyme."), Message("user", "one"), Message("assistant", "yes"), Message("user", "two")])
    assert [(one.role, one.content) for one in other.runs[0].messages] == [("system", "Rhyme."), ("user", "two")]


def test_an_agent_that_handed_the_conversation_over_is_not_asked_below_it() -> None:
    desk = seeing([calls(("transfer_to_other", {}))], "desk")
    other = seeing([calls(("desk", {"request": "Do it."})), answer("Then I do it.")], "other", [desk.as_tool()])
    first = seeing([calls(("transfer_to_other", {}))], "first", handoffs=[other])
    # A circle can only be closed afterwards: the agent that hands over is the tool of the one that takes over.
    object.__setattr__(other.function_map["desk"], "agent", first)
    result = first.ask("Go.")
    assert result.text == "Then I do it."
    assert any("already at work on this" in text for text in results_in(result.messages))
    assert len(first.runs) == 1


@tool(effects=["files"])
def read(path: str) -> str:
    """Read."""
    return path


def test_the_effects_of_members_are_those_of_the_agent_that_has_them() -> None:
    class Hub(FnCallAgent):
        agents: Sequence[Agent] = (seeing([], "member", [read]),)

    hub = Hub(llm=ScriptedModel([]), name="hub", description="Has members.")
    assert effects_of(hub) == {"files"}
    assert hub.as_tool().safety().effects == {"files"}


@pytest.mark.parametrize("resumable", [True, False])
def test_an_agent_as_a_tool_is_resumable_if_the_agent_is(resumable: bool) -> None:
    agent = seeing([], "other")
    object.__setattr__(agent, "resumable", resumable)
    assert agent.as_tool().safety().resumable is resumable


class Stopping(FnCallAgent):
    """Stops early, with or without a text."""

    def __init__(self, text: str) -> None:
        super().__init__(llm=ScriptedModel([]), name="child", description="Stops.")
        self._text = text

    async def events(self, run: Run) -> AsyncIterator[Event]:
        yield RunFinished("token_limit", (Message("assistant", self._text, name="child"),), Usage())


@pytest.mark.parametrize(("text", "result"), [("Half.", "Half.\n\n{}"), ("", "{}")])
def test_an_agent_that_stops_early_says_so_after_its_text(text: str, result: str) -> None:
    steps = [calls(("child", {"request": "x"})), answer("Done.")]
    boss = FnCallAgent([Stopping(text).as_tool()], ScriptedModel(steps))
    early = "(Agent child stopped early: token_limit.)"
    assert results_in(boss.ask("Go.").messages) == [result.format(early)]


# --- pauses ---


def test_a_call_that_was_under_way_when_a_run_was_left_is_in_doubt_when_it_goes_on() -> None:
    store, began = MemoryStore(), asyncio.Event()

    @tool
    async def pay() -> str:
        """Pay."""
        began.set()
        await asyncio.Event().wait()
        return "paid"

    def agent() -> FnCallAgent:
        return FnCallAgent([pay], ScriptedModel([calls(("pay", {}))]), name="clerk", store=store)

    async def leave() -> None:
        async with asyncio.timeout(PATIENCE_S):
            async with closing(agent().astream("Pay.")) as events:
                async for event in events:
                    if isinstance(event.event, ToolStarted):
                        break
                waiting = asyncio.ensure_future(anext(events))
                await began.wait()
                waiting.cancel()
                await asyncio.wait([waiting])

    asyncio.run(leave())
    store.restarted()
    [run_id] = store.kept
    stream = agent().stream([], run_id=run_id, resume=True)
    [needed] = [event for event in stream if isinstance(event, ApprovalNeeded)]
    assert stream.result.stop_reason == "approval_needed"
    assert needed.in_doubt == needed.call_ids != ()


def test_a_call_that_needs_approval_names_each_agent_on_the_way_to_it() -> None:
    @tool(needs_approval=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    leaf = seeing([calls(("pay", {}))], "leaf", [pay])
    mid = seeing([calls(("leaf", {"request": "x"}))], "mid", [leaf.as_tool()])
    boss = FnCallAgent([mid.as_tool()], ScriptedModel([calls(("mid", {"request": "x"}))]), store=MemoryStore())
    needed = [event for event in boss.stream("Go.") if isinstance(event, ApprovalNeeded)]
    assert [one.agents for one in needed] == [("mid/leaf",)]
    assert [call.name for call in needed[0].calls] == ["pay"]


# --- the end of an answer ---


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([ReasoningDelta("Hm."), ModelFinished("stop")], "finished"),
        ([TextDelta("Yes."), ModelFinished("stop")], "finished"),
        ([ModelFinished("stop")], "empty_reply"),
    ],
)
def test_an_answer_of_thoughts_alone_is_no_empty_reply(events: list[ModelEvent], reason: str) -> None:
    assert FnCallAgent(llm=ScriptedModel([events])).ask("Go.").stop_reason == reason


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


# --- the order of results ---


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


# --- files of a message ---


@pytest.mark.parametrize("stem", ["tides", "x" * 300, "文" * 100, "é" * 60, "é" * 61, "a.b" * 90])
def test_a_file_in_a_message_is_saved_under_a_name_that_file_systems_take(stem: str) -> None:
    read: list[tuple[str, bytes, str]] = []

    @tool(file_access=True, effects=["files"])
    def look(context: ToolContext) -> str:
        """Look."""
        for name in context.files:
            path = Path(name)
            read.append((path.read_text(encoding="utf-8"), os.fsencode(path.name), path.suffix))
        return "seen"

    item = ContentItem(file=f"data:text/markdown;name={quote(stem)}.md,hello")
    agent = FnCallAgent([look], ScriptedModel([calls(("look", {})), answer("Done.")]))
    agent.ask([Message("user", [ContentItem(text="Look."), item])])
    [(text, name, suffix)] = read
    assert (text, suffix) == ("hello", ".md")
    assert len(name) <= 120
    assert (name == f"{stem}.md".encode()) == (len(stem.encode()) + 3 <= 120)
