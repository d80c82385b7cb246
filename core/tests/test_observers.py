"""Observers see every event of a run once and in order, and can neither change nor end it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

import pytest

from jackfield import FnCallAgent, tool
from jackfield.agents import CancelToken
from jackfield.events import RunEvent, RunFailed, RunFinished, RunStarted, TextDelta
from jackfield.runs import Observer
from jackfield.streams import closing
from jackfield.testing import Script, ScriptedModel, answer, calls

ASK = [{"role": "user", "content": "Hi"}]
SCRIPT: Script = [calls(("double", {"number": 2})), answer("It is four, as far as I know.")]


class Sees(Observer):
    """Keeps what it sees, and then does something."""

    name = "sees"

    def __init__(self, then: Callable[[RunEvent], object] = id) -> None:
        self.seen: list[RunEvent] = []
        self._then = then

    def observe(self, event: RunEvent) -> None:
        self.seen.append(event)
        self._then(event)


@tool
def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def agent_with(observers: Sequence[Observer], script: Script = SCRIPT) -> FnCallAgent:
    return FnCallAgent([double], ScriptedModel(script), observers=observers)


async def events_of(agent: FnCallAgent, **options: CancelToken) -> list[RunEvent]:
    return [event async for event in agent.astream(ASK, **options)]


def kinds_of(events: Sequence[RunEvent]) -> list[str]:
    return [type(event.event).__name__ for event in events]


def fail(_: RunEvent) -> None:
    raise RuntimeError("it cannot")


def test_an_observer_sees_every_event_once_and_in_order() -> None:
    first, second = Sees(), Sees()
    events = asyncio.run(events_of(agent_with([first, second])))
    assert first.seen == second.seen == events
    assert [event.number for event in events] == list(range(1, len(events) + 1))
    assert isinstance(events[0].event, RunStarted)
    assert isinstance(events[-1].event, RunFinished)


def test_one_that_fails_is_silenced_at_the_third_time_and_costs_the_run_and_the_others_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fails, sees = Sees(fail), Sees()
    events = asyncio.run(events_of(agent_with([fails, sees])))
    assert kinds_of(events) == kinds_of(asyncio.run(events_of(agent_with([]))))
    assert sees.seen == events
    assert len(fails.seen) == 3
    faults = [record for record in caplog.records if record.name == "jackfield.observers"]
    assert [record.levelno for record in faults] == [logging.ERROR] * 3
    assert "gets no more events" in faults[-1].getMessage()


def test_runs_at_the_same_time_are_told_apart_by_their_id() -> None:
    sees = Sees()
    agents = [agent_with([sees]) for _ in range(4)]

    async def all_at_once() -> list[list[RunEvent]]:
        return await asyncio.gather(*map(events_of, agents))

    for events in asyncio.run(all_at_once()):
        assert [event for event in sees.seen if event.run_id == events[0].run_id] == events


def test_a_cancelled_run_and_a_failed_one_end_for_an_observer_too() -> None:
    token = CancelToken()
    cancels = Sees(lambda event: token.cancel() if isinstance(event.event, TextDelta) else None)
    events = asyncio.run(events_of(agent_with([cancels], [answer("It is four.")]), cancel=token))
    assert cancels.seen == events
    assert isinstance(events[-1].event, RunFinished)
    assert events[-1].event.stop_reason == "cancelled"
    failed = Sees()
    with pytest.raises(RuntimeError, match="broken"):
        asyncio.run(events_of(agent_with([failed], [[TextDelta("half"), RuntimeError("broken")]])))
    assert failed.seen[-1].event == RunFailed("broken", "RuntimeError")


def test_a_run_that_is_left_ends_for_an_observer_once() -> None:
    sees = Sees()

    async def leave(after: type) -> None:
        stream = agent_with([sees]).astream(ASK)
        async with closing(stream):
            async for event in stream:
                if isinstance(event.event, after):
                    return

    asyncio.run(leave(TextDelta))
    assert kinds_of(sees.seen)[-2:] == ["TextDelta", "RunFailed"]
    last = sees.seen[-1]
    assert last.event == RunFailed("the run was abandoned before it ended", "GeneratorExit")
    assert last.number == len(sees.seen)
    sees.seen.clear()
    asyncio.run(leave(RunFinished))
    assert kinds_of(sees.seen).count("RunFinished") == 1
    assert "RunFailed" not in kinds_of(sees.seen)


def test_a_task_that_is_cancelled_ends_for_an_observer() -> None:
    async def cancel() -> list[RunEvent]:
        reached = asyncio.Event()
        sees = Sees(lambda event: reached.set() if isinstance(event.event, TextDelta) else None)

        async def read_slowly() -> None:
            async for event in agent_with([sees]).astream(ASK):
                if isinstance(event.event, TextDelta):
                    await asyncio.Event().wait()

        task = asyncio.create_task(read_slowly())
        await reached.wait()
        task.cancel()
        await asyncio.wait([task])
        del task
        await asyncio.get_running_loop().shutdown_asyncgens()
        return sees.seen

    seen = asyncio.run(cancel())
    assert kinds_of(seen)[-1] == "RunFailed"
    assert kinds_of(seen).count("RunFailed") == 1
