"""A place in the line waits for the first thing that happens, and leaves nothing behind."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jackfield.errors import ConfigError
from jackfield_local_state.ledger import MemoryLedger
from jackfield_rate_limits import gate as gates
from jackfield_rate_limits.gate import Gate, TooLongError, _least, _Ticket
from jackfield_rate_limits.state import Entry, Limits, State, Wait, Wanted


@pytest.mark.parametrize(
    ("seconds", "least"), [((3.0, None, 1.0), 1.0), ((None, None), None), ((0.0, 2.0), 0.0), ((), None)]
)
def test_the_shortest_of_several_waits_counts(seconds: tuple[float | None, ...], least: float | None) -> None:
    assert _least(*seconds) == least


@pytest.mark.parametrize("is_woken", [True, False])
def test_a_wait_that_has_ended_leaves_no_task(is_woken: bool) -> None:
    async def wait() -> set[asyncio.Task[object]]:
        before = asyncio.all_tasks()
        ticket = _Ticket(asyncio.get_running_loop(), is_waiting=True)
        if is_woken:
            ticket.wake()
        await ticket.wait(3600.0 if is_woken else 0.0, asyncio.sleep)
        await asyncio.sleep(0)  # what was cancelled ends
        await asyncio.sleep(0)
        return asyncio.all_tasks() - before

    assert asyncio.run(wait()) == set()


async def _never(_: float) -> None:
    await asyncio.Event().wait()


def test_a_look_takes_the_place_of_a_process_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "is_gone", lambda name: name == "gone")
    wanted = [Wanted(owner, Limits(concurrency=1), owner=owner) for owner in ("gone", "running", "next")]

    async def run() -> list[object]:
        gate = Gate(MemoryLedger(State), "s", clock=lambda: 100.0)
        return [type(await gate.look(one)) for one in wanted]

    assert asyncio.run(run()) == [Entry, Entry, Wait]


@pytest.mark.parametrize(("max_wait_s", "waits"), [(60.75, True), (60.5, False)])
def test_a_wait_of_exactly_the_longest_is_waited_for(max_wait_s: float, waits: bool) -> None:
    now, slept = [100.25], []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    async def run() -> None:
        gate = Gate(MemoryLedger(State), "s", clock=lambda: now[0])
        limits = Limits(requests=1)
        await gate.look(Wanted("first", limits))
        await gate.enter(Wanted("second", limits), max_wait_s=max_wait_s, sleep=sleep)

    if waits:
        asyncio.run(run())
    else:
        with pytest.raises(TooLongError):
            asyncio.run(run())
    assert slept == ([60.75] if waits else [])


def test_a_pause_that_another_process_made_longer_than_counts_here_is_replaced() -> None:
    now = [0.0]

    async def run() -> None:
        gate = Gate(MemoryLedger(State), "s", clock=lambda: now[0])
        await gate.pause(1e6, max_pause_s=1e9)
        now[0] = 100.0
        await gate.pause(20.0, max_pause_s=20.0)
        assert await gate.look(Wanted("next", Limits(), max_pause_s=20.0)) == Wait(20.0, "pause")

    asyncio.run(run())


def test_a_file_that_fails_after_an_answer_is_logged_and_the_next_request_comes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Failing(MemoryLedger[State]):
        async def anote(self, *_: Any, **__: Any) -> None:
            raise ConfigError("the disk is full")

    async def run() -> None:
        gate = Gate(Failing(State), "s", clock=lambda: 100.0)
        held = await gate.look(Wanted("held", Limits(concurrency=1)))
        assert isinstance(held, Entry)
        waiting = asyncio.create_task(gate.enter(Wanted("next", Limits()), max_wait_s=None, sleep=_never))
        await asyncio.sleep(0)
        await gate.leave(held, 0)
        assert (await waiting).id == "next"

    asyncio.run(asyncio.wait_for(run(), 20))
    assert "the disk is full" in caplog.text
