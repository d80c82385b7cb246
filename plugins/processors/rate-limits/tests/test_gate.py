"""A place in the line waits for the first thing that happens, and leaves nothing behind."""

from __future__ import annotations

import asyncio

import pytest

from jackfield_rate_limits.gate import _least, _Ticket


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
