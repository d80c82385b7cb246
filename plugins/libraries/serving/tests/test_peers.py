"""Processes tell each other of changes, and look for themselves where a signal may be lost."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from jackfield.errors import RunBusyError, RunNotFoundError, StoreError
from jackfield.stores import RUNNING, Signal, StoredRun
from jackfield_serving import MemoryStore
from jackfield_serving import peers as module
from jackfield_serving.peers import Peers

pytestmark = pytest.mark.anyio


class Signals(MemoryStore):
    """A store whose signals a test sends."""

    def __init__(self, *, reports_writes: bool = False) -> None:
        super().__init__()
        self.reports_writes = reports_writes
        self.sent: list[tuple[str, str]] = []
        self.arriving: asyncio.Queue[Signal | StoreError] = asyncio.Queue()
        self.refuses = 0

    async def send(self, run_id: str, text: str = "") -> None:
        self.refuses -= 1
        if self.refuses >= 0:
            raise StoreError("locked")
        self.sent.append((run_id, text))

    async def listen(self) -> AsyncIterator[Signal]:
        yield Signal()
        while True:
            signal = await self.arriving.get()
            if isinstance(signal, StoreError):
                raise signal
            yield signal


async def until(is_so: Any) -> None:
    async with asyncio.timeout(60):
        while not is_so():
            await asyncio.sleep(0.001)


async def test_of_signals_only_messages_about_a_run_arrive_and_each_one_wakes_those_who_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_LONGEST_WAIT_S", 600)
    store, messages = Signals(), []
    peers = Peers(store, lambda run_id, message: messages.append((run_id, message)), poll_s=600)
    peers.open()
    for signal in (
        Signal(),
        Signal("r", "no json"),
        Signal("r", "[1]"),
        Signal("", '{"cancel": true}'),
        Signal("r", '{"cancel": true}'),
    ):
        waiting = [asyncio.ensure_future(peers.changed()) for _ in range(2)]
        await asyncio.sleep(0)
        store.arriving.put_nowait(signal)
        async with asyncio.timeout(60):
            await asyncio.gather(*waiting)
    assert messages == [("r", {"cancel": True})]
    await peers.aclose()


async def test_a_process_looks_for_itself_without_signals_and_now_and_then_with_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_LONGEST_WAIT_S", 0.01)
    silent = Peers(MemoryStore(), lambda *_: None, poll_s=0.01)
    silent.open()
    assert silent._tasks == []
    silent.note_written("r")
    store = Signals()
    listening = Peers(store, lambda *_: None, poll_s=600)
    listening.open()
    await until(lambda: listening._is_listening)
    async with asyncio.timeout(60):
        await silent.changed()
        await listening.changed()
    assert silent._waiting == listening._waiting == set()
    for peers in (silent, listening):
        await peers.aclose()


async def test_a_process_that_hears_no_signals_looks_as_often_as_the_service_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_LONGEST_WAIT_S", 600)
    peers = Peers(MemoryStore(), lambda *_: None, poll_s=0.01)
    async with asyncio.timeout(60):
        await peers.changed()


async def test_several_writes_are_one_signal_also_after_one_that_could_not_be_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_GATHER_S", 0.001)
    store = Signals()
    store.refuses = 1
    peers = Peers(store, lambda *_: None, poll_s=600)
    peers.open()
    peers.note_written("refused")
    await until(lambda: store.refuses == 0 and not peers._has_written.is_set())
    for run_id in ("r", "r", "s"):
        peers.note_written(run_id)
    await until(lambda: store.sent)
    await asyncio.sleep(0.02)
    assert store.sent == [("", "")]
    await peers.send("r", {"cancel": True})
    assert store.sent[1:] == [("r", '{"cancel": true}')]
    await peers.aclose()
    assert all(task.done() for task in peers._tasks)


class Away(Signals):
    """A store that cannot be reached, in two ways one after the other."""

    attempts = 0

    async def listen(self) -> AsyncIterator[Signal]:
        self.attempts += 1
        raise StoreError("away" if self.attempts < 4 else "locked")
        yield  # type: ignore[unreachable]


async def test_an_outage_is_logged_once_however_often_the_store_is_tried(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_LISTEN_AGAIN_S", 0.001)
    store = Away()
    peers = Peers(store, lambda *_: None, poll_s=600)
    with caplog.at_level(logging.WARNING, logger="jackfield.serving"):
        peers.open()
        await until(lambda: store.attempts > 7)
    await peers.aclose()
    assert caplog.messages == [
        f"cannot receive signals from other processes: {reason}" for reason in ("away", "locked")
    ]


async def test_a_store_that_reports_writes_is_sent_none() -> None:
    store = Signals(reports_writes=True)
    peers = Peers(store, lambda *_: None, poll_s=600)
    peers.open()
    peers.note_written("r")
    assert (len(peers._tasks), peers._has_written.is_set()) == (1, False)
    await peers.aclose()


async def test_after_an_outage_a_process_listens_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_LISTEN_AGAIN_S", 0.01)
    store, messages = Signals(), []
    peers = Peers(store, lambda run_id, _: messages.append(run_id), poll_s=600)
    peers.open()
    with caplog.at_level(logging.WARNING, logger="jackfield.serving"):
        await until(lambda: peers._is_listening)
        store.arriving.put_nowait(StoreError("the server went away"))
        await until(lambda: not peers._is_listening)
        await until(lambda: peers._is_listening)
    store.arriving.put_nowait(Signal("r", "{}"))
    await until(lambda: messages == ["r"])
    assert caplog.messages == ["cannot receive signals from other processes: the server went away"]
    await peers.aclose()


# --- the store of a service without one ---


async def test_the_memory_store_gives_a_run_to_one_at_a_time() -> None:
    store = MemoryStore()
    hold = await store.create(StoredRun(run_id="r", owner="ada", session="s"), ["first"])
    with pytest.raises(StoreError, match="run r already exists"):
        await store.create(StoredRun(run_id="r"), ["another"])
    for work in (store.hold("r"), store.delete("r")):
        with pytest.raises(RunBusyError):
            await work
    await store.append("r", hold, ["second"])
    await store.append("r", hold, ["third"], state="approval_needed")
    run, entries = await store.read("r", after=1)
    assert (run.state, run.is_held, run.entries, entries) == ("approval_needed", False, 3, ["second", "third"])
    assert run.changed >= run.began > 0
    entries.append("of the reader")
    new = await store.hold("r")
    assert new > hold
    await store.release("r", hold)
    for late in (hold, new + 1):
        with pytest.raises(RunBusyError):
            await store.append("r", late, ["late"])
    await store.append("r", new, ["fourth"])
    assert (await store.read("r"))[0].state == RUNNING
    await store.release("r", new)
    with pytest.raises(RunBusyError):
        await store.append("r", new, ["late"])
    run, entries = await store.read("r")
    assert (run.is_held, entries) == (False, ["first", "second", "third", "fourth"])
    await store.rename("r", "Tides")
    assert [one.title for one in await store.runs(owner="ada", session="s", state=RUNNING)] == ["Tides"]
    for wanted in ({"owner": "eve"}, {"session": "t"}, {"state": "finished"}):
        assert await store.runs(**wanted) == []
    await store.delete("r")
    for missing in (store.read("r"), store.hold("r"), store.delete("r"), store.rename("r", "x")):
        with pytest.raises(RunNotFoundError):
            await missing
