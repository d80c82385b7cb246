"""A service at its limits, while it is being stopped, and with runs that others have left."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, replace
from inspect import signature
from typing import Any

import pytest

from jackfield import FnCallAgent, Message, tool
from jackfield.config import GenerateConfig
from jackfield.errors import ConfigError, RunBusyError, RunNotFoundError, StoreError, StoreUnavailableError
from jackfield.events import ApprovalNeeded, RunEvent, RunFinished
from jackfield.messages import FunctionCall
from jackfield.request import ChatRequest
from jackfield.runs import Observer
from jackfield.stores import RUNNING, Signal, StoredRun
from jackfield.testing import ScriptedModel, Step, answer, calls
from jackfield.tools import ToolContext
from jackfield_records import RecordingStore
from jackfield_records.pending import record_pending
from jackfield_serving import (
    DrainingError,
    InputTooLargeError,
    MemoryStore,
    NotWaitingError,
    Numbered,
    Serving,
    ServingLimits,
    SessionBusyError,
    TooManyRunsError,
)
from jackfield_serving import serving as service
from jackfield_serving.driving import Driver
from jackfield_serving.live import LiveRun
from jackfield_serving.recording import HeldRun, ServedStore
from jackfield_serving.requests import Request, size_of

QUESTION = Message("user", "When is low water in the harbour of Wörth?")


def says(request: ChatRequest) -> Step:
    last = request.messages[-1]
    wants = last.role == "user" and "pay" in last.get_text_content()
    return calls(("pay", {})) if wants else answer("At six.")


@tool(needs_approval=True)
def pay() -> str:
    """Pay a sum."""
    return "paid"


def serving_of(**options: Any) -> Serving:
    agents = {name: FnCallAgent([pay], ScriptedModel(says), name=name) for name in ("a", "b")}
    return Serving(agents, **options)


async def ask(serving: Serving, text: Any = "Tide?", agent: str = "a", **options: Any) -> str:
    run_id = await serving.start(agent, text, **options)
    async for _ in serving.attach(run_id, owner=options.get("owner", "")):
        pass
    return run_id


@pytest.mark.parametrize(("spare", "is_taken"), [(0, True), (-1, False)])
def test_messages_may_be_as_large_as_the_limit(spare: int, is_taken: bool) -> None:
    async def main() -> None:
        limits = ServingLimits(input_bytes=size_of([QUESTION]) + spare)
        async with serving_of(limits=limits) as serving:
            if is_taken:
                await ask(serving, [QUESTION])
            else:
                with pytest.raises(InputTooLargeError, match=f"the limit is {limits.input_bytes}"):
                    await ask(serving, [QUESTION])

    asyncio.run(main())


@pytest.mark.parametrize("end", ["answer", "cancel"])
def test_no_run_begins_while_too_many_wait_in_memory(end: str) -> None:
    async def main() -> None:
        limits = ServingLimits(waiting_runs=2, retry_after_s=7)
        async with serving_of(limits=limits) as serving:
            waiting = [await ask(serving, "pay", owner=owner) for owner in ("ada", "bob")]
            with pytest.raises(
                TooManyRunsError, match=r"^this server already has 2 runs waiting for a human.* configure a store"
            ) as caught:
                await ask(serving, "Tide?")
            assert caught.value.retry_after_s == 7
            if end == "cancel":
                await serving.cancel(waiting[0], owner="ada")
            else:
                run = await serving.run(waiting[0], owner="ada")
                await serving.answer(waiting[0], {one.call_id: True for one in run.waiting}, owner="ada")
            async with asyncio.timeout(60):
                while (await serving.run(waiting[0], owner="ada")).phase != "ended":
                    await asyncio.sleep(0.01)
            await ask(serving, "Tide?")

    asyncio.run(main())


@pytest.mark.parametrize(("spare", "is_taken"), [(0, True), (-1, False)])
def test_a_conversation_may_be_as_large_as_the_limit(spare: int, is_taken: bool) -> None:
    async def main() -> None:
        store = MemoryStore()
        async with serving_of(store=store) as serving:
            first = await ask(serving, [QUESTION])
            run = await serving.run(first)
        said = [message for message in (*run.messages, *run.response) if message.role != "system"]
        async with serving_of(store=store, limits=ServingLimits(history_bytes=size_of(said) + spare)) as serving:
            if is_taken:
                await ask(serving, "And then?", continues=first)
            else:
                with pytest.raises(InputTooLargeError, match="start a new conversation"):
                    await ask(serving, "And then?", continues=first)

    asyncio.run(main())


def test_a_service_that_is_being_stopped_begins_and_continues_nothing() -> None:
    async def main() -> None:
        async with serving_of(limits=ServingLimits(retry_after_s=7)) as serving:
            waits, ended = await ask(serving, "pay"), await ask(serving)
            [waiting] = (await serving.run(waits)).waiting
            await serving.drain(0)
            for work in (
                serving.start("a", "Tide?"),
                serving.answer(waits, {waiting.call_id: True}),
                serving.fork(ended),
            ):
                with pytest.raises(DrainingError) as caught:
                    await work
                assert caught.value.retry_after_s == 7
            assert len(await serving.runs()) == 2
            assert (await serving.run(waits)).phase == "waiting"

    asyncio.run(main())


def test_runs_may_end_while_a_service_is_being_stopped() -> None:
    async def main() -> None:
        began, gate = asyncio.Event(), asyncio.Event()

        @tool
        async def wait() -> str:
            """Wait."""
            began.set()
            await gate.wait()
            return "waited"

        model = ScriptedModel([calls(("wait", {})), answer("Done.")])
        async with Serving({"a": FnCallAgent([wait], model, name="a")}) as serving:
            run_id = await serving.start("a", "Wait.")
            await began.wait()
            stopping = asyncio.ensure_future(serving.drain(600))
            await asyncio.sleep(0)
            gate.set()
            await stopping
            run = await serving.run(run_id)
            assert (run.phase, run.stop_reason) == ("ended", "finished")

    asyncio.run(main())


def test_a_later_editor_of_a_session_stays_when_an_earlier_one_leaves() -> None:
    async def main() -> None:
        async with serving_of() as serving:
            first: Any = object()
            second: Any = object()
            editors = serving._driver.editors
            earlier = serving.connect_editor(first, session="s", owner="ada")
            later = serving.connect_editor(second, session="s", owner="ada")
            with serving.connect_editor(first, session="s"):
                with later:
                    with earlier:
                        assert editors == {("", "s"): first, ("ada", "s"): first}
                        editors["ada", "s"] = second
                    assert editors == {("", "s"): first, ("ada", "s"): second}
                assert editors == {("", "s"): first}
            assert editors == {}

    asyncio.run(main())


def test_nothing_of_a_deleted_run_stays_in_memory() -> None:
    async def main() -> None:
        async with serving_of() as serving:
            run_id = await ask(serving, owner="ada")
            assert run_id in serving._driver.live
            await serving.delete(run_id, owner="ada")
            assert run_id not in serving._driver.live
            with pytest.raises(RunNotFoundError):
                await serving.run(run_id, owner="ada")

    asyncio.run(main())


def test_of_two_that_start_in_a_session_at_once_one_is_refused() -> None:
    class Slow(MemoryStore):
        async def create(self, run: StoredRun, entries: Sequence[str]) -> int:
            await asyncio.sleep(0.01)
            return await super().create(run, entries)

    async def main() -> None:
        async with serving_of(store=Slow()) as serving:
            starts = [serving.start("a", "Tide?", session="s", owner=owner) for owner in ("ada", "ada", "bob")]
            outcomes = await asyncio.gather(*starts, return_exceptions=True)
            assert [type(one) for one in outcomes] == [str, SessionBusyError, str]
            async for _ in serving.attach(str(outcomes[0]), owner="ada"):
                pass
            await ask(serving, session="s", owner="ada")

    asyncio.run(main())


def test_the_latest_runs_of_one_agent_are_listed_whatever_the_others_do() -> None:
    async def main() -> None:
        async with serving_of() as serving:
            ids = [await ask(serving, agent=name) for name in "aaabbb"]
            assert [run.run_id for run in await serving.runs(agent="a", limit=2)] == [ids[2], ids[1]]
            assert [run.run_id for run in await serving.runs(limit=2)] == [ids[5], ids[4]]

    asyncio.run(main())


def test_a_conversation_of_several_runs_keeps_its_new_title() -> None:
    async def main() -> None:
        async with serving_of() as serving:
            for text in ("First?", "Second?"):
                await ask(serving, text, session="s")
            await serving.rename("s", "Tides")
            assert [one.title for one in await serving.sessions()] == ["Tides"]
            await ask(serving, "Third?", session="s")
            assert [one.title for one in await serving.sessions()] == ["Tides"]

    asyncio.run(main())


def test_cancelling_a_run_that_has_ended_changes_nothing() -> None:
    async def main() -> None:
        store = MemoryStore()
        async with serving_of(store=store) as serving:
            run_id = await ask(serving)
            before = await store.read(run_id)
            await serving.cancel(run_id)
            run, entries = await store.read(run_id)
            assert (run.state, run.is_held, entries) == ("finished", False, before[1])

    asyncio.run(main())


def test_the_tools_of_a_run_get_what_its_caller_depends_on() -> None:
    @tool
    def who(context: ToolContext[str]) -> str:
        """Say who asks."""
        return f"it is {context.deps}"

    async def main() -> None:
        agent: Any = FnCallAgent([who], ScriptedModel([calls(("who", {})), answer("Done.")]), name="a")
        async with Serving({"a": agent}) as serving:
            run_id = await ask(serving, "Who?", deps="Ada")
            texts = [message.get_text_content() for message in (await serving.run(run_id)).response]
            assert "it is Ada" in texts

    asyncio.run(main())


def test_a_run_is_shown_with_its_request_and_its_usage() -> None:
    form = {"type": "object", "properties": {"a": {"type": "integer"}}}
    schema = {"name": "locate", "parameters": {"type": "object", "properties": {}}}

    async def main() -> None:
        script = [answer('{"a": 1}'), calls(("pay", {}), text='{"a": 2}'), [ValueError("broken")]]
        agent = FnCallAgent([pay], ScriptedModel(script), name="inner")
        async with Serving({"a": agent}) as serving:
            first = await ask(serving, config=GenerateConfig(temperature=0.5), output=form, client_tools=[schema])
            run = await serving.run(first)
            assert run.request == {
                "config": {"temperature": 0.5}, "output": form, "client_tools": (schema,), "continues": "",
            }  # fmt: skip
            assert (run.output, run.usage.prompt_tokens, run.agent) == ({"a": 1}, 1, "a")
            second = await ask(serving, output=form, continues=first)
            run = await serving.run(second)
            assert (run.request["continues"], run.output, run.phase) == (first, None, "waiting")
            await serving.answer(second, {run.waiting[0].call_id: True})
            async for _ in serving.attach(second, after=run.number):
                pass
            run = await serving.run(second)
            assert (run.error, run.error_kind, run.output) == ("broken", "ValueError", None)
            assert [one.agent for one in await serving.runs()] == ["a", "a"]

    asyncio.run(main())


def test_a_list_of_conversations_has_their_times_and_no_other_runs() -> None:
    async def main() -> None:
        store = MemoryStore()
        async with serving_of(store=store) as serving:
            runs = [await ask(serving, text, session=name) for text, name in (("1", "s"), ("2", "t"), ("3", "s"))]
            await ask(serving, "pay")
            for number, run_id in enumerate(runs):
                kept = store._kept[run_id]
                kept.run = replace(kept.run, began=10.0 * number, changed=10.0 * number + 1)
            listed = [(one.session, one.runs, one.last_run, one.began, one.changed) for one in await serving.sessions()]
            assert listed == [("s", 2, runs[2], 0.0, 21.0), ("t", 1, runs[1], 10.0, 11.0)]
            assert [one.session for one in await serving.sessions(limit=1)] == ["s"]
            hits = await serving.search("six")
            assert [(one.session, one.run_id, one.agent, one.changed) for one in hits] == [
                ("s", runs[2], "a", 21.0), ("t", runs[1], "a", 11.0),
            ]  # fmt: skip

    asyncio.run(main())


def test_a_run_that_is_deleted_during_a_search_is_no_hit() -> None:
    class Deleting(MemoryStore):
        async def search(self, *args: Any, **options: Any) -> list[StoredRun]:
            hits = await super().search(*args, **options)
            await self.delete(hits[0].run_id)
            return hits

    async def main() -> None:
        async with serving_of(store=Deleting()) as serving:
            for name in "st":
                await ask(serving, session=name)
            assert [hit.session for hit in await serving.search("six")] == ["s"]

    asyncio.run(main())


def test_an_answer_names_a_call_and_finds_room() -> None:
    async def main() -> None:
        async with serving_of(limits=ServingLimits(runs=1, queue=0)) as serving:
            waits = await ask(serving, "pay")
            with pytest.raises(NotWaitingError, match="no answers"):
                await serving.answer(waits, {})
            [waiting] = (await serving.run(waits)).waiting
            running = await serving.start("a", "Tide?")
            for work in (serving.answer(waits, {waiting.call_id: True}), serving.fork(waits)):
                with pytest.raises(TooManyRunsError):
                    await work
            async for _ in serving.attach(running):
                pass
            await serving.answer(waits, {waiting.call_id: True})

    asyncio.run(main())


def test_runs_that_do_not_end_in_time_are_cancelled_with_a_service_in_memory() -> None:
    began = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        began.set()
        await asyncio.sleep(3600)
        return "waited"

    async def main() -> None:
        store = MemoryStore()
        async with Serving({"a": FnCallAgent([wait], ScriptedModel([calls(("wait", {}))]))}, store=store) as serving:
            run_id = await serving.start("a", "Wait.")
            await began.wait()
            async with asyncio.timeout(60):
                await serving.drain(0.01)
            assert (await store.read(run_id))[0].state == "cancelled"
            assert serving.active == 0

    asyncio.run(main())


def test_a_service_that_ends_closes_its_store_and_leaves_no_task() -> None:
    class Closing(MemoryStore):
        is_closed = False

        async def send(self, run_id: str, text: str = "") -> None:
            pass

        async def listen(self) -> AsyncIterator[Signal]:
            yield Signal()
            await asyncio.Event().wait()

        async def aclose(self) -> None:
            self.is_closed = True

    async def main() -> None:
        store = Closing()
        before = asyncio.all_tasks()
        async with serving_of(store=store) as serving:
            run_id = await serving.start("a", "Tide?")
            assert not store.is_closed
        assert store.is_closed
        assert asyncio.all_tasks() == before
        assert not (await store.read(run_id))[0].is_held

    asyncio.run(main())


def test_readers_that_leave_while_a_run_is_silent_are_forgotten() -> None:
    gate = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        await gate.wait()
        return "waited"

    async def main() -> None:
        script = [calls(("wait", {})), answer("Done.")]
        async with Serving({"a": FnCallAgent([wait], ScriptedModel(script))}) as serving:
            run_id = await serving.start("a", "Wait.")

            async def follow() -> int:
                return len([one async for one in serving.attach(run_id)])

            readers = [asyncio.ensure_future(follow()) for _ in range(20)]
            live = serving._driver.live[run_id]
            while len(live._readers) < len(readers):
                await asyncio.sleep(0)
            for reader in readers[1:]:
                reader.cancel()
            await asyncio.gather(*readers[1:], return_exceptions=True)
            assert len(live._readers) == 1
            gate.set()
            assert await readers[0] > 3

    asyncio.run(main())


def test_only_a_message_to_cancel_cancels_a_run() -> None:
    async def main() -> None:
        async with serving_of() as serving:
            run_id = await serving.start("a", "Tide?")
            for message in ({}, {"cancel": False}, {"other": True}):
                serving._take_message(run_id, message)
            serving._take_message("unknown", {"cancel": True})
            async for _ in serving.attach(run_id):
                pass
            assert (await serving.run(run_id)).stop_reason == "finished"

    asyncio.run(main())


def test_a_store_without_content_is_refused() -> None:
    class Bare(MemoryStore):
        content = False

    with pytest.raises(ConfigError, match="set content=true"):
        serving_of(store=Bare())


def test_the_observers_of_all_agents_are_named() -> None:
    class Watching(Observer):
        def __init__(self, name: str) -> None:
            self.name = name

        def observe(self, event: RunEvent) -> None:
            """Note nothing."""

    agents = {
        name: FnCallAgent(llm=ScriptedModel([]), observers=[Watching(f"of {name}"), Watching("shared")])
        for name in ("a", "b")
    }
    assert Serving(agents).observers == {"of a", "of b", "shared"}


def test_a_run_works_in_the_editor_of_its_own_owner_and_session() -> None:
    seen: list[object] = []

    @tool
    def look(context: ToolContext) -> str:
        """Look."""
        seen.append(context.resources.editor)
        return "seen"

    async def main() -> None:
        script = [calls(("look", {})), answer("Done.")] * 4
        async with Serving({"a": FnCallAgent([look], ScriptedModel(script), name="a")}) as serving:
            editor: Any = object()
            with serving.connect_editor(editor, session="s", owner="ada"), serving.connect_editor(editor, session=""):
                for options in ({"session": "s", "owner": "ada"}, {"session": "s"}, {"owner": "ada"}, {}):
                    await ask(serving, **options)
        assert [one is editor for one in seen] == [True, False, False, False]

    asyncio.run(main())


def test_the_options_of_a_request_reach_the_model() -> None:
    async def main() -> None:
        model = ScriptedModel([answer("Hi.")] * 2)
        async with Serving({"a": FnCallAgent(llm=model)}) as serving:
            for config in ({"temperature": 0.25}, GenerateConfig(temperature=0.25)):
                await ask(serving, config=config)
        assert [request.config.temperature for request in model.requests] == [0.25] * 2
        assert [request.config.top_p for request in model.requests] == [None] * 2

    asyncio.run(main())


def test_a_store_gets_no_end_of_a_run_that_another_process_continues() -> None:
    async def main() -> None:
        inner = MemoryStore()
        inner.patience_s = 7.0
        written: list[tuple[str, list[str]]] = []
        store = ServedStore(inner, lambda run_id, entries: written.append((run_id, [*entries])))
        assert (store.patience_s, store.content, store.name) == (7.0, True, "memory")
        hold = await store.create(StoredRun(run_id="r"), ["first"])
        store.abandon("r")
        await store.append("r", hold, ["second"])
        await store.append("r", hold, [])
        assert written == [("r", ["second"])]
        with pytest.raises(StoreUnavailableError, match="already running in another process"):
            await store.append("r", hold, ["last"], state="finished")
        await store.release("r", hold)
        hold = await store.hold("r")
        await store.append("r", hold, ["last"], state="finished")
        assert [run.run_id for run in await store.runs(state="finished")] == ["r"]
        assert await store.runs(state=RUNNING) == []
        held = HeldRun(StoredRun(run_id="r"), ["first", "second"], 9)
        store.pass_on(held)
        run, entries = await store.read("r", after=1)
        assert (run.entries, entries, await store.hold("r")) == (2, ["second"], 9)

    asyncio.run(main())


def test_without_settings_a_service_has_these_limits_and_intervals() -> None:
    assert asdict(ServingLimits()) == {
        "runs": 500, "runs_per_owner": None, "queue": 500, "run_s": None, "input_bytes": 20_000_000,
        "history_bytes": 50_000_000, "buffer_events": 2_000, "buffer_chars": 1_000_000, "kept_runs": 1_000,
        "retry_after_s": 5.0, "waiting_runs": 10_000,
    }  # fmt: skip
    defaults = {name: one.default for name, one in signature(Serving).parameters.items()}
    assert (defaults["poll_s"], defaults["recover_every_s"], defaults["trust"]) == (0.1, 2.0, False)


@pytest.mark.parametrize("limits", [{"buffer_events": 4}, {"buffer_chars": 700}, {}], ids=str)
def test_a_run_keeps_as_many_live_events_as_the_service_allows(limits: dict[str, int]) -> None:
    async def main() -> None:
        async with serving_of(limits=ServingLimits(**limits)) as serving:
            run_id = await ask(serving)
            assert (serving._driver.live[run_id].floor > 0) is bool(limits)

    asyncio.run(main())


def test_a_run_of_another_process_is_cancelled_also_if_signals_get_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_CANCEL_AGAIN_S", 0)
    sent: list[tuple[str, str]] = []

    class Elsewhere(MemoryStore):
        busy = 0

        async def hold(self, run_id: str) -> int:
            self.busy -= 1
            if self.busy >= 0:
                raise RunBusyError("another process runs it")
            return await super().hold(run_id)

        async def send(self, run_id: str, text: str = "") -> None:
            sent.append((run_id, text))

        async def listen(self) -> AsyncIterator[Signal]:
            yield Signal()
            await asyncio.Event().wait()

    async def main() -> None:
        store = Elsewhere()
        async with serving_of(store=store) as serving:
            waits = await ask(serving, "pay")
            store.busy = 3
            await serving.cancel(waits)
            assert [one for one in sent if one[0]] == [(waits, '{"cancel": true}')] * 3
            async for _ in serving.attach(waits):
                pass
            assert (await serving.run(waits)).stop_reason == "cancelled"
            other = await ask(serving, "pay")
            sent.clear()
            store.busy = 1_000
            await serving.cancel(other)
            assert len([one for one in sent if one[0]]) == 20

    asyncio.run(main())


def test_a_slow_reader_gets_the_end_of_a_run_that_another_process_has_finished_meanwhile() -> None:
    async def main() -> None:
        store = MemoryStore()
        async with serving_of(store=store) as one, serving_of(store=store) as two:
            run_id = await one.start("a", "pay")
            events: list[Numbered] = []
            async with asyncio.timeout(60):
                async for numbered in one.attach(run_id):
                    events.append(numbered)
                    if isinstance(numbered.event.event, ApprovalNeeded):
                        while (run := await two.run(run_id)).phase != "waiting":
                            await asyncio.sleep(0.01)
                        await two.answer(run_id, {call.call_id: True for call in run.waiting})
                        async for _ in two.attach(run_id):
                            pass
            ended = [numbered.event.event for numbered in events]
            ends = [event.stop_reason for event in ended if isinstance(event, RunFinished)]
            assert ends == ["approval_needed", "finished"]
            numbers = [numbered.number for numbered in events]
            assert numbers == sorted(set(numbers))

    asyncio.run(main())


def test_the_events_of_a_run_that_goes_on_stay_when_its_first_part_is_forgotten() -> None:
    driver = Driver(ServedStore(MemoryStore(), lambda *_: None), ServingLimits())
    first, second = (LiveRun(StoredRun(run_id="r"), "a", Request(), entries=[], limits=ServingLimits()) for _ in "12")
    driver.live["r"] = second
    driver.forget(first)
    assert driver.live == {"r": second}
    driver.forget(second)
    assert driver.live == {}


# --- runs that others have left ---


class Wrapped(RecordingStore):
    """A shared store, which cannot be read at first."""

    outages = 2

    def __init__(self) -> None:
        super().__init__()
        self.inner = MemoryStore()

    async def runs(self, **wanted: Any) -> list[StoredRun]:
        if wanted.get("state") == RUNNING and self.outages:
            self.outages -= 1
            raise StoreError("locked")
        return await self.inner.runs(**wanted)

    async def create(self, *args: Any) -> int:
        return await self.inner.create(*args)

    async def hold(self, *args: Any) -> int:
        return await self.inner.hold(*args)

    async def append(self, *args: Any, **options: Any) -> None:
        await self.inner.append(*args, **options)

    async def release(self, *args: Any) -> None:
        await self.inner.release(*args)

    async def read(self, *args: Any, **options: Any) -> Any:
        return await self.inner.read(*args, **options)

    async def delete(self, *args: Any) -> None:
        await self.inner.delete(*args)


def test_interrupted_runs_are_looked_for_now_and_then_also_after_an_outage(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        store = Wrapped()
        async with serving_of(store=store, recover_every_s=0.01) as serving:
            await leave(serving, store.inner, "left")
            async with asyncio.timeout(60):
                while (await serving.run("left")).phase != "ended":
                    await asyncio.sleep(0.01)
            await serving.drain(0)
            await leave(serving, store.inner, "later")
            assert await serving.recover() == [], "it is being stopped"
            await asyncio.sleep(0.03)
            assert (await store.read("later"))[0].state == RUNNING
        async with serving_of() as serving:
            assert serving._recovery is None, "no other process has the runs of a service in memory"

    with caplog.at_level(logging.WARNING, logger="jackfield.serving"):
        asyncio.run(main())
    assert caplog.messages == ["cannot recover interrupted runs: locked"], "once for both attempts of the outage"


def test_a_run_that_another_process_continues_first_does_not_keep_the_others_waiting() -> None:
    class Busy(MemoryStore):
        async def hold(self, run_id: str) -> int:
            if run_id == "first":
                raise RunBusyError("another process was faster")
            return await super().hold(run_id)

    async def main() -> None:
        store = Busy()
        async with serving_of(store=store) as serving:
            for name in ("first", "second"):
                await leave(serving, store, name)
            assert await serving.recover() == ["second"]
            async for _ in serving.attach("second"):
                pass

    asyncio.run(main())


async def leave(serving: Serving, store: MemoryStore, run_id: str, agent: str = "a", **options: Any) -> None:
    """Record a run as a process does that ends before it begins."""
    recorder = serving._agents[agent].recorder
    facts = options.pop("facts", {})
    pending = await record_pending(recorder, [QUESTION], run_id=run_id, facts=facts, **options)
    await store.release(run_id, pending.hold)


def test_only_interrupted_runs_of_this_service_that_make_progress_are_continued() -> None:
    async def main() -> None:
        store = MemoryStore()
        async with serving_of(store=store) as serving:
            await leave(serving, store, "first")
            await leave(serving, store, "no service", facts=None)
            await leave(serving, store, "stuck")
            hold = await store.hold("stuck")
            await store.append("stuck", hold, [json.dumps({"event": "Resumed", "approvals": {}})] * 3)
            await store.release("stuck", hold)
            await leave(serving, store, "held")
            await store.hold("held")
            await leave(serving, store, "waits")
            await store.append("waits", await store.hold("waits"), [], state="approval_needed")
            _, entries = await store.read("first")
            await store.release("other", await store.create(StoredRun(run_id="other", agent="gone"), entries))
            await leave(serving, store, "second", agent="b")
            before = {run.run_id: await store.read(run.run_id) for run in await store.runs()}
            assert await serving.recover() == ["first", "second"]
            for run_id in ("first", "second"):
                async for _ in serving.attach(run_id):
                    pass
                assert (await serving.run(run_id)).stop_reason == "finished"
            for run_id in ("no service", "stuck", "held", "waits", "other"):
                assert await store.read(run_id) == before[run_id]
            assert await serving.recover() == []

    asyncio.run(main())


def test_no_more_runs_are_continued_than_may_run() -> None:
    async def main() -> None:
        store = MemoryStore()
        async with serving_of(store=store, limits=ServingLimits(runs=2)) as serving:
            for number in range(3):
                await leave(serving, store, f"r{number}")
            assert await serving.recover() == ["r0", "r1"]
            for number in range(2):
                async for _ in serving.attach(f"r{number}"):
                    pass
            await asyncio.sleep(0)
            assert await serving.recover() == ["r2"]
            async for _ in serving.attach("r2"):
                pass

    asyncio.run(main())


@pytest.mark.parametrize("work", ["answer", "cancel", "fork"])
def test_a_run_that_cannot_be_read_is_let_go(work: str) -> None:
    class Broken(MemoryStore):
        breaks = False

        async def hold(self, run_id: str) -> int:
            hold = await super().hold(run_id)
            self.breaks = True
            return hold

        async def read(self, run_id: str, *, after: int = 0) -> Any:
            if self.breaks:
                self.breaks = False
                raise asyncio.CancelledError
            return await super().read(run_id, after=after)

    async def main() -> None:
        store = Broken()
        async with serving_of(store=store) as serving:
            waits = await ask(serving, "pay")
            [waiting] = (await serving.run(waits)).waiting
            store.breaks = False
            attempts = {
                "answer": lambda: serving.answer(waits, {waiting.call_id: True}),
                "cancel": lambda: serving.cancel(waits),
                "fork": lambda: serving.fork(waits),
            }
            with pytest.raises(asyncio.CancelledError):
                await attempts[work]()
            assert [run.is_held for run in await store.runs()] == [False] * (2 if work == "fork" else 1)
            assert all(run.state in (RUNNING, "approval_needed", "forked") for run in await store.runs())
            assert FunctionCall("pay", "{}") == waiting.call

    asyncio.run(main())
