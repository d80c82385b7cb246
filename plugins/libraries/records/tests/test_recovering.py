"""Interrupted runs that no process holds are resumed where the caller asks for it, and no others."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from jackfield import FnCallAgent, sync
from jackfield.errors import ConfigError, RunBusyError, StoreError
from jackfield.stores import StoredRun
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import tool
from jackfield_records import recover
from jackfield_records.recovering import Recovery, count_tries, recover_from
from jackfield_testkit.records import KilledError, MemoryStore

DONE: list[str] = []


@tool
def pay(to: str) -> str:
    """Pay a person."""
    DONE.append(to)
    return f"paid {to}"


def says(request: Any) -> Any:
    if request.messages[-1].role == "function":
        return answer("Paid.")
    return calls(("pay", {"to": "Ada"})) if "Pay" in request.messages[-1].get_text_content() else answer("Hello.")


def agent(store: MemoryStore, name: str = "clerk") -> FnCallAgent:
    return FnCallAgent([pay], ScriptedModel(says), name=name, store=store)


def interrupt(store: MemoryStore, question: str, *, writes: int, name: str = "clerk") -> str:
    store.writes_left = writes
    with pytest.raises(KilledError):
        agent(store, name).ask(question)
    store.restarted()
    return list(store.kept)[-1]


def test_only_interrupted_runs_of_the_agent_that_are_free_are_resumed() -> None:
    DONE.clear()
    store = MemoryStore()
    asked = interrupt(store, "Say hello.", writes=1)
    doubtful = interrupt(store, "Pay.", writes=2)
    others = interrupt(store, "Say hello.", writes=1, name="another")
    of_class = interrupt(store, "Say hello.", writes=1, name="FnCallAgent")
    waits = interrupt(store, "Say hello.", writes=1)
    store.kept[waits].run = replace(store.kept[waits].run, state="approval_needed")
    held = interrupt(store, "Say hello.", writes=1)
    store.kept[held].is_held = True
    ended = agent(store).ask("Say hello.").run_id
    before = {run_id: list(store.kept[run_id].entries) for run_id in (others, of_class, waits, held, ended)}
    recovered = asyncio.run(recover(agent(store)))
    assert {one.run_id: one.outcome for one in recovered} == {asked: "finished", doubtful: "approval_needed"}
    assert DONE == [], "a call in doubt waits for a person"
    assert {run_id: list(store.kept[run_id].entries) for run_id in before} == before


def test_a_run_that_ends_its_process_each_time_is_left_after_three_tries() -> None:
    store = MemoryStore()
    run_id = interrupt(store, "Say hello.", writes=1)
    for _ in range(3):
        store.writes_left = 1
        with pytest.raises(KilledError):
            asyncio.run(recover(agent(store)))
        store.restarted()
    [one] = asyncio.run(recover(agent(store)))
    assert (one.run_id, one.outcome) == (run_id, "skipped")
    assert one.note == f"resumed 3 times without progress; see: jackfield runs show {run_id[:12]}"


def test_a_run_that_is_resumed_with_an_agent_below_it_has_one_try() -> None:
    store = MemoryStore()

    def host() -> FnCallAgent:
        helper = FnCallAgent(llm=ScriptedModel([answer("Hello.")]), name="helper", description="Helps.")
        script = [calls(("helper", {"request": "Say hello."}))]
        turns = len(store.events("TurnFinished"))
        return FnCallAgent([helper.as_tool()], ScriptedModel(script[turns:]), name="host", store=store)

    store.writes_left = 3  # the question, the call, and the question of the helper
    with pytest.raises(KilledError):
        host().ask("Say hello.")
    [run_id] = store.kept
    for tries in (1, 2):
        store.restarted()
        store.writes_left = 2  # the run goes on, and its helper
        with pytest.raises(KilledError):
            host().resume(run_id)
        assert count_tries(store.kept[run_id].entries) == tries


def test_an_agent_recovers_its_runs_when_its_first_run_begins_if_its_store_says_so() -> None:
    store = MemoryStore()
    run_id = interrupt(store, "Say hello.", writes=1)
    agent(store).ask("Say hello.")
    assert store.kept[run_id].run.state == "running", "it is not done unasked"
    store.recover = True
    agent(store).ask("Say hello.")

    async def until_recovered() -> None:
        while store.kept[run_id].run.state != "finished":
            await asyncio.sleep(0.01)

    sync.run(asyncio.wait_for(until_recovered(), 60))


def test_without_a_store_there_is_nothing_to_recover() -> None:
    with pytest.raises(ConfigError, match="configure a store"):
        asyncio.run(recover(FnCallAgent(llm=ScriptedModel([]), name="clerk")))


class Resuming:
    """An agent that comes from a file without a name, and resumes runs at the same time."""

    name, kind = "", "clerk_kind"

    def __init__(self, outcomes: dict[str, Any]) -> None:
        self.outcomes, self.resumed, self.most, self.now = outcomes, [], 0, 0  # type: ignore[var-annotated]

    async def aresume(self, run_id: str) -> Any:
        self.resumed.append(run_id)
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(5):
            await asyncio.sleep(0)
        self.now -= 1
        outcome = self.outcomes.get(run_id, "finished")
        if isinstance(outcome, Exception):
            raise outcome
        return SimpleNamespace(stop_reason=outcome)


async def interrupted(store: MemoryStore, **agents: str) -> None:
    for run_id, name in agents.items():
        hold = await store.create(StoredRun(run_id=run_id, agent=name), ['{"event": "RunStarted"}'])
        await store.release(run_id, hold)


def test_the_oldest_runs_of_the_kind_or_class_are_resumed_first_and_eight_at_once() -> None:
    async def main() -> None:
        store, agent = MemoryStore(), Resuming({})
        names = {f"r{number:02}": ("clerk_kind", "Resuming")[number % 2] for number in range(20)}
        await interrupted(store, **names, other="other")
        for number in range(100):  # however many others are newer
            hold = await store.create(StoredRun(run_id=f"ended{number}", agent="clerk_kind"), [])
            await store.append(f"ended{number}", hold, [], state="finished")
        outcomes = await recover_from(store, agent)  # type: ignore[arg-type]
        assert agent.resumed == [*names] == [one.run_id for one in outcomes]
        assert agent.most == 8

    asyncio.run(main())


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        ("approval_needed", ("approval_needed", "")),
        (RunBusyError("another has it"), ("skipped", "another has it")),
        (StoreError("full"), ("failed", "full")),
    ],
    ids=["waits", "held", "failed"],
)
def test_each_recovered_run_has_its_outcome_and_the_reason(outcome: Any, expected: tuple[str, str]) -> None:
    async def main() -> None:
        store = MemoryStore()
        await interrupted(store, r="clerk_kind")
        [one] = await recover_from(store, Resuming({"r": outcome}))  # type: ignore[arg-type]
        assert (one.run_id, one.outcome, one.note) == ("r", *expected)

    asyncio.run(main())


def test_a_process_recovers_once_and_so_does_its_child(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[object] = []
    monkeypatch.setattr("jackfield_records.recovering.sync.in_background", begun.append)
    recovery = Recovery(Resuming({}), MemoryStore())  # type: ignore[arg-type]
    recovery.begin()
    recovery.begin()
    assert len(begun) == 1
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    recovery.begin()
    recovery.begin()
    assert len(begun) == 2


class OutOfUse(MemoryStore):
    async def runs(self, **_: Any) -> list[StoredRun]:  # type: ignore[override]
        raise StoreError("locked")


def test_what_is_recovered_in_the_background_is_logged_and_a_failure_ends_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = MemoryStore()
    asyncio.run(interrupted(store, r="clerk_kind"))
    Recovery(Resuming({"r": StoreError("full")}), store)._run()  # type: ignore[arg-type]
    Recovery(Resuming({}), OutOfUse())._run()  # type: ignore[arg-type]
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "recovered run r: failed full"),
        ("WARNING", "interrupted runs could not be recovered: locked"),
    ]
