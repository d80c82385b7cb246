"""Work before a turn: its progress becomes events, and a cancel or the time limit ends the wait for it."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any

import pytest

from jackfield import Agent, FnCallAgent, Limits, Message, sync
from jackfield.agents import CancelToken, Event, Run
from jackfield.errors import ConfigError
from jackfield.events import PreparationProgress, ResponseReplaced, RunFinished
from jackfield.messages import FunctionCall, Usage
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
        with pytest.raises(RuntimeError, match="iterate over all its events"):
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

    limits = Limits(seconds=0.5 if reason == "time_limit" else None)
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

    limits = Limits(seconds=0.5 if reason == "time_limit" else None)
    try:
        stream = Thinks(limits=limits).stream("Hi", cancel=cancel)
        seen = [event.messages[-1].content for event in stream if isinstance(event, ResponseReplaced)]
        assert (seen, release.is_set()) == (["Let me see."], False)
        assert (stream.result.stop_reason, stream.result.text) == (reason, "Let me see.")
    finally:
        release.set()


# --- the end of work that is left ---


@pytest.mark.parametrize("error", [None, ConfigError("too late")], ids=["cancelled", "failed"])
def test_work_that_is_left_is_cancelled_and_its_late_error_only_logged(
    caplog: pytest.LogCaptureFixture, error: Exception | None
) -> None:
    async def run() -> bool:
        ended = asyncio.Event()

        async def work(report: ReportProgress) -> None:
            report(PreparationProgress("reading"))
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
                if error is not None:
                    raise error

        events = Preparation(work, unguarded).events()
        assert await anext(events) == PreparationProgress("reading")
        await events.aclose()  # type: ignore[attr-defined]
        return ended.is_set()

    with caplog.at_level(logging.DEBUG):
        assert asyncio.run(asyncio.wait_for(run(), PATIENCE_S))
        gc.collect()  # asyncio warns about errors that nothing has read
    logged = [(record.name, record.levelno, record.exc_info and record.exc_info[1]) for record in caplog.records]
    logged = [one for one in logged if one[0] != "asyncio" or one[1] > logging.DEBUG]
    assert logged == ([] if error is None else [("jackfield.runs._preparation", logging.DEBUG, error)])


def test_a_report_after_the_end_of_the_loop_is_dropped() -> None:
    reports: list[ReportProgress] = []

    async def work(report: ReportProgress) -> None:
        reports.append(report)

    asyncio.run(progress_of(Preparation(work, unguarded)))
    errors: list[BaseException] = []

    def late() -> None:
        try:
            reports[0](PreparationProgress("reading"))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=late)
    thread.start()
    thread.join()
    assert errors == []


# --- lists of an agent in Qwen-Agent's form ---


class Lists(Agent):
    """Yields a list, and tells when its generator is closed, and in which thread."""

    def __init__(self, then: Callable[[], object] = int, **options: Any) -> None:
        super().__init__(**options)
        self.then, self.closed_in, self.is_closed = then, list[threading.Thread](), threading.Event()

    def _run(self, messages: list[Message], lang: str = "en", **_: Any) -> Iterator[list[Message]]:
        try:
            yield [Message("assistant", "Let me see.")]
            self.then()
            yield [Message("assistant", "Done.")]
        finally:
            self.closed_in.append(threading.current_thread())
            self.is_closed.set()


async def leave_after_a_list(agent: Agent) -> None:
    async with closing(agent.astream("Hi")) as events:
        async for placed in events:
            if isinstance(placed.event, ResponseReplaced):
                break


def test_the_generator_of_lists_is_closed_however_the_run_ends() -> None:
    def fail() -> None:
        raise ConfigError("no")

    def refused(agent: Lists) -> None:
        with pytest.raises(ConfigError):
            agent.ask("Hi")

    cancel = CancelToken()
    ends: dict[str, tuple[Lists, Callable[[Lists], object]]] = {
        "finished": (Lists(), lambda agent: agent.ask("Hi")),
        "failed": (Lists(fail), refused),
        "cancelled": (Lists(cancel.cancel), lambda agent: agent.ask("Hi", cancel=cancel)),
        "left": (Lists(), lambda agent: asyncio.run(leave_after_a_list(agent))),
    }
    for end, (agent, act) in ends.items():
        act(agent)
        assert agent.is_closed.wait(10), end  # a cancelled run does not wait for the step that is running
        assert [thread is threading.main_thread() for thread in agent.closed_in] == [False], end


def test_a_generator_of_lists_is_closed_when_the_step_ends_that_a_cancelled_run_left_behind() -> None:
    cancel, may_go_on = CancelToken(), threading.Event()

    def step() -> None:
        cancel.cancel()
        assert may_go_on.wait(10)

    agent = Lists(step)
    result = agent.ask("Hi", cancel=cancel)
    assert result.stop_reason == "cancelled"
    assert not agent.closed_in
    may_go_on.set()
    assert agent.is_closed.wait(10)


def test_lists_that_are_no_generator_need_no_close() -> None:
    class Returns(Agent):
        def _run(self, messages: list[Message], lang: str = "en", **_: Any) -> Iterator[list[Message]]:
            return iter([[Message("assistant", "a")], [Message("assistant", "ab")]])

    stream = Returns().stream("Hi")
    assert [event.messages[0].content for event in stream if isinstance(event, ResponseReplaced)] == ["a", "ab"]
    assert (stream.result.text, stream.result.stop_reason) == ("ab", "finished")


def test_a_generator_that_executes_when_its_run_is_cancelled_is_left_alone() -> None:
    cancel, release, ended = CancelToken(), threading.Event(), threading.Event()

    def block() -> None:
        cancel.cancel()
        release.wait(PATIENCE_S)
        ended.set()

    agent = Lists(block)
    try:
        result = agent.ask("Hi", cancel=cancel)
        assert (result.stop_reason, result.text, ended.is_set()) == ("cancelled", "Let me see.", False)
        assert agent.closed_in == []
    finally:
        release.set()


def test_calls_that_are_open_when_lists_are_cancelled_get_a_result() -> None:
    cancel = CancelToken()

    class Calls(Agent):
        def _run(self, messages: list[Message], lang: str = "en", **_: Any) -> Iterator[list[Message]]:
            call = FunctionCall("pay", "{}")
            yield [Message("assistant", "", function_call=call, extra={"function_id": "c7"})]
            cancel.cancel()
            yield []

    result = Calls().ask("Hi", cancel=cancel)
    assert [(one.role, one.name, one.function_id) for one in result.messages[1:]] == [("function", "pay", "c7")]
    assert "may have been done" in result.messages[1].get_text_content()
