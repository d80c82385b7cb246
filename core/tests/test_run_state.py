"""The state of a run is the fold of its events, whichever consumer folds them."""

from __future__ import annotations

import asyncio
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield import FnCallAgent, Message, tool
from jackfield.agents import RunState, RunView, Spent
from jackfield.agents._decide import AskModel, Finish, HandOff, decide
from jackfield.config import Limits
from jackfield.events import (
    AgentEvent,
    HandedOff,
    ModelEvent,
    ResponseReplaced,
    RunFinished,
    RunStarted,
    TextDelta,
    ToolFinished,
    TurnStarted,
)
from jackfield.messages import FunctionCall, Usage
from jackfield.testing import ScriptedModel, answer, calls


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def helped() -> FnCallAgent:
    """An agent that calls a tool, then hands over to another, which calls two at once."""
    clerk = FnCallAgent(
        [add],
        ScriptedModel([calls(("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": 4})), answer("3 and 7.")]),
        name="clerk",
        description="Adds.",
    )
    script = [calls(("add", {"a": 1, "b": 1})), calls(("transfer_to_clerk", {}))]
    return FnCallAgent([add], ScriptedModel(script), name="desk", handoffs=[clerk])


def events_of(agent: FnCallAgent) -> list[ModelEvent | AgentEvent]:
    async def collect() -> list[Any]:
        return [event.event async for event in agent.astream("Go.")]

    return asyncio.run(collect())


def test_a_fold_of_the_steps_has_the_messages_the_usage_and_the_agents_of_the_result() -> None:
    events = events_of(helped())
    state = RunState(agents=["desk"])
    for event in events[:-1]:
        state.apply(event)
    end = events[-1]
    assert isinstance(end, RunFinished)
    assert state.made == end.messages
    assert state.spent.usage == end.usage
    assert (state.spent.turns, state.agents, state.end) == (4, ["desk", "clerk"], None)
    state.apply(end)
    assert (state.made, state.end) == (end.messages, end)


def test_a_growing_list_has_nothing_of_an_agent_below() -> None:
    below = FnCallAgent([add], ScriptedModel([calls(("add", {"a": 1, "b": 2})), answer("3.")]), "", "clerk", "Adds.")
    script = [calls(("clerk", {"request": "1 + 2?"})), answer("It is 3.")]
    agent = FnCallAgent([below.as_tool()], ScriptedModel(script), name="desk")
    *_, last = lists = [list(messages) for messages in agent.run("Go.")]
    assert {message.name for messages in lists for message in messages} == {"desk", "clerk"}
    assert [(message.role, message.content) for message in last] == [
        ("assistant", ""), ("function", "3."), ("assistant", "It is 3."),
    ]  # fmt: skip
    assert all(len(messages) <= len(last) for messages in lists)


def test_a_list_that_replaces_the_response_replaces_an_answer_in_progress() -> None:
    view = RunView("desk")
    for event in (TurnStarted(1), TextDelta("Half an")):
        assert view.feed(event) or isinstance(event, TurnStarted)
    assert view.feed(ResponseReplaced((Message("assistant", "All."),)))
    assert [message.content for message in view.messages()] == ["All."]


def test_a_growing_list_ends_as_the_result_does() -> None:
    view, agent = RunView("desk"), helped()
    events = events_of(agent)
    for event in events[:-1]:
        view.feed(event)
    assert tuple(view.messages()) == events[-1].messages  # type: ignore[union-attr]
    assert {message.name for message in view.messages()} >= {"desk", "clerk"}


@given(st.permutations(range(4)))
def test_results_are_in_the_order_of_the_calls_however_they_arrive(order: list[int]) -> None:
    state = RunState()
    state.apply(TurnStarted(1))
    for index in order:
        state.apply(ToolFinished(index, f"c{index}", Message("function", str(index), name="add"), 0.0))
    assert [message.content for message in state.made] == ["0", "1", "2", "3"]


def test_a_result_behind_one_that_is_missing_is_shown_when_the_next_turn_begins() -> None:
    state = RunState()
    result = Message("function", "2", name="add")
    assert state.apply(ToolFinished(1, "c1", result, 0.0)) is False
    assert state.apply(TurnStarted(2)) is True
    assert state.made == (result,)


def test_a_state_changes_only_what_the_run_has_made() -> None:
    asked = [Message("user", "Go.")]
    state = RunState(history=[*asked], start=1)
    state.apply(RunFinished("finished", (Message("assistant", "Done."),), Usage()))
    assert [message.content for message in state.history] == ["Go.", "Done."]


@pytest.mark.parametrize("event", [RunStarted((Message("user", "Go."),))])
def test_an_event_that_is_no_step_changes_nothing(event: AgentEvent) -> None:
    assert RunState().apply(event) is False


def test_every_event_of_a_run_is_either_a_step_or_changes_nothing() -> None:
    from jackfield._runstate import _CHANGES

    assert _CHANGES.keys() <= {*get_args(AgentEvent), *get_args(ModelEvent)}


def test_a_hand_off_comes_after_open_calls_and_after_limits() -> None:
    call = Message("assistant", "", function_call=FunctionCall("add", "{}"), extra={"function_id": "c0"})
    result = Message("function", "2", name="add", extra={"function_id": "c0"})
    asked = Message("user", "Go.")
    spent, limits = Spent(turns=1, tool_calls=1), Limits()
    assert not isinstance(decide([asked, call], spent, limits, handoff_to="clerk"), HandOff)
    assert decide([asked, call, result], spent, limits, handoff_to="clerk") == HandOff("clerk")
    assert decide([asked, call, result], spent, limits) == AskModel()
    assert decide([asked, call, result], spent, Limits(turns=1), handoff_to="clerk") == Finish("turn_limit")


def test_who_has_the_conversation_is_the_last_agent_it_was_handed_to() -> None:
    state = RunState(agents=["desk"], handoff_to="clerk")
    state.apply(HandedOff("desk", "clerk"))
    assert (state.agents, state.handoff_to) == (["desk", "clerk"], "")
