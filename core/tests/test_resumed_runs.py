"""Runs that go on: what was under way is in doubt, turns are counted on, and each agent has its own part again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jackfield import Agent, FnCallAgent, Message, tool
from jackfield.agents import Event, Handoff, Run, run_as
from jackfield.errors import ConfigError
from jackfield.events import (
    ApprovalNeeded,
    FunctionCallDelta,
    HandedOff,
    ModelEvent,
    ModelFinished,
    ToolStarted,
    TurnStarted,
)
from jackfield.messages import FUNCTION, FunctionCall
from jackfield.request import ChatRequest
from jackfield.streams import closing
from jackfield.testing import Script, ScriptedModel, answer, calls
from jackfield_testkit.records import MemoryStore, interrupted
from tests.support.agents import Seeing, add, seeing

PATIENCE_S = 30


@pytest.mark.parametrize(
    ("kind", "doubtful"),
    [(None, "pay"), (FnCallAgent, "pay"), (Seeing, "clerk")],
    ids=["of the agent", "of an agent below", "of an agent below that cannot go on"],
)
def test_a_call_that_was_under_way_when_a_run_was_left_is_in_doubt_when_it_goes_on(
    kind: type[FnCallAgent] | None, doubtful: str
) -> None:
    store, began = MemoryStore(), asyncio.Event()

    @tool
    async def pay() -> str:
        """Pay."""
        began.set()
        await asyncio.Event().wait()
        return "paid"

    def agent() -> FnCallAgent:
        def once(call: FunctionCallDelta) -> ScriptedModel:
            """Make the call, and then say that it is over."""
            first = [call, ModelFinished("tool_calls")]
            return ScriptedModel(lambda request: answer("Over.") if request.messages[-1].role == FUNCTION else first)

        model = once(FunctionCallDelta(0, "p", "pay", "{}"))
        if kind is None:
            return FnCallAgent([pay], model, name="clerk", store=store)
        clerk = kind([pay], model, name="clerk", description="Pays.")
        # The arguments are as a model writes them, not as this library would.
        ask = once(FunctionCallDelta(0, "c", "clerk", '{"request":  "Pay."}'))
        return FnCallAgent([clerk.as_tool()], ask, store=store)

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
    run_id = next(iter(store.kept))
    stream = agent().stream([], run_id=run_id, resume=True)
    [needed] = [event for event in stream if isinstance(event, ApprovalNeeded)]
    assert stream.result.stop_reason == "approval_needed"
    assert needed.in_doubt == needed.call_ids != ()
    assert [call.name for call in needed.calls] == [doubtful]
    over = agent().resume(run_id, approvals=dict.fromkeys(needed.call_ids, False))
    assert (over.text, over.stop_reason) == ("Over.", "finished")


def test_a_call_that_needs_approval_names_each_agent_on_the_way_to_it_and_its_answer_gets_there() -> None:
    store, paid = MemoryStore(), list[str]()

    @tool(needs_approval=True)
    def pay(to: str) -> str:
        """Pay."""
        paid.append(to)
        return f"paid {to}"

    def boss() -> FnCallAgent:
        def script(*asked: tuple[str, dict[str, object]]) -> ScriptedModel:
            return ScriptedModel(lambda one: answer("Done.") if one.messages[-1].role == FUNCTION else calls(*asked))

        pays = script(("pay", {"to": "Ada"}), ("pay", {"to": "Bob"}))
        leaf = FnCallAgent([pay], pays, name="leaf", description="Pays.")
        mid = FnCallAgent([leaf.as_tool()], script(("leaf", {"request": "x"})), name="mid", description="Asks.")
        return FnCallAgent([mid.as_tool()], script(("mid", {"request": "x"})), store=store)

    stream = boss().stream("Go.")
    [needed] = [event for event in stream if isinstance(event, ApprovalNeeded)]
    assert needed.agents == ("mid/leaf",) * 2
    assert [call.name for call in needed.calls] == ["pay", "pay"]
    first, second = needed.call_ids
    result = boss().resume(stream.result.run_id, approvals={first: False, second: True})
    assert (result.text, paid) == ("Done.", ["Bob"])


# --- turns ---


def next_step(request: ChatRequest) -> list[ModelEvent]:
    """The clerk's answers: a call first, and a text once it has the result; the desk hands over."""
    offered = [schema["name"] for schema in request.functions]
    if "transfer_to_clerk" in offered:
        return calls(("transfer_to_clerk", {}))
    return answer("2.") if request.messages[-1].name == "add" else calls(("add", {"a": 1, "b": 1}))


class InTurns(FnCallAgent):
    """Gives the conversation to one agent, whose turns are counted from 0."""

    resumable = True
    member: Agent

    async def events(self, run: Run) -> AsyncIterator[Event]:
        if not run.later_parts:
            yield HandedOff("hub", "clerk")
        part = run_as(self.member, run, run.messages, replace(run.start.spent, turns=0))
        async with closing(self.member.events(part)) as events:
            async for event in events:
                yield event


def desk_and_clerk(store: MemoryStore, way: str) -> FnCallAgent:
    clerk = FnCallAgent([add], ScriptedModel(next_step), name="clerk", description="Adds.")
    if way == "handed over":
        return FnCallAgent(llm=ScriptedModel(next_step), name="desk", handoffs=[clerk], store=store)
    hub = InTurns(llm=ScriptedModel(next_step), name="hub", store=store)
    hub.member = clerk
    return hub


@pytest.mark.parametrize("way", ["handed over", "in turns"])
def test_the_turns_of_an_agent_that_goes_on_are_counted_on_wherever_the_run_was_interrupted(way: str) -> None:
    whole = list(desk_and_clerk(MemoryStore(), way).stream("1 + 1?"))
    numbers = [one.turn for one in whole if isinstance(one, TurnStarted)]
    tried = 0
    for store in interrupted(lambda store: desk_and_clerk(store, way).ask("1 + 1?")):
        for run_id in store.kept:
            before = len(store.events("TurnFinished"))
            stream = desk_and_clerk(store, way).stream([], run_id=run_id)
            rest = [one.turn for one in stream if isinstance(one, TurnStarted)]
            assert rest == numbers[before:]
            assert stream.result.text == "2."
            tried += 1
    assert tried > 3


def desk_clerk_and_expert(store: MemoryStore) -> FnCallAgent:
    def transferring(name: str, to: FnCallAgent, **options: Any) -> FnCallAgent:
        model = ScriptedModel(lambda _: calls((f"transfer_to_{to.name}", {})))
        return FnCallAgent(llm=model, name=name, description="Knows who adds.", handoffs=[to], **options)

    expert = FnCallAgent([add], ScriptedModel(next_step), name="expert", description="Adds.")
    return transferring("desk", transferring("clerk", expert), store=store)


def test_a_run_goes_on_with_the_last_of_several_agents_that_got_the_conversation() -> None:
    reached = set[int]()
    for store in interrupted(lambda store: desk_clerk_and_expert(store).ask("1 + 1?")):
        for run_id in store.kept:
            reached.add(len(store.events("HandedOff")))
            result = desk_clerk_and_expert(store).resume(run_id)
            assert (result.text, result.path) == ("2.", ("desk", "clerk", "expert"))
    assert reached == {0, 1, 2}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda clerk: setattr(clerk, "name", "scribe"),
            "the run was handed off to agent 'clerk', which is no longer a handoff target of 'desk'",
        ),
        (
            lambda clerk: object.__setattr__(clerk, "resumable", False),
            "agent 'clerk', which has the conversation, cannot resume a run: doing so would repeat finished steps",
        ),
    ],
    ids=["another agent", "one that cannot go on"],
)
def test_a_run_goes_on_only_with_the_agents_that_it_was_recorded_with(
    change: Callable[[Agent], object], said: str
) -> None:
    refused = 0
    for store in interrupted(lambda store: desk_and_clerk(store, "handed over").ask("1 + 1?")):
        for run_id in store.kept:
            begun = any(entry["messages"][-1]["name"] == "clerk" for entry in store.events("TurnFinished"))
            desk = desk_and_clerk(store, "handed over")
            change(desk.handoffs[0].agent)  # type: ignore[arg-type]
            if store.events("RunFinished") or not store.events("HandedOff"):
                continue
            if not begun and "cannot resume" in said:
                assert desk.resume(run_id).text == "2."
                continue
            with pytest.raises(ConfigError) as caught:
                desk.resume(run_id)
            assert str(caught.value) == said
            refused += 1
    assert refused > 1


@pytest.mark.parametrize("handoffs", [["scribe"], []], ids=["another agent", "none"])
def test_a_recorded_hand_off_to_an_agent_that_is_gone_is_reported_before_open_calls_are_made(
    handoffs: list[str],
) -> None:
    looks: list[str] = []

    @tool(read_only=True)
    def look() -> str:
        """Look."""
        looks.append("looked")
        return "seen"

    def desk(store: MemoryStore, names: list[str]) -> FnCallAgent:
        targets = [FnCallAgent(llm=ScriptedModel([answer("done")]), name=name, description="Is new.") for name in names]
        model = ScriptedModel([calls(("transfer_to_clerk", {}), ("look", {}))])
        return FnCallAgent([look], model, name="desk", handoffs=targets, store=store)

    tried = 0
    for store in interrupted(lambda store: desk(store, ["clerk"]).ask("Go.")):
        for run_id in store.kept:
            handed_over = [one for one in store.events("ToolFinished") if "clerk" in str(one.get("metadata"))]
            if len(store.events("ToolFinished")) != 1 or not handed_over:
                continue  # `look` is open, and the hand-off is recorded
            looks.clear()
            with pytest.raises(ConfigError, match="handed off to agent 'clerk', which is no longer a handoff"):
                desk(store, handoffs).resume(run_id)
            assert looks == []
            desk(store, ["clerk"]).resume(run_id)
            assert looks == ["looked"], "it is made with the agent that the record names"
            tried += 1
    assert tried


def test_a_member_that_speaks_in_another_ones_turn_is_named() -> None:
    store = MemoryStore()
    desk_and_clerk(store, "in turns")
    for store in interrupted(lambda store: desk_and_clerk(store, "in turns").ask("1 + 1?")):
        if len(store.events("TurnFinished")) == 1:
            [run_id] = store.kept
            hub = desk_and_clerk(store, "in turns")
            hub.member.name = "scribe"  # type: ignore[attr-defined]
            said = "interrupted at agent 'clerk', but would resume at 'scribe': resume the run with the agents it was"
            with pytest.raises(ConfigError, match=said):
                hub.resume(run_id)
            return
    pytest.fail("no run was interrupted there")


def test_an_answer_to_a_call_of_the_other_agent_reaches_it_when_a_recorded_run_goes_on() -> None:
    made: list[str] = []

    @tool(needs_approval=True)
    def pay(to: str) -> str:
        """Pay."""
        made.append(to)
        return f"paid {to}"

    def desk(store: MemoryStore) -> FnCallAgent:
        def script(request: ChatRequest) -> list[ModelEvent]:
            return answer("Done.") if request.messages[-1].name == "pay" else calls(("pay", {"to": "Ada"}))

        clerk = FnCallAgent([pay], ScriptedModel(script), name="clerk", description="Pays.")
        hand_over = ScriptedModel(lambda _: calls(("transfer_to_clerk", {})))
        return FnCallAgent(llm=hand_over, name="desk", handoffs=[clerk], store=store)

    for allowed in (True, False):
        store = MemoryStore()
        paused = desk(store).ask("Pay Ada.")
        assert paused.stop_reason == "approval_needed"
        result = desk(store).resume(paused.run_id, approvals=dict.fromkeys(paused.waiting, allowed))
        assert (result.text, result.path) == ("Done.", ("desk", "clerk"))
        assert made == ["Ada"]


# --- hand-offs ---


def test_after_a_pause_the_other_agent_gets_the_question_and_not_the_system_message_of_the_first() -> None:
    @tool(needs_approval=True)
    def look() -> str:
        """Look."""
        return "seen"

    store, asked = MemoryStore(), list[ChatRequest]()

    def desk(script: Script) -> FnCallAgent:
        def hello(request: ChatRequest) -> list[ModelEvent]:
            asked.append(request)
            return answer("Hello.")

        clerk = FnCallAgent([], ScriptedModel(hello), "You are clerk.", "clerk", "Helps.")
        return FnCallAgent([look], ScriptedModel(script), "You are desk.", "desk", handoffs=[clerk], store=store)

    question = [Message("system", "Be kind."), Message("user", "Go.")]
    paused = desk([calls(("look", {}))]).ask(question)
    approvals = dict.fromkeys(paused.waiting, True)
    result = desk([calls(("transfer_to_clerk", {}))]).resume(paused.run_id, approvals=approvals)
    assert (result.text, [message.content for message in result.history[:2]]) == ("Hello.", ["Be kind.", "Go."])
    assert [message.content for message in asked[0].messages] == [
        "You are clerk.\n\nBe kind.", "Go.", "", "seen", "", "clerk has the conversation now.",
    ]  # fmt: skip


def test_a_run_goes_on_although_a_file_of_its_agent_is_gone(tmp_path: Path) -> None:
    @tool(needs_approval=True)
    def look() -> str:
        """Look."""
        return "seen"

    store, rules = MemoryStore(), tmp_path / "rules.md"
    rules.write_text("Be brief.", encoding="utf-8")

    def agent(*steps: Any) -> FnCallAgent:
        return FnCallAgent([look], ScriptedModel(steps), name="clerk", files=[str(rules)], store=store)

    paused = agent(calls(("look", {}))).ask("Go.")
    rules.unlink()
    assert agent(answer("Done.")).resume(paused.run_id, approvals=dict.fromkeys(paused.waiting, True)).text == "Done."


def test_the_agent_that_a_paused_conversation_belongs_to_is_found_in_a_circle_of_hand_offs() -> None:
    script = [calls(("add", {"a": 1, "b": 1}))]
    last = seeing([answer("2.")], "last", [add])
    first = seeing([], "first", handoffs=[last])
    other = seeing([], "other", handoffs=[first])
    object.__setattr__(last, "handoffs", (Handoff(other, tool_name="transfer_to_other"),))
    desk = seeing(script, "desk", handoffs=[other])
    call = FunctionCall("add", '{"a": 1, "b": 1}')
    asked = Message("assistant", "", name="last", function_call=call, extra={"function_id": "c1"})
    result = desk.ask([], history=[Message("user", "1 + 1?"), asked], resume=True)
    assert (result.text, result.path) == ("2.", ("desk", "other", "first", "last"))
