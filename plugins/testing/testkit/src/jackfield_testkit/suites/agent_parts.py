"""Create agents for their tests, run them, and inspect the results."""

# ruff: noqa: S101 - these are tests: they assert

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

import pytest

from jackfield import ChatRequest, RunResult, create_agent, sync
from jackfield.agents import Agent, CancelToken, FnCallAgent
from jackfield.errors import ConfigError, ToolServiceError
from jackfield.events import ModelEvent, RunEvent, RunFinished, TurnFinished
from jackfield.messages import FUNCTION, Message
from jackfield.processors import closing
from jackfield.testing import Script, ScriptedModel, answer, calls
from jackfield.tools import FunctionTool, ToolContext, ToolEntry, Toolset, tool, toolset
from jackfield_testkit.installed import plain_host
from jackfield_testkit.records import MemoryStore, interrupted
from jackfield_testkit.suites.base import Suite

QUESTION = Message("user", "What is said twice?")
FOREVER = 50  # turns of a model that never stops on its own
T = TypeVar("T")


class AgentTests(Suite):
    """Base class of all test groups for agent kinds. The attributes are those of `AnswerSuite`."""

    component: ClassVar[str]
    config: ClassVar[Mapping[str, Any]] = {}
    patience_s: ClassVar[float] = 20.0

    @pytest.fixture(autouse=True)
    def _in_a_folder_of_its_own(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)

    def make_agent(self, script: Script, tools: Sequence[ToolEntry] = (), **options: Any) -> Agent:
        """Create an agent whose model follows the script. Override this if your kind needs more than `config`."""
        host = plain_host()
        # Without processors, because other installed plugins would change the requests to the model.
        llm = ScriptedModel(script, processors=[], host=host)
        return create_agent(self.component, host=host, **{"llm": llm, "function_list": tools, **self.config, **options})

    def _events(self, agent: Agent, messages: Sequence[Message] = (QUESTION,), **options: Any) -> list[RunEvent]:
        """Return all events of a run."""
        return sync.run(within(self.patience_s, gathered(agent.astream(messages, **options))))


def agents_in(value: object) -> Iterator[Agent]:
    """Yield the agents in a value: the value itself, the elements of a container, and agents that these agents hold."""
    match value:
        case Agent():
            yield value
            yield from agents_in(vars(value))
        case Mapping():
            for part in value.values():
                yield from agents_in(part)
        case list() | tuple():
            for part in value:
                yield from agents_in(part)


# --- tools ---


def repeat(*, needs_approval: bool = False) -> FunctionTool:
    """Return a tool that repeats a text."""

    @tool(name="repeat", description="Says it twice.", needs_approval=needs_approval)
    def say_twice(text: str) -> str:
        return f"{text} {text}"

    return say_twice


def fail() -> FunctionTool:
    """Return a tool that fails, with an error meant for the model or any other error."""

    @tool(name="fail", description="Fails.")
    def failing(how: str) -> str:
        if how == "badly":
            raise ZeroDivisionError("division by zero")
        raise ToolServiceError("it does not work today")

    return failing


class Waiting:
    """A tool that waits for a long time, after cancelling its own run if it has the run's token."""

    def __init__(self, cancel: CancelToken | None = None) -> None:
        self._cancel = cancel
        self.began = asyncio.Event()
        self.ended = False

    def tool(self) -> FunctionTool:
        @tool(name="wait", description="Waits.")
        async def waiting() -> str:
            self.began.set()
            if self._cancel:
                self._cancel.cancel()
            try:
                await asyncio.sleep(3600)
            finally:
                self.ended = True
            return "never"

        return waiting


class NeverReady:
    """A toolset whose tools never become ready, which reports progress once and cancels the run if it has a token."""

    def __init__(self, cancel: CancelToken | None = None) -> None:
        self._cancel = cancel
        self.ended = False

    def toolset(self) -> Toolset:
        @toolset
        async def never_ready(context: ToolContext[Any]) -> list[ToolEntry]:
            context.report("waiting")
            if self._cancel is not None:
                self._cancel.cancel()
            try:
                await asyncio.sleep(3600)
            finally:
                self.ended = True
            return []

        return never_ready


class Meeting:
    """A tool that returns once as many calls are running concurrently as there are guests."""

    def __init__(self, guests: int) -> None:
        self._guests = guests
        self._here = 0

    def tool(self) -> FunctionTool:
        @tool(name="meet", description="Meets the others.")
        async def meet(text: str) -> str:
            self._here += 1
            for _ in range(1000):
                if self._here == self._guests:
                    break
                await asyncio.sleep(0)
            # The last call to arrive is the first to return.
            for _ in range(10 * (self._guests - int(text))):
                await asyncio.sleep(0)
            return f"{'met' if self._here == self._guests else 'alone'} {text}"

        return meet


# --- inspecting results ---


def assert_calls_are_answered(messages: Sequence[Message]) -> None:
    """Fail unless every call is followed by its result. Providers reject any other history."""
    waiting: list[str | None] = []
    for message in messages:
        if message.function_call:
            waiting.append(message.function_id)
        elif message.role == FUNCTION:
            assert message.function_id in waiting, (
                f"the result does not belong to any pending call {waiting}: {message}"
            )
            waiting.remove(message.function_id)
        else:
            assert not waiting, f"calls {waiting} have no result before the next message"
    assert not waiting, f"calls {waiting} have no result"


def scripted(script: Script) -> ScriptedModel:
    return ScriptedModel(script, processors=[])


def asking(child: Agent, **options: Any) -> FnCallAgent:
    """Return an agent that asks another one and then finishes."""
    script = [calls(("child", {"request": "What is said twice?"})), answer("Done.")]
    return FnCallAgent([child.as_tool()], scripted(script), name="above", **options)


def forever(request: ChatRequest) -> Sequence[ModelEvent]:
    if sum(message.role == FUNCTION for message in request.messages) >= FOREVER:
        return answer("I give up before the agent does.")
    return calls(("repeat", {"text": "again"}))


def assert_numbered(events: Sequence[RunEvent]) -> None:
    """Fail unless a run's events are numbered from 1 without a gap."""
    assert [event.number for event in events] == list(range(1, len(events) + 1))


def results_of(messages: Iterable[Message]) -> list[object]:
    """Return the tool results, in order."""
    return [message.content for message in messages if message.role == FUNCTION]


def dumped(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Return message contents as independent values."""
    return [message.model_dump() for message in messages]


def of_kind(events: Sequence[RunEvent], *kinds: type[T]) -> list[T]:
    """Return the events of the given types."""
    return [event.event for event in events if isinstance(event.event, kinds)]


def end_of(events: Sequence[RunEvent]) -> RunFinished:
    last = events[-1].event
    assert isinstance(last, RunFinished), f"expected RunFinished as the last event, got {last}"
    return last


def turns_of(events: Sequence[RunEvent]) -> int:
    return len(of_kind(events, TurnFinished))


class Resumed(NamedTuple):
    """A run that was interrupted and resumed.

    Attributes:
        result: The result of the run.
        store: The store with the run's record.
        calls_before: The number of calls that had a result when the run was resumed.
    """

    result: RunResult[Any]
    store: MemoryStore
    calls_before: int


def resumed(fresh: Callable[[MemoryStore], Agent]) -> Iterator[Resumed]:
    """Interrupt a run at each of its writes, and yield the resumed runs, skipping those that cannot be resumed.

    Args:
        fresh: Creates the agent, once for the run and once to resume it.
    """
    for store in interrupted(lambda store: fresh(store).ask(QUESTION)):
        for run_id in store.kept:
            calls_before = len(store.events("ToolFinished"))
            try:
                yield Resumed(fresh(store).resume(run_id), store, calls_before)
            except ConfigError as error:
                if "cannot resume" not in str(error):
                    raise


def requests_of(agent: Agent) -> list[ChatRequest]:
    model = agent.model
    assert isinstance(model, ScriptedModel), "the agent calls a different model than the one passed to it"
    return model.requests


def read_by_the_model(agent: Agent, number: int) -> str:
    """Return all text that the model received in one request."""
    return "\n".join(message.get_text_content() for message in requests_of(agent)[number].messages)


async def left_after(number: int, events: AsyncIterator[RunEvent]) -> list[str]:
    """Abandon a run after `number` events, and return the names of async generators that are still open."""
    begun: list[Any] = []  # referenced here, because garbage collection would close them at a random time
    first, last = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(begun.append, last)
    try:
        async with closing(events):
            for _ in range(number):
                await anext(events)
    finally:
        sys.set_asyncgen_hooks(first, last)
    still_open = [one.__qualname__ for one in begun if one.ag_frame is not None]
    for one in reversed(begun):
        await one.aclose()
    return still_open


async def gathered(events: AsyncIterator[RunEvent]) -> list[RunEvent]:
    seen: list[RunEvent] = []
    await gathered_into(seen, events)
    return seen


async def gathered_into(seen: list[RunEvent], events: AsyncIterator[RunEvent]) -> None:
    async with closing(events):
        async for event in events:
            seen.append(event)  # noqa: PERF401 - what came before an error is looked at, too


async def within(patience_s: float, work: Awaitable[T]) -> T:
    limit = asyncio.timeout(patience_s)
    try:
        async with limit:
            return await work
    except TimeoutError:
        if limit.expired():
            pytest.fail(f"the agent did not finish within {patience_s:g} s")
        raise
