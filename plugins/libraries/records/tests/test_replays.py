"""Replays have the events of a run in full, and forks take a part of its record."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from jackfield import FnCallAgent, Message
from jackfield.errors import StoreError
from jackfield.events import (
    FunctionCallDelta,
    HandedOff,
    MediaDelta,
    ModelFinished,
    PluginEvent,
    ReasoningDelta,
    RunFinished,
    RunStarted,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    UsageReported,
)
from jackfield.messages import ContentItem, FunctionCall, Usage
from jackfield.secrets import SEAL, Secret, Secrets
from jackfield.stores import StoredRun
from jackfield.testing import ScriptedModel
from jackfield_records import Replay, events_of, fork
from jackfield_records.entries import entry_of, reported_in
from jackfield_records.recording import recorder_of, title_of
from jackfield_testkit.records import MemoryStore

IMAGE = ContentItem(image="data:image/png;base64,iVBO")
LOOK, PAY = FunctionCall("look", "1"), FunctionCall("pay", "2")


def call(wanted: FunctionCall, call_id: str) -> Message:
    return Message("assistant", "", function_call=wanted, extra={"function_id": call_id})


def result(text: str, call_id: str) -> ToolFinished:
    return ToolFinished(0, call_id, Message("function", text, name="t", extra={"function_id": call_id}), 0.5)


def test_each_step_is_replayed_with_the_events_that_came_before_it() -> None:
    said = Message("assistant", [ContentItem(text="See "), IMAGE, ContentItem(text="")], reasoning_content="Hm.")
    steps: list[Any] = [
        RunStarted((Message("user", "Hi"),)),
        TurnFinished(1, (said, call(LOOK, "c1"), call(PAY, "c2")), Usage(prompt_tokens=3)),
        result("paid", "c2"),
        result("seen", "c1"),
        TurnFinished(2, (call(PAY, "c1"),), Usage()),  # the id of a call again
        result("paid again", "c1"),
        HandedOff("host", "clerk"),
        TurnFinished(3, (Message("assistant", "Done."),), Usage()),
        RunStarted((Message("user", "Hi"), Message("user", "And?"))),
        TurnFinished(4, (Message("assistant", "Yes."),), Usage()),
        RunFinished("finished", (), Usage()),
    ]
    events = events_of(StoredRun(run_id="r", agent="host"), [entry_of(step, with_texts=True) for step in steps])
    assert [event.number for event in events] == list(range(1, len(events) + 1))
    assert {(event.run_id, event.depth) for event in events} == {("r", 0)}
    told = [event.event for event in events]
    assert told[:9] == [
        steps[0],
        TurnStarted(1),
        ReasoningDelta("Hm."),
        TextDelta("See "),
        MediaDelta(IMAGE),
        FunctionCallDelta(0, "c1", "look", "1"),
        FunctionCallDelta(1, "c2", "pay", "2"),
        UsageReported(Usage(prompt_tokens=3)),
        ModelFinished("tool_calls"),
    ]
    assert [(one.call_id, one.call) for one in told if isinstance(one, ToolStarted)] == [
        ("c2", PAY), ("c1", LOOK), ("c1", PAY),
    ]  # fmt: skip
    assert [one.reason for one in told if isinstance(one, ModelFinished)] == [
        "tool_calls",
        "tool_calls",
        "stop",
        "stop",
    ]
    assert [event.agent for event in events if isinstance(event.event, TurnFinished)] == [
        "host", "host", "clerk", "host",
    ]  # fmt: skip
    assert isinstance(told[-1], RunFinished)
    assert told[-1].messages == (Message("assistant", "Yes."),), "the messages since the conversation began again"


async def recorded(store: MemoryStore, *entries: str, **about: Any) -> None:
    hold = await store.create(StoredRun(run_id="r", **about), entries)
    await store.append("r", hold, [], state="finished")


@pytest.mark.parametrize(("at", "count"), [(None, 3), (1, 1), (3, 3)])
def test_a_fork_has_the_first_entries_and_knows_its_origin(at: int | None, count: int) -> None:
    async def main() -> None:
        store = MemoryStore()
        turn = entry_of(TurnFinished(1, (Message("assistant", "Hi."),), Usage()), with_texts=True)
        entries = [entry_of(RunStarted((Message("user", "Hi"),)), with_texts=True), turn, turn]
        await recorded(store, *entries, agent="clerk", session="s", owner="ada", title="Hi", parent="before")
        forked = await fork(store, "r", at=at)
        run, kept = await store.read(forked)
        assert kept == entries[:count]
        assert (run.parent, run.state, run.is_held, run.agent, run.session, run.owner, run.title) == (
            "r", "forked", False, "clerk", "s", "ada", "Hi",
        )  # fmt: skip
        for wrong in (0, 4, -1):
            with pytest.raises(StoreError, match=f"run r cannot be forked at step {wrong}: it has steps 1 to 3"):
                await fork(store, "r", at=wrong)
        assert len(await store.runs()) == 2

    asyncio.run(main())


@pytest.mark.parametrize("entry", ["{", '{"event": "RunStarted", "bare": true}'], ids=["damaged", "without content"])
def test_a_record_that_cannot_be_read_is_not_forked(entry: str) -> None:
    async def main() -> None:
        store = MemoryStore()
        await recorded(store, entry)
        with pytest.raises(StoreError):
            await fork(store, "r")
        assert len(await store.runs()) == 1

    asyncio.run(main())


def test_only_whole_reports_of_plugins_are_read_again() -> None:
    report = PluginEvent("note", {"text": "one"})
    entries = [
        entry_of(RunStarted((Message("user", '{"event": "PluginEvent"'),)), with_texts=True),
        entry_of(PluginEvent("bare", {}), with_texts=False),
        entry_of(report, with_texts=True),
        f'{entry_of(PluginEvent("sealed", {}), with_texts=True)[:-1]}, "{SEAL}": "of a secret that is not known"}}',
    ]
    assert reported_in(entries) == (report,)
    assert reported_in(entries, Secrets()) == (report,)


@pytest.mark.parametrize(
    ("messages", "title"),
    [
        ([Message("user", "x" * 100)], "x" * 100),
        ([Message("user", "x" * 101)], f"{'x' * 99}…"),
        ([Message("user", "first"), Message("assistant", "no"), Message("user", " two\n\tlines ")], "two lines"),
        ([Message("user", "Hi"), Message("assistant", "Hello."), Message("function", "x", name="t")], "Hi"),
        ([Message("system", "Be brief.")], ""),
        ([Message("user", f"{' ' * 500}x")], ""),
        ([Message("user", f"{'x ' * 10_000}sk-live-Q7rT2mZx9LpW4vNc8KdB")], f"{('x ' * 50)[:99]}…"),
    ],
    ids=["as long as allowed", "longer", "the last question", "before answers", "no question", "spaces", "long"],
)
def test_a_title_is_the_beginning_of_the_last_question(messages: list[Message], title: str) -> None:
    assert title_of(messages, Secrets([Secret("K", "sk-live-Q7rT2mZx9LpW4vNc8KdB")])) == title


@pytest.mark.parametrize(
    ("address", "model"),
    [
        (None, "acme:m"),
        ("https://models.example.org/v1", "acme:m https://models.example.org/v1"),
        ("https://ada:hunter2-Kq8z@models.example.org/v1", "acme:m https://"),
    ],
    ids=["of the provider", "an address", "a password"],
)
def test_the_model_of_a_record_has_its_server_without_a_password(address: str | None, model: str) -> None:
    llm: Any = ScriptedModel([])
    llm.backend, llm.config = "acme", SimpleNamespace(model="m", server_url=address)
    agent: Any = FnCallAgent(llm=ScriptedModel([]), name="a")
    agent.llm = llm
    recorded_model = recorder_of(agent, MemoryStore()).model
    assert recorded_model.startswith(model)
    assert "hunter2" not in recorded_model


def test_a_settled_replay_counts_what_nested_runs_have_used() -> None:
    asked = entry_of(RunStarted((Message("user", "Work."),)), with_texts=True)
    begins = '"asked": {"above": 0, "run_id": "below", "agent": "clerk", "place": "question #1"}'
    nested = entry_of(TurnFinished(1, (Message("assistant", "Done."),), Usage(prompt_tokens=5)), with_texts=True)
    replay = Replay(StoredRun(run_id="r", agent="host"))
    for entry in (
        entry_of(RunStarted((Message("user", "Hi"),)), with_texts=True),
        entry_of(TurnFinished(1, (call(LOOK, "c1"),), Usage(prompt_tokens=3)), with_texts=True),
        f'{{"below": 1, {begins}, {asked[1:]}',
        f'{{"below": 1, {nested[1:]}',
    ):
        replay.feed(entry)
    assert replay.progress.spent.usage.prompt_tokens == 3
    replay.settle()
    assert replay.progress.spent.usage.prompt_tokens == 8
    assert replay.progress.asked["question #1"].spent.usage.prompt_tokens == 5


def test_a_result_of_an_earlier_turn_is_replayed_with_its_call() -> None:
    steps: list[Any] = [
        RunStarted((Message("user", "Hi"),)),
        TurnFinished(1, (call(LOOK, "c1"), call(PAY, "c2")), Usage()),
        TurnFinished(2, (Message("assistant", "Wait."),), Usage()),
        result("seen", "c1"),
        replace(result("of no call", "c3"), index=2),
    ]
    events = events_of(StoredRun(run_id="r"), [entry_of(step, with_texts=True) for step in steps])
    started = [one.event for one in events if isinstance(one.event, ToolStarted)]
    assert started == [ToolStarted(0, "c1", LOOK), ToolStarted(2, "c3", FunctionCall("t", "{}"))]
