"""The state of a run is the fold of its events, whichever consumer folds them."""

from __future__ import annotations

import asyncio
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield import FnCallAgent, Message, tool
from jackfield.agents import Handoff, RunState, RunView, Spent
from jackfield.agents._decide import AskModel, Finish, HandOff, decide
from jackfield.config import Limits
from jackfield.events import (
    AgentEvent,
    ApprovalNeeded,
    HandedOff,
    ModelEvent,
    ResponseReplaced,
    RunEvent,
    RunFailed,
    RunFinished,
    RunStarted,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
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


@pytest.mark.parametrize(
    "event",
    [TurnStarted(2), HandedOff("desk", "clerk"), ApprovalNeeded((), ()), RunFailed("no", "ValueError")],
    ids=lambda event: type(event).__name__,
)
def test_a_result_behind_one_that_is_missing_is_shown_when_no_other_can_come(event: AgentEvent) -> None:
    state = RunState()
    result = Message("function", "2", name="add")
    assert state.apply(ToolFinished(1, "c1", result, 0.0)) is False
    assert state.apply(event) is True
    assert state.made == (result,)


def test_only_a_hand_off_changes_the_agent_that_takes_over() -> None:
    state = RunState()
    for index, metadata in enumerate(({"x": 1}, {Handoff.METADATA_KEY: "clerk"}, {"x": 2}, {})):
        result = Message("function", "ok", name="add")
        state.apply(ToolFinished(index, f"c{index}", result, 0.0, "", metadata))
        assert state.handoff_to == ("clerk" if index else "")
    state.apply(HandedOff("desk", "clerk"))
    assert state.handoff_to == ""


def turn(*names: str) -> TurnFinished:
    messages = [
        Message("assistant", function_call=FunctionCall(name, "{}"), extra={"function_id": name}) for name in names
    ]
    return TurnFinished(1, tuple(messages), Usage(prompt_tokens=1), 0.1)


def finished(index: int, name: str) -> ToolFinished:
    return ToolFinished(index, name, Message("function", name, name=name, extra={"function_id": name}), 0.1)


@pytest.mark.parametrize("starts", [True, False], ids=["as it happens", "from a record"])
def test_results_of_each_turn_are_in_the_order_of_its_own_calls(starts: bool) -> None:
    state = RunState()
    for steps in (
        (turn("a", "b"), finished(0, "a"), finished(1, "b")),
        (turn("c", "d"), finished(1, "d"), finished(0, "c")),
    ):
        for event in (*((TurnStarted(1),) if starts else ()), *steps):
            state.apply(event)
    assert [message.content for message in state.history if message.role == "function"] == ["a", "b", "c", "d"]
    state = RunState()
    for event in (turn("a", "b"), finished(1, "b"), turn("c")):
        state.apply(event)
    assert [message.content or message.function_id for message in state.history] == ["a", "b", "b", "c"]


@pytest.mark.parametrize("end", [RunFinished, lambda _, messages, *__: ResponseReplaced(messages)], ids=["end", "list"])
def test_a_result_that_waits_is_dropped_if_the_response_is_replaced(end: Any) -> None:
    state, messages = RunState(), (Message("assistant", "All."),)
    for event in (turn("a", "b"), finished(1, "b"), end("finished", messages, Usage())):
        state.apply(event)
    assert state.settle() is False
    assert state.made == messages


@pytest.mark.parametrize(
    ("event", "spent"),
    [
        (turn("a"), Spent(1, 0, Usage(prompt_tokens=1))),
        (ToolStarted(0, "a", FunctionCall("a", "{}")), Spent()),
        (finished(0, "a"), Spent(0, 1)),
        (RunEvent("r", 1, "a", 1, turn("a")), Spent(0, 0, Usage(prompt_tokens=1))),
        (RunEvent("r", 1, "a", 1, ToolStarted(0, "a", FunctionCall("a", "{}"))), Spent(0, 1)),
        (RunEvent("r", 1, "a", 1, finished(0, "a")), Spent()),
    ],
)
def test_turns_of_agents_below_do_not_count_and_each_call_counts_once(event: Any, spent: Spent) -> None:
    assert Spent().plus(event) == spent


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
