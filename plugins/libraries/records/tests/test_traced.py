"""The record of a run keeps the trace under which it began, for the process that continues it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from jackfield import FnCallAgent, tool
from jackfield.events import RunEvent
from jackfield.runs import Observer
from jackfield.testing import ScriptedModel, answer, calls
from jackfield_records import fork, replay
from jackfield_records.recovering import count_tries
from jackfield_testkit.records import KilledError, MemoryStore


class Traces(Observer):
    """Gives each run a trace, and notes the traces under which continued runs began."""

    name = "traces"

    def __init__(self, trace: Mapping[str, Any], *, fails: bool = False) -> None:
        self.trace, self.fails = trace, fails
        self.noted: list[str] = []

    def prepare(self, agent: object) -> None:
        self.noted.append("prepare")

    def observe(self, event: RunEvent) -> None:
        if event.number == 1:
            self.noted.append(f"{event.event.__class__.__name__} {event.run_id}")

    def trace_of(self, run_id: str) -> Mapping[str, str]:
        self.noted.append("trace_of")
        return self.trace

    def resume(self, run_id: str, trace: Mapping[str, str]) -> None:
        self.noted.append(f"resume {run_id} {trace}")
        if self.fails:
            raise ValueError


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay a sum."""
    return f"paid {amount}"


def agent(store: MemoryStore, *observers: Observer, done: int = 0) -> FnCallAgent:
    script = [calls(("pay", {"amount": 3})), calls(("pay", {"amount": 4})), answer("Paid.")]
    return FnCallAgent([pay], ScriptedModel(script[done:]), name="clerk", store=store, observers=observers)


FIRST, SECOND, THIRD = ({"traceparent": f"00-{number:032x}-{number:016x}-01"} for number in (1, 2, 3))


def names_in(store: MemoryStore, run_id: str) -> list[str]:
    return [json.loads(entry)["event"] for entry in store.kept[run_id].entries]


def test_each_process_that_continues_a_run_gets_the_trace_under_which_it_began() -> None:
    store, first, second, third = MemoryStore(), Traces(FIRST), Traces(SECOND), Traces(THIRD)
    paused = agent(store, first).ask("Pay.")
    run_id = paused.run_id
    again = agent(store, second, done=1).resume(run_id, approvals=dict.fromkeys(paused.waiting, True))
    done = agent(store, third, done=2).resume(run_id, approvals=dict.fromkeys(again.waiting, True))
    assert done.stop_reason == "finished"
    assert first.noted == ["prepare", f"RunStarted {run_id}", "trace_of"]
    for one in (second, third):
        assert one.noted == ["prepare", f"resume {run_id} {FIRST}", f"RunStarted {run_id}"]
    assert [entry["headers"] for entry in store.events("Traced")] == [FIRST], "it is written once"
    assert names_in(store, run_id)[:2] == ["RunStarted", "Traced"]


@pytest.mark.parametrize(
    "observers",
    [[], [Traces({})], [Traces({"traceparent": 7})], [Traces({7: "00"})]],
    ids=["without observers", "without a trace", "with a number", "with a number as a name"],
)
def test_a_run_without_a_trace_has_no_entry_and_continues_as_ever(observers: list[Traces]) -> None:
    store, later = MemoryStore(), Traces({})
    paused = agent(store, *observers).ask("Pay.")
    assert names_in(store, paused.run_id) == ["RunStarted", "TurnFinished", "ApprovalNeeded", "RunFinished"]
    agent(store, later, done=1).resume(paused.run_id, approvals=dict.fromkeys(paused.waiting, True))
    assert later.noted == ["prepare", f"RunStarted {paused.run_id}", "trace_of"]
    assert store.events("Traced") == []


def test_a_run_that_was_not_traced_before_keeps_the_first_trace_that_it_gets() -> None:
    store, second = MemoryStore(), Traces(SECOND)
    paused = agent(store).ask("Pay.")
    again = agent(store, Traces(FIRST), done=1).resume(paused.run_id, approvals=dict.fromkeys(paused.waiting, True))
    agent(store, second, done=2).resume(paused.run_id, approvals=dict.fromkeys(again.waiting, True))
    assert second.noted[1] == f"resume {paused.run_id} {FIRST}"
    assert [entry["headers"] for entry in store.events("Traced")] == [FIRST]


def test_the_first_observer_with_a_trace_gives_it_and_a_failure_costs_the_run_nothing() -> None:
    store, failing = MemoryStore(), Traces({}, fails=True)
    paused = agent(store, Traces({}), Traces(FIRST), Traces(SECOND)).ask("Pay.")
    again = agent(store, failing, done=1).resume(paused.run_id, approvals=dict.fromkeys(paused.waiting, True))
    assert again.stop_reason == "approval_needed"
    [headers] = [entry["headers"] for entry in store.events("Traced")]
    assert {name: text for name, text in headers.items() if "/" not in name} == FIRST
    assert failing.noted[1] == f"resume {paused.run_id} {FIRST}"


def test_each_observer_continues_its_own_trace_and_a_new_one_the_first() -> None:
    store, later = MemoryStore(), [Traces(SECOND), Traces(SECOND), Traces(SECOND)]
    paused = agent(store, Traces(FIRST), Traces(THIRD)).ask("Pay.")
    agent(store, *later, done=1).resume(paused.run_id, approvals=dict.fromkeys(paused.waiting, True))
    assert [one.noted[1] for one in later] == [f"resume {paused.run_id} {trace}" for trace in (FIRST, THIRD, FIRST)]


def test_a_fork_begins_with_the_trace_of_the_other_run_and_then_has_its_own() -> None:
    store, second, third = MemoryStore(), Traces(SECOND), Traces(THIRD)
    paused = agent(store, Traces(FIRST)).ask("Pay.")
    copy = asyncio.run(fork(store, paused.run_id))
    again = agent(store, second, done=1).resume(copy, approvals=dict.fromkeys(paused.waiting, True))
    agent(store, third, done=2).resume(copy, approvals=dict.fromkeys(again.waiting, True))
    assert [second.noted[1], third.noted[1]] == [f"resume {copy} {FIRST}", f"resume {copy} {SECOND}"]
    before = asyncio.run(fork(store, paused.run_id, at=1))
    early = Traces(THIRD)
    agent(store, early).resume(before)
    assert early.noted[1:] == [f"RunStarted {before}", "trace_of"], "it has none of the other run"


def test_a_run_that_ends_its_process_each_time_is_counted_across_its_trace() -> None:
    store = MemoryStore()
    store.writes_left = 1
    with pytest.raises(KilledError):
        agent(store).ask("Pay.")
    [run_id] = store.kept
    for tries in (1, 2, 3):
        store.restarted()
        store.writes_left = 1
        with pytest.raises(KilledError):
            agent(store, Traces(FIRST)).resume(run_id)
        assert count_tries(store.kept[run_id].entries) == tries
    assert names_in(store, run_id) == ["RunStarted", "Resumed", "Traced", "Resumed", "Resumed"]


@pytest.mark.parametrize("headers", [None, 3, [], {}, {"traceparent": 3}, {"other": ["x"]}])
def test_a_damaged_trace_does_not_keep_a_run_from_continuing(headers: object) -> None:
    store, later = MemoryStore(), Traces({})
    paused = agent(store, Traces(FIRST)).ask("Pay.")
    entries = store.kept[paused.run_id].entries
    entries[1] = json.dumps({"event": "Traced", "run_id": paused.run_id, "headers": headers})
    done = agent(store, later, done=2).resume(paused.run_id, approvals=dict.fromkeys(paused.waiting, True))
    assert done.stop_reason == "finished"
    assert later.noted[1:] == [f"RunStarted {paused.run_id}"]


def test_a_replay_has_the_same_events_with_a_trace_and_without() -> None:
    async def events_of(*observers: Observer) -> list[tuple[int, str]]:
        store = MemoryStore()
        paused = await agent(store, *observers).aask("Pay.")
        return [(one.number, type(one.event).__name__) async for one in replay(store, paused.run_id)]

    assert asyncio.run(events_of(Traces(FIRST))) == asyncio.run(events_of())
