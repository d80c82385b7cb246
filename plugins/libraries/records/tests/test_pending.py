"""Runs that are recorded before they begin, after they took place elsewhere, or because they could not begin."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from jackfield import FnCallAgent, Message, tool
from jackfield.errors import StoreError
from jackfield.events import PluginEvent, RunEvent
from jackfield.messages import FunctionCall
from jackfield.runs import Observer
from jackfield.stores import StoredRun
from jackfield.testing import ScriptedModel, answer
from jackfield.tools import ToolEntry, Toolset
from jackfield_records import Replay
from jackfield_records.entries import entry_of
from jackfield_records.pending import append_events, append_failure, record_finished, record_pending
from jackfield_records.recording import AgentRecorder, PendingRun, recorder_of
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
        Message("assistant", "", function_call=FunctionCall("look", "{}"), extra={"function_id": "c3"}),
        Message("function", "Rome", name="look", extra={"function_id": "c3"}),
        Message("assistant", "In Rome."),
    )
    asyncio.run(record_finished(recorder, QUESTION, response, run_id="r", session="s", owner="o"))
    run, entries = asyncio.run(store.read("r"))
    assert (run.state, run.is_held, run.session, run.owner) == ("finished", False, "s", "o")
    read = [json.loads(entry) for entry in entries]
    assert [entry["event"] for entry in read] == [
        "RunStarted", "TurnFinished", "ToolFinished", "ToolFinished", "TurnFinished", "ToolFinished", "TurnFinished",
        "RunFinished",
    ]  # fmt: skip
    results = [entry for entry in read if entry["event"] == "ToolFinished"]
    assert [(one["index"], one["call_id"], one.get("error", "")) for one in results] == [
        (0, "c1", ""), (1, "c2", "E"), (0, "c3", ""),
    ]  # fmt: skip
    assert [entry["turn"] for entry in read if entry["event"] == "TurnFinished"] == [1, 2, 3]
    progress = replay_of(store, "r").progress
    assert (progress.facts, progress.now()) == ({}, response)


@pytest.mark.parametrize("error", [StoreError("full"), asyncio.CancelledError()], ids=["refused", "cancelled"])
def test_a_run_that_cannot_be_written_to_its_end_is_let_go(
    error: BaseException, store: MemoryStore, recorder: AgentRecorder
) -> None:
    append = store.append

    async def fail(*_: Any, **__: Any) -> None:
        raise error

    store.append = fail  # type: ignore[method-assign]
    with pytest.raises(type(error)):
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
    asyncio.run(record_finished(recorder, QUESTION, (Message("assistant", f"It is {KEY}."),), run_id="s"))
    _, entries = asyncio.run(store.read("s"))
    assert KEY not in "".join(entries)
    assert "It is [secret:" in "".join(entries)


class Passing(MemoryStore):
    """Gives an agent the run that was recorded for it."""

    pending: PendingRun | None = None

    def recorder(self, agent: Any) -> Any:
        recorder = recorder_of(agent, self)

        async def load(_run_id: str | None, _messages: Sequence[Message]) -> Any:
            return self.pending

        return SimpleNamespace(load=load, record=recorder.record)


class Traces(Observer):
    name = "traces"

    def observe(self, _event: RunEvent) -> None: ...

    def trace_of(self, run_id: str) -> Mapping[str, str]:
        return {"traceparent": run_id}


def test_a_pending_run_that_begins_has_its_trace_before_the_model_answers() -> None:
    async def main() -> None:
        store, seen = Passing(), list[list[str]]()

        def says(_request: Any) -> Any:
            seen.append([json.loads(entry)["event"] for entry in store.kept["r"].entries])
            return answer("In Rome.")

        agent = FnCallAgent(llm=ScriptedModel(says), name="clerk", store=store, observers=[Traces()])
        store.pending = await record_pending(recorder_of(agent, store), QUESTION, run_id="r")
        async for _ in agent.astream(list(QUESTION), run_id="r"):
            pass
        assert seen == [["RunStarted", "Traced"]]
        assert [one["headers"] for one in store.events("Traced")] == [{"traceparent": "r"}]
        run, entries = await store.read("r")
        assert (run.state, len(entries)) == ("finished", 4)

    asyncio.run(main())


class Notes(Toolset):
    """Notes the reports that a run begins with."""

    name = "notes"

    def __init__(self) -> None:
        super().__init__()
        self.begun: list[list[str]] = []

    async def tools_of_run(self, context: Any) -> Sequence[ToolEntry]:
        return []

    def processor_of_run(self, context: Any, reported: Sequence[PluginEvent]) -> Any:
        self.begun.append([event.name for event in reported])


class Counted(Passing):
    """Counts the reads."""

    reads = 0

    async def read(self, run_id: str, *, after: int = 0) -> tuple[StoredRun, list[str]]:
        self.reads += 1
        return await super().read(run_id, after=after)


@pytest.mark.parametrize("pending", [False, True], ids=["new", "pending"])
@pytest.mark.parametrize(("session", "sets", "reads"), [("s", True, 1), ("s", False, 0), ("", True, 0)])
def test_only_a_run_with_toolsets_reads_the_reports_of_the_run_before_it(
    session: str, sets: bool, reads: int, pending: bool
) -> None:
    async def main() -> None:
        store, notes = Counted(), Notes()
        await store.create(StoredRun(run_id="before", session="s"), [entry_of(PluginEvent("noted"), with_texts=True)])

        @tool
        def look() -> str:
            """Look."""
            return "seen"

        model = ScriptedModel([answer("In Rome.")])
        agent = FnCallAgent([look, notes] if sets else [look], model, name="clerk", store=store)
        if pending:
            recorder = recorder_of(agent, store)
            store.pending = await record_pending(recorder, QUESTION, run_id="r", session=session)
        async for _ in agent.astream(list(QUESTION), run_id="r", session=session):
            pass
        assert store.reads == reads
        assert notes.begun == ([["noted"] if reads else []] if sets else [])

    asyncio.run(main())
