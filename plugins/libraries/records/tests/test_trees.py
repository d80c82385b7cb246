"""Trees of agents that go on: a run below is known by its place, and what does not fit there is in doubt."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from jackfield import Agent, FnCallAgent, sync, tool
from jackfield.agents import Event, ParentRun, Run
from jackfield.errors import InDoubtError
from jackfield.events import (
    ApprovalNeeded,
    FunctionCallDelta,
    ModelFinished,
    PluginEvent,
    RunFinished,
    ToolFinished,
    ToolStarted,
)
from jackfield.messages import Message
from jackfield.results import RunResult
from jackfield.streams import CancelToken, closing
from jackfield.testing import Script, ScriptedModel, answer, calls
from jackfield.tools import BaseTool, Denial, ToolContext
from jackfield_agent_parts import Answered, ask_below
from jackfield_records import events_of
from jackfield_testkit.records import KilledError, MemoryStore


@dataclass
class World:
    """The effects of all processes, and their store."""

    done: list[str] = field(default_factory=list)
    store: MemoryStore = field(default_factory=MemoryStore)

    def pay(self, **flags: Any) -> BaseTool:
        async def pay(to: str) -> str:
            """Pay somebody."""
            self.done.append(to)
            return f"paid {to}"

        return tool(pay, **flags) if flags else tool(pay)

    def model(self, name: str, script: Script) -> ScriptedModel:
        """It answers as one that has been asked as often as the record says."""
        turns = (entry["messages"][-1]["name"] for entry in self.store.events("TurnFinished"))
        return ScriptedModel([*script][Counter(turns)[name] :])

    def killed_after(self, writes: int, agent: Agent) -> str:
        """Run an agent in a process that ends at a write; gives the id of the run."""
        self.store.writes_left = writes
        with pytest.raises(KilledError):
            agent.ask("Go.")
        self.store.restarted()
        [run_id] = self.store.kept
        return run_id

    def doubts(self, run_id: str) -> list[tuple[str, ...]]:
        events = (one.event for one in events_of(*sync.run(self.store.read(run_id))) if one.depth == 0)
        return [event.in_doubt for event in events if isinstance(event, ApprovalNeeded)]

    def notes(self, run_id: str) -> list[str]:
        events = (one.event for one in events_of(*sync.run(self.store.read(run_id))))
        return [event.data["note"] for event in events if isinstance(event, PluginEvent)]


def helper(world: World, kind: type[FnCallAgent] = FnCallAgent, **options: Any) -> FnCallAgent:
    script: Script = [calls(("pay", {"to": "Ada"})), answer("Ada has it.")]
    options = {"name": "helper", **options}
    return kind([world.pay()], world.model(options["name"], script), description="Pays.", **options)


def boss(world: World, *helpers: Agent, asks: str = "Pay Ada.", name: str = "helper") -> FnCallAgent:
    # Servers write JSON in their own way.
    asking = [FunctionCallDelta(0, "call_1", name, f'{{"request" :{json.dumps(asks)} }}'), ModelFinished("tool_calls")]
    script: Script = [asking, answer("All done.")]
    tools = [one.as_tool(name=name) for one in helpers]
    return FnCallAgent(tools, world.model("boss", script), name="boss", store=world.store)


PAID = 5  # create; turn; below: begin, turn, result


def test_a_helper_whose_prompt_has_changed_continues() -> None:
    world = World()
    run_id = world.killed_after(PAID, boss(world, helper(world, system_message="Today is Monday.")))
    result = boss(world, helper(world, system_message="Today is Tuesday.")).resume(run_id)
    assert (result.text, world.done) == ("All done.", ["Ada"])


def test_a_helper_whose_question_contains_a_secret_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAKE_API_KEY", "birthday-cake-4711")
    world = World()
    asks = "Pay Ada for the birthday-cake-4711."
    run_id = world.killed_after(PAID, boss(world, helper(world), asks=asks))
    result = boss(world, helper(world), asks=asks).resume(run_id)
    assert (result.text, world.done) == ("All done.", ["Ada"])


class Dated(FnCallAgent):
    """Asks its helper without a tool call, in words that change from day to day."""

    resumable = True
    day = "Monday"
    helper: Agent

    async def events(self, run: Run) -> AsyncIterator[Event]:
        parent, answered = ParentRun(run, run.start.spent), Answered()
        async with closing(ask_below(self.helper, f"{self.day}: pay Ada.", parent, answered)) as events:
            async for event in events:
                yield event
        if answered.stop_reason == "approval_needed":
            yield RunFinished("approval_needed", (), parent.spent.usage)
            return
        yield RunFinished("finished", (Message("assistant", answered.text),), parent.spent.usage)


def dated(world: World, day: str, asked: FnCallAgent | None = None) -> Dated:
    agent = Dated(llm=ScriptedModel([]), name="boss", store=world.store)
    agent.day, agent.helper = day, asked or helper(world)
    return agent


class Dating(BaseTool):
    """Asks a helper in a tool call, in words that change."""

    name, description, resumable = "helper", "Pays.", True

    def __init__(self, agent: Agent, day: str, times: int = 1) -> None:
        super().__init__()
        self._agent, self._day, self._times = agent, day, times

    async def call(self, params: Any, *, context: ToolContext | None = None) -> str:
        assert context is not None
        assert isinstance(context.run, ParentRun)
        said = []
        for _ in range(self._times):
            answered = Answered()
            async for event in ask_below(self._agent, f"{self._day}: pay Ada.", context.run, answered):
                context.run.emit(event)
            said.append(answered.text)
        return " ".join(said)


def test_a_question_that_has_changed_puts_what_was_done_in_doubt_and_repeats_nothing() -> None:
    world = World()
    run_id = world.killed_after(4, dated(world, "Monday"))  # create; below: begin, turn, result
    assert world.done == ["Ada"]
    waiting = dated(world, "Tuesday").resume(run_id)
    assert (waiting.stop_reason, world.done) == ("approval_needed", ["Ada"])
    assert world.doubts(run_id) == [tuple(waiting.waiting)], "and it says so"
    for refusal in (False, Denial("Never twice.")):
        with pytest.raises(InDoubtError, match="Agent helper was interrupted"):
            dated(world, "Tuesday").resume(run_id, approvals=dict.fromkeys(waiting.waiting, refusal))
    assert world.done == ["Ada"]
    fresh = helper(World())
    again = FnCallAgent([world.pay()], fresh.llm, name="helper", description="Pays.")
    result = dated(world, "Tuesday", again).resume(run_id, approvals=dict.fromkeys(waiting.waiting, True))
    assert (result.text, world.done) == ("Ada has it.", ["Ada", "Ada"]), "a person has agreed to it"
    assert [note for note in world.notes(run_id) if "starts over" in note]


def test_a_question_that_has_not_changed_continues_without_a_tool_call() -> None:
    world = World()
    run_id = world.killed_after(4, dated(world, "Monday"))
    assert (dated(world, "Monday").resume(run_id).text, world.done) == ("Ada has it.", ["Ada"])


@pytest.mark.parametrize("refusal", [False, Denial("Never twice.")], ids=["no", "with a reason"])
def test_another_agent_at_the_place_puts_what_was_done_in_doubt(refusal: bool | Denial) -> None:
    world = World()
    run_id = world.killed_after(PAID, boss(world, helper(world)))
    other = boss(world, helper(world, name="other"))
    waiting = other.resume(run_id)
    assert (waiting.stop_reason, world.done) == ("approval_needed", ["Ada"])
    assert [call.name for call in waiting.waiting.values()] == ["helper"]
    assert world.doubts(run_id) == [tuple(waiting.waiting)]
    result = boss(world, helper(world, name="other")).resume(run_id, approvals=dict.fromkeys(waiting.waiting, refusal))
    assert (result.text, world.done) == ("All done.", ["Ada"])
    told = [message.get_text_content() for message in result.messages if message.role == "function"]
    assert "It may have done some of its work" in told[0], "the model reads it"


def test_a_call_of_a_helper_that_was_under_way_is_in_doubt_in_the_run_above() -> None:
    world = World()
    run_id = world.killed_after(PAID - 1, boss(world, helper(world)))
    waiting = boss(world, helper(world)).resume(run_id)
    assert [call.name for call in waiting.waiting.values()] == ["pay"]
    assert world.doubts(run_id) == [tuple(waiting.waiting)]
    assert all(call_id.startswith("call_1/") for call_id in waiting.waiting)


@pytest.mark.parametrize(("decision", "done"), [(False, ["Ada"]), (True, ["Ada", "Ada"])], ids=["no", "yes"])
def test_a_person_decides_whether_a_tool_asks_an_interrupted_helper_again(decision: bool, done: list[str]) -> None:
    def agent(world: World, day: str, asked: FnCallAgent) -> FnCallAgent:
        says: Script = [calls(("helper", {})), answer("All done.")]
        return FnCallAgent([Dating(asked, day)], world.model("boss", says), name="boss", store=world.store)

    world = World()
    run_id = world.killed_after(PAID, agent(world, "Monday", helper(world)))
    waiting = agent(world, "Tuesday", helper(world)).resume(run_id)
    assert (waiting.stop_reason, world.done) == ("approval_needed", ["Ada"])
    [call] = waiting.waiting.values()
    assert (call.name, call.arguments) == ("helper", "{}"), "as the model wrote it"
    assert world.doubts(run_id) == [tuple(waiting.waiting)]
    again = FnCallAgent([world.pay()], helper(World()).llm, name="helper", description="Pays.")
    approvals = dict.fromkeys(waiting.waiting, decision)
    result = agent(world, "Tuesday", again).resume(run_id, approvals=approvals)
    assert (result.text, world.done) == ("All done.", done)


def test_an_agreed_repetition_of_a_helper_happens_once() -> None:
    world = World()
    run_id = world.killed_after(PAID, boss(world, helper(world)))
    waiting = boss(world, helper(world, name="other")).resume(run_id)
    yes = dict.fromkeys(waiting.waiting, True)
    world.store.writes_left = 4  # resumed; below: begin, turn, result
    with pytest.raises(KilledError):
        boss(world, helper(world, name="other")).resume(run_id, approvals=yes)
    world.store.restarted()
    assert world.done == ["Ada", "Ada"]
    result = boss(world, helper(world, name="other")).resume(run_id, approvals=yes)
    assert (result.text, world.done) == ("All done.", ["Ada", "Ada"])


def test_a_helper_that_only_answered_begins_again_and_says_so() -> None:
    world = World()

    def talker(**options: Any) -> FnCallAgent:
        script: Script = [answer("Hm."), answer("Hm.")]
        return FnCallAgent([], ScriptedModel(script), name="helper", description="Talks.", **options)

    run_id = world.killed_after(3, dated(world, "Monday", talker()))  # create; below: begin, end
    assert dated(world, "Tuesday", talker()).resume(run_id).text == "Hm."
    assert [note for note in world.notes(run_id) if "starts over" in note]


@pytest.mark.parametrize("times", [1, 2])
def test_a_tool_that_asks_the_same_helper_again_finds_each_of_its_runs(times: int) -> None:
    def agent(world: World, paid: set[str]) -> FnCallAgent:
        @tool(idempotent=True)
        async def pay(context: ToolContext) -> str:
            """Pay."""
            paid.add(f"{context.run_id} {context.call_id}")
            return "paid"

        script: Script = [calls(("pay", {})), answer("Ada has it.")] * times
        asked = FnCallAgent([pay], world.model("helper", script), name="helper", description="Pays.")
        boss_says: Script = [calls(("helper", {})), answer("All done.")]
        tools = [Dating(asked, "Monday", times)]
        return FnCallAgent(tools, world.model("boss", boss_says), name="boss", store=world.store)

    for writes in range(3, 4 + 4 * times):
        world, paid = World(), set[str]()
        run_id = world.killed_after(writes, agent(world, paid))
        result = agent(world, paid).resume(run_id)
        assert (result.text, len(paid)) == ("All done.", times), writes


def test_several_calls_of_one_turn_to_the_same_helper_find_their_own_runs() -> None:
    def agent(world: World) -> FnCallAgent:
        # Which of the two asks the model first is open: they ask for the same.
        script: Script = [calls(("pay", {"to": "Ada"}))] * 2 + [answer("Paid.")] * 2
        asked = FnCallAgent([world.pay()], world.model("helper", script), name="helper", description="Pays.")
        both: Script = [calls(("helper", {"request": "Pay."}), ("helper", {"request": "Pay."})), answer("All done.")]
        return FnCallAgent([asked.as_tool()], world.model("boss", both), name="boss", store=world.store)

    for writes in range(8, 13):
        world = World()
        run_id = world.killed_after(writes, agent(world))
        before = len(world.done)
        result = agent(world).resume(run_id)
        if not result.waiting:
            assert (result.text, len(world.done)) == ("All done.", 2), writes
        else:
            assert len(world.done) == before, "what is in doubt is not repeated"


class BeginsAgain(FnCallAgent):
    """It says nothing of `resumable`."""

    def events(self, run: Run) -> AsyncIterator[Event]:
        return super().events(run)


@pytest.mark.parametrize(("writes", "done"), [(2, []), (4, ["Ada"])], ids=["when it was asked", "after a call"])
def test_a_kind_that_would_begin_again_is_in_doubt_also_without_a_tool_call(writes: int, done: list[str]) -> None:
    world = World()
    run_id = world.killed_after(writes, dated(world, "Monday", helper(world, BeginsAgain)))
    assert world.done == done
    result = dated(world, "Monday", helper(World(), BeginsAgain)).resume(run_id)
    assert (result.stop_reason, world.done) == ("approval_needed", done)


def test_a_kind_that_would_begin_again_and_had_ended_is_not_asked_again() -> None:
    world = World()
    limits = {"turns": 1}
    run_id = world.killed_after(5, dated(world, "Monday", helper(world, BeginsAgain, limits=limits)))
    again = BeginsAgain([world.pay()], helper(World()).llm, name="helper", description="Pays.", limits=limits)
    result = dated(world, "Monday", again).resume(run_id)
    assert (result.stop_reason, world.done) == ("finished", ["Ada"])


# --- calls in doubt ---


def stopping(world: World, token: CancelToken, **flags: Any) -> BaseTool:
    @tool(name="pay", **flags)
    async def pay() -> str:
        """Pay."""
        world.done.append("pay")
        if len(world.done) == 1:
            token.cancel()
            await asyncio.Event().wait()
        return "paid"

    return pay


def cancelled(world: World, **flags: Any) -> tuple[FnCallAgent, RunResult[Any]]:
    token = CancelToken()
    script: Script = [calls(("pay", {})), answer("Paid.")]

    def agent() -> FnCallAgent:
        return FnCallAgent(
            [stopping(world, token, **flags)], world.model("boss", script), name="boss", store=world.store
        )

    ended = agent().ask("Pay.", cancel=token)
    assert ended.stop_reason == "cancelled"
    return agent(), ended


def test_a_call_that_was_stopped_with_its_run_is_in_doubt_when_the_run_is_resumed() -> None:
    world = World()
    agent, ended = cancelled(world)
    waiting = agent.resume(ended.run_id)
    assert (waiting.stop_reason, world.done) == ("approval_needed", ["pay"])
    assert world.doubts(ended.run_id) == [tuple(waiting.waiting)]
    result = agent.resume(ended.run_id, approvals=dict.fromkeys(waiting.waiting, False))
    assert (result.text, world.done) == ("Paid.", ["pay"])
    [told] = [message.get_text_content() for message in result.messages if message.role == "function"]
    assert "may or may not" in told


def test_a_stopped_call_that_may_be_repeated_is_made_again_when_the_run_is_resumed() -> None:
    world = World()
    agent, ended = cancelled(world, idempotent=True)
    assert agent.resume(ended.run_id).text == "Paid."
    assert world.done == ["pay", "pay"]


def test_a_stopped_helper_continues_when_the_run_is_resumed() -> None:
    world, token = World(), CancelToken()

    def agent() -> FnCallAgent:
        @tool(idempotent=True)
        async def look() -> str:
            """Look."""
            token.cancel()
            await asyncio.Event().wait()
            return "never"

        script: Script = [calls(("pay", {"to": "Ada"})), calls(("look", {})), answer("Paid.")]
        asked = FnCallAgent([world.pay(), look], world.model("helper", script), name="helper", description="Pays.")
        return boss(world, asked)

    ended = agent().ask("Go.", cancel=token)
    assert (ended.stop_reason, world.done) == ("cancelled", ["Ada"])

    @tool(name="look", idempotent=True)
    def look() -> str:
        """Look."""
        return "seen"

    asked = FnCallAgent([world.pay(), look], ScriptedModel([answer("Paid.")]), name="helper", description="Pays.")
    result = boss(world, asked).resume(ended.run_id)
    assert (result.text, world.done) == ("All done.", ["Ada"])


def test_a_result_that_came_while_the_reader_left_is_recorded() -> None:
    world = World()

    async def leave() -> None:
        script: Script = [calls(("pay", {"to": "Ada"}), ("wait", {})), answer("Done.")]
        begun = asyncio.Event()

        @tool
        async def wait() -> str:
            """Wait."""
            begun.set()
            await asyncio.Event().wait()
            return "never"

        agent = FnCallAgent([world.pay(), wait], ScriptedModel(script), store=world.store)
        async with closing(agent.astream("Go.")) as events:
            async for event in events:
                if isinstance(event.event, ToolStarted) and event.event.call.name == "wait":
                    break
            while not world.done:
                await asyncio.sleep(0)
            for _ in range(20):
                await asyncio.sleep(0)

    asyncio.run(leave())
    assert world.done == ["Ada"]
    results = world.store.events("ToolFinished")
    assert [entry["message"]["name"] for entry in results] == ["pay"]


def test_an_approval_of_a_call_in_doubt_counts_only_once_the_doubt_was_reported() -> None:
    world = World()
    script: Script = [calls(("pay", {"to": "Ada"})), answer("Paid.")]

    def agent() -> FnCallAgent:
        tools = [world.pay(needs_approval=True)]
        return FnCallAgent(tools, world.model("boss", script), name="boss", store=world.store)

    paused = agent().ask("Pay.")
    yes = dict.fromkeys(paused.waiting, True)
    world.store.writes_left, world.store.early = 2, True  # resumed; not the result
    with pytest.raises(KilledError):
        agent().resume(paused.run_id, approvals=yes)
    world.store.restarted()
    world.store.early = False
    assert world.done == ["Ada"]
    again = agent().resume(paused.run_id, approvals=yes)  # the same command, typed again
    assert (again.stop_reason, world.done) == ("approval_needed", ["Ada"])
    assert world.doubts(paused.run_id)[-1] == tuple(yes)
    result = agent().resume(paused.run_id, approvals=yes)  # who has read that
    assert (result.text, world.done) == ("Paid.", ["Ada", "Ada"])


def test_each_repetition_of_a_call_in_doubt_needs_its_own_approval() -> None:
    world = World()
    script: Script = [calls(("pay", {"to": "Ada"})), answer("Paid.")]

    def agent() -> FnCallAgent:
        return FnCallAgent([world.pay()], world.model("boss", script), name="boss", store=world.store)

    run_id = world.killed_after(2, agent())
    yes = dict.fromkeys(agent().resume(run_id).waiting, True)
    world.store.writes_left, world.store.early = 2, True  # resumed; not the result
    with pytest.raises(KilledError):
        agent().resume(run_id, approvals=yes)
    world.store.restarted()
    world.store.early = False
    made = len(world.done)
    assert agent().resume(run_id, approvals=yes).stop_reason == "approval_needed"
    assert len(world.done) == made
    assert agent().resume(run_id, approvals=yes).text == "Paid."


@pytest.mark.filterwarnings("error::RuntimeWarning")  # nothing that was not begun is left to be awaited
@pytest.mark.parametrize("flags", [{}, {"idempotent": True}])
def test_a_call_in_doubt_that_is_cancelled_before_it_is_repeated_stays_in_doubt(flags: dict[str, bool]) -> None:
    world = World()
    script: Script = [calls(("pay", {"to": "Ada"})), answer("Paid.")]

    def agent() -> FnCallAgent:
        return FnCallAgent([world.pay(**flags)], world.model("boss", script), name="boss", store=world.store)

    run_id = world.killed_after(2, agent())
    answers = {} if flags else dict.fromkeys(agent().resume(run_id).waiting, True)
    for reads in range(1, 8):
        token, texts = CancelToken(), list[str]()

        async def run(reads: int = reads, token: CancelToken = token, texts: list[str] = texts) -> None:
            count = 0
            async for one in agent().astream((), run_id=run_id, resume=answers or True, cancel=token):
                count += 1
                if count == reads:
                    token.cancel()
                if isinstance(one.event, ToolFinished):
                    texts.append(one.event.message.get_text_content())

        asyncio.run(run())
        assert not [text for text in texts if "Nothing was done" in text], reads


def test_calls_of_two_turns_with_one_id_are_two_places() -> None:
    def agent(world: World) -> FnCallAgent:
        script: Script = [calls(("pay", {"to": "Ada"})), answer("Paid.")] * 2
        asked = FnCallAgent([world.pay()], world.model("helper", script), name="helper", description="Pays.")
        asking = [FunctionCallDelta(0, "same", "helper", '{"request": "Pay."}'), ModelFinished("tool_calls")]
        boss_says: Script = [asking, asking, answer("All done.")]
        return FnCallAgent([asked.as_tool()], world.model("boss", boss_says), name="boss", store=world.store)

    for writes in (7, 8, 9):  # after the first helper; with the second turn; with the second helper
        world = World()
        run_id = world.killed_after(writes, agent(world))
        result = agent(world).resume(run_id)
        assert (result.text, world.done) == ("All done.", ["Ada", "Ada"]), writes


def test_a_tool_of_anybody_that_asks_a_helper_cannot_take_its_pause_for_an_answer() -> None:
    world = World()
    took: list[str] = []

    def agent(**options: Any) -> FnCallAgent:
        script: Script = [calls(("pay", {"to": "Ada"})), answer("Ada has it.")]
        payer = FnCallAgent([world.pay(needs_approval=True)], world.model("payer", script), name="payer")

        @tool(idempotent=True)
        async def delegate(context: ToolContext) -> str:
            """Ask the payer."""
            answered = Answered()
            assert isinstance(context.run, ParentRun)
            async with closing(ask_below(payer, "Pay Ada.", context.run, answered)) as events:
                async for _ in events:
                    pass
            took.append(answered.text)
            return answered.text

        parent: Script = [calls(("delegate", {})), answer("All done.")]
        return FnCallAgent([delegate], world.model("boss", parent), name="boss", **options)

    [told] = [one for one in agent().ask("Go.").messages if one.role == "function"]
    assert "need approval, but no approver is available" in told.get_text_content()
    paused = agent(store=world.store).ask("Go.")
    assert (paused.stop_reason, world.done, took) == ("approval_needed", [], [])
    assert [call.name for call in paused.waiting.values()] == ["pay"]
    approved = dict.fromkeys(paused.waiting, True)
    result = agent(store=world.store).resume(paused.run_id, approvals=approved)
    assert (result.text, world.done, took) == ("All done.", ["Ada"], ["Ada has it."])


def test_a_resumed_agent_acts_under_the_id_of_its_run_at_every_depth() -> None:
    store, seen = MemoryStore(), list[str]()

    @tool(needs_approval=True)
    def note(context: ToolContext[Any]) -> str:
        """Note the run."""
        seen.append(context.run_id)
        return "noted"

    def says(request: Any) -> Any:
        return answer("Done.") if request.messages[-1].role == "function" else calls(("note", {}))

    def boss_says(request: Any) -> Any:
        if request.messages[-1].role != "function":
            return calls(("note", {}))
        noted = sum(message.role == "function" for message in request.messages)
        return calls(("helper", {"request": "Note it."})) if noted == 1 else answer("All is noted.")

    def boss() -> FnCallAgent:
        helper = FnCallAgent([note], ScriptedModel(says), name="helper", description="Notes.")
        return FnCallAgent([note, helper.as_tool()], ScriptedModel(boss_says), name="boss", store=store)

    result = boss().ask("Note it.")
    while result.waiting:
        result = boss().resume(result.run_id, approvals=dict.fromkeys(result.waiting, True))
    [run_id] = store.kept
    below = [json.loads(entry)["asked"]["run_id"] for entry in store.kept[run_id].entries if '"asked"' in entry]
    assert seen == [run_id, *below]
