"""Work before a turn: its progress becomes events, and a cancel or the time limit ends the wait for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any

import pytest

from jackfield import Agent, FnCallAgent, Limits, Message, sync
from jackfield.agents import CancelToken, Event, Run
from jackfield.errors import ConfigError
from jackfield.events import PreparationProgress, ResponseReplaced, RunFinished
from jackfield.messages import Usage
from jackfield.runs import Preparation, ReportProgress
from jackfield.streams import Interrupted, closing, interruptible
from jackfield.testing import ScriptedModel, answer
from jackfield.tools import ToolContext, ToolEntry, toolset

PATIENCE_S = 60.0


def unguarded(events: AsyncIterator[PreparationProgress]) -> AsyncIterator[PreparationProgress]:
    return events


async def progress_of(preparation: Preparation[Any]) -> list[PreparationProgress]:
    async with closing(preparation.events()) as events:
        return [event async for event in events]


def test_progress_comes_in_its_order_from_the_task_and_from_threads() -> None:
    async def work(report: ReportProgress) -> str:
        report(PreparationProgress("first", 1, 2))
        await asyncio.sleep(0)
        await sync.in_worker(report, PreparationProgress("second"))
        return "done"

    async def run() -> tuple[list[PreparationProgress], str]:
        preparation = Preparation(work, unguarded)
        with pytest.raises(RuntimeError, match="iterate over its events"):
            _ = preparation.result
        return await progress_of(preparation), preparation.result

    steps, result = asyncio.run(run())
    assert steps == [PreparationProgress("first", 1, 2), PreparationProgress("second")]
    assert result == "done"


def test_a_slow_consumer_gets_the_latest_of_each_step() -> None:
    async def work(report: ReportProgress) -> None:
        for done in range(1000):
            report(PreparationProgress("reading", done))
        report(PreparationProgress("splitting"))

    steps = asyncio.run(progress_of(Preparation(work, unguarded)))
    assert steps == [PreparationProgress("reading", 999), PreparationProgress("splitting")]


def test_an_error_of_the_work_is_raised_unchanged_after_its_progress() -> None:
    error = ConfigError("no such index")

    async def work(report: ReportProgress) -> None:
        report(PreparationProgress("reading"))
        raise error

    async def run() -> None:
        events = Preparation(work, unguarded).events()
        assert await anext(events) == PreparationProgress("reading")
        with pytest.raises(ConfigError) as caught:
            await anext(events)
        assert caught.value is error

    asyncio.run(run())


def test_work_that_ignores_its_cancellation_is_abandoned() -> None:
    async def run() -> None:
        cancel, release, ended = CancelToken(), asyncio.Event(), asyncio.Event()

        async def work(_: ReportProgress) -> None:
            cancel.cancel()
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue
            ended.set()

        preparation = Preparation(work, lambda events: interruptible(events, ends_at=None, cancel=cancel))
        with pytest.raises(Interrupted):
            await progress_of(preparation)
        assert not ended.is_set()
        release.set()
        await ended.wait()

    asyncio.run(asyncio.wait_for(run(), PATIENCE_S))


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (PreparationProgress("connecting"), "connecting"),
        (PreparationProgress("reading", 3, 4), "reading: 3 of 4"),
        (PreparationProgress("reading", item="a.md"), "reading: a.md"),
    ],
)
def test_progress_is_one_line_for_people(event: PreparationProgress, text: str) -> None:
    assert event.text == text


# --- agents ---


def test_sets_of_tools_report_before_the_first_turn() -> None:
    @toolset
    async def of_server(context: ToolContext[Any]) -> list[ToolEntry]:
        context.report("connecting to a server")
        return []

    events = list(FnCallAgent([of_server], ScriptedModel([answer("yes")])).stream("Hi"))
    assert [type(event).__name__ for event in events[:3]] == ["RunStarted", "PreparationProgress", "TurnStarted"]
    assert events[1] == PreparationProgress("connecting to a server")


class _Prepares(Agent):
    """Waits for something that comes when the test says so, and never by itself."""

    def __init__(self, work: Coroutine[Any, Any, None], **options: Any) -> None:
        super().__init__(**options)
        self._work = work

    async def events(self, run: Run) -> AsyncIterator[Event]:
        preparation = run.prepare(lambda _: self._work)
        try:
            async with closing(preparation.events()) as progress:
                async for step in progress:
                    yield step
        except Interrupted:
            yield RunFinished(run.interruption, (), Usage())


@pytest.mark.parametrize("reason", ["cancelled", "time_limit"])
def test_a_blocked_worker_thread_does_not_hold_up_the_end_of_a_run(reason: str) -> None:
    cancel, begun, release = CancelToken(), threading.Event(), threading.Event()

    def block() -> None:
        begun.set()
        if reason == "cancelled":
            cancel.cancel()
        release.wait(PATIENCE_S)

    limits = Limits(seconds=0.1 if reason == "time_limit" else None)
    try:
        result = _Prepares(sync.in_worker(block), limits=limits).ask("Hi", cancel=cancel)
        assert begun.is_set()
        assert (result.stop_reason, release.is_set()) == (reason, False)
    finally:
        release.set()


@pytest.mark.parametrize("reason", ["cancelled", "time_limit"])
def test_an_agent_of_qwen_agents_kind_ends_while_it_computes(reason: str) -> None:
    cancel, release = CancelToken(), threading.Event()

    class Thinks(Agent):
        def _run(self, messages: list[Message], lang: str = "en", **_: Any) -> Iterator[list[Message]]:
            yield [Message("assistant", "Let me see.")]
            if reason == "cancelled":
                cancel.cancel()
            release.wait(PATIENCE_S)
            yield [Message("assistant", "Too late.")]

    limits = Limits(seconds=0.2 if reason == "time_limit" else None)
    try:
        stream = Thinks(limits=limits).stream("Hi", cancel=cancel)
        seen = [event.messages[-1].content for event in stream if isinstance(event, ResponseReplaced)]
        assert (seen, release.is_set()) == (["Let me see."], False)
        assert (stream.result.stop_reason, stream.result.text) == (reason, "Let me see.")
    finally:
        release.set()
