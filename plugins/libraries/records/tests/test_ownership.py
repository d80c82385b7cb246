"""A run has one owner: who has lost it does nothing, and who waits for the store does nothing until it is back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from jackfield import FnCallAgent
from jackfield.errors import RunBusyError, StoreError, StoreUnavailableError
from jackfield.messages import FunctionCall
from jackfield.stores import RUNNING
from jackfield.streams import CancelToken
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import BaseTool, ToolContext, tool
from jackfield_testkit.records import MemoryStore

PAYS: list[Any] = [calls(("pay", {"to": "Ada"})), answer("Paid.")]


def paying(done: list[str], **flags: Any) -> BaseTool:
    def pay(to: str) -> str:
        """Pay a person."""
        done.append(to)
        return f"paid {to}"

    return tool(pay, **flags) if flags else tool(pay)


class Overtaken(MemoryStore):
    """Another process is quicker: `before_hold` runs between the reading of a record and the taking hold of it."""

    before_hold: Callable[[], Awaitable[object]] | None = None

    async def hold(self, run_id: str) -> int:
        quicker, self.before_hold = self.before_hold, None
        if quicker:
            await quicker()
        return await super().hold(run_id)


@pytest.mark.parametrize("end", ["finished", "approval_needed", "failed"])
def test_a_resume_that_comes_late_changes_nothing_in_the_record(end: str) -> None:
    done: list[str] = []
    store = Overtaken()
    script = {
        "finished": [answer("Paid.")],
        "approval_needed": [calls(("pay", {"to": "Bob"}))],
        "failed": [RuntimeError("the model broke")],
    }

    def agent(*said: Any) -> FnCallAgent:
        return FnCallAgent([paying(done, needs_approval=True)], ScriptedModel(list(said)), store=store)

    paused = agent(PAYS[0]).ask("Pay.")
    approvals = dict.fromkeys(paused.waiting, True)

    async def other() -> None:
        resumed = agent(*script[end]).aresume(paused.run_id, approvals=approvals)
        await asyncio.gather(resumed, return_exceptions=True)

    store.before_hold = other
    late = agent(*PAYS[1:])
    with pytest.raises(RunBusyError, match="resumed elsewhere"):
        late.resume(paused.run_id, approvals=approvals)
    kept = store.kept[paused.run_id]
    assert (kept.run.state, kept.is_held, done) == (end, False, ["Ada"])
    assert [entry["event"] for entry in store.events("Resumed")] == ["Resumed"], "the late one left no trace"


def test_a_finished_run_that_is_resumed_gives_its_result_and_is_written_no_more() -> None:
    store = MemoryStore()
    result = FnCallAgent(llm=ScriptedModel([answer("Hello.")]), store=store).ask("Hi.")
    kept = list(store.kept[result.run_id].entries)
    store.writes_left = 0
    again = FnCallAgent(llm=ScriptedModel([]), store=store).resume(result.run_id)
    assert (again.text, again.stop_reason, again.run_id) == ("Hello.", "finished", result.run_id)
    assert store.kept[result.run_id].entries == kept


def lose(store: MemoryStore) -> None:
    """Another process takes hold of the only run, as after a cut of what showed that it is held."""
    [kept] = store.kept.values()
    kept.hold += 1


def test_a_call_that_was_approved_after_the_run_was_lost_is_not_made() -> None:
    done: list[str] = []
    store = MemoryStore()

    def approve(_call: FunctionCall, _context: ToolContext) -> bool:
        lose(store)
        return True

    agent = FnCallAgent([paying(done, needs_approval=True)], ScriptedModel(PAYS), approve=approve, store=store)
    with pytest.raises(RunBusyError):
        agent.ask("Pay.")
    assert done == []
    assert store.events("ToolFinished") == []
    assert store.kept[next(iter(store.kept))].is_held, "the other one still has it"


def test_a_call_that_a_tool_asks_about_is_refused_after_the_run_was_lost() -> None:
    done: list[object] = []
    store = MemoryStore()

    @tool
    async def pay(to: str, context: ToolContext) -> str:
        """Pay a person."""
        done.append(await context.ask({"to": to}))
        return "said"

    async def approve(_call: FunctionCall, _context: ToolContext) -> bool:
        lose(store)
        await asyncio.sleep(0.05)
        return True

    agent = FnCallAgent([pay], ScriptedModel(PAYS), approve=approve, store=store)
    with pytest.raises(RunBusyError):
        agent.ask("Pay.")
    assert done == [False]


def test_a_call_that_waited_for_another_is_not_made_after_the_run_was_lost() -> None:
    done: list[str] = []
    store = MemoryStore()

    @tool(concurrent=False)
    async def pay(to: str) -> str:
        """Pay a person."""
        done.append(to)
        lose(store)
        await asyncio.sleep(0.05)
        return "paid"

    model = ScriptedModel([calls(("pay", {"to": "Ada"}), ("pay", {"to": "Bob"})), answer("Paid.")])
    with pytest.raises(RunBusyError):
        FnCallAgent([pay], model, store=store).ask("Pay.")
    assert done == ["Ada"]


# --- outages ---


class Failing(MemoryStore):
    """Cannot be used for some writes, from the moment on that `outage` is set."""

    def __init__(self, *, patience_s: float = 30.0) -> None:
        super().__init__()
        self.patience_s = patience_s
        self.outage = 0
        self.failed = 0

    async def append(self, run_id: str, hold: int, entries: Sequence[str], *, state: str = RUNNING) -> None:
        if self.outage:
            self.outage -= 1
            self.failed += 1
            raise StoreUnavailableError("the disk is full: make room")
        await super().append(run_id, hold, entries, state=state)


def failing_from_the_answer_on(store: Failing, outage: int) -> ScriptedModel:
    def says(request: Any) -> Any:
        if request.messages[-1].role == "function":
            return PAYS[1]
        store.outage = outage
        return PAYS[0]

    return ScriptedModel(says)


def test_an_outage_shorter_than_the_patience_is_waited_out_and_nothing_is_done_meanwhile(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store, done = Failing(), list[int]()

    @tool
    def pay(to: str) -> str:
        """Pay a person."""
        done.append(store.failed)
        return f"paid {to}"

    with caplog.at_level(logging.WARNING, logger="jackfield_records"):
        result = FnCallAgent([pay], failing_from_the_answer_on(store, 3), store=store).ask("Pay.")
    assert (result.text, done) == ("Paid.", [3]), "the call waited for the store"
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        f"run {result.run_id} waits for its store, up to 30 s",
        f"run {result.run_id} goes on",
    ]
    assert all(record.exc_info is None for record in caplog.records), "no traceback reaches stderr"
    assert [len(store.events(name)) for name in ("TurnFinished", "ToolFinished", "RunFinished")] == [2, 1, 1]


def test_an_outage_longer_than_the_patience_ends_the_run_without_the_call_and_lets_go_of_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store, done = Failing(patience_s=0.0), list[str]()
    agent = FnCallAgent([paying(done)], failing_from_the_answer_on(store, 1000), store=store)
    with pytest.raises(StoreUnavailableError, match="make room"):
        agent.ask("Pay.")
    [(run_id, kept)] = store.kept.items()
    assert (done, kept.is_held, kept.run.state) == ([], False, RUNNING)
    assert all(record.exc_info is None for record in caplog.records)
    store.outage = 0
    assert FnCallAgent([paying(done)], ScriptedModel(PAYS), store=store).resume(run_id).text == "Paid."
    assert done == ["Ada"]


def test_a_cancelled_run_does_not_wait_for_its_store() -> None:
    store, token = Failing(patience_s=1e9), CancelToken()

    def says(_request: Any) -> Any:
        store.outage = 10**9
        token.cancel()
        return PAYS[0]

    with pytest.raises(StoreError):
        FnCallAgent([paying([])], ScriptedModel(says), store=store).ask("Pay.", cancel=token)
    assert not store.kept[next(iter(store.kept))].is_held


def test_a_run_whose_time_is_over_does_not_wait_for_its_store() -> None:
    store = Failing(patience_s=1e9)
    agent = FnCallAgent([paying([])], failing_from_the_answer_on(store, 10**9), store=store, limits={"seconds": 0.2})
    with pytest.raises(StoreUnavailableError):
        agent.ask("Pay.")


def test_other_runs_go_on_while_one_waits_for_its_store() -> None:
    store = Failing()
    waits = FnCallAgent([paying([])], failing_from_the_answer_on(store, 4), store=store)
    other = FnCallAgent(llm=ScriptedModel([answer("Hello.")]), store=MemoryStore())

    async def both() -> list[str]:
        ended: list[str] = []

        async def ask(agent: FnCallAgent, name: str) -> None:
            await agent.aask("Go.")
            ended.append(name)

        await asyncio.gather(ask(waits, "waits"), ask(other, "other"))
        return ended

    assert asyncio.run(both()) == ["other", "waits"]
