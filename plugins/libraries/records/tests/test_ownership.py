"""A run has one owner: who has lost it does nothing, and who waits for the store does nothing until it is back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from jackfield import FnCallAgent
from jackfield.errors import RunBusyError, StoreError, StoreUnavailableError
from jackfield.events import HandedOff, PluginEvent
from jackfield.messages import FunctionCall
from jackfield.processors import CallNext, Processor
from jackfield.request import ChatRequest
from jackfield.stores import RUNNING, StoredRun
from jackfield.streams import CancelToken
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import BaseTool, ToolContext, tool
from jackfield_records import fork
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


class Finds(Processor):
    """Reports a source before the model answers."""

    name = "finds"

    async def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[Any]:
        yield PluginEvent("finds.found", {"sources": ["towns.pdf"]})
        async for event in call_next(request):
            yield event


def test_a_finished_run_that_is_resumed_gives_its_result_and_is_written_no_more() -> None:
    def last(*said: Any) -> FnCallAgent:
        model = ScriptedModel(list(said))
        model._use_processors([Finds()], add=False)
        return FnCallAgent(llm=model, name="clerk", description="Files.")

    def desk(store: MemoryStore, *said: Any) -> FnCallAgent:
        sent = [calls((f"transfer_to_{name}", {})) if said else None for name in ("cashier", "clerk")]
        cashier = FnCallAgent(llm=ScriptedModel(sent[1:]), name="cashier", description="Pays.", handoffs=[last(*said)])
        return FnCallAgent(llm=ScriptedModel(sent[:1]), name="desk", handoffs=[cashier], store=store)

    store = MemoryStore()
    result = desk(store, answer("Hello.")).ask("Hi.")
    kept = list(store.kept[result.run_id].entries)
    store.writes_left = 0
    stream = desk(store).stream((), run_id=result.run_id, resume=True)
    handed_over = [(event.by, event.to) for event in stream if isinstance(event, HandedOff)]
    again = stream.result
    assert handed_over == [("desk", "cashier"), ("cashier", "clerk")]
    assert (again.text, again.stop_reason, again.run_id) == ("Hello.", "finished", result.run_id)
    assert (again.messages, again.usage, again.sources) == (result.messages, result.usage, result.sources)
    assert [source.location for source in again.sources] == ["towns.pdf"]
    assert store.kept[result.run_id].entries == kept


def test_a_fork_of_a_finished_run_ends_as_that_run_and_is_free_before_and_after() -> None:
    store = MemoryStore()
    result = FnCallAgent(llm=ScriptedModel([answer("Hello.")]), name="clerk", store=store).ask("Hi.", session="s")
    copy = asyncio.run(fork(store, result.run_id))
    kept = store.kept[copy]
    assert (kept.run.state, kept.is_held, kept.run.parent) == ("forked", False, result.run_id)
    assert (kept.run.agent, kept.run.session, kept.run.title) == ("clerk", "s", "Hi.")
    again = FnCallAgent(llm=ScriptedModel([]), name="clerk", store=store).resume(copy)
    assert (again.text, again.usage, again.run_id) == ("Hello.", result.usage, copy)
    assert (kept.run.state, kept.is_held) == ("finished", False)
    with pytest.raises(StoreError, match="cannot be forked at step 0: it has steps 1 to 3"):
        asyncio.run(fork(store, result.run_id, at=0))
    asyncio.run(fork(store, result.run_id, at=len(store.kept[result.run_id].entries)))


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
        f"run {result.run_id} is waiting for its store, for up to 30 s",
        f"run {result.run_id} continues",
    ]
    assert all(record.exc_info is None for record in caplog.records), "no traceback reaches stderr"
    assert [len(store.events(name)) for name in ("TurnFinished", "ToolFinished", "RunFinished")] == [2, 1, 1]


class OutOfUse(MemoryStore):
    """Cannot do one kind of work for a moment; a run is read once before it is held."""

    fails = ""
    reads = 0

    def _check(self, work: str) -> None:
        if self.fails == work:
            self.fails = ""
            raise StoreUnavailableError("locked")

    async def create(self, run: StoredRun, entries: Sequence[str]) -> int:
        self._check("create")
        return await super().create(run, entries)

    async def hold(self, run_id: str) -> int:
        self._check("hold")
        return await super().hold(run_id)

    async def read(self, run_id: str, *, after: int = 0) -> tuple[StoredRun, list[str]]:
        self.reads += 1
        if self.reads == 2:
            self._check("read")
        return await super().read(run_id, after=after)


@pytest.mark.parametrize("work", ["create", "hold", "read"])
def test_a_run_waits_for_its_store_also_where_it_begins_and_is_resumed(work: str) -> None:
    store, done = OutOfUse(), list[str]()
    store.fails = work
    asks = [paying(done, needs_approval=True)]
    paused = FnCallAgent(asks, ScriptedModel(PAYS), store=store).ask("Pay.")
    approvals = dict.fromkeys(paused.waiting, True)
    result = FnCallAgent(asks, ScriptedModel(PAYS[1:]), store=store).resume(paused.run_id, approvals=approvals)
    assert (result.text, done, store.fails) == ("Paid.", ["Ada"], "")


@pytest.mark.parametrize("work", ["read", "append"])
def test_a_run_whose_caller_leaves_while_it_is_being_resumed_is_released(work: str) -> None:
    class Slow(MemoryStore):
        """Takes for ever to do one kind of work, once the run is held by the one who resumes it."""

        async def read(self, run_id: str, *, after: int = 0) -> tuple[StoredRun, list[str]]:
            if work == "read" and self.kept[run_id].hold == 2:
                waiting.set()
                await asyncio.Event().wait()
            return await super().read(run_id, after=after)

        async def append(self, run_id: str, hold: int, entries: Sequence[str], *, state: str = RUNNING) -> None:
            if work == "append" and hold == 2:
                waiting.set()
                await asyncio.Event().wait()
            await super().append(run_id, hold, entries, state=state)

    waiting, store = asyncio.Event(), Slow()
    paused = FnCallAgent([paying([], needs_approval=True)], ScriptedModel(PAYS), store=store).ask("Pay.")
    before = list(store.kept[paused.run_id].entries)

    async def leave() -> None:
        agent = FnCallAgent([paying([], needs_approval=True)], ScriptedModel(PAYS[1:]), store=store)
        resuming = asyncio.create_task(agent.aresume(paused.run_id, approvals=dict.fromkeys(paused.waiting, True)))
        async with asyncio.timeout(60):
            await waiting.wait()
        resuming.cancel()
        await asyncio.gather(resuming, return_exceptions=True)

    asyncio.run(leave())
    kept = store.kept[paused.run_id]
    assert (kept.is_held, kept.run.state, kept.entries) == (False, "approval_needed", before)


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


def test_a_run_whose_state_changes_before_it_is_held_is_not_resumed() -> None:
    class Changing(MemoryStore):
        async def hold(self, run_id: str) -> int:
            kept = self.kept[run_id]
            kept.run = replace(kept.run, state="finished")
            return await super().hold(run_id)

    store, done = Changing(), list[str]()
    asks = [paying(done, needs_approval=True)]
    paused = FnCallAgent(asks, ScriptedModel(PAYS), store=store).ask("Pay.")
    entries = list(store.kept[paused.run_id].entries)
    with pytest.raises(RunBusyError, match="was resumed elsewhere in the meantime"):
        FnCallAgent(asks, ScriptedModel(PAYS[1:]), store=store).resume(
            paused.run_id, approvals=dict.fromkeys(paused.waiting, True)
        )
    kept = store.kept[paused.run_id]
    assert (done, kept.is_held, kept.entries) == ([], False, entries)
