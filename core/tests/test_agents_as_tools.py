"""An agent as a tool: its name and description, its question, and the text that the other agent reads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, get_args

import pytest

from jackfield import Agent, FnCallAgent, Message, tool
from jackfield.agents import Event, Handoff, Run, effects_of, run_below
from jackfield.agents._structured import choose_way
from jackfield.agents._subagents import reachable_agents
from jackfield.errors import ConfigError, ToolServiceError
from jackfield.events import RunEvent, RunFinished
from jackfield.messages import Usage
from jackfield.request import ModelFacts
from jackfield.results import Way
from jackfield.testing import Script, ScriptedModel, answer, calls
from jackfield_testkit.records import MemoryStore


def helper(script: Script = (), tools: Any = (), name: str | None = "helper", **options: Any) -> FnCallAgent:
    return FnCallAgent(tools, ScriptedModel(script), name=name, **{"description": "Helps.", **options})


@pytest.mark.parametrize(
    ("agent", "options", "said"),
    [
        (helper(name=None), {}, "agent 'FnCallAgent' needs a name to be used as a tool: pass name="),
        (
            helper(description=None),
            {},
            "agent 'helper' needs a description to be used as a tool: the description tells the model when to call it",
        ),
        (helper(), {"name": 5}, "name must be a string, got int"),
        (helper(), {"description": 5}, "description must be a string, got int"),
        (helper(), {"timeout_s": 0}, "timeout_s must be a number of seconds above 0, got 0"),
    ],
    ids=["no name", "no description", "name", "description", "time-out"],
)
def test_an_agent_that_cannot_be_a_tool_is_refused(agent: Agent, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        agent.as_tool(**options)
    assert str(caught.value) == said


def test_an_agent_among_the_tools_is_refused_with_the_way_to_make_it_one() -> None:
    with pytest.raises(ConfigError, match=r"is an agent, not a tool: pass agent\.as_tool\(\)$"):
        helper(tools=[helper()])


@pytest.mark.parametrize(
    ("name", "options", "tool_name", "description"),
    [
        ("helper", {}, "helper", "Helps."),
        (None, {"name": "aid"}, "aid", "Helps."),
        ("helper", {"name": "aid"}, "aid", "Helps."),
        ("helper", {"description": "Aids."}, "helper", "Aids."),
    ],
)
def test_a_tool_has_the_name_and_the_description_of_its_agent_unless_others_are_given(
    name: str | None, options: dict[str, Any], tool_name: str, description: str
) -> None:
    made = helper(name=name).as_tool(**options)
    schema = made.schema("en")
    assert (schema["name"], schema["description"]) == (tool_name, description)
    assert schema["parameters"]["required"] == ["request"]
    assert [*schema["parameters"]["properties"]] == ["request"]


def test_a_name_that_models_cannot_write_is_in_the_description() -> None:
    made = helper(name="Herr Müller").as_tool()
    assert made.name != "Herr Müller"
    assert made.schema("en")["description"] == "Herr Müller: Helps."


def test_a_time_out_is_that_of_the_tool() -> None:
    assert (helper().as_tool().timeout_s, helper().as_tool(timeout_s=7).timeout_s) == (None, 7)


class Ends(Agent):
    """Ends in one way."""

    def __init__(self, reason: Any, text: str) -> None:
        super().__init__(name="helper", description="Helps.")
        self._end = RunFinished(reason, (Message("assistant", text),) if text else (), Usage())

    async def events(self, run: Run) -> AsyncIterator[Event]:
        yield self._end


@pytest.mark.parametrize(
    ("reason", "text", "said"),
    [
        ("finished", "Done.", "Done."),
        ("time_limit", "Half.", "Half.\n\n(Agent helper stopped early: time_limit.)"),
        ("time_limit", "", "(Agent helper stopped early: time_limit.)"),
        ("finished", " \n", "Agent helper gave no answer"),
        ("finished", "", "Agent helper gave no answer"),
    ],
)
@pytest.mark.parametrize("way", ["in a run", "outside of a run"])
def test_the_text_of_a_call_says_how_the_agent_ended(way: str, reason: str, text: str, said: str) -> None:
    made = Ends(reason, text).as_tool()
    if way == "in a run":
        boss = FnCallAgent([made], ScriptedModel([calls(("helper", {"request": "Go."})), answer("Done.")]))
        [result] = [one for one in boss.ask("Go.").messages if one.role == "function"]
        assert result.get_text_content() == said
    elif text.strip():
        assert asyncio.run(made.call('{"request": "Go."}')).content == said  # type: ignore[attr-defined, arg-type]
    else:
        with pytest.raises(ToolServiceError) as caught:
            asyncio.run(made.call('{"request": "Go."}'))  # type: ignore[arg-type]
        assert str(caught.value) == said


@tool(needs_approval=True)
def pay(to: str) -> str:
    """Pay."""
    return f"paid {to}"


@tool(needs_approval=True)
def order(what: str) -> str:
    """Order."""
    return f"ordered {what}"


PAYS = [calls(("pay", {"to": "Ada"}), ("order", {"what": "ink"}), ("pay", {"to": "Bob"})), answer("Both are paid.")]
NOT_ASKED = "Agent helper could not continue: its calls to order, pay need approval, but no approver is available"


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({}, NOT_ASKED),
        ({"tool_calls": 1}, "(Agent helper stopped early: tool_call_limit.)"),
        ({"tokens": 3}, "(Agent helper stopped early: token_limit.)"),
    ],
    ids=["no limit", "calls", "tokens"],
)
def test_an_agent_that_needs_approval_is_a_failed_call_where_the_run_is_not_recorded(
    limits: dict[str, int], said: str
) -> None:
    boss = FnCallAgent(
        [helper(PAYS, [pay, order]).as_tool()],
        ScriptedModel([calls(("helper", {"request": "Pay."})), answer("It cannot.")]),
        limits=limits,
    )
    result = boss.ask("Go.")
    assert [one.get_text_content() for one in result.messages if one.role == "function"] == [said]
    with pytest.raises(ToolServiceError, match=NOT_ASKED):
        asyncio.run(helper(PAYS, [pay, order]).as_tool().call('{"request": "Pay."}'))  # type: ignore[arg-type]


def test_answers_to_calls_of_an_agent_below_reach_it_when_a_recorded_run_goes_on() -> None:
    def boss(store: MemoryStore, script: Script, inner: Script) -> FnCallAgent:
        return FnCallAgent([helper(inner, [pay, order]).as_tool()], ScriptedModel(script), name="boss", store=store)

    store = MemoryStore()
    paused = boss(store, [calls(("helper", {"request": "Pay."}))], PAYS[:1]).ask("Go.")
    assert paused.stop_reason == "approval_needed"
    assert [message.role for message in paused.messages] == ["assistant"], "the call has no result yet"
    assert not store.events("ToolFinished")
    assert [call.name for call in paused.waiting.values()] == ["pay", "order", "pay"]
    assert {one.partition("/")[0] for one in paused.waiting} == {
        message.function_id for message in paused.messages if message.function_call
    }
    said = dict(zip(paused.waiting, (True, True, False), strict=True))
    result = boss(store, [answer("Done.")], PAYS[1:]).resume(paused.run_id, approvals=said)
    assert (result.text, result.stop_reason) == ("Done.", "finished")
    [below] = [one.get_text_content() for one in result.messages if one.role == "function"]
    assert below == "Both are paid."


# --- the agents behind an agent ---


@tool(effects=["network"])
def fetch(url: str) -> str:
    """Fetch."""
    return url


class Hub(FnCallAgent):
    agents: Any = ()


def test_an_agent_has_the_effects_of_all_that_it_can_use() -> None:
    assert effects_of(helper()) == set()
    assert effects_of(helper(tools=[fetch])) == {"network"}
    assert effects_of(helper(tools=[helper(tools=[fetch], name="other").as_tool()])) == {"network"}
    hub = Hub(llm=ScriptedModel([]), name="hub", description="Has members.")
    hub.agents = (helper(tools=[fetch], name="a"), helper(tools=[read], name="b"))
    assert effects_of(hub) == {"network", "files"}


@tool(effects=["files"])
def read(path: str) -> str:
    """Read."""
    return path


def test_the_agents_behind_an_agent_are_each_found_once() -> None:
    leaf = helper(name="leaf")
    below = helper(tools=[leaf.as_tool()], name="below")
    after = helper(name="after", handoffs=[Handoff(leaf)])
    hub = Hub([below.as_tool()], ScriptedModel([]), name="hub", handoffs=[after])
    member = helper(name="member")
    hub.agents = (member, hub)
    assert [one.name for one in reachable_agents(hub)] == ["hub", "below", "after", "member", "leaf"]


def test_an_agent_without_a_run_above_has_a_run_of_its_own() -> None:
    async def ask() -> list[RunEvent]:
        return [event async for event in run_below(helper([answer("Hello.")]), "Hi", None)]

    events = asyncio.run(ask())
    assert events[0].depth == 0
    assert isinstance(events[-1].event, RunFinished)


# --- the way to get data ---


class NoTool(FnCallAgent):
    def events(self, run: Run) -> AsyncIterator[Event]:
        return super().events(run)


NATIVE = ModelFacts(json_schema=True, schema_with_tools=False, native_tools=True)
BOTH = ModelFacts(json_schema=True, schema_with_tools=True, native_tools=True)
TOOLS = ModelFacts(json_schema=False, native_tools=True)
NEITHER = ModelFacts(json_schema=False, native_tools=False)


@pytest.mark.parametrize(
    ("facts", "with_tools", "without_tools", "of_another_kind"),
    [
        (NATIVE, "tool", "native", "prompt"),
        (BOTH, "native", "native", "native"),
        (TOOLS, "tool", "tool", "prompt"),
        (NEITHER, "prompt", "prompt", "prompt"),
    ],
    ids=["schema", "schema with tools", "tools", "neither"],
)
def test_the_strictest_way_is_chosen(
    facts: ModelFacts, with_tools: str, without_tools: str, of_another_kind: str
) -> None:
    def of(kind: type[FnCallAgent], tools: Any) -> Agent:
        return kind(tools, ScriptedModel([], facts=facts))

    assert choose_way(of(FnCallAgent, [fetch]), None) == with_tools
    assert choose_way(of(FnCallAgent, []), None) == without_tools
    assert choose_way(of(NoTool, [fetch]), None) == of_another_kind
    assert {choose_way(of(FnCallAgent, [fetch]), way) for way in get_args(Way)} == {*get_args(Way)}
    assert choose_way(FnCallAgent(), None) == "prompt"
    with pytest.raises(ConfigError, match="unknown way 'force'"):
        choose_way(of(FnCallAgent, []), "force")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="NoTool cannot answer with a tool call: pass way='prompt', or omit way"):
        choose_way(of(NoTool, []), "tool")
