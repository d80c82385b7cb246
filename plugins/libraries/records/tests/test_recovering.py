"""Interrupted runs that no process holds are resumed where the caller asks for it, and no others."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from jackfield import FnCallAgent, sync
from jackfield.errors import ConfigError
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import tool
from jackfield_records import recover
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
    waits = interrupt(store, "Say hello.", writes=1)
    store.kept[waits].run = replace(store.kept[waits].run, state="approval_needed")
    held = interrupt(store, "Say hello.", writes=1)
    store.kept[held].is_held = True
    ended = agent(store).ask("Say hello.").run_id
    before = {run_id: list(store.kept[run_id].entries) for run_id in (others, waits, held, ended)}
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
    assert "resumed 3 times without a step" in one.note


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
    with pytest.raises(ConfigError, match="give it one"):
        asyncio.run(recover(FnCallAgent(llm=ScriptedModel([]), name="clerk")))
