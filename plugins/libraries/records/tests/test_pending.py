"""Runs that are recorded before they begin, after they took place elsewhere, or because they could not begin."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from jackfield import FnCallAgent, Message
from jackfield.errors import StoreError
from jackfield.events import PluginEvent
from jackfield.messages import FunctionCall
from jackfield.testing import ScriptedModel, answer
from jackfield_records import Replay
from jackfield_records.pending import append_events, append_failure, record_finished, record_pending
from jackfield_records.recording import AgentRecorder, recorder_of
from jackfield_testkit.records import MemoryStore

QUESTION = (Message("system", "Be brief."), Message("user", "Where is\nAda?"))
KEY = "sk-proj-0123456789abcdefghij"


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def recorder(store: MemoryStore) -> AgentRecorder:
    agent = FnCallAgent(llm=ScriptedModel([answer("In Rome.")]), name="clerk", store=store)
    return recorder_of(agent, store)


def replay_of(store: MemoryStore, run_id: str) -> Replay:
    run, entries = asyncio.run(store.read(run_id))
    replay = Replay(run)
    for entry in entries:
        replay.feed(entry)
    return replay


@pytest.mark.parametrize("facts", [None, {}, {"config": {"temperature": 0}, "text": '"}'}], ids=str)
def test_a_pending_run_is_held_and_has_its_question_and_facts(
    facts: Any, store: MemoryStore, recorder: AgentRecorder
) -> None:
    pending = asyncio.run(record_pending(recorder, QUESTION, run_id="r", session="s", owner="o", facts=facts))
    run, entries = asyncio.run(store.read("r"))
    assert (run.agent, run.model, run.session, run.owner, run.title) == (
        "clerk", recorder.model, "s", "o", "Where is Ada?",
    )  # fmt: skip
    assert (run.state, run.is_held, entries) == ("running", True, pending.entries)
    assert (pending.run.run_id, pending.messages) == ("r", QUESTION)
    progress = replay_of(store, "r").progress
    assert (progress.messages, progress.facts) == (QUESTION, facts)
    asyncio.run(store.append("r", pending.hold, []))  # the hold is valid


def test_a_run_that_took_place_elsewhere_has_its_turns_calls_and_end(
    store: MemoryStore, recorder: AgentRecorder
) -> None:
    response = (
        Message("assistant", "", function_call=FunctionCall("look", "{}"), extra={"function_id": "c1"}),
        Message("assistant", "", function_call=FunctionCall("find", "{}"), extra={"function_id": "c2"}),
        Message("function", "Rome", name="look", extra={"function_id": "c1"}),
        Message("function", "no", name="find", extra={"function_id": "c2", "error": "E"}),
        Message("assistant", "In Rome."),
    )
    asyncio.run(record_finished(recorder, QUESTION, response, run_id="r", session="s", owner="o"))
    run, entries = asyncio.run(store.read("r"))
    assert (run.state, run.is_held, run.session, run.owner) == ("finished", False, "s", "o")
    read = [json.loads(entry) for entry in entries]
    assert [entry["event"] for entry in read] == [
        "RunStarted", "TurnFinished", "ToolFinished", "ToolFinished", "TurnFinished", "RunFinished",
    ]  # fmt: skip
    assert [entry.get("call_id") for entry in read if entry["event"] == "ToolFinished"] == ["c1", "c2"]
    assert [entry.get("error", "") for entry in read if entry["event"] == "ToolFinished"] == ["", "E"]
    progress = replay_of(store, "r").progress
    assert (progress.facts, progress.now()) == ({}, response)


def test_a_run_that_cannot_be_written_to_its_end_is_let_go(store: MemoryStore, recorder: AgentRecorder) -> None:
    append = store.append

    async def fail(*_: Any, **__: Any) -> None:
        raise StoreError("full")

    store.append = fail  # type: ignore[method-assign]
    with pytest.raises(StoreError, match="full"):
        asyncio.run(record_finished(recorder, QUESTION, (Message("assistant", "In Rome."),), run_id="r"))
    store.append = append  # type: ignore[method-assign]
    assert not asyncio.run(store.read("r"))[0].is_held


def test_notes_and_failures_are_written_without_secrets_by_the_one_that_holds_the_run(
    store: MemoryStore, recorder: AgentRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    agent = FnCallAgent(llm=ScriptedModel([]), name="clerk", store=store)
    recorder = recorder_of(agent, store)
    pending = asyncio.run(record_pending(recorder, (Message("user", f"Key {KEY}?"),), run_id="r"))
    notes = [PluginEvent("note", {"text": f"one {KEY}"}), PluginEvent("note", {"text": "two"})]
    written = asyncio.run(append_events(recorder, "r", pending.hold, notes))
    run, entries = asyncio.run(store.read("r"))
    assert (run.state, entries[1:]) == ("running", written)
    assert [json.loads(entry)["event"] for entry in written] == ["PluginEvent"] * 2
    with pytest.raises(StoreError):
        asyncio.run(append_events(recorder, "r", pending.hold + 1, notes))
    asyncio.run(append_failure(recorder, "r", pending.hold, ValueError(f"bad {KEY}")))
    run, entries = asyncio.run(store.read("r"))
    failure = json.loads(entries[-1])
    assert (run.state, run.is_held, failure["event"], failure["kind"]) == ("failed", False, "RunFailed", "ValueError")
    assert failure["error"].startswith("bad ")
    assert KEY not in "".join(entries) + run.title
