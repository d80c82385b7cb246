"""Records of runs: what was done is not done again, and what may have been done is not done twice unasked."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from pydantic import BaseModel

from jackfield import Agent, FnCallAgent, sync, tool
from jackfield.agents import Event, Run, RunView
from jackfield.errors import ConfigError, ModelRequestError, RunBusyError, RunNotFoundError, StoreError
from jackfield.events import (
    ApprovalDecided,
    ApprovalNeeded,
    FunctionCallDelta,
    HistoryTrimmed,
    ModelEvent,
    ModelFinished,
    PluginEvent,
    RetryScheduled,
    RunEvent,
    RunFinished,
    RunStarted,
    StreamReset,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnFinished,
    UsageReported,
)
from jackfield.messages import FinishReason, FunctionCall, Message, Usage
from jackfield.processors import CallNext, Processor
from jackfield.request import ChatRequest
from jackfield.stores import StoredRun
from jackfield.testing import Script, ScriptedModel, answer, calls
from jackfield.tools import BaseTool, ToolEntry, Toolset
from jackfield_records import events_of, fork, replay
from jackfield_records.eventjson import event_from_json
from jackfield_records.recording import recorder_of
from jackfield_testkit.records import KilledError, MemoryStore


@dataclass
class World:
    """What tools have done, and how often models were asked, whatever processes that were."""

    done: list[str] = field(default_factory=list)
    asked: int = 0

    def tools(self, **flags: Any) -> list[BaseTool]:
        async def pay(to: str) -> str:
            """Pay somebody."""
            self.done.append(to)
            return f"paid {to}"

        return [tool(pay, **flags) if flags else tool(pay)]

    def model(self, asked_before: int = 0) -> ScriptedModel:
        """It answers as one that has been asked so often before."""
        script: list[Any] = [
            calls(("pay", {"to": "Ada"}), ("pay", {"to": "Bob"})),
            calls(("pay", {"to": "Cleo"})),
            answer("All are paid."),
        ]
        return ScriptedModel(script[asked_before:])


def turns_in(store: MemoryStore) -> int:
    return len(store.events("TurnFinished"))


def the_run(store: MemoryStore) -> str:
    [run_id] = store.kept
    return run_id


UNBROKEN = ["Ada", "Bob", "Cleo"]
POINTS = 7  # create; turn, result, result; turn, result; turn and end


@pytest.mark.parametrize("early", [False, True], ids=["after it", "before it"])
@pytest.mark.parametrize("point", range(1, POINTS + 1))
def test_a_run_that_ended_at_any_write_goes_on_and_repeats_nothing_that_is_recorded(point: int, early: bool) -> None:
    world, store = World(), MemoryStore()
    store.writes_left, store.early = point, early
    with pytest.raises(KilledError):
        FnCallAgent(world.tools(), world.model(), store=store).ask("Pay them.")
    store.restarted()
    if not store.kept:
        assert (point, early) == (1, True)
        assert world.done == []
        return
    run_id = the_run(store)
    before = list(world.done)
    agent = FnCallAgent(world.tools(), world.model(turns_in(store)), store=store)
    result = agent.resume(run_id)
    if result.stop_reason == "approval_needed":
        # Whoever is asked sees what is known: these may have been made, and are not made again.
        assert world.done == before
        needed = [
            one.event for one in events_of(*sync.run(store.read(run_id))) if isinstance(one.event, ApprovalNeeded)
        ]
        assert needed[-1].in_doubt == tuple(result.waiting)
        in_doubt = {call_id: json.loads(call.arguments)["to"] for call_id, call in result.waiting.items()}
        approvals = {call_id: to not in world.done for call_id, to in in_doubt.items()}
        agent = FnCallAgent(world.tools(), world.model(turns_in(store)), store=store)
        result = agent.resume(run_id, approvals=approvals)
    assert result.stop_reason == "finished"
    assert result.text == "All are paid."
    assert sorted(world.done) == UNBROKEN, "nothing is done twice, and nothing is left out"
    assert turns_in(store) == 3
    assert result.run_id == run_id
    assert [call.function_call.arguments for call in result.messages if call.function_call] == [
        json.dumps({"to": name}) for name in UNBROKEN
    ]
    assert result.usage.total_tokens == 6, "what was used before is counted, once"
    assert store.kept[run_id].run.state == "finished"


@pytest.mark.parametrize("flag", ["read_only", "idempotent"])
def test_a_call_that_was_under_way_is_made_again_if_its_tool_allows_it(flag: str) -> None:
    world, store = World(), MemoryStore()
    store.writes_left = 2  # until the calls may begin
    with pytest.raises(KilledError):
        FnCallAgent(world.tools(**{flag: True}), world.model(), store=store).ask("Pay them.")
    store.restarted()
    result = FnCallAgent(world.tools(**{flag: True}), world.model(1), store=store).resume(the_run(store))
    assert result.stop_reason == "finished"
    assert sorted(world.done) == UNBROKEN


def test_nobody_is_asked_in_place_whether_a_call_in_doubt_is_made_again() -> None:
    # Whoever allows all calls of a tool has not thought of one that may be made twice.
    world, store = World(), MemoryStore()
    store.writes_left = 2
    with pytest.raises(KilledError):
        FnCallAgent(world.tools(), world.model(), store=store).ask("Pay them.")
    store.restarted()
    agent = FnCallAgent(world.tools(), world.model(1), store=store, approve=lambda _call, _context: True)
    assert agent.resume(the_run(store)).stop_reason == "approval_needed"
    assert world.done == []


def test_a_call_in_doubt_that_is_refused_gets_a_result_that_says_what_is_known() -> None:
    world, store = World(), MemoryStore()
    store.writes_left = 2
    with pytest.raises(KilledError):
        FnCallAgent(world.tools(), world.model(), store=store).ask("Pay them.")
    store.restarted()
    agent = FnCallAgent(world.tools(), world.model(1), store=store)
    waiting = agent.resume(the_run(store)).waiting
    result = agent.resume(the_run(store), approvals=dict.fromkeys(waiting, False))
    assert world.done == ["Cleo"]
    told = [m.get_text_content() for m in result.messages if m.role == "function"]
    assert ["may or may not" in text for text in told] == [True, True, False]


def test_a_run_that_waits_for_approval_is_approved_by_another_program() -> None:
    world, store = World(), MemoryStore()
    flags = {"needs_approval": True}
    paused = FnCallAgent(world.tools(**flags), world.model(), store=store).ask("Pay them.")
    assert (paused.stop_reason, world.done) == ("approval_needed", [])
    store.restarted()
    agent = FnCallAgent(world.tools(**flags), world.model(1), store=store)
    assert agent.resume(paused.run_id).waiting == paused.waiting, "nobody has answered"
    again = agent.resume(paused.run_id, approvals=dict.fromkeys(paused.waiting, True))
    assert again.stop_reason == "approval_needed", "an answer is for the calls that it was given for"
    assert world.done == ["Ada", "Bob"]
    last = agent.resume(paused.run_id, approvals=dict.fromkeys(again.waiting, True))
    assert (last.text, world.done) == ("All are paid.", UNBROKEN)


def test_a_resumed_run_has_the_result_of_one_that_was_never_interrupted() -> None:
    world, store = World(), MemoryStore()
    options: dict[str, Any] = {"system_message": "Be kind."}
    asked = [Message("system", "Pay in euros."), Message("user", "Pay them.")]
    whole = FnCallAgent(world.tools(), world.model(), **options).ask(asked)
    store.writes_left = 4
    with pytest.raises(KilledError):
        FnCallAgent(world.tools(), world.model(), **options, store=store).ask(asked)
    store.restarted()
    result = FnCallAgent(world.tools(), world.model(1), **options, store=store).resume(the_run(store))
    assert [m.model_dump() for m in result.history] == [m.model_dump() for m in whole.history]
    assert result.usage == whole.usage


def test_the_growing_lists_of_a_resumed_run_begin_with_what_was_done() -> None:
    world, store = World(), MemoryStore()
    store.writes_left = 4
    with pytest.raises(KilledError):
        FnCallAgent(world.tools(), world.model(), store=store).ask("Pay them.")
    store.restarted()
    agent = FnCallAgent(world.tools(), world.model(1), store=store)
    view = RunView()
    events = sync.iterate(agent.astream((), run_id=the_run(store), resume=True))
    lengths = [len(view.messages()) for event in events if view.feed(event.event)]
    assert lengths[0] == 4, "two calls and their results"
    assert lengths == sorted(lengths)


def test_limits_count_what_was_spent_before() -> None:
    world, store = World(), MemoryStore()
    limits = {"turns": 1}
    first = FnCallAgent(world.tools(), world.model(), limits=limits, store=store).ask("Pay them.")
    assert first.stop_reason == "turn_limit"
    again = FnCallAgent(world.tools(), world.model(1), limits=limits, store=store).resume(first.run_id)
    assert (again.stop_reason, world.done) == ("turn_limit", ["Ada", "Bob"])
    more = FnCallAgent(world.tools(), world.model(1), limits={"turns": 3}, store=store).resume(first.run_id)
    assert (more.stop_reason, world.done) == ("finished", UNBROKEN)


def call_of(name: str, arguments: str, reason: FinishReason) -> list[ModelEvent]:
    return [FunctionCallDelta(0, id="call_1", name=name, arguments=arguments), ModelFinished(reason)]


FIRST_CALLS: Mapping[str, list[ModelEvent]] = {
    "made": call_of("pay", '{"to": "Ada"}', "tool_calls"),
    "made twice": calls(("pay", {"to": "Ada"}), ("pay", {"to": "Bob"})),
    "made, in an answer that was cut off after it": call_of("pay", '{"to": "Ada"}', "length"),
    "cut off": call_of("pay", '{"to": "A', "length"),
    "without its argument": call_of("pay", "{}", "tool_calls"),
    "without a tool": call_of("gone", "{}", "tool_calls"),
    "forbidden": call_of("send", "{}", "tool_calls"),
}


@pytest.mark.parametrize("first", FIRST_CALLS.values(), ids=FIRST_CALLS)
def test_a_resumed_run_has_as_many_tool_calls_left_as_one_that_was_never_interrupted(first: list[ModelEvent]) -> None:
    def agent(most: int, script: Any, store: MemoryStore, **limits: int) -> FnCallAgent:
        world = World()
        tools = [*world.tools(), tool(lambda: "sent", name="send", description="Send.", effects=("network",))]
        limit: Any = {"tool_calls": most, **limits}
        return FnCallAgent(tools, ScriptedModel(script), limits=limit, store=store, forbid=["network"])

    rest = [calls(("pay", {"to": "Cleo"})), answer("Paid.")]
    for most in range(4):
        unbroken = agent(most, [first, *rest], MemoryStore()).ask("Pay.")
        store = MemoryStore()
        interrupted = agent(most, [first], store, turns=1).ask("Pay.")
        if interrupted.stop_reason == "tool_call_limit":
            assert unbroken.stop_reason == "tool_call_limit"
            continue
        resumed = agent(most, rest, store).resume(interrupted.run_id)
        assert (most, resumed.stop_reason) == (most, unbroken.stop_reason)
    assert unbroken.stop_reason == "finished", "the largest limit is large enough"


def test_a_run_that_failed_goes_on_after_what_it_had_done() -> None:
    world, store = World(), MemoryStore()
    script: Script = [calls(("pay", {"to": "Ada"})), [ModelRequestError("no")]]
    with pytest.raises(ModelRequestError):
        FnCallAgent(world.tools(), ScriptedModel(script), store=store).ask("Pay.")
    assert store.kept[the_run(store)].run.state == "failed"
    result = FnCallAgent(world.tools(), ScriptedModel([answer("Paid.")]), store=store).resume(the_run(store))
    assert (result.text, world.done) == ("Paid.", ["Ada"])


def test_an_answer_that_was_sent_back_is_still_sent_back_after_a_crash() -> None:
    class Sum(BaseModel):
        total: int

    store = MemoryStore()
    store.writes_left = 3  # create, answer, what was sent back
    with pytest.raises(KilledError):
        FnCallAgent(llm=ScriptedModel([answer("about three")]), store=store).ask("1 + 2?", output=Sum)
    store.restarted()
    model = ScriptedModel([answer('{"total": 3}')])
    result = FnCallAgent(llm=model, store=store).resume(the_run(store), output=Sum)
    assert result.output == Sum(total=3)
    assert [m.role for m in result.messages] == ["assistant", "user", "assistant"]
    assert [entry.get("instead") for entry in store.events("Added")] == [None], "each message is written once"


def test_two_that_resume_one_run_do_not_both_go_on() -> None:
    world, store = World(), MemoryStore()
    paused = FnCallAgent(world.tools(needs_approval=True), world.model(), store=store).ask("Pay them.")
    approvals = dict.fromkeys(paused.waiting, True)

    async def both() -> Sequence[object]:
        agents = [FnCallAgent(world.tools(needs_approval=True), world.model(1), store=store) for _ in range(2)]
        going = (agent.aresume(paused.run_id, approvals=approvals) for agent in agents)
        return list(await asyncio.gather(*going, return_exceptions=True))

    results = asyncio.run(both())
    assert sum(isinstance(one, RunBusyError) for one in results) == 1
    assert world.done == ["Ada", "Bob"]


def test_a_step_that_cannot_be_recorded_ends_the_run_before_the_next_one() -> None:
    store = MemoryStore()

    @tool
    def fill() -> str:
        """Fill the disk."""
        store.refuses = StoreError("the disk is full")
        return "full"

    model = ScriptedModel([calls(("fill", {})), answer("Never.")])
    with pytest.raises(StoreError, match="the disk is full"):
        FnCallAgent([fill], model, store=store).ask("Fill it.")
    assert len(model.requests) == 1
    assert not store.kept[the_run(store)].is_held
    store.refuses = None
    result = FnCallAgent([fill], ScriptedModel([]), store=store).resume(the_run(store))
    assert result.stop_reason == "approval_needed", "it ran, and nothing says so"


def test_without_a_store_a_run_cannot_be_resumed() -> None:
    with pytest.raises(ConfigError, match=r"not recorded: pass a store"):
        FnCallAgent(llm=ScriptedModel([])).resume("x")
    with pytest.raises(RunNotFoundError):
        FnCallAgent(llm=ScriptedModel([]), store=MemoryStore()).resume("x")


def test_a_kind_that_would_begin_again_does_not_resume() -> None:
    class Twice(Agent):
        async def events(self, run: Run) -> AsyncIterator[Event]:
            message = Message("assistant", "Hello.")
            yield TurnFinished(1, (message,), Usage())
            yield RunFinished("finished", (message,), Usage())

    class Inherits(FnCallAgent):
        async def events(self, run: Run) -> AsyncIterator[Event]:
            async for event in Twice().events(run):
                yield event

    for kind in (Twice, Inherits):
        store = MemoryStore()
        run_id = kind(name="twice", store=store).ask("Hi").run_id
        with pytest.raises(
            ConfigError, match="agent 'twice' cannot resume a run: it would start over and repeat completed steps"
        ):
            kind(name="twice", store=store).resume(run_id)
        store = MemoryStore()
        store.writes_left = 1
        with pytest.raises(KilledError):
            kind(name="twice", store=store).ask("Hi")
        store.restarted()
        assert kind(name="twice", store=store).resume(the_run(store)).text == "Hello.", "it had done nothing"


def test_a_record_keeps_the_events_that_say_so() -> None:
    paid, message = Message("function", "paid", name="pay"), Message("assistant", "Hello.")
    call = FunctionCall("pay", "{}")
    steps: list[Event] = [
        HistoryTrimmed(1, 0, 9, 5),
        PluginEvent("acme.note"),
        RetryScheduled(1, 0.5, "busy"),
        StreamReset("busy"),
        TextDelta("Hello."),
        UsageReported(Usage()),
        ModelFinished("stop"),
        ToolStarted(0, "c", call),
        ToolProgress(0, "c", "half"),
        ApprovalDecided("c", call, allowed=True, by="approve"),
        ToolFinished(0, "c", paid, 0.1),
        TurnFinished(1, (message,), Usage()),
        RunFinished("finished", (paid, message), Usage()),
    ]

    class Scripted(Agent):
        async def events(self, run: Run) -> AsyncIterator[Event]:
            for event in steps:
                yield event

    store = MemoryStore()
    Scripted(name="scripted", store=store).ask("Hi")
    names = [json.loads(entry)["event"] for entry in store.kept[the_run(store)].entries[1:]]
    assert names == ["HistoryTrimmed", "PluginEvent", "ApprovalDecided", "ToolFinished", "TurnFinished", "RunFinished"]


def test_a_replay_has_the_steps_of_the_run_and_asks_nobody() -> None:
    world, store = World(), MemoryStore()
    agent = FnCallAgent(world.tools(), world.model(), store=store)
    seen = list(sync.iterate(agent.astream("Pay them.")))
    steps = (RunStarted, TurnFinished, ToolFinished, RunFinished)

    async def again() -> list[RunEvent]:
        return [event async for event in replay(store, the_run(store))]

    replayed = sync.run(again())
    assert [one.event for one in replayed if isinstance(one.event, steps)] == [
        one.event for one in seen if isinstance(one.event, steps)
    ]
    live, later = RunView(agent.name), RunView(agent.name)
    for event in seen:
        live.feed(event.event)
    for event in replayed:
        later.feed(event.event)
    assert later.messages() == live.messages()
    assert world.done == UNBROKEN


def test_a_fork_goes_its_own_way_from_any_entry() -> None:
    world, store = World(), MemoryStore()
    whole = FnCallAgent(world.tools(), world.model(), store=store).ask("Pay them.")
    before = list(store.kept[whole.run_id].entries)
    other = sync.run(fork(store, whole.run_id, at=4))
    assert store.kept[other].run.parent == whole.run_id
    result = FnCallAgent(world.tools(), ScriptedModel([answer("Two are enough.")]), store=store).resume(other)
    assert (result.text, world.done) == ("Two are enough.", UNBROKEN)
    assert store.kept[whole.run_id].entries == before
    with pytest.raises(StoreError, match="cannot be forked at step 99"):
        sync.run(fork(store, whole.run_id, at=99))


def test_a_record_without_content_is_not_forked() -> None:
    world, store = World(), MemoryStore(content=False)
    whole = FnCallAgent(world.tools(), world.model(), store=store).ask("Pay them.")
    with pytest.raises(StoreError, match="content"):
        sync.run(fork(store, whole.run_id))
    assert list(store.kept) == [whole.run_id]


def test_no_secret_is_in_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", 'sk-"acme"-é1234')
    world, store = World(), MemoryStore()

    @tool
    def show() -> str:
        """Show the environment."""
        return 'key: sk-"acme"-é1234'

    FnCallAgent([show], ScriptedModel([calls(("show", {})), answer("It is known.")]), store=store).ask(
        'Is sk-"acme"-é1234 the key?'
    )
    kept = store.kept[the_run(store)]
    assert "acme" not in "".join(kept.entries)
    assert kept.run.title == "Is [secret:ACME_API_KEY] the key?"
    assert world.done == []


def test_a_run_is_listed_with_its_agent_its_model_its_conversation_and_its_question() -> None:
    store, model = MemoryStore(), ScriptedModel([answer("Hi.")])
    model.config = model.config.model_copy(update={"model": "m"})
    FnCallAgent(llm=model, name="clerk", store=store).ask("Who is there?", session="talk")
    [run] = asyncio.run(store.runs())
    listed = (run.agent, run.model, run.session, run.title)
    assert listed == ("clerk", f"{model.backend}:m", "talk", "Who is there?")


def test_without_content_a_record_has_names_and_usage_and_cannot_be_resumed() -> None:
    world, store = World(), MemoryStore(content=False)
    result = FnCallAgent(world.tools(), world.model(), store=store).ask("Pay them, quietly.")
    kept = store.kept[result.run_id]
    text = "".join(kept.entries)
    assert kept.run.title == ""
    assert not any(word in text for word in ("quietly", "Ada", "paid"))
    assert "pay" in text
    assert "total_tokens" in text
    with pytest.raises(StoreError, match="was not recorded"):
        FnCallAgent(world.tools(), world.model(), store=store).resume(result.run_id)
    said = [answer("about three"), answer('["three"]')]
    again = FnCallAgent(llm=ScriptedModel(said), store=store).ask("1 + 2?", output=list[str])
    assert "three" in again.messages[1].get_text_content() + again.text
    assert "three" not in "".join(store.kept[again.run_id].entries)
    assert len(store.events("Added")) == 1


@pytest.mark.parametrize("text", ["\0", "half \ud83d", "🙂", "\x1b[31m", 'a "b" \\'])
def test_any_text_comes_back_as_it_was(text: str) -> None:
    store = MemoryStore()
    paused = FnCallAgent(llm=ScriptedModel([answer(text)]), store=store).ask(text)
    [first, *_, last] = events_of(*sync.run(store.read(paused.run_id)))
    assert isinstance(first.event, RunStarted)
    assert isinstance(last.event, RunFinished)
    assert first.event.messages[-1].get_text_content() == text
    assert last.event.messages == paused.messages


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "{",
        "[]",
        "{}",
        "[" * 100_000,
        '{"event": "OfTomorrow"}',
        '{"event": "TurnFinished"}',
        '{"event": "Added", "messages": 3}',
    ],
)
def test_an_entry_that_cannot_be_read_is_an_error_of_the_store(entry: str) -> None:
    store = MemoryStore()
    run_id = FnCallAgent(llm=ScriptedModel([answer("Hi.")]), store=store).ask("Hi").run_id
    store.kept[run_id].entries.insert(1, entry)
    with pytest.raises(StoreError, match="the record cannot be read"):
        FnCallAgent(llm=ScriptedModel([]), store=store).resume(run_id)


def test_a_run_that_its_reader_leaves_is_let_go() -> None:
    world, store = World(), MemoryStore()
    agent = FnCallAgent(world.tools(), world.model(), store=store)

    async def leave() -> None:
        async with agent.stream("Pay them.") as events:
            async for event in events:
                if isinstance(event, TurnFinished):
                    return

    asyncio.run(leave())
    assert not store.kept[the_run(store)].is_held
    assert store.kept[the_run(store)].run.state == "failed"
    assert [one["kind"] for one in store.events("RunFailed")] == ["GeneratorExit"]
    result = FnCallAgent(world.tools(), world.model(1), store=store).resume(the_run(store))
    assert (result.stop_reason, world.done) == ("approval_needed", []), "the calls may have begun"


@pytest.mark.parametrize("wrong", [3, {"path": "x"}, ["sqlite"]])
def test_what_is_not_a_store_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="store must be a store, a store's name"):
        FnCallAgent(llm=ScriptedModel([]), store=wrong)


# --- hand-offs ---


class BeginsAgain(FnCallAgent):
    """It says nothing of `resumable`, so nobody knows."""

    def events(self, run: Run) -> AsyncIterator[Event]:
        return super().events(run)


def handing_over(
    world: World, store: MemoryStore, asked_before: Mapping[str, int], kind: type[FnCallAgent] = FnCallAgent
) -> FnCallAgent:
    """A front desk that hands over to a cashier, who pays and hands over to a clerk."""
    clerk = FnCallAgent(
        [], ScriptedModel([answer("Filed.")][asked_before["clerk"] :]), name="clerk", description="Files."
    )
    paying: list[Any] = [calls(("pay", {"to": "Ada"})), calls(("transfer_to_clerk", {}))]
    cashier = kind(
        world.tools(),
        ScriptedModel(paying[asked_before["cashier"] :]),
        name="cashier",
        description="Pays.",
        handoffs=[clerk],
    )
    desk = ScriptedModel([calls(("transfer_to_cashier", {}))][asked_before["desk"] :])
    return FnCallAgent([], desk, name="desk", handoffs=[cashier], store=store)


def asked_in(store: MemoryStore) -> Counter[str]:
    """How often the model of each agent has answered, by the record."""
    return Counter(entry["messages"][-1]["name"] for entry in store.events("TurnFinished"))


# create; (turn, result), hand-off; (turn, result), (turn, result), hand-off; turn and end
@pytest.mark.parametrize("point", range(1, 11))
def test_a_run_that_was_handed_over_goes_on_with_the_agent_that_has_it(point: int) -> None:
    world, store = World(), MemoryStore()
    store.writes_left = point
    with pytest.raises(KilledError):
        handing_over(world, store, Counter()).ask("Pay and file.")
    store.restarted()
    run_id = the_run(store)
    result = handing_over(world, store, asked_in(store)).resume(run_id)
    if result.waiting:
        done = dict.fromkeys(result.waiting, "Ada" not in world.done)
        result = handing_over(world, store, asked_in(store)).resume(run_id, approvals=done)
    assert (result.stop_reason, result.text, world.done) == ("finished", "Filed.", ["Ada"])
    assert asked_in(store) == {"desk": 1, "cashier": 2, "clerk": 1}
    assert result.path == ("desk", "cashier", "clerk")
    replayed = [(one.agent, type(one.event).__name__) for one in events_of(*sync.run(store.read(run_id)))]
    assert [agent for agent, event in replayed if event == "TurnFinished"] == ["desk", "cashier", "cashier", "clerk"]
    assert [event for _, event in replayed].count("HandedOff") == 2


def test_a_run_whose_next_agent_is_gone_is_not_begun_again() -> None:
    world, store = World(), MemoryStore()
    store.writes_left = 5
    with pytest.raises(KilledError):
        handing_over(world, store, Counter()).ask("Pay and file.")
    store.restarted()
    alone = FnCallAgent([], ScriptedModel([]), name="desk", handoffs=[], store=store)
    with pytest.raises(ConfigError, match="'cashier'"):
        alone.resume(the_run(store))


def test_an_agent_that_would_begin_again_does_not_go_on_with_what_was_handed_to_it() -> None:
    world, store = World(), MemoryStore()
    store.writes_left = 6
    with pytest.raises(KilledError):
        handing_over(world, store, Counter(), BeginsAgain).ask("Pay and file.")
    store.restarted()
    assert world.done == ["Ada"]
    with pytest.raises(ConfigError, match="'cashier', which has the conversation, cannot resume"):
        handing_over(world, store, asked_in(store), BeginsAgain).resume(the_run(store))
    assert world.done == ["Ada"]


class Noting(Processor):
    """Writes a line before the last message, and reports how often it has done so in the run."""

    name = "noting"

    def __init__(self, reported: Sequence[PluginEvent]) -> None:
        super().__init__()
        self.times = len(reported)

    async def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[Any]:
        self.times += 1
        yield PluginEvent("noting.noted", {"times": self.times})
        note = Message("user", f"note {self.times}")
        async for event in call_next(replace(request, messages=(*request.messages, note))):
            yield event


class Notes(Toolset):
    """No tools, but something that acts around the model."""

    name = "notes"

    async def tools_of_run(self, context: Any) -> Sequence[ToolEntry]:
        return []

    def processor_of_run(self, context: Any, reported: Sequence[PluginEvent]) -> Processor:
        return Noting(reported)


def test_what_a_set_has_act_around_the_model_is_made_for_each_run_and_knows_what_the_run_reported() -> None:
    @tool(read_only=True)
    def look() -> str:
        """Look."""
        return "seen"

    def asked(model: ScriptedModel) -> list[str]:
        return [request.messages[-1].get_text_content() for request in model.requests]

    store = MemoryStore()
    store.writes_left = 5  # the run, its two answers and their results: the third answer comes too late
    script = [calls(("look", {})), calls(("look", {})), answer("all seen")]
    first, second, third = (ScriptedModel(steps) for steps in (script, script[2:], [answer("again")]))
    with pytest.raises(KilledError):
        FnCallAgent([look, Notes()], first, store=store).ask("Look.")
    store.restarted()
    result = FnCallAgent([look, Notes()], second, store=store).resume(the_run(store))
    assert result.text == "all seen"
    assert (asked(first), asked(second)) == (["note 1", "note 2"], ["note 3"])
    assert not [message for message in result.history if "note" in message.get_text_content()]
    FnCallAgent([look, Notes()], third, store=store).ask("And now?")
    assert asked(third) == ["note 1"]


# --- agents below ---


def tree(
    world: World, store: MemoryStore | None, asked: Mapping[str, int], approve: Any = None, **flags: Any
) -> FnCallAgent:
    """A boss who asks a helper, who pays and asks a clerk, who pays, too."""
    clerk_says: Script = [calls(("pay", {"to": "Bob"})), answer("Bob has it.")]
    clerk = FnCallAgent(
        world.tools(**flags), ScriptedModel(clerk_says[asked["clerk"] :]), name="clerk", description="Pays Bob."
    )
    helper_says: Script = [
        calls(("pay", {"to": "Ada"}), ("clerk", {"request": "Pay Bob."})),
        answer("Both have it."),
    ]
    helper = FnCallAgent(
        [*world.tools(**flags), clerk.as_tool()],
        ScriptedModel(helper_says[asked["helper"] :]),
        name="helper",
        description="Pays.",
    )
    boss_says: Script = [calls(("helper", {"request": "Pay them."})), answer("All are paid.")]
    model = ScriptedModel(boss_says[asked["boss"] :])
    return FnCallAgent([helper.as_tool()], model, name="boss", store=store, approve=approve)


TREE = {"boss": 2, "helper": 2, "clerk": 2}


@pytest.mark.parametrize("early", [False, True], ids=["after it", "before it"])
def test_a_tree_that_ended_at_any_write_repeats_no_step_of_any_agent(early: bool) -> None:
    points = 0
    for point in itertools.count(1):
        world, store = World(), MemoryStore()
        store.writes_left, store.early = point, early
        try:
            tree(world, store, Counter()).ask("Pay.")
        except KilledError:
            store.restarted()
        else:
            break
        if not store.kept:
            continue
        points += 1
        run_id = the_run(store)
        result = tree(world, store, asked_in(store)).resume(run_id)
        while result.waiting:
            assert set(needed_in(store).agents) <= {"helper", "helper/clerk"}
            to = {call_id: json.loads(call.arguments)["to"] for call_id, call in result.waiting.items()}
            again = {call_id: name not in world.done for call_id, name in to.items()}
            result = tree(world, store, asked_in(store)).resume(run_id, approvals=again)
        assert (result.stop_reason, result.text) == ("finished", "All are paid."), point
        assert sorted(world.done) == ["Ada", "Bob"], point
        assert asked_in(store) == TREE, point
        assert result.usage.total_tokens == 2 * sum(TREE.values()), point
    assert points >= 12


def needed_in(store: MemoryStore) -> ApprovalNeeded:
    """What the run itself has waited for last."""
    entry = store.events("ApprovalNeeded")[-1]  # of one below, it would have the key `below`
    needed = event_from_json({name: value for name, value in entry.items() if name != "digests"})
    assert isinstance(needed, ApprovalNeeded)
    return needed


def test_an_agent_below_that_waits_for_approval_pauses_the_whole_tree() -> None:
    world, store = World(), MemoryStore()
    paused = tree(world, store, Counter(), needs_approval=True).ask("Pay.")
    assert paused.stop_reason == "approval_needed"
    assert needed_in(store).agents == ("helper",)
    assert [call.name for call in paused.waiting.values()] == ["pay"]
    store.restarted()
    deeper = tree(world, store, asked_in(store), needs_approval=True).resume(
        paused.run_id, approvals=dict.fromkeys(paused.waiting, True)
    )
    assert (needed_in(store).agents, world.done) == (("helper/clerk",), ["Ada"])
    store.restarted()
    unanswered = tree(world, store, asked_in(store), needs_approval=True).resume(paused.run_id)
    assert unanswered.waiting == deeper.waiting, "nobody has answered"
    result = tree(world, store, asked_in(store), needs_approval=True).resume(
        paused.run_id, approvals=dict.fromkeys(deeper.waiting, True)
    )
    assert (result.text, world.done, asked_in(store)) == ("All are paid.", ["Ada", "Bob"], TREE)


def test_without_content_a_record_has_no_text_of_the_agents_below() -> None:
    world, store = World(), MemoryStore(content=False)
    tree(world, store, Counter()).ask("Pay, quietly.")
    text = "".join(store.kept[the_run(store)].entries)
    assert world.done == ["Ada", "Bob"]
    assert not [word for word in ("quietly", "Pay", "Ada", "Bob", "have it") if word in text]
    assert [text.count(f'"agent": "{name}"') for name in ("helper", "clerk")] == [1, 1]


def test_a_call_below_that_is_refused_is_not_made_and_its_agent_reads_so() -> None:
    world, store = World(), MemoryStore()
    agent = tree(world, store, Counter(), needs_approval=True)
    paused = agent.ask("Pay.")
    agent = tree(world, store, asked_in(store), needs_approval=True)
    deeper = agent.resume(paused.run_id, approvals=dict.fromkeys(paused.waiting, False))
    assert world.done == []
    agent = tree(world, store, asked_in(store), needs_approval=True)
    result = agent.resume(paused.run_id, approvals=dict.fromkeys(deeper.waiting, True))
    assert (result.stop_reason, world.done) == ("finished", ["Bob"])


def test_a_call_that_was_allowed_is_not_asked_about_again_when_the_tree_goes_on() -> None:
    world, store = World(), MemoryStore()

    def boss(asked: Mapping[str, int]) -> FnCallAgent:
        return tree(world, store, asked, approve="ask", needs_approval=True)

    waiting: list[list[str]] = []
    result = boss(Counter()).ask("Pay.")
    while result.waiting:
        waiting.append([call.name for call in result.waiting.values()])
        result = boss(asked_in(store)).resume(result.run_id, approvals=dict.fromkeys(result.waiting, True))
    assert waiting == [["helper"], ["pay", "clerk"], ["pay"]]
    assert world.done == ["Ada", "Bob"]


def test_agents_side_by_side_wait_together_and_each_gets_its_own_answers() -> None:
    world, store = World(), MemoryStore()

    def agent(asked: Mapping[str, int]) -> FnCallAgent:
        helpers = [
            FnCallAgent(
                world.tools(needs_approval=True),
                ScriptedModel([calls(("pay", {"to": to})), answer(f"{to} has it.")][asked[name] :]),
                name=name,
                description="Pays.",
            )
            for name, to in (("ann", "Ada"), ("ben", "Bob"))
        ]
        both: Script = [calls(("ann", {"request": "Pay."}), ("ben", {"request": "Pay."})), answer("Done.")]
        return FnCallAgent(
            [one.as_tool() for one in helpers], ScriptedModel(both[asked["boss"] :]), name="boss", store=store
        )

    paused = agent(Counter()).ask("Pay.")
    assert needed_in(store).agents == ("ann", "ben")
    approvals = {call_id: json.loads(call.arguments)["to"] == "Bob" for call_id, call in paused.waiting.items()}
    result = agent(asked_in(store)).resume(paused.run_id, approvals=approvals)
    assert (result.text, world.done) == ("Done.", ["Bob"])
    assert asked_in(store) == {"boss": 2, "ann": 2, "ben": 2}


def test_without_a_record_an_agent_below_that_needs_approval_reports_it() -> None:
    world = World()
    result = tree(world, None, Counter(), needs_approval=True).ask("Pay.")
    assert (result.stop_reason, world.done) == ("finished", [])


def test_an_agent_below_that_would_begin_again_is_in_doubt() -> None:
    world, store = World(), MemoryStore()

    def agent(asked: Mapping[str, int]) -> FnCallAgent:
        script: Script = [calls(("pay", {"to": "Ada"})), answer("Paid.")]
        helper = BeginsAgain(world.tools(), ScriptedModel(script), name="helper", description="Pays.")
        boss: Script = [calls(("helper", {"request": "Pay."})), answer("Done.")]
        return FnCallAgent([helper.as_tool()], ScriptedModel(boss[asked["boss"] :]), name="boss", store=store)

    store.writes_left = 5  # create; turn; below: begin, turn, result
    with pytest.raises(KilledError):
        agent(Counter()).ask("Pay.")
    store.restarted()
    result = agent(asked_in(store)).resume(the_run(store))
    assert [call.name for call in result.waiting.values()] == ["helper"]
    assert needed_in(store).in_doubt == tuple(result.waiting)
    assert world.done == ["Ada"]


def test_a_replay_shows_agents_below_where_they_were() -> None:
    world, store = World(), MemoryStore()
    seen = list(sync.iterate(tree(world, store, Counter()).astream("Pay.")))
    steps = (RunStarted, TurnFinished, ToolFinished, RunFinished)
    replayed = events_of(*sync.run(store.read(the_run(store))))

    def each(events: Sequence[RunEvent]) -> dict[str, list[object]]:
        runs: dict[str, list[object]] = {}
        for one in events:
            if isinstance(one.event, steps):
                runs.setdefault(one.run_id, []).append((one.agent, one.depth, one.event))
        return runs

    assert each(replayed) == each(seen)
    for run_id in each(seen):
        numbers = [one.number for one in replayed if one.run_id == run_id]
        assert numbers == list(range(1, len(numbers) + 1)), "each run counts its own events"


def test_a_run_begins_with_the_reports_of_the_run_before_it_in_its_conversation() -> None:
    async def main() -> None:
        store = MemoryStore()
        recorder = recorder_of(FnCallAgent(llm=ScriptedModel([]), name="a"), store)
        assert await recorder._reported_before("s", "r1") == ()
        for number in (1, 2, 3):
            note = json.dumps({"event": "PluginEvent", "name": "note", "data": {"of": number}})
            await store.create(StoredRun(run_id=f"r{number}", session="s"), [note])
        await store.create(StoredRun(run_id="other", session="t"), [])
        for run_id, of in (("r3", 2), ("r4", 3)):  # with a run that is pending, and with one that is new
            [report] = await recorder._reported_before("s", run_id)
            assert report.data["of"] == of

    asyncio.run(main())
