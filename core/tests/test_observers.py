"""Observers see every event of a run once and in order, and can neither change nor end it."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel

from jackfield import FnCallAgent, tool
from jackfield.agents import CancelToken
from jackfield.errors import ConfigError
from jackfield.events import (
    ModelFinished,
    PluginEvent,
    PreparationProgress,
    RunEvent,
    RunFailed,
    RunFinished,
    RunStarted,
    TextDelta,
    TurnFinished,
    TurnStarted,
)
from jackfield.messages import Usage
from jackfield.processors import Preprocessor, Processor
from jackfield.request import ChatRequest
from jackfield.runs import Observer
from jackfield.runs._observers import Observers
from jackfield.streams import closing
from jackfield.testing import Script, ScriptedModel, answer, calls
from jackfield.tools import ToolContext, Toolset
from jackfield.work import Work

ASK = [{"role": "user", "content": "Hi"}]
SCRIPT: Script = [calls(("double", {"number": 2})), answer("It is four, as far as I know.")]


class Number(BaseModel):
    number: int


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
    assert "will receive no more events" in faults[-1].getMessage()


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


# --- parts ---


class Faulty(Observer):
    """Fails at some of its methods, and counts all calls."""

    name = "faulty"

    def __init__(self, *failing: str) -> None:
        self.failing = failing
        self.calls: Counter[str] = Counter()

    def _call(self, method: str) -> None:
        self.calls[method] += 1
        if method in self.failing:
            raise RuntimeError(method)

    def prepare(self, agent: object) -> None:
        self._call("prepare")

    def observe(self, event: RunEvent) -> None:
        self._call("observe")

    def observe_request(self, run_id: str, request: ChatRequest) -> None:
        self._call("observe_request")

    def surround(self, work: Work) -> AbstractContextManager[object]:
        self._call("surround")
        return nullcontext()

    def headers(self) -> Mapping[str, str]:
        self._call("headers")
        return {"x-faulty": "1"}


METHODS = ("prepare", "observe", "observe_request", "surround", "headers")
WORK = Work(kind="run", run_id="r")


def call_each(observers: Observers, method: str) -> None:
    match method:
        case "prepare":
            observers.prepare(None)
        case "observe":
            observers.tell(RunEvent("r", 1, "a", 0, TurnStarted(1)))
        case "observe_request":
            observers.show_request("r", ChatRequest("m", ()))
        case "surround":
            observers.enter(WORK)(None)
        case "headers":
            observers.headers()


@pytest.mark.parametrize("method", METHODS)
def test_three_faults_of_any_method_silence_an_observer_altogether(method: str) -> None:
    faulty, sound = Faulty(method), Faulty()
    observers = Observers([faulty, sound])
    for _ in range(4):
        call_each(observers, method)
    assert (faulty.calls[method], sound.calls[method]) == (3, 4)
    for other in METHODS:
        call_each(observers, other)
    assert faulty.calls.total() == 3
    assert observers.names == {"faulty"}, "the sound one"
    assert (observers.see_requests, observers.surround_work, bool(observers)) == (True, True, True)
    for _ in range(3):
        call_each(alone := Observers([one := Faulty(method)]), method)
    assert alone
    for _ in range(3):
        call_each(alone, method)
    assert (bool(alone), alone.see_requests, alone.surround_work) == (False, False, False)
    assert one.calls[method] == 3


def test_an_observer_is_shown_a_request_as_the_run_passes_it_to_the_processors_of_the_model() -> None:
    class Adds(Preprocessor):
        def __init__(self, name: str) -> None:
            self.name = name  # type: ignore[misc]

        def prepare(self, request: ChatRequest) -> ChatRequest:
            return replace(request, metadata={**request.metadata, self.name: True})

    class Noting(Toolset):
        name = "noting"

        async def tools_of_run(self, context: ToolContext[Any]) -> list[Any]:
            return [double]

        def processor_of_run(self, context: ToolContext[Any], reported: Sequence[PluginEvent]) -> Processor:
            return Adds("of the run")

    class Shown(Sees):
        def observe_request(self, run_id: str, request: ChatRequest) -> None:
            shown.append((list(request.metadata), [function["name"] for function in request.functions]))

    shown: list[tuple[list[str], list[str]]] = []
    model = ScriptedModel([answer('{"number": 4}')], processors=[Adds("of the model")])
    FnCallAgent([Noting()], model, observers=[Shown()]).ask("Double two.", output=Number)
    assert shown == [(["of the run"], ["double", "answer"])]


def test_the_work_of_a_run_names_its_conversation() -> None:
    class Follows(Sees):
        def surround(self, work: Work) -> AbstractContextManager[object]:
            works.append(work)
            return nullcontext()

    works: list[Work] = []
    result = agent_with([Follows()]).ask("Hi", session="s-1")
    of_run = [work for work in works if work.kind == "run"]
    assert of_run
    assert {(work.run_id, work.facts["session"]) for work in of_run} == {(result.run_id, "s-1")}
    assert [(work.call_id, work.name) for work in works if work.kind == "tool_call"] == [
        (message.function_id, "double") for message in result.messages if message.function_call
    ]


class Traces(Sees):
    """Has a trace, and keeps what it gets of an earlier one."""

    def __init__(self, name: str, trace: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.name = name  # type: ignore[misc]
        self.trace = trace or {}
        self.got: list[object] = []

    def prepare(self, agent: object) -> None:
        self.got.append(agent)

    def trace_of(self, run_id: str) -> Mapping[str, str]:
        return {key: f"{text} of {run_id}" for key, text in self.trace.items()}

    def resume(self, run_id: str, trace: Mapping[str, str]) -> None:
        self.got.append((run_id, trace))


def test_each_observer_of_a_resumed_run_gets_its_own_trace_or_else_the_first() -> None:
    trace = {"traceparent": "a", "tracestate": "b"}
    before = [Traces("none"), Traces("first", trace), Traces("same", {"traceparent": "c"}), Traces("same", {"x": "d"})]
    traces = Observers(before).trace_of("r1")
    first = {"traceparent": "a of r1", "tracestate": "b of r1"}
    assert {name: text for name, text in traces.items() if "/" not in name} == first
    after = [Traces("new"), Traces("same"), Traces("first"), Traces("same")]
    Observers(after).prepare("agent", "r2", traces)
    assert [one.got for one in after] == [
        ["agent", ("r2", first)],
        ["agent", ("r2", {"traceparent": "c of r1"})],
        ["agent", ("r2", first)],
        ["agent", ("r2", {"x": "d of r1"})],
    ]
    for earlier in (None, {}):
        Observers([one := Traces("new")]).prepare("agent", "r3", earlier)
        assert one.got == ["agent"], "a new run has no earlier trace"


def test_a_trace_that_no_record_can_hold_is_a_fault_of_its_observer_alone(caplog: pytest.LogCaptureFixture) -> None:
    class Odd(Traces):
        def trace_of(self, run_id: str) -> Mapping[str, str]:
            return self.trace

    for odd in ({"traceparent": 5}, {5: "a"}, {"traceparent": None}):
        observers = Observers([Odd("odd", odd), Traces("sound", {"traceparent": "a"})])  # type: ignore[arg-type]
        assert observers.trace_of("r") == {"traceparent": "a of r"}
    assert caplog.text.count("observer 'odd' failed") == 3


class OnlyHeaders(Observer):
    name = "only_headers"

    def observe(self, event: RunEvent) -> None: ...

    def headers(self) -> Mapping[str, str]:
        return {"x-only": "yes"}


def test_an_observer_may_add_headers_without_a_context() -> None:
    observers = Observers([OnlyHeaders()])
    assert observers.surround_work
    assert not observers.see_requests
    assert observers.headers() == {"x-only": "yes"}


@pytest.mark.parametrize("error", [None, ValueError("no")])
def test_contexts_are_left_in_reverse_order_and_hear_of_the_error(error: ValueError | None) -> None:
    heard: list[object] = []

    class Listens(Faulty):
        def __init__(self, label: str) -> None:
            super().__init__()
            self.label = label

        def surround(self, work: Work) -> AbstractContextManager[object]:
            stack = ExitStack()
            stack.push(lambda *details: heard.append((self.label, *details[:2])))
            return stack

    leave = Observers([Listens("a"), Listens("b")]).enter(WORK)
    assert heard == []
    leave(error)
    details = (None, None) if error is None else (ValueError, error)
    assert heard == [("b", *details), ("a", *details)]


def test_a_context_that_could_not_be_entered_is_not_left_and_the_others_are() -> None:
    heard: list[str] = []

    class Context:
        def __init__(self, *, fails: bool) -> None:
            self.fails = fails

        def __enter__(self) -> None:
            heard.append("fails" if self.fails else "in")
            if self.fails:
                raise RuntimeError("enter")

        def __exit__(self, *_: object) -> None:
            heard.append("out of it" if self.fails else "out")

    class Enters(Faulty):
        def surround(self, work: Work) -> AbstractContextManager[None]:
            return Context(fails="enter" in self.failing)

    faulty = Enters("enter")
    observers = Observers([Enters(), faulty, Enters()])
    observers.enter(WORK)(None)
    assert heard == ["in", "fails", "in", "out", "out"]
    for _ in range(3):
        observers.enter(WORK)(None)
    assert heard.count("fails") == 3, "it is silenced, and one attempt is one fault"
    assert "out of it" not in heard
    assert heard.count("in") == heard.count("out") == 8


def test_headers_of_several_observers_are_sent_together() -> None:
    class Names(OnlyHeaders):
        def __init__(self, header: str, value: str) -> None:
            self.header, self.value = header, value

        def headers(self) -> Mapping[str, str]:
            return {self.header: self.value}

    observers = Observers([Names("x-a", "1"), Faulty("headers"), Names("x-b", "2"), Names("x-a", "3")])
    assert observers.headers() == {"x-a": "3", "x-b": "2"}


@pytest.mark.parametrize("entry", [5, None, Sees])
def test_an_observer_is_one_or_a_name(entry: object) -> None:
    with pytest.raises(
        ConfigError, match=f"^observers must be Observer objects or names of observers, got {type(entry).__name__}$"
    ):
        agent_with([entry])  # type: ignore[list-item]


def test_only_the_later_pieces_of_an_answer_are_awaited_outside_of_the_contexts() -> None:
    delta, inside = TextDelta("a"), {"now": False}
    steps: list[tuple[object, bool]] = [  # each event, and True if it is awaited inside
        (RunStarted(()), True),
        (delta, True),  # no model is asked
        (TurnStarted(1), True),
        (delta, True),
        (delta, False),
        (PreparationProgress("retry"), False),
        (delta, True),
        (ModelFinished("stop"), False),
        (delta, True),
        (TurnFinished(1, (), Usage()), True),
        (TurnStarted(2), True),
        (delta, True),
        (TurnFinished(2, (), Usage()), False),
        (delta, True),
        (delta, True),
    ]
    awaited: list[bool] = []
    closed: list[bool] = []

    class Enters(Faulty):
        @contextmanager
        def surround(self, work: Work) -> Iterator[None]:
            inside["now"] = True
            yield
            inside["now"] = False

    async def events() -> AsyncIterator[object]:
        try:
            for event, _ in steps:
                awaited.append(inside["now"])
                yield event
            await asyncio.Event().wait()
        finally:
            closed.append(inside["now"])

    async def read() -> None:
        surrounded = Observers([Enters()]).surround_events(events(), "r", "s")
        assert surrounded is not None
        for event, _ in steps:
            assert await anext(surrounded) is event
            surrounded.follow(event)
            assert not inside["now"]
        await surrounded.aclose()

    asyncio.run(read())
    assert awaited == [is_inside for _, is_inside in steps]
    assert closed == [True]


def test_an_observer_without_a_context_for_a_run_does_not_surround_it() -> None:
    class Declines(Faulty):
        def surround(self, work: Work) -> None:  # type: ignore[override]
            assert (work.kind, work.run_id, work.facts) == ("run", "r", {"session": "s"})

    async def nothing() -> AsyncIterator[object]:
        yield None

    assert Observers([Declines()]).surround_events(nothing(), "r", "s") is None
    assert Observers([Sees()]).surround_events(nothing(), "r", "s") is None
