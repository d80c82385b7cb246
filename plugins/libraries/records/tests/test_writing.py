"""A record is written by the one that holds its run, and a store that is out of use is waited for."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator, Sequence
from types import SimpleNamespace

import pytest

from jackfield import FnCallAgent, Message
from jackfield.errors import InDoubtError, RunBusyError, RunNotFoundError, StoreError, StoreUnavailableError
from jackfield.events import ApprovalDecided, PluginEvent, RunFinished, RunStarted, ToolFinished, TurnFinished
from jackfield.messages import FunctionCall, Usage
from jackfield.secrets import Secrets
from jackfield.stores import RUNNING, StoredRun
from jackfield.testing import ScriptedModel
from jackfield_records import writing
from jackfield_records.entries import entry_of
from jackfield_records.progress import Progress, progress_of
from jackfield_records.recording import RunRecord
from jackfield_records.writing import Writer
from jackfield_testkit.records import MemoryStore

QUESTION = (Message("user", "Hi"),)


class Failing(MemoryStore):
    """Raises errors, one for each append, and counts the appends."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__()
        self.errors: Iterator[Exception] = iter(errors)
        self.appends: list[Sequence[str]] = []

    async def append(self, run_id: str, hold: int, entries: Sequence[str], *, state: str = RUNNING) -> None:
        self.appends.append(entries)
        for error in self.errors:
            raise error
        await super().append(run_id, hold, entries, state=state)


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses, which take no time."""
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    times = SimpleNamespace(**{**vars(asyncio), "sleep": sleep})
    monkeypatch.setattr(writing, "asyncio", times)
    return pauses


async def writer_of(store: Failing) -> Writer:
    run = FnCallAgent(llm=ScriptedModel([]), name="a").make_run(QUESTION, "en")
    hold = await store.create(StoredRun(run_id=run.id), ['{"event": "Begun"}'])
    return Writer(store, run, hold, Secrets())


@pytest.mark.parametrize(
    ("error", "is_final"),
    [
        (RunBusyError("lost"), True),
        (RunNotFoundError("deleted"), True),
        (StoreUnavailableError("locked"), True),
        (StoreError("a bad entry"), False),
    ],
    ids=["lost", "deleted", "out of use", "refused"],
)
def test_after_a_run_is_lost_nothing_is_written_and_no_call_is_made(error: StoreError, is_final: bool) -> None:
    async def main() -> None:
        store = Failing(error)
        store.patience_s = 0
        writer = await writer_of(store)
        with pytest.raises(type(error)):
            await writer.append(0, ['{"event": "x"}'])
        if is_final:
            with pytest.raises(type(error), match=str(error)):
                await writer.append(0, ['{"event": "y"}'])
            assert await writer.before_call() == (f"Nothing was done: this process no longer holds the run ({error}).")
            assert len(store.appends) == 1
        else:
            await writer.append(0, ['{"event": "y"}'])
            assert await writer.before_call() == ""
        await writer.release()
        assert not (await store.read(writer.run_id))[0].is_held

    asyncio.run(main())


def test_a_call_confirms_the_hold_unless_a_write_has_just_done_so(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(writing, "time", SimpleNamespace(monotonic=lambda: now[0]))

    async def main() -> None:
        store = Failing()
        writer = await writer_of(store)
        counts = []
        for seconds, is_doubted in (
            (0.0, False),
            (0.009, False),
            (0.02, False),
            (0.0, False),
            (0.0, True),
            (0.0, False),
        ):
            now[0] += seconds
            if is_doubted:
                writer.doubt()
            assert await writer.before_call() == ""
            counts.append(len(store.appends))
        assert counts == [0, 0, 1, 1, 2, 2]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("patience_s", "pauses"),
    [(30.0, [0.05, 0.1, 0.2, 0.4, 0.5, 0.5]), (0.15, [0.05, 0.1, 0.15, 0.15, 0.15, 0.15])],
)
def test_pauses_grow_up_to_half_a_second_and_the_patience_and_are_logged_once(
    patience_s: float, pauses: list[float], slept: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> str:
        store = Failing(*[StoreUnavailableError("locked")] * 6)
        store.patience_s = patience_s
        writer = await writer_of(store)
        await writer.append(0, ['{"event": "x"}'])
        assert len(store.kept[writer.run_id].entries) == 2
        await writer.append(0, ['{"event": "y"}'])
        return writer.run_id

    with caplog.at_level(logging.WARNING, logger="jackfield_records"):
        run_id = asyncio.run(main())
    assert slept == pytest.approx(pauses)
    assert caplog.messages == [
        f"run {run_id} is waiting for its store, for up to {patience_s:g} s: locked",
        f"run {run_id} continues: its store is available again",
    ]


# --- the steps of a run ---


async def record_of(store: Failing) -> RunRecord:
    return RunRecord(await writer_of(store), Progress.of_messages(QUESTION))


@pytest.mark.parametrize(
    ("error", "text", "waits"),
    [
        (ValueError("no such file"), "no such file", True),
        (StoreError("the disk is full"), "the disk is full", False),
        (asyncio.CancelledError("by whom"), "", False),
        (GeneratorExit("left"), "", False),
    ],
    ids=["its own error", "an error of the store", "cancelled", "its reader left"],
)
def test_only_a_run_that_failed_by_itself_waits_for_the_store_to_record_it(
    error: BaseException, text: str, waits: bool, slept: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        store = Failing(StoreUnavailableError("locked"))
        record = await record_of(store)
        waiting = TurnFinished(1, (Message("assistant", "Hello."),), Usage())
        assert await record.keep(waiting) == []
        assert await record.give_up(error) == [waiting]
        assert await record.give_up(error) == [], "a run ends once"
        kept = store.kept[record.writer.run_id]
        if waits:
            assert kept.run.state == "failed"
            assert [json.loads(entry)["event"] for entry in kept.entries[1:]] == ["TurnFinished", "RunFailed"]
            [failed] = store.events("RunFailed")
            assert (failed["error"], failed["kind"]) == (text, type(error).__name__)
        else:
            assert kept.run.state == RUNNING

    asyncio.run(main())
    assert bool(slept) is waits
    assert any("the end of run" in message for message in caplog.messages) is not waits


@pytest.mark.parametrize("error", [asyncio.CancelledError("by whom"), ValueError("why")], ids=["cancelled", "failed"])
def test_only_errors_have_a_text_in_the_record(error: BaseException) -> None:
    async def main() -> None:
        store = Failing()
        record = await record_of(store)
        await record.give_up(error)
        [failed] = store.events("RunFailed")
        text = "why" if isinstance(error, ValueError) else ""
        assert (failed.get("error", ""), failed["kind"]) == (text, type(error).__name__)

    asyncio.run(main())


def test_results_of_a_stopped_run_that_cannot_be_written_raise_no_other_error() -> None:
    async def main() -> None:
        record = await record_of(Failing(StoreError("full")))
        await record.finished([ToolFinished(0, "c", Message("function", "x", name="t"), 0.1)])

    asyncio.run(main())


def test_data_without_a_form_in_json_is_left_out_and_the_step_is_recorded() -> None:
    async def main() -> None:
        store = Failing()
        record = await record_of(store)
        report = PluginEvent("odd", {"value": object()})
        assert await record.keep(report) == [report], "it is shown"
        result = ToolFinished(0, "c", Message("function", "x", name="t"), 0.1, "", {"value": object()})
        assert await record.keep(result) == [result]
        assert store.events("PluginEvent") == []
        [told] = store.events("ToolFinished")
        assert (told["call_id"], told.get("metadata")) == ("c", None)

    asyncio.run(main())


def test_after_a_person_has_decided_the_next_call_confirms_the_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "time", SimpleNamespace(monotonic=lambda: 100.0))

    async def main() -> None:
        store = Failing()
        record = await record_of(store)
        await record.keep(TurnFinished(1, (Message("assistant", "", function_call=FunctionCall("t", "{}")),), Usage()))
        assert await record.before_call() == ""
        assert len(store.appends) == 1
        await record.keep(ApprovalDecided("c", FunctionCall("t", "{}"), True, "person"))
        assert await record.before_call() == ""
        assert store.appends[1:] == [[]]

    asyncio.run(main())


def test_a_nested_run_is_known_by_its_turn_its_call_and_how_often_was_asked_there_before() -> None:
    async def main() -> None:
        record = await record_of(Failing())

        def place(name: str, call_id: str = "") -> str:
            return record.below("helper", name, call_id, {}, resumable=True).place

        assert [place(""), place("left"), place(""), place("right")] == [
            "question #1",
            "left #1",
            "question #2",
            "right #1",
        ]
        assert [place("", "c"), place("left", "c"), place("", "c")] == [
            "turn 0, call c #1", "turn 0, call c in left #1", "turn 0, call c #2",
        ]  # fmt: skip
        await record.keep(TurnFinished(1, (Message("assistant", "", function_call=FunctionCall("t", "{}")),), Usage()))
        assert place("", "c") == "turn 1, call c #1", "servers repeat the ids of calls"

    asyncio.run(main())


SAID = tuple(Message("assistant", text) for text in ("one", "two", "three"))


@pytest.mark.parametrize(
    ("end", "written"),
    [(SAID[:1], []), (SAID[:2], ["two"]), (SAID[2:], ["three"]), ((), [])],
    ids=["as the steps", "and one more", "another one", "none"],
)
def test_an_end_has_only_the_messages_that_no_step_has_unless_it_has_others(
    end: tuple[Message, ...], written: list[str]
) -> None:
    async def main() -> None:
        store = Failing()
        record = await record_of(store)
        await record.keep(TurnFinished(1, SAID[:1], Usage()))
        await record.keep(RunFinished("finished", end, Usage()))
        _, entries = await store.read(record.writer.run_id)
        names = [json.loads(entry)["event"] for entry in entries[1:]]
        assert names == ["TurnFinished", *(["Added"] if end[:1] != SAID[:1] else []), "RunFinished"]
        assert [message["content"] for message in json.loads(entries[-1])["messages"]] == written
        assert progress_of([entry_of(RunStarted(QUESTION), with_texts=True), *entries[1:]]).now() == end

    asyncio.run(main())


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (InDoubtError("x", agent="a", call_id="", place="here #1", question="q", is_denied=False), "approval_needed"),
        (InDoubtError("x", agent="a", call_id="", place="there #1", question="q", is_denied=False), "failed"),
        (InDoubtError("x", agent="a", call_id="", place="here #1", question="q", is_denied=True), "failed"),
        (ValueError("x"), "failed"),
    ],
    ids=["in doubt", "in doubt elsewhere", "refused", "another error"],
)
def test_a_run_pauses_only_if_an_agent_that_it_asked_itself_is_in_doubt(error: Exception, state: str) -> None:
    async def main() -> None:
        store, progress = Failing(), Progress.of_messages(QUESTION)
        progress.ask({"run_id": "b", "agent": "a", "place": "here #1"}, 1)
        record = RunRecord(await writer_of(store), progress)
        events, is_paused = await record.end_with(error)
        assert store.kept[record.writer.run_id].run.state == state
        assert is_paused is (state == "approval_needed")
        assert [type(event).__name__ for event in events] == (["ApprovalNeeded", "RunFinished"] if is_paused else [])

    asyncio.run(main())


def test_a_call_waits_for_its_store_before_it_is_made(slept: list[float]) -> None:
    async def main() -> None:
        writer = await writer_of(Failing(StoreUnavailableError("locked")))
        writer.doubt()
        assert await writer.before_call() == ""

    asyncio.run(main())
    assert slept == [0.05]
