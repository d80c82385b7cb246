"""Digests of secrets are computed beside the event loop, and entries keep their order meanwhile."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from jackfield import FnCallAgent, tool
from jackfield.events import PluginEvent
from jackfield.processors import CallNext, Processor
from jackfield.request import ChatRequest
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import ToolEntry, Toolset
from jackfield_testkit.records import MemoryStore

KEY = "sk-Zq83bXw4Rk2LpV7Tn"


class Digests:
    """Counts digests, and lets each begin only after the loop has ticked while it was being computed.

    Attributes:
        ticked: For each digest, True if the loop went on meanwhile.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ticked: list[bool] = []
        self._compute = hashlib.scrypt
        monkeypatch.setattr(hashlib, "scrypt", self._scrypt)

    def _scrypt(self, *args: Any, **options: Any) -> bytes:
        if threading.get_ident() == self._loop_thread:
            self.ticked.append(False)
        else:
            ticked = threading.Event()
            self._loop.call_soon_threadsafe(self._tick, 3, ticked)
            self.ticked.append(ticked.wait(30))
        return self._compute(*args, **options)

    def _tick(self, more: int, ticked: threading.Event) -> None:
        if more:
            self._loop.call_soon(self._tick, more - 1, ticked)
        else:
            ticked.set()

    def during(self, work: Any) -> Any:
        """Run a coroutine to its end."""

        async def watched() -> Any:
            self._loop, self._loop_thread = asyncio.get_running_loop(), threading.get_ident()
            return await work

        return asyncio.run(watched())


@pytest.fixture
def digests(monkeypatch: pytest.MonkeyPatch) -> Digests:
    monkeypatch.setenv("ACME_API_KEY", KEY)
    return Digests(monkeypatch)


def _agent(model: ScriptedModel, store: MemoryStore, orders: list[str]) -> FnCallAgent:
    def order(cake: str) -> str:
        """Order a cake."""
        orders.append(cake)
        return f"ordered {cake}"

    return FnCallAgent([tool(order, needs_approval=True)], model, store=store)


@pytest.mark.parametrize("cake", [KEY, "plain"])
def test_the_loop_goes_on_while_digests_are_computed_and_compared(cake: str, digests: Digests) -> None:
    store, orders = MemoryStore(), list[str]()
    paused = digests.during(_agent(ScriptedModel([calls(("order", {"cake": cake}))]), store, orders).aask(f"A {cake}."))
    # The question, the answer with the call, the question for approval, and the call in it.
    assert digests.ticked == ([True] * 4 if cake == KEY else [])
    digests.ticked.clear()
    again = _agent(ScriptedModel([answer("Done.")]), store, orders)
    result = digests.during(again.aresume(paused.run_id, approvals=dict.fromkeys(paused.waiting, True)))
    assert result.stop_reason == "finished"
    assert orders == [cake]
    # The same four are compared; the approval and the result of the call are new.
    assert digests.ticked == ([True] * 6 if cake == KEY else [])


def test_the_loop_goes_on_while_an_interrupted_helper_is_resumed(digests: Digests) -> None:
    store, orders = MemoryStore(), list[str]()

    def tree(*, first: bool) -> FnCallAgent:
        said = [calls(("order", {"cake": KEY}))] if first else [answer("It is done.")]
        helper = _agent(ScriptedModel(said), store, orders)
        helper.name, helper.description, helper.store = "baker", "Bakes.", None
        asks = [calls(("baker", {"request": f"one for {KEY}"}))] if first else [answer("Done.")]
        return FnCallAgent([helper.as_tool()], ScriptedModel(asks), store=store)

    paused = digests.during(tree(first=True).aask("Bake."))
    assert paused.stop_reason == "approval_needed"
    result = digests.during(tree(first=False).aresume(paused.run_id, approvals=dict.fromkeys(paused.waiting, True)))
    assert result.stop_reason == "finished"
    assert orders == [KEY]
    assert digests.ticked
    assert all(digests.ticked)


class Noting(Processor):
    """Reports the key."""

    name = "noting"

    async def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[Any]:
        yield PluginEvent("noting.noted", {"key": KEY})
        async for event in call_next(request):
            yield event


class Notes(Toolset):
    """Remembers what was reported in earlier runs of the conversation."""

    name = "notes"

    def __init__(self) -> None:
        super().__init__()
        self.reported: list[object] = []

    async def tools_of_run(self, context: Any) -> Sequence[ToolEntry]:
        return []

    def processor_of_run(self, context: Any, reported: Sequence[PluginEvent]) -> Processor:
        self.reported += [event.data["key"] for event in reported]
        return Noting()


def test_the_loop_goes_on_while_a_conversation_is_continued(digests: Digests) -> None:
    store, notes = MemoryStore(), Notes()
    for _ in range(2):
        agent = FnCallAgent([notes], ScriptedModel([answer("x")]), store=store)
        digests.during(agent.aask("Go.", session="talk"))
    assert notes.reported == [KEY]
    # One report in each run, and one comparison when the second run begins.
    assert digests.ticked == [True] * 3


def test_helpers_that_begin_while_a_digest_is_computed_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", KEY)
    store = MemoryStore()
    helper = FnCallAgent(llm=ScriptedModel([answer("a"), answer("b")]), name="helper", description="Helps.")
    asks = calls(("helper", {"request": f"use {KEY}"}), ("helper", {"request": "use none"}))
    FnCallAgent([helper.as_tool()], ScriptedModel([asks, answer("x")]), store=store).ask("Go.")
    (kept,) = store.kept.values()
    begun = [entry["below"] for entry in map(json.loads, kept.entries) if "asked" in entry]
    assert begun == [1, 2]
