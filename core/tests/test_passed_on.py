"""A run that another agent continues, and a run below another one, keep everything that the caller passed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import fields
from typing import Any

import pytest

from jackfield import Agent, FnCallAgent, Message, tool
from jackfield.agents import CancelToken, Event, Handoff, ParentRun, Run, Spent, effects_of, run_as, run_below
from jackfield.config import Limits
from jackfield.events import ApprovalNeeded, RunFinished
from jackfield.messages import FunctionCall, Usage
from jackfield.request import ChatRequest
from jackfield.runs import Observer
from jackfield.runs._observers import Observers
from jackfield.streams import closing
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import ToolContext
from tests.support.agents import Seeing, add, read, results_in, seeing


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
        approve=lambda *_: False,
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


def test_what_is_passed_for_a_run_below_holds_instead_of_that_of_the_run_above() -> None:
    class Asks(FnCallAgent):
        async def events(self, run: Run) -> AsyncIterator[Event]:
            parent = ParentRun(run, run.start.spent)
            async with closing(run_below(other, "Far?", parent, deps="below", approve=allow)) as events:
                async for event in events:
                    yield event
            yield RunFinished("finished", (Message("assistant", "Done."),), Usage())

    def allow(*_: object) -> bool:
        return True

    other = seeing([answer("Yes.")], "other")
    Asks(llm=ScriptedModel([]), name="desk", approve=lambda *_: False).ask("Far?", deps="above", lang="zh")
    [run] = other.runs
    assert (run.context.deps, run.approve) == ("below", allow)


OF_THE_AGENT = {"agent", "messages", "asked", "lang", "config", "rules", "session", "options", "path", "start"} | {
    "context", "toolbox", "around", "passes_events", "trace",
}  # fmt: skip


def test_everything_of_a_run_that_is_not_the_agents_own_holds_for_the_agent_that_continues_it() -> None:
    run = Run(
        messages=(Message("user", "Go."),),
        lang="en",
        limits=Limits(turns=7),
        context=ToolContext(),
        caller_config=lambda view: {"seed": view.turn},
        approve=lambda *_: True,
        ask=lambda *_: True,
        resume=True,
        answers={"c1": True},
        parent=ParentRun(Run(messages=(), lang="en", limits=Limits(), context=ToolContext()), Spent()),
        ends_in_data=True,
        cancel=CancelToken(),
        ends_at=900.0,
        record=object(),  # type: ignore[arg-type]
        observers=Observers([Watch()]),
    )
    part = run_as(seeing([], "other"), run, run.messages, Spent())
    passed_on = {one.name for one in fields(Run)} - OF_THE_AGENT
    assert {name for name in passed_on if getattr(part, name) != getattr(run, name)} == set()


@pytest.mark.parametrize("way", WAYS)
def test_a_question_of_a_call_is_answered_by_the_caller_whichever_agent_makes_the_call(way: str) -> None:
    @tool
    async def order(context: ToolContext) -> str:
        """Order."""
        return str(await context.ask({"question": "How many?", "form": {"type": "object"}}))

    other = seeing([calls(("order", {})), answer("Ordered.")], "other", [order])
    call, options = WAYS[way](other)
    steps = [calls((call, {"request": "Order."} if way == "below" else {})), answer("Done.")]
    FnCallAgent(llm=ScriptedModel(steps), **options).ask("Order.", ask=lambda *_: {"count": 3})
    assert isinstance(other.llm, ScriptedModel)
    assert other.llm.requests[-1].messages[-1].content == "{'count': 3}"


@pytest.mark.parametrize("limits", [{}, {"tokens": 1_000_000}], ids=["without a limit", "with a limit"])
def test_what_agents_below_use_after_a_hand_off_counts_in_the_run_above(limits: dict[str, int]) -> None:
    used = Usage(prompt_tokens=8, completion_tokens=2)
    leaf = seeing([answer("Leaf.", usage=used)], "leaf")
    other = seeing([calls(("leaf", {"request": "x"})), answer("Other.", usage=used)], "other", [leaf.as_tool()])
    desk = seeing([calls(("transfer_to_other", {}))], "desk", handoffs=[other])
    steps = [calls(("desk", {"request": "x"})), answer("Done.", usage=used)]
    result = FnCallAgent([desk.as_tool()], ScriptedModel(steps), limits=limits).ask("Go.")
    assert result.usage.total_tokens == sum(one.total_tokens for one in result.usage_by_agent.values())
    assert result.usage_by_agent["leaf"].total_tokens == 10


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
    assert any("already working on this" in text for text in results_in(result.messages))
    assert len(first.runs) == 1


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


class Reconsidering(Stopping):
    """Pauses at a call, and then does without it."""

    async def events(self, run: Run) -> AsyncIterator[Event]:
        yield ApprovalNeeded((FunctionCall("pay", "{}"),), ("c1",))
        yield RunFinished("finished", (Message("assistant", "Without it.", name="child"),), Usage())


def test_an_agent_that_paused_and_then_finished_is_not_waited_for() -> None:
    @tool
    async def consult(context: ToolContext) -> str:
        """Consult."""
        assert isinstance(context.run, ParentRun)
        async for event in run_below(Reconsidering(""), "x", context.run):
            context.run.emit(event)
        return "It went on."

    result = FnCallAgent([consult], ScriptedModel([calls(("consult", {})), answer("Done.")])).ask("Go.")
    assert results_in(result.messages) == ["It went on."]


def test_open_calls_of_another_agent_hand_nothing_over_unless_the_run_is_resumed() -> None:
    other = seeing([answer("2.")], "other", [add])
    desk = seeing([], "desk", handoffs=[other])
    call = FunctionCall("add", '{"a": 1, "b": 1}')
    asked = Message("assistant", "", name="other", function_call=call, extra={"function_id": "c1"})
    history = [Message("user", "1 + 1?"), asked]
    paused = desk.ask([], history=history)
    assert (paused.stop_reason, paused.path, list(paused.waiting)) == ("approval_needed", ("desk",), ["c1"])
    assert desk.ask([], history=history, resume=True).path == ("desk", "other")


def test_a_second_hand_off_in_a_turn_is_refused_whoever_it_names() -> None:
    others = [seeing([answer("Hello.")], name) for name in ("one", "two")]
    turn = calls(("transfer_to_one", {}), ("transfer_to_one", {}), ("transfer_to_two", {}))
    result = FnCallAgent(llm=ScriptedModel([turn]), handoffs=others).ask("Go.")
    assert result.text == "Hello."
    first, *more = results_in(result.messages)
    assert first == "one has the conversation now."
    assert more == ["The conversation is already being handed over to one."] * 2


def test_decisions_reach_the_agent_of_their_call_only() -> None:
    child = seeing([answer("Done.")], "child")
    run = Run(messages=(), lang="en", limits=Limits(), context=ToolContext())
    decisions = {"c1": True, "c1/x": False, "c10/x": True}
    parent = ParentRun(run, Spent(), answers=decisions).of_call("c1")

    async def ask() -> None:
        async for _ in run_below(child, "Go.", parent):
            pass

    asyncio.run(ask())
    assert child.runs[0].answers == {"x": False}
