"""Whatever form a tool has: plain, async, a bound method, a generator of progress; and calling one without an agent."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import Annotated, Any, ClassVar

import pytest
from pydantic import Field

from jackfield import BaseTool, FnCallAgent, ToolContext, ToolResult, acall_tool, call_tool, tool
from jackfield.errors import ConfigError, PluginNotFoundError, ToolArgumentError, ToolServiceError
from jackfield.events import ToolFinished, ToolProgress
from jackfield.messages import FunctionCall
from jackfield.runs import RunResources
from jackfield.sync import iterate
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import PlannedCall
from jackfield.tools._foreign import run_tool


class Shop:
    def __init__(self, rate: float) -> None:
        self.rate = rate

    def convert(self, amount: float) -> float:
        """Convert an amount."""
        return amount * self.rate


@tool
def plain(amount: float) -> float:
    """Convert an amount."""
    return amount * 2


@tool
async def later(amount: float) -> float:
    """Convert an amount."""
    await asyncio.sleep(0)
    return amount * 2


@tool
def returning(amount: float) -> Generator[str, None, float]:
    """Convert an amount."""
    yield "half done"
    return amount * 2


@tool
def yielding(amount: float) -> Iterator[str | ToolResult]:
    """Convert an amount."""
    yield "half done"
    yield ToolResult(amount * 2, {"rate": 2})


@tool
async def yielding_later(amount: float) -> AsyncIterator[str | ToolResult]:
    """Convert an amount."""
    yield "half done"
    await asyncio.sleep(0)
    yield ToolResult(amount * 2, {"rate": 2})


class Asking(BaseTool):
    name = "asking"
    description = "Convert an amount."
    parameters: ClassVar = {"type": "object", "properties": {"amount": {"type": "number"}}, "required": ["amount"]}

    def call(self, params: Any, *, context: ToolContext | None = None) -> Any:
        yield "half done"
        return params["amount"] * 2


FORMS: dict[str, Any] = {
    "plain": plain,
    "async": later,
    "method": tool(Shop(2).convert),
    "returning": returning,
    "yielding": yielding,
    "yielding later": yielding_later,
    "class": Asking,
    "function": Shop(2).convert,
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_an_agent_and_a_program_get_the_same_result_from_every_form(form: Any) -> None:
    output = call_tool(form, {"amount": 3})
    assert (output.content if isinstance(output, ToolResult) else output) == 6
    assert asyncio.run(acall_tool(form, '{"amount": 3}')) == output
    name = form.name if isinstance(form, BaseTool) else {Asking: "asking"}.get(form, "convert")
    stream = FnCallAgent([form], ScriptedModel([calls((name, {"amount": 3})), answer("6")])).stream("q")
    seen = list(stream)
    finished = next(event for event in seen if isinstance(event, ToolFinished))
    assert (finished.error, float(finished.message.get_text_content())) == ("", 6.0)
    progress = [event.text for event in seen if isinstance(event, ToolProgress)]
    assert progress == (["half done"] if "yield" in name or name in ("returning", "asking") else [])


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_progress_is_reported_before_the_next_step_and_a_cancelled_generator_is_closed(kind: str) -> None:
    go_on, went_on, closed = threading.Event(), threading.Event(), threading.Event()

    @tool
    def crawl() -> Iterator[str]:
        """Crawl."""
        try:
            yield "page 1"
            go_on.wait(10)
            yield "page 2"
            went_on.set()
        finally:
            closed.set()

    @tool(name="crawl")
    async def crawl_later() -> AsyncIterator[str]:
        """Crawl."""
        try:
            yield "page 1"
            await asyncio.sleep(10)
            went_on.set()
        finally:
            closed.set()

    made = crawl if kind == "plain" else crawl_later
    agent = FnCallAgent([made], ScriptedModel([calls(("crawl", {})), answer("a")]))
    with iterate(agent.astream("q")) as events:  # its end waits until the run is cancelled
        for placed in events:
            if isinstance(placed.event, ToolProgress):
                assert placed.event.text == "page 1"
                break
    go_on.set()
    assert closed.wait(10)
    assert not went_on.is_set()


def test_a_call_is_checked_as_that_of_a_model_is() -> None:
    with pytest.raises(ToolArgumentError, match="amount"):
        call_tool(plain, {"amount": "much"})
    with pytest.raises(ToolArgumentError, match="amount"):
        call_tool(plain)
    with pytest.raises(PluginNotFoundError, match="no_such_tool"):
        call_tool("no_such_tool")
    with pytest.raises(ConfigError, match="not a tool"):
        call_tool(3)  # type: ignore[arg-type]


def test_a_call_sees_the_context_it_is_given_and_closes_what_it_opened_without_one() -> None:
    class Opened:
        is_open = True

        def close(self) -> None:
            self.is_open = False

    @tool
    async def use(context: ToolContext[str]) -> Any:
        """Open it."""

        async def opened() -> Opened:
            return Opened()

        return await context.resources.get("it", opened), context.deps

    one, deps = call_tool(use)
    assert (one.is_open, deps) == (False, None)

    async def kept() -> None:
        async with RunResources() as resources:
            context = ToolContext(resources=resources, deps="Anna")
            first, deps = await acall_tool(use, context=context)
            second, _ = await acall_tool(use, context=context)
            assert (first is second, first.is_open, deps) == (True, True, "Anna")

    asyncio.run(kept())


class Unbound:
    @staticmethod
    def fine(amount: float) -> float:
        """Convert."""
        return amount

    def method(self, amount: float) -> float:
        """Convert."""
        return amount


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (lambda: tool(Unbound.method), r"tool\(an_object.method\)"),
        (lambda: tool(_of_threads), "parameter 'thread' must have a type that can be read from JSON"),
        (lambda: tool(_of_pattern), "pydantic does not support the type of parameter 'code'"),
    ],
)
def test_what_cannot_be_a_tool_says_how_it_can(made: Callable[[], Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        made()


def test_what_a_generator_yields_is_its_progress_and_then_its_result() -> None:
    @tool
    def steps() -> Iterator[Any]:
        """Take steps."""
        yield "one"
        yield ToolResult("first")
        yield "two"
        yield ToolResult("last", {"a": 1})

    context = ToolContext[Any](report=(seen := []).append)
    assert isinstance(steps, BaseTool)
    agent = FnCallAgent([steps], ScriptedModel([]))
    finished = asyncio.run(agent.executor.finish(PlannedCall(0, "c", FunctionCall("steps", "{}")), context))
    assert (finished.message.content, finished.metadata, seen) == ("last", {"a": 1}, ["one", "two"])


def _of_pattern(count: int, code: Annotated[str, Field(pattern="(")]) -> str:
    """Look up."""
    return code * count


def _of_threads(count: int, thread: threading.Thread) -> str:
    """Join."""
    return thread.name


@pytest.mark.parametrize("value", [0, "", [], False], ids=repr)
def test_an_empty_value_is_a_result_of_a_generator(value: Any) -> None:
    @tool
    def steps() -> Generator[str, None, Any]:
        """Take steps."""
        yield "one"
        return value

    assert call_tool(steps) == value


def test_a_generator_that_yields_what_it_must_not_is_closed_before_its_call_fails() -> None:
    log = []

    @tool
    async def odd() -> AsyncIterator[Any]:
        """Yield a number."""
        try:
            yield 5
        finally:
            await asyncio.sleep(0)
            log.append("closed")

    async def main() -> None:
        try:
            await acall_tool(odd)
        except ToolServiceError as error:
            log.append(str(error))

    asyncio.run(main())
    assert log == ["closed", log[-1]]
    assert "it yields int" in log[-1]


@pytest.mark.parametrize("is_told", [True, False], ids=["a turn", "another caller"])
def test_a_call_that_had_returned_when_it_was_cancelled_has_a_result_in_a_turn_only(is_told: bool) -> None:
    @tool
    def work() -> str:
        """Work."""
        is_cancelled.wait(30)
        return "done"

    is_cancelled, has_returned = threading.Event(), threading.Event()

    async def main() -> Any:
        loop = asyncio.get_running_loop()
        call_soon = loop.call_soon_threadsafe

        def arrive(*args: Any, **options: Any) -> Any:
            handle = call_soon(*args, **options)
            has_returned.set()
            return handle

        loop.call_soon_threadsafe = arrive  # type: ignore[method-assign]
        begun = asyncio.Event()
        task = asyncio.create_task(
            run_tool(work, {}, ToolContext(), on_begin=(lambda: call_soon(begun.set)) if is_told else None)
        )
        await (begun.wait() if is_told else asyncio.sleep(0))
        has_returned.clear()
        is_cancelled.set()
        assert has_returned.wait(30)  # blocks the loop, which has not seen the result
        task.cancel()
        return (await asyncio.gather(task, return_exceptions=True))[0]

    outcome = asyncio.run(main())
    assert outcome == "done" if is_told else isinstance(outcome, asyncio.CancelledError)
