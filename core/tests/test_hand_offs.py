"""Hand-offs: which can be, the name and description of their tools, and what the next run keeps."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from jackfield import FnCallAgent, Message
from jackfield.agents import Handoff, RunState
from jackfield.errors import ConfigError, ToolServiceError
from jackfield.events import HandedOff
from jackfield.messages import FunctionCall
from jackfield.testing import ScriptedModel, answer, calls
from jackfield_testkit.records import MemoryStore
from tests.support.agents import seeing


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (5, "handoffs must be agents, got int"),
        (
            Handoff(FnCallAgent(llm=ScriptedModel([]), description="Is one.")),
            "agent 'FnCallAgent' must have a name and a ",
        ),
        (
            Handoff(FnCallAgent(llm=ScriptedModel([]), name="x")),
            "agent 'x' must have a name and a description to be a handoff target",
        ),
        (
            Handoff(seeing([], "other"), history="some"),  # type: ignore[arg-type]
            "a handoff's history must be 'all', 'question' or a function, got 'some'",
        ),
        (Handoff(seeing([], "other"), tool_name="a b"), "a b"),
    ],
    ids=["no agent", "no name", "no description", "history", "tool name"],
)
def test_a_hand_off_that_cannot_be_is_refused(entry: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        FnCallAgent(llm=ScriptedModel([]), handoffs=[entry])


def test_a_hand_off_has_the_name_that_is_given_to_its_tool() -> None:
    other = seeing([answer("Hello.")], "other")
    desk = FnCallAgent(
        llm=ScriptedModel([calls(("to_the_boss", {}))]), handoffs=[Handoff(other, tool_name="to_the_boss")]
    )
    assert [*desk.function_map] == ["to_the_boss"]
    schema = desk.function_map["to_the_boss"].schema("en")
    assert schema["description"] == "Hands the conversation over to other. Is other."
    assert desk.function_map["to_the_boss"].safety().is_repeatable
    assert desk.ask("Go.").text == "Hello."


def test_a_conversation_is_handed_over_in_a_run_only() -> None:
    desk = FnCallAgent(llm=ScriptedModel([]), handoffs=[seeing([], "other")])
    with pytest.raises(ToolServiceError, match="during an agent's run"):
        asyncio.run(desk.function_map["transfer_to_other"].call("{}"))  # type: ignore[arg-type]


def test_a_hand_off_by_an_agent_without_a_name_says_its_kind() -> None:
    desk = FnCallAgent(
        llm=ScriptedModel([calls(("transfer_to_other", {}))]), handoffs=[seeing([answer("Hi.")], "other")]
    )
    handed = [event for event in desk.stream("Go.") if isinstance(event, HandedOff)]
    assert handed == [HandedOff("FnCallAgent", "other")]


def test_a_run_that_is_handed_over_keeps_its_record_and_its_place_in_the_run_above() -> None:
    other = seeing([answer("Hello.")], "other")
    desk = seeing([calls(("transfer_to_other", {}))], "desk", handoffs=[other])
    boss = FnCallAgent(
        [desk.as_tool()], ScriptedModel([calls(("desk", {"request": "Go."})), answer("Done.")]), store=MemoryStore()
    )
    assert boss.ask("Go.").text == "Done."
    [first], [second] = desk.runs, other.runs
    assert first.parent is not None
    assert first.record is not None
    assert (second.parent, second.record, second.depth) == (first.parent, first.record, 1)
    assert [message.content for message in second.asked] == ["Go.", "", "other has the conversation now."]
    assert second.path == (desk,)
    assert second.config is None, "nobody set a language"


def test_a_hand_off_that_was_recorded_is_not_replaced_by_one_that_was_still_open() -> None:
    ann, ben = (seeing([answer("Hello.")], name) for name in ("ann", "ben"))
    desk = FnCallAgent(llm=ScriptedModel([]), name="desk", handoffs=[ann, ben])
    chosen, still_open = (
        Message("assistant", function_call=FunctionCall(f"transfer_to_{name}", "{}"), extra={"function_id": name})
        for name in ("ann", "ben")
    )
    done = Message("function", "ann has it.", name="transfer_to_ann", extra={"function_id": "ann"})

    async def go_on() -> list[str]:
        run = desk.make_run((Message("user", "Go."), chosen, still_open, done), "en")
        run = replace(run, resume=True, start=RunState(handoff_to="ann"))
        return [event.to async for event in desk.events(run) if isinstance(event, HandedOff)]

    assert asyncio.run(go_on()) == ["ann"]
