"""Observers surround the work of runs, and nothing of their readers; faults of theirs cost the run nothing."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

import pytest

from jackfield import FnCallAgent, tool
from jackfield.agents import Agent, CancelToken, Event, ParentRun, Run, run_below
from jackfield.errors import ModelRequestError
from jackfield.events import RunEvent, RunFinished, TextDelta
from jackfield.messages import Message, Usage
from jackfield.request import ChatRequest
from jackfield.runs import Observer
from jackfield.streams import closing
from jackfield.testing import Script, ScriptedModel, answer, calls
from jackfield.work import Work, outgoing_headers, part_of_run, surrounded

ASK = [{"role": "user", "content": "Hi"}]
WHERE: ContextVar[tuple[str, ...]] = ContextVar("where", default=())


class Marks(Observer):
    """Marks the work of runs in a context variable, and counts what it entered and left."""

    name = "marks"

    def __init__(self, label: str = "") -> None:
        self.label = label
        self.entered = self.left = 0
        self.requests: list[tuple[str, ChatRequest]] = []
        self.works: list[Work] = []

    def observe(self, event: RunEvent) -> None:
        """Note nothing."""

    def observe_request(self, run_id: str, request: ChatRequest) -> None:
        self.requests.append((run_id, request))

    def surround(self, work: Work) -> AbstractContextManager[object]:
        return self._mark(work)

    @contextmanager
    def _mark(self, work: Work) -> Iterator[None]:
        mark = f"{self.label}{work.kind}:{work.name or work.run_id}"
        token = WHERE.set((*WHERE.get(), mark))
        self.entered += 1
        try:
            yield
        finally:
            self.left += 1
            self.works.append(work)
            WHERE.reset(token)

    def headers(self) -> Mapping[str, str]:
        return {"x-where": "/".join(WHERE.get())}


seen: list[tuple[str, ...]] = []


@tool
def plain(word: str) -> str:
    """Look from a worker thread."""
    seen.append(WHERE.get())
    assert threading.current_thread() is not threading.main_thread()
    return outgoing_headers().get("x-where", "")


@tool
async def awaited(word: str) -> str:
    """Look from the loop, and from a search inside of the call."""
    with part_of_run("retrieval", "search", query=word) as work:
        await asyncio.sleep(0)
        work.facts["passages"] = 3
        seen.append(WHERE.get())
    return outgoing_headers().get("x-where", "")


@pytest.fixture(autouse=True)
def _nothing_seen() -> None:
    seen.clear()


def agent_with(observer: Observer, script: Script) -> FnCallAgent:
    return FnCallAgent([plain, awaited], ScriptedModel(script), observers=[observer])


def test_a_call_is_surrounded_by_its_run_and_itself_also_in_a_thread() -> None:
    marks = Marks()
    script = [calls(("plain", {"word": "a"}), ("awaited", {"word": "b"})), answer("Done.")]
    result = agent_with(marks, script).ask("Hi")
    run = f"run:{result.run_id}"
    assert sorted(seen) == [(run, "tool_call:awaited", "retrieval:search"), (run, "tool_call:plain")]
    results = {message.name: message.content for message in result.messages if message.role == "function"}
    assert results == {"plain": f"{run}/tool_call:plain", "awaited": f"{run}/tool_call:awaited"}
    search = next(work for work in marks.works if work.kind == "retrieval")
    assert (search.run_id, search.facts) == (result.run_id, {"query": "b", "passages": 3})
    assert {work.call_id for work in marks.works if work.kind == "tool_call"} == {
        message.function_id for message in result.messages if message.function_call
    }


def test_the_reader_of_a_run_is_never_inside_of_it() -> None:
    async def read() -> None:
        script = [calls(("plain", {"word": "a"})), answer("Done.")]
        async with closing(agent_with(Marks(), script).astream(ASK)) as events:
            async for _ in events:
                assert WHERE.get() == ()
                assert outgoing_headers() == {}
        assert WHERE.get() == ()

    asyncio.run(read())


@pytest.mark.parametrize("ending", ["finished", "failed", "cancelled", "left"])
def test_what_is_entered_is_left(ending: str) -> None:
    marks, token = Marks(), CancelToken()
    script: Script = [calls(("awaited", {"word": "a"})), answer("Done.")]
    if ending == "failed":
        script = [[ModelRequestError("no")]]

    async def read() -> None:
        async with closing(agent_with(marks, script).astream(ASK, cancel=token)) as events:
            async for event in events:
                if event.number == 4 and ending == "left":
                    return
                if event.number == 4 and ending == "cancelled":
                    token.cancel()

    try:
        asyncio.run(read())
    except ModelRequestError:
        assert ending == "failed"
    assert marks.entered == marks.left > 0


def test_interleaved_runs_in_one_loop_keep_their_contexts() -> None:
    async def one(number: int) -> str:
        marks = Marks(f"{number}-")
        result = await agent_with(marks, [calls(("awaited", {"word": "a"})), answer("Done.")]).aask("Hi")
        where = next(str(message.content) for message in result.messages if message.role == "function")
        return where.replace(result.run_id, "ID")

    async def all_runs() -> list[str]:
        streams = [one(number) for number in range(20)]
        return await asyncio.gather(*streams)

    assert asyncio.run(all_runs()) == [f"{number}-run:ID/{number}-tool_call:awaited" for number in range(20)]


def test_a_nested_agent_works_inside_of_the_call_that_asks_it() -> None:
    inner = FnCallAgent(
        [awaited],
        ScriptedModel([calls(("awaited", {"word": "a"})), answer("Done.")]),
        name="clerk",
        description="Works.",
        observers=[Marks("inner-")],
    )
    model = ScriptedModel([calls(("clerk", {"request": "Work."})), answer("Good.")])
    result = FnCallAgent([inner.as_tool()], model, observers=[Marks("outer-")]).ask("Hi")
    assert [mark.partition(":")[0] for mark in seen[0]] == [
        "outer-run", "outer-tool_call", "inner-run", "inner-tool_call", "inner-retrieval",
    ]  # fmt: skip
    assert seen[0][0] == f"outer-run:{result.run_id}"


def test_an_agent_that_takes_over_works_inside_of_the_contexts_of_the_run() -> None:
    script = [calls(("awaited", {"word": "a"})), answer("Done.")]
    clerk = FnCallAgent([awaited], ScriptedModel(script), name="clerk", description="Works.")
    marks = Marks()
    FnCallAgent(llm=ScriptedModel([calls(("transfer_to_clerk", {}))]), handoffs=[clerk], observers=[marks]).ask("Hi")
    assert [mark.partition(":")[0] for mark in seen[0]] == ["run", "tool_call", "retrieval"]
    assert len(marks.requests) == 3


class Talks(Agent):
    """Yields a piece of an answer of its own, and then asks another agent."""

    def __init__(self, other: Agent, observer: Observer) -> None:
        super().__init__(name="talks", observers=[observer])
        self.other = other

    async def events(self, run: Run) -> AsyncIterator[Event]:
        yield TextDelta("I ask.")
        async with closing(run_below(self.other, ASK, ParentRun(run, run.start.spent))) as events:
            async for event in events:
                yield event
        yield RunFinished("finished", (Message("assistant", "I ask."),), Usage())


def test_a_piece_of_an_answer_without_a_request_does_not_end_the_context() -> None:
    script = [calls(("awaited", {"word": "a"})), answer("Done.")]
    clerk = FnCallAgent([awaited], ScriptedModel(script), name="clerk", description="Works.")
    Talks(clerk, Marks()).ask("Hi")
    assert [mark.partition(":")[0] for mark in seen[0]] == ["run", "retrieval"]


def test_observers_see_the_request_of_each_turn() -> None:
    marks = Marks()
    agent = agent_with(marks, [calls(("plain", {"word": "a"})), answer("Done.")])
    result = agent.ask("Hi", config={"temperature": 0.5})
    assert [run_id for run_id, _ in marks.requests] == [result.run_id] * 2
    assert [len(request.messages) for _, request in marks.requests] == [1, 3]
    assert marks.requests[0][1].config.temperature == 0.5


class Breaks(Observer):
    """Fails in one of its methods."""

    name = "breaks"

    def __init__(self, method: str) -> None:
        self._method = method

    def observe(self, event: RunEvent) -> None:
        """Note nothing."""

    def observe_request(self, run_id: str, request: ChatRequest) -> None:
        self._fail("observe_request")

    def surround(self, work: Work) -> AbstractContextManager[object]:
        self._fail("surround")
        return self._context()

    def headers(self) -> Mapping[str, str]:
        self._fail("headers")
        return {}

    @contextmanager
    def _context(self) -> Iterator[None]:
        self._fail("enter")
        yield
        self._fail("leave")

    def _fail(self, method: str) -> None:
        if method == self._method:
            raise RuntimeError("it cannot")


@pytest.mark.parametrize("method", ["observe_request", "surround", "headers", "enter", "leave"])
def test_a_fault_is_logged_and_costs_the_run_and_other_observers_nothing(
    method: str, caplog: pytest.LogCaptureFixture
) -> None:
    marks = Marks()
    script = [calls(("plain", {"word": "a"}), ("awaited", {"word": "b"})), answer("Done.")]
    agent = FnCallAgent([plain, awaited], ScriptedModel(script), observers=[Breaks(method), marks])
    assert agent.ask("Hi").text == "Done."
    assert marks.entered == marks.left > 0
    faults = [record for record in caplog.records if record.name == "jackfield.observers"]
    assert faults
    assert all(record.levelno == logging.ERROR for record in faults)
    assert len(faults) <= 3


def test_part_of_run_outside_of_a_run_only_does_the_work() -> None:
    with part_of_run("retrieval", "search", query="a") as work:
        assert outgoing_headers() == {}
    assert (work.run_id, work.facts) == ("", {"query": "a"})
    with pytest.raises(ValueError, match="no"), part_of_run("retrieval", "search"):
        raise ValueError("no")


def test_the_context_of_a_call_hears_of_its_failure_whether_the_tool_or_its_result_is_at_fault() -> None:
    heard: dict[str, str] = {}

    class Hears(Marks):
        @contextmanager
        def surround(self, work: Work) -> Iterator[None]:
            try:
                yield
            except Exception as error:
                heard[work.name or work.kind] = type(error).__name__
                raise
            else:
                heard[work.name or work.kind] = ""

    @tool
    def fine() -> str:
        """Work."""
        return "done"

    @tool
    def fails() -> str:
        """Fail."""
        raise ValueError("no")

    @tool
    def odd() -> object:
        """Return what no model can read."""
        return object()

    model = ScriptedModel([calls(("fine", {}), ("fails", {}), ("odd", {})), answer("Done.")])
    FnCallAgent([fine, fails, odd], model, observers=[Hears()]).ask("Hi")
    assert {name: heard[name] for name in ("fine", "fails", "odd")} == {
        "fine": "", "fails": "ValueError", "odd": "ToolServiceError",
    }  # fmt: skip


class _Heard:
    """The surroundings of a run that only listen."""

    def __init__(self) -> None:
        self.ended: list[BaseException | None] = []

    def enter(self, work: Work) -> Callable[[BaseException | None], None]:
        return self.ended.append

    def headers(self) -> Mapping[str, str]:
        return {"x-heard": "1"}


@pytest.mark.parametrize("error", [ValueError(), KeyboardInterrupt(), asyncio.CancelledError(), GeneratorExit()])
def test_whatever_ends_a_work_is_heard_once_and_the_work_around_it_goes_on(error: BaseException) -> None:
    def fail() -> None:
        with part_of_run("retrieval", "search") as inner:
            assert inner.run_id == "r"
            raise error

    heard = _Heard()
    with surrounded(Work(kind="run", run_id="r"), heard):
        with pytest.raises(type(error)), surrounded(Work(kind="tool_call", run_id="r"), _Heard()):
            fail()
        assert outgoing_headers() == {"x-heard": "1"}
        assert heard.ended == []
        with pytest.raises(type(error)), surrounded(Work(kind="tool_call", run_id="r"), heard):
            raise error
        assert heard.ended == [error]
    assert heard.ended == [error, None]
    assert outgoing_headers() == {}
