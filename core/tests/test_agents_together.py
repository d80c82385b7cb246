"""Agents that work together: as tools of each other, and by hand-offs, in one tree with one set of limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield import BasicAgent, FnCallAgent, Message, create_agent, tool
from jackfield.agents import CancelToken, Event, Handoff, Run
from jackfield.errors import ConfigError, ModelRequestError
from jackfield.events import (
    HandedOff,
    ModelEvent,
    RunEvent,
    RunFinished,
    RunStarted,
    TextDelta,
    ToolStarted,
    TurnStarted,
)
from jackfield.messages import FUNCTION, FunctionCall, Usage, with_system_text
from jackfield.request import ChatRequest
from jackfield.runs import Observer
from jackfield.streams import closing
from jackfield.testing import Script, ScriptedModel, answer, calls
from jackfield.tools import ToolContext, ToolEntry, Toolset
from jackfield.tools._schema import check_tool_name, tool_name_for
from jackfield_agent_files.files import load_agent_config
from jackfield_records.eventjson import run_event_from_json, run_event_to_json
from tests.support.agents import results_in

USED = Usage(prompt_tokens=8, completion_tokens=2, cost=Decimal("0.01"), currency="USD")
PATIENCE_S = 30


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def helper(script: Script, tools: Sequence[Any] = (), name: str = "helper", **options: Any) -> FnCallAgent:
    return FnCallAgent(tools, ScriptedModel(script), f"You are {name}.", name, f"Helps as {name}.", **options)


def boss(script: Script, *tools: Any, **options: Any) -> FnCallAgent:
    return FnCallAgent(tools, ScriptedModel(script), "You are boss.", "boss", **options)


def asks(*names: str, text: str = "") -> list[ModelEvent]:
    return calls(*((name, {"request": f"task {number}"}) for number, name in enumerate(names, 1)), text=text)


def events_of(agent: FnCallAgent, messages: Any = "go", **options: Any) -> list[RunEvent]:
    async def collect() -> list[RunEvent]:
        async with asyncio.timeout(PATIENCE_S):
            return [event async for event in agent.astream(messages, **options)]

    return asyncio.run(collect())


def asked(agent: FnCallAgent) -> list[ChatRequest]:
    assert isinstance(agent.llm, ScriptedModel)
    return agent.llm.requests


# --- an agent as a tool -----------------------------------------------------------------------------------------------


def test_an_agent_answers_as_a_tool_and_its_events_are_one_deeper() -> None:
    child = helper([calls(("add", {"a": 1, "b": 2})), answer("It is 3.")], [add])
    events = events_of(boss([asks("helper"), answer("Three.")], child.as_tool()))
    inner = [event for event in events if event.depth]
    assert {(event.agent, event.depth) for event in events} == {("boss", 0), ("helper", 1)}
    assert isinstance(inner[0].event, RunStarted)
    assert isinstance(inner[-1].event, RunFinished)
    assert len({event.run_id for event in inner}) == 1
    for run_id in {event.run_id for event in events}:
        numbers = [event.number for event in events if event.run_id == run_id]
        assert numbers == list(range(1, len(numbers) + 1))
    names = [type(event.event) for event in events]
    outer = [type(event.event) for event in events if not event.depth]
    assert names.index(ToolStarted) < events.index(inner[0]) < events.index(inner[-1])
    assert outer.count(RunFinished) == 1
    assert [run_event_from_json(run_event_to_json(event)) for event in events] == events


def test_what_the_child_says_is_its_result_and_nothing_of_it_is_in_the_history() -> None:
    child = helper([answer("It is 3.")])
    agent = boss([asks("helper"), answer("Three.")], child.as_tool(name="ask_helper", description="Adds."))
    assert agent.function_map["ask_helper"].description == "Adds."
    agent = boss([asks("helper"), answer("Three.")], child.as_tool())
    result = agent.ask("go")
    assert results_in(result.messages) == ["It is 3."]
    assert [message.name for message in result.messages] == ["boss", "helper", "boss"]
    assert result.text == "Three."
    assert [message.get_text_content() for message in asked(child)[0].messages] == ["You are helper.", "task 1"]
    lists = list(boss([asks("helper"), answer("Three.")], helper([answer("It is 3.")]).as_tool()).run("go"))
    assert lists[-1] == list(result.messages)


def test_a_stream_has_the_childs_events_with_their_place_and_its_own_as_they_are() -> None:
    stream = boss([asks("helper"), answer("Three.")], helper([answer("It is 3.")]).as_tool()).stream("go")
    events = list(stream)
    below = [event for event in events if isinstance(event, RunEvent)]
    assert "".join(event.event.text for event in below if isinstance(event.event, TextDelta)) == "It is 3."
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Three."
    assert stream.result.text == "Three."


def test_a_kind_decides_which_events_of_agents_below_it_passes_on() -> None:
    class Quiet(FnCallAgent):
        async def events(self, run: Run) -> AsyncIterator[Event]:
            async with closing(super().events(run)) as events:
                async for event in events:
                    if not isinstance(event, RunEvent):
                        yield event

    leaf = helper([answer("Leaf.")], name="leaf")
    quiet = Quiet([leaf.as_tool()], ScriptedModel([asks("leaf"), answer("Quiet.")]), "", "quiet", "Says little.")
    events = events_of(boss([asks("quiet"), answer("Done.")], quiet.as_tool()))
    assert {event.agent for event in events} == {"boss", "quiet"}
    assert [event.depth for event in events if isinstance(event.event, RunFinished)] == [1, 0]


def test_usage_and_cost_are_those_of_the_tree_and_of_each_agent() -> None:
    child = helper([answer("a", usage=USED), answer("b", usage=USED)])
    first = [*asks("helper", "helper")[:2], *answer("", usage=USED)]
    result = boss([first, answer("Done.", usage=USED)], child.as_tool()).ask("go")
    assert result.usage.total_tokens == 40
    assert result.cost == Decimal("0.04")
    assert {name: (used.total_tokens, used.cost) for name, used in result.usage_by_agent.items()} == {
        "boss": (20, Decimal("0.02")),
        "helper": (20, Decimal("0.02")),
    }
    assert result.path == ("boss",)
    assert result.to_dict()["usage_by_agent"]["helper"]["total_tokens"] == 20


@pytest.mark.parametrize("limits", [{}, {"tokens": 1_000_000}], ids=["without a limit", "with a limit"])
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_what_agents_used_counts_once_however_deep_they_are(depth: int, limits: dict[str, int]) -> None:
    agent = helper([answer("a", usage=USED)], name="agent_0")
    for number in range(1, depth + 1):
        script = [[*asks(f"agent_{number - 1}")[:1], *answer("", usage=USED)], answer("b", usage=USED)]
        agent = helper(script, [agent.as_tool()], f"agent_{number}", limits=limits if number == depth else None)
    result = agent.ask("go")
    assert (result.usage.total_tokens, result.cost) == (10 + 20 * depth, (1 + 2 * depth) * Decimal("0.01"))


def test_what_an_agent_below_used_counts_although_the_agent_between_failed() -> None:
    leaf = helper([answer("Leaf.", usage=USED)], name="leaf")
    mid = helper(
        [[*asks("leaf")[:1], *answer("", usage=USED)], [ModelRequestError("no", status=400)]], [leaf.as_tool()], "mid"
    )
    result = boss([[*asks("mid")[:1], *answer("", usage=USED)], answer("Done.", usage=USED)], mid.as_tool()).ask("go")
    assert result.text == "Done."
    assert (result.usage.total_tokens, result.cost) == (40, Decimal("0.04"))
    assert {name: used.total_tokens for name, used in result.usage_by_agent.items()} == {
        "boss": 20, "mid": 10, "leaf": 10,
    }  # fmt: skip


def test_children_of_one_turn_work_beside_each_other() -> None:
    both_here = asyncio.Event()
    here: list[str] = []

    @tool(name="meet", description="Meets the other.")
    async def meet() -> str:
        here.append("x")
        if len(here) == 2:
            both_here.set()
        await asyncio.wait_for(both_here.wait(), PATIENCE_S)
        return "met"

    def script(request: ChatRequest) -> Sequence[ModelEvent]:
        return answer("Met.") if request.messages[-1].role == FUNCTION else calls(("meet", {}))

    events = events_of(boss([asks("helper", "helper"), answer("Done.")], helper(script, [meet]).as_tool()))
    assert results_in(events[-1].event.messages) == ["Met.", "Met."]  # type: ignore[union-attr]
    assert len({event.run_id for event in events}) == 3


def test_a_child_of_a_child_is_two_deep_and_counts_once() -> None:
    leaf = helper([answer("leaf", usage=USED)], name="leaf")
    middle = helper([asks("leaf"), answer("middle", usage=USED)], [leaf.as_tool()], name="middle")
    agent = boss([asks("middle"), answer("top", usage=USED)], middle.as_tool())
    result = agent.ask("go")
    assert result.usage.total_tokens == 34
    assert sum(used.total_tokens for used in result.usage_by_agent.values()) == 34
    leaf = helper([answer("leaf")], name="leaf")
    middle = helper([asks("leaf"), answer("middle")], [leaf.as_tool()], name="middle")
    events = events_of(boss([asks("middle"), answer("top")], middle.as_tool()))
    assert {(event.agent, event.depth) for event in events} == {("boss", 0), ("middle", 1), ("leaf", 2)}


def test_what_a_program_passes_reaches_the_tools_of_a_child() -> None:
    @tool(name="who", description="Says who asks.")
    def who(context: ToolContext[str]) -> str:
        return f"It is {context.deps}."

    child = helper([calls(("who", {})), answer("Anna.")], [who])
    boss([asks("helper"), answer("Done.")], child.as_tool()).ask("go", deps="Anna")
    assert results_in(asked(child)[-1].messages) == ["It is Anna."]


def test_an_observer_sees_the_run_of_its_agent_each_event_once() -> None:
    class Watching(Observer):
        name = "watching"

        def __init__(self) -> None:
            self.seen: list[RunEvent] = []

        def observe(self, event: RunEvent) -> None:
            self.seen.append(event)

    parent, below = Watching(), Watching()
    child = helper([answer("It is 3.")], observers=[below])
    events = events_of(boss([asks("helper"), answer("Three.")], child.as_tool(), observers=[parent]))
    assert parent.seen == [event for event in events if not event.depth]
    assert below.seen == [event for event in events if event.depth]


# --- children that do not do well -------------------------------------------------------------------------------------


def test_a_child_that_fails_is_a_result_and_the_parent_goes_on() -> None:
    child = helper(lambda _: [ModelRequestError("refused", backend="scripted")])
    result = boss([asks("helper"), answer("Without it.")], child.as_tool()).ask("go")
    assert result.text == "Without it."
    assert "refused" in results_in(result.messages)[0]


def test_a_child_that_hangs_ends_with_its_time_and_with_the_parents() -> None:
    @tool(name="hang", description="Never ends.")
    async def hang() -> str:
        await asyncio.Event().wait()
        return "never"

    def child() -> FnCallAgent:
        return helper([calls(("hang", {}))], [hang])

    result = boss([asks("helper"), answer("Without it.")], child().as_tool(timeout_s=0.05)).ask("go")
    assert result.text == "Without it."
    assert "did not finish within 0.05 s" in results_in(result.messages)[0]
    limited = boss([asks("helper")], child().as_tool(), limits={"seconds": 0.5}).ask("go")
    assert limited.stop_reason == "time_limit"
    made = sum(message.function_call is not None for message in limited.messages)
    assert len(results_in(limited.messages)) == made, "the call stays open"
    cancel = CancelToken()

    async def cancelled() -> RunFinished:
        async with asyncio.timeout(PATIENCE_S):
            async for event in boss([asks("helper")], child().as_tool()).astream("go", cancel=cancel):
                if event.depth and isinstance(event.event, ToolStarted):
                    cancel.cancel()
        assert isinstance(event.event, RunFinished)
        return event.event

    end = asyncio.run(cancelled())
    assert end.stop_reason == "cancelled"
    assert len(results_in(end.messages)) == 1


def forever(_: ChatRequest) -> Sequence[ModelEvent]:
    return [*calls(("add", {"a": 1, "b": 2}))[:1], *answer("", usage=USED)]


@pytest.mark.parametrize(
    ("limits", "reason", "most_turns"),
    [
        ({"tokens": 40}, "token_limit", 4),
        ({"cost": "0.03"}, "cost_limit", 3),
        ({"tool_calls": 3}, "finished", 5),
    ],
)
def test_a_limit_of_the_parent_holds_for_all_below_it_together(
    limits: dict[str, Any], reason: str, most_turns: int
) -> None:
    child = helper(forever, [add])
    agent = boss(
        [[*asks("helper", "helper")[:2], *answer("", usage=USED)], answer("Done.")], child.as_tool(), limits=limits
    )
    result = agent.ask("go")
    assert result.stop_reason == reason
    assert len(asked(child)) + len(asked(agent)) <= most_turns
    assert len(results_in(result.messages)) == 2, "a call stays open"


@pytest.mark.parametrize("count", [1, 2])
def test_agents_at_work_side_by_side_make_no_call_too_many(count: int) -> None:
    @tool(name="pay", description="Pays.", needs_approval=True)
    def pay() -> str:
        paid.append(1)
        return "paid"

    async def allow(call: object, context: object) -> bool:
        for _ in range(200):  # rounds of the loop: meanwhile, the other one decides
            await asyncio.sleep(0)
        return True

    paid: list[int] = []
    children = [
        FnCallAgent(
            [pay], ScriptedModel([calls(*[("pay", {})] * count), answer("Done.")]), name=name, description="Pays."
        )
        for name in ("ann", "ben")
    ]
    model = ScriptedModel([asks("ann", "ben"), answer("Done.")])
    limits = {"tool_calls": 1 + 2 * count}  # one call too few for both of them
    agent = FnCallAgent([one.as_tool() for one in children], model, approve=allow, limits=limits)
    assert "tool_call_limit" in " ".join(results_in(agent.ask("go").messages))
    assert len(paid) == count


def test_a_call_below_that_nobody_could_approve_takes_nothing_from_the_limit_of_the_parent() -> None:
    @tool(needs_approval=True)
    def pay() -> str:
        """Pay."""
        raise AssertionError("it was not approved")

    first = helper([calls(("pay", {}))], [pay], "first")
    second = helper([calls(("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": 4})), answer("Added.")], [add], "second")
    agent = boss(
        [asks("first"), asks("second"), answer("Done.")], first.as_tool(), second.as_tool(), limits={"tool_calls": 4}
    )
    result = agent.ask("go")
    assert "pay need approval" in results_in(result.messages)[0]
    assert (results_in(result.messages)[1], result.stop_reason) == ("Added.", "finished")


def test_a_limit_of_the_child_ends_the_child_alone_and_the_parent_reads_why() -> None:
    child = helper(forever, [add], limits={"turns": 2})
    result = boss([asks("helper"), answer("I see.")], child.as_tool(), limits={"turns": 2}).ask("go")
    assert (result.text, result.stop_reason) == ("I see.", "finished")
    assert "stopped early: turn_limit" in results_in(result.messages)[0]
    assert len(asked(child)) == 2


@pytest.mark.parametrize(
    ("limits", "reason"),
    [({"tokens": 3}, "token_limit"), ({"tool_calls": 1}, "tool_call_limit"), ({"turns": 1}, "turn_limit")],
)
def test_a_limit_that_both_have_ends_both_with_a_valid_history(limits: dict[str, int], reason: str) -> None:
    child = helper(lambda _: calls(("add", {"a": 1, "b": 2})), [add], limits=limits)
    agent = boss(lambda _: asks("helper"), child.as_tool(), limits=limits)
    result = agent.ask("go")
    assert (result.stop_reason, len(asked(child))) == (reason, 1)
    assert f"stopped early: {reason}" in results_in(result.messages)[0]
    made = [message.function_id for message in result.messages if message.function_call]
    answered = [message.function_id for message in result.messages if message.role == FUNCTION]
    assert answered == (made[:-1] if reason == "tool_call_limit" else made), "a call over the limit stays to be resumed"


def test_a_child_whose_call_needs_approval_asks_whom_the_parent_asks() -> None:
    @tool(name="delete", description="Deletes.", needs_approval=True)
    def delete() -> str:
        return "deleted"

    def agent(**options: Any) -> FnCallAgent:
        child = helper([calls(("delete", {})), answer("Done below.")], [delete])
        return boss([asks("helper"), answer("Done.")], child.as_tool(), **options)

    seen: list[FunctionCall] = []

    def approve(call: FunctionCall, _: ToolContext) -> bool:
        seen.append(call)
        return True

    assert results_in(agent(approve=approve).ask("go").messages) == ["Done below."]
    assert results_in(agent().ask("go", approve=approve).messages) == ["Done below."]
    assert [call.name for call in seen] == ["delete", "delete"]
    assert "delete need approval" in results_in(agent().ask("go").messages)[0]


@pytest.mark.parametrize("way", ["tool", "handoff", "handoff of a tool"])
@pytest.mark.parametrize(
    ("outer", "own", "asked_about"),
    [
        ("ask", None, ["look", "change"]),
        ("read_only", None, ["change"]),
        ({"allow": ["helper", "transfer_*", "change"]}, None, ["look"]),
        ("read_only", "ask", ["look", "change"]),
        ("ask", "marked", ["look", "change"]),
        (None, "read_only", ["change"]),
        (None, None, []),
    ],
)
def test_rules_for_calls_hold_for_agents_that_work_for_it_too(
    way: str, outer: Any, own: Any, asked_about: list[str]
) -> None:
    @tool(name="look", description="Looks.", read_only=True)
    def look() -> str:
        return "seen"

    @tool(name="change", description="Changes.")
    def change() -> str:
        return "changed"

    seen: list[str] = []
    child = helper([calls(("look", {}), ("change", {})), answer("Done.")], [look, change], approve=own)
    options = {"approve": outer}
    if way == "tool":
        result = boss([asks("helper"), answer("Done.")], child.as_tool(), **options)
    elif way == "handoff":
        result = boss([calls(("transfer_to_helper", {}))], handoffs=[child], **options)
    else:
        between = helper([calls(("transfer_to_helper", {}))], name="between", handoffs=[child])
        result = boss([asks("between"), answer("Done.")], between.as_tool(), **options)
    run = result.ask("go", approve=lambda call, _: not seen.append(call.name))
    assert run.stop_reason == "finished"
    assert [name for name in seen if name in ("look", "change")] == asked_about


@pytest.mark.parametrize("way", ["tool", "handoff"])
def test_whom_the_agent_above_asks_decides_about_what_its_rule_asks_about(way: str) -> None:
    child = helper([calls(("add", {"a": 1, "b": 2})), answer("I could not.")], [add], approve=lambda _call, _: True)
    refusing = {"ask": "ask", "by": lambda call, _: call.name != "add"}
    if way == "tool":
        boss([asks("helper"), answer("Done.")], child.as_tool(), approve=refusing).ask("go")
    else:
        boss([calls(("transfer_to_helper", {}))], handoffs=[child], approve=refusing).ask("go")
    assert "did not allow" in results_in(asked(child)[-1].messages)[-1]


def test_the_whole_response_of_an_agent_is_not_that_of_one_that_it_has_asked() -> None:
    below = boss([answer("Looked.")])
    below.name, below.description = "helper", "Helps."
    agent = boss([asks("helper"), answer("Done.")], below.as_tool())
    response = agent.run_nonstream("Go.")
    assert response[-1].content == "Done."
    assert response.usage.total_tokens == 6


def test_what_an_agent_forbids_is_not_done_by_one_that_has_its_tools_from_the_run() -> None:
    @tool(name="fetch", description="Fetches.", effects={"network"})
    def fetch() -> str:
        raise AssertionError("it is forbidden")

    child = helper([calls(("fetch", {})), answer("I could not.")])
    agent = boss([asks("helper"), answer("Done.")], child.as_tool(), forbid=["network"])
    child.function_map["fetch"] = fetch  # after the boss was made: its effects were not known then
    child._schemas.clear()
    assert results_in(agent.ask("go").messages) == ["I could not."]
    assert "is forbidden here" in results_in(asked(child)[-1].messages)[0]


def test_agents_that_ask_each_other_in_a_circle_are_answered_and_end() -> None:
    def script(request: ChatRequest) -> Sequence[ModelEvent]:
        return answer("Enough.") if request.messages[-1].role == FUNCTION else asks("boss")

    child = helper(script)
    agent = boss([asks("helper"), answer("Done.")], child.as_tool())
    agent.description = "Leads."
    child.function_map["boss"] = agent.as_tool()
    child._schemas.clear()
    result = agent.ask("go")
    assert result.text == "Done."
    assert "already working" in results_in(asked(child)[-1].messages)[0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"name": None, "description": "Helps."}, "needs a name"),
        ({"name": "a", "description": None}, "needs a description"),
    ],
)
def test_an_agent_that_cannot_be_a_tool_says_what_it_needs(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        FnCallAgent(llm=ScriptedModel([]), **options).as_tool()


@pytest.mark.parametrize("label", ["two words", "多模态助手", "Image Assistant", "a/b", "é" * 70, "x" * 64])
def test_an_agent_of_any_name_is_a_tool_and_a_handoff_and_people_see_its_name(label: str) -> None:
    helper = FnCallAgent(llm=ScriptedModel([answer("It is done.")]), name=label, description="Helps.")
    entry = helper.as_tool()
    check_tool_name(entry.name)
    assert entry.name == helper.as_tool().name
    assert entry.name == label or label in str(entry.description)
    owner = FnCallAgent(llm=ScriptedModel([]), name="owner", handoffs=[helper])
    (transfer,) = owner.function_map
    check_tool_name(transfer)
    owner = FnCallAgent(llm=ScriptedModel([calls((transfer, {}))]), name="owner", handoffs=[helper])
    assert owner.ask("Help me").path == ("owner", label)


@given(st.text(min_size=1), st.text(min_size=1))
def test_tool_names_of_two_agents_differ_if_their_names_do(first: str, second: str) -> None:
    names = [tool_name_for(label, prefix="transfer_to_") for label in (first, second)]
    for name in names:
        check_tool_name(name)
    assert (names[0] == names[1]) == (first == second)


# --- hand-offs --------------------------------------------------------------------------------------------------------


def hands_over(to: str = "helper", text: str = "") -> list[ModelEvent]:
    return calls((f"transfer_to_{to}", {}), text=text)


def test_after_a_hand_off_the_other_agent_goes_on_in_the_same_run() -> None:
    target = helper([calls(("add", {"a": 1, "b": 2})), answer("It is 3.")], [add])
    agent = boss([hands_over(text="Wait. ")], handoffs=[target])
    events = events_of(agent, [Message("system", "Be brief."), Message("user", "go")])
    assert len({event.run_id for event in events}) == 1
    assert [event.number for event in events] == list(range(1, len(events) + 1))
    place = next(index for index, event in enumerate(events) if isinstance(event.event, HandedOff))
    assert events[place].event == HandedOff("boss", "helper")
    assert {event.agent for event in events[:place]} == {"boss"}
    assert {event.agent for event in events[place:]} == {"helper"}
    assert [event.event.turn for event in events if isinstance(event.event, TurnStarted)] == [1, 2, 3]
    system, question, *rest = asked(target)[0].messages
    assert system.get_text_content() == "You are helper.\n\nBe brief."
    assert question.content == "go"
    assert [message.name for message in rest] == ["boss", "boss", "transfer_to_helper"]


def test_the_result_of_a_hand_off_has_everything_and_the_path() -> None:
    def agent() -> FnCallAgent:
        return boss([hands_over(text="Wait. ")], handoffs=[helper([answer("It is 3.", usage=USED)])])

    result = agent().ask("go")
    assert result.path == ("boss", "helper")
    assert (result.text, result.stop_reason) == ("It is 3.", "finished")
    assert [message.name for message in result.messages] == ["boss", "boss", "transfer_to_helper", "helper"]
    assert result.usage.total_tokens == 12
    assert {name: used.total_tokens for name, used in result.usage_by_agent.items()} == {"boss": 2, "helper": 10}
    assert list(agent().run("go"))[-1] == list(result.messages)


@pytest.mark.parametrize(
    ("history", "seen"),
    [
        ("all", ["user", "assistant", "user", "assistant", "function"]),
        ("question", ["user"]),
        (lambda messages: messages[-2:], ["assistant", "function"]),
    ],
)
def test_the_other_agent_sees_of_the_history_what_it_should(history: Any, seen: list[str]) -> None:
    target = helper([answer("Hello.")])
    agent = boss([hands_over()], handoffs=[Handoff(target, history)])
    before = [Message("user", "first"), Message("assistant", "yes"), Message("user", "go")]
    result = agent.ask(before)
    assert [message.role for message in asked(target)[0].messages] == ["system", *seen]
    assert len(result.history) == 6


def test_what_a_kind_adds_for_its_own_model_stays_with_it() -> None:
    class Informed(FnCallAgent):
        def events(self, run: Run) -> AsyncIterator[Event]:
            return super().events(replace(run, messages=with_system_text(run.messages, "Mine alone.", first=False)))

    target = helper([answer("Hello.")])
    agent = Informed(llm=ScriptedModel([hands_over()]), system_message="You are boss.", name="boss", handoffs=[target])
    agent.ask([Message("system", "Be brief."), Message("user", "go")])
    assert asked(agent)[0].messages[0].get_text_content() == "You are boss.\n\nBe brief.\n\nMine alone."
    assert asked(target)[0].messages[0].get_text_content() == "You are helper.\n\nBe brief."


def test_limits_are_those_of_the_run_whoever_has_the_conversation() -> None:
    target = helper(forever, [add], limits={"turns": 50})
    result = boss([hands_over()], handoffs=[target], limits={"turns": 3}).ask("go")
    assert result.stop_reason == "turn_limit"
    assert len(asked(target)) == 2
    ended = boss([hands_over()], handoffs=[helper([])], limits={"turns": 1}).ask("go")
    assert ended.stop_reason == "turn_limit"
    assert results_in(ended.messages) == ["helper has the conversation now."]


def test_of_two_hand_offs_in_one_turn_the_first_counts() -> None:
    first, second = helper([answer("First.")], name="first"), helper([], name="second")
    agent = boss([calls(("transfer_to_first", {}), ("transfer_to_second", {}))], handoffs=[first, second])
    result = agent.ask("go")
    assert (result.text, result.path) == ("First.", ("boss", "first"))
    assert results_in(result.messages)[1] == "The conversation is already being handed over to first."


def test_a_conversation_does_not_go_round_in_circles() -> None:
    def back(request: ChatRequest) -> Sequence[ModelEvent]:
        refused = "already had this" in request.messages[-1].get_text_content()
        return answer("Then I do it.") if refused else hands_over("boss")

    # Agents are made one after the other, so that a circle can only be closed afterwards.
    stand_in = helper([], name="boss")
    target = helper(back, handoffs=[stand_in])
    agent = boss([hands_over()], handoffs=[target])
    object.__setattr__(target.handoffs[0], "agent", agent)
    result = agent.ask("go")
    assert (result.text, result.path) == ("Then I do it.", ("boss", "helper"))


@pytest.mark.parametrize("back_to", ["boss", "first"])
def test_no_agent_that_had_the_conversation_gets_it_again_however_long_the_circle_is(back_to: str) -> None:
    def back(request: ChatRequest) -> Sequence[ModelEvent]:
        refused = "already had this" in request.messages[-1].get_text_content()
        return answer("Then I do it.") if refused else hands_over(back_to)

    last = helper(back, name="last", handoffs=[helper([], name=back_to)])
    first = helper([hands_over("last")], name="first", handoffs=[last])
    agent = boss([hands_over("first")], handoffs=[first])
    object.__setattr__(last.handoffs[0], "agent", {"boss": agent, "first": first}[back_to])
    result = agent.ask("go")
    assert (result.text, result.path) == ("Then I do it.", ("boss", "first", "last"))


def test_a_paused_run_goes_on_with_the_agent_that_has_the_conversation() -> None:
    @tool(name="delete", description="Deletes.", needs_approval=True)
    def delete() -> str:
        return "deleted"

    def agent(script: Script) -> FnCallAgent:
        last = helper([calls(("delete", {}))] if script else [answer("Gone.")], [delete], name="last")
        return boss(script, handoffs=[helper(script and [hands_over("last")], handoffs=[last])])

    paused = agent([hands_over()]).ask("go")
    assert paused.stop_reason == "approval_needed"
    (call_id,) = paused.waiting
    result = agent([]).ask([], history=paused.history, resume={call_id: True})
    assert (result.text, result.path) == ("Gone.", ("boss", "helper", "last"))
    assert results_in(result.messages) == ["deleted"]


def test_an_agent_that_hands_off_to_itself_is_refused() -> None:
    with pytest.raises(ConfigError, match="'boss' cannot hand off to itself"):
        boss([], handoffs=[helper([], name="boss")])
    with pytest.raises(ConfigError, match="must have a name and a description"):
        boss([], handoffs=[FnCallAgent(llm=ScriptedModel([]), name="x")])
    with pytest.raises(ConfigError, match="BasicAgent does not support handoffs"):
        BasicAgent(llm=ScriptedModel([]), handoffs=[helper([])])
    with pytest.raises(ConfigError, match="two tools are named 'transfer_to_helper'"):
        boss([], handoffs=[helper([]), helper([])])


def test_the_data_that_was_asked_for_comes_from_whoever_has_the_conversation() -> None:
    agent = boss([hands_over(), hands_over()], handoffs=[helper([answer("three"), answer("3")])])
    assert agent.ask("go", output=int).output == 3


# --- as one file ------------------------------------------------------------------------------------------------------

TREE = """
name: boss
function_list:
  - agent: fncall
    name: reader
    description: Reads.
    system_message: You read.
    files: [notes.md]
    function_list:
      - {agent: basic, name: leaf, description: Leaf., files: [deep.md]}
handoffs:
  - agent: fncall
    name: helper
    description: Helps.
    history: question
    handoffs: [{name: last, description: Last.}]
"""


def test_a_tree_of_agents_is_one_file(tmp_path: Path) -> None:
    def script(request: ChatRequest) -> Sequence[ModelEvent]:
        if request.messages[0].get_text_content() == "You read.":
            return answer("Read.")
        if not any(message.role == FUNCTION for message in request.messages):
            return asks("reader") if "reader" in [one["name"] for one in request.functions] else answer("Helped.")
        return hands_over()

    file = tmp_path / "tree.yaml"
    file.write_text(TREE.replace("files: [notes.md]", "").replace(", files: [deep.md]", ""), encoding="utf-8")
    agent = create_agent(load_agent_config(file), llm=ScriptedModel(script))
    assert sorted(agent.function_map) == ["reader", "transfer_to_helper"]
    assert [handoff.agent.name for handoff in agent.handoffs[0].agent.handoffs] == ["last"]
    result = agent.ask("go")
    assert (result.text, result.path) == ("Helped.", ("boss", "helper"))
    assert set(result.usage_by_agent) == {"boss", "reader", "helper"}


def test_files_of_agents_inside_are_beside_the_file(tmp_path: Path) -> None:
    file = tmp_path / "tree.yaml"
    file.write_text(TREE, encoding="utf-8")
    (reader, _) = load_agent_config(file).agents
    assert reader["files"] == [str(tmp_path / "notes.md")]
    assert reader["function_list"][0]["files"] == [str(tmp_path / "deep.md")]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"agent": "fncall", "name": "x", "description": "X", "lllm": 1}, "unknown setting 'lllm'"),
        ({"agent": "fncall", "name": "x"}, "needs a description"),
        ({"agent": "fncall", "name": "x", "lllm": 1}, "agent x: unknown setting 'lllm'"),
        ({"agent": "no_such_kind", "name": "x", "description": "X"}, "no_such_kind"),
    ],
)
def test_a_fault_of_an_agent_inside_is_named(entry: dict[str, Any], said: str) -> None:
    with pytest.raises(Exception, match=said):
        create_agent({"function_list": [entry]}, llm=ScriptedModel([]))
    with pytest.raises(ConfigError, match="a handoff's history"):
        create_agent({"handoffs": [{"name": "x", "description": "X", "history": "some"}]}, llm=ScriptedModel([]))


# --- what an agent above forbids ---


@tool(effects=frozenset({"network"}))
def look_outside() -> str:
    """Look outside."""
    return pytest.fail("it was called")


@pytest.mark.parametrize("way", ["tool", "handoff", "tool of a tool"])
def test_what_an_agent_forbids_no_agent_does_for_it(way: str) -> None:
    below = FnCallAgent(
        [look_outside], ScriptedModel([calls(("look_outside", {}))]), name="scout", description="Looks outside."
    )
    if way == "tool of a tool":
        below = FnCallAgent(
            [below.as_tool()],
            ScriptedModel([calls(("scout", {"request": "look"}))]),
            name="chief",
            description="Leads.",
        )
    wanted = (f"transfer_to_{below.name}", {}) if way == "handoff" else (below.name, {"request": "look"})
    model = ScriptedModel([calls(wanted), answer("Then not.")])
    named = {"handoffs": [below]} if way == "handoff" else {"function_list": [below.as_tool()]}
    result = FnCallAgent(llm=model, name="boss", forbid=["network"], **named).ask("Look outside.")
    assert result.text == "Then not."
    refused = result.messages[1].get_text_content()
    assert "'network', which is forbidden here" in refused
    assert (
        FnCallAgent(llm=ScriptedModel([answer("Yes.")]), name="boss", forbid=["files"], **named).ask("Hi").text
        == "Yes."
    )


class Nothing(Toolset):
    """Has no tools for a run."""

    async def tools_of_run(self, context: Any) -> Sequence[ToolEntry]:
        return ()


@pytest.mark.parametrize(
    ("effects", "answered"), [((), True), (("files",), True), (("network",), False), (None, False)]
)
def test_of_tools_that_are_made_for_a_run_an_agent_above_believes_what_their_set_says(
    effects: Sequence[str] | None, answered: bool
) -> None:
    made = Nothing()
    made.effects = effects
    below = FnCallAgent([made], ScriptedModel([answer("Here.")]), name="scout", description="Looks.")
    model = ScriptedModel([calls(("scout", {"request": "look"})), answer("Done.")])
    result = FnCallAgent([below.as_tool()], model, name="boss", forbid=["network"]).ask("Look.")
    assert (result.messages[1].content == "Here.") is answered
