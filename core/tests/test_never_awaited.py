"""No call leaves a coroutine behind that was never awaited, however it ends."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from jackfield import FnCallAgent, ToolContext, call_tool, tool
from jackfield.errors import JackfieldError
from jackfield.testing import ScriptedModel, answer
from jackfield.tools._awaiting import is_async, says_if_not_awaited
from tests.support.tools import Looks


@tool
def clock(zone: str) -> str:
    """Tell the time."""
    return f"noon in {zone}"


@tool
async def slow_clock(zone: str) -> str:
    """Tell the time, after a while."""
    return f"noon in {zone}"


def agent() -> FnCallAgent:
    return FnCallAgent([clock, slow_clock], _model())


def _model() -> ScriptedModel:
    return ScriptedModel([answer("fine")] * 9)


CALLS: dict[str, Callable[[], Any]] = {
    "ask": lambda: agent().ask("x"),
    "ask, an unknown option": lambda: agent().ask("x", nosuch=1),  # type: ignore[call-overload]
    "ask, a wrong option": lambda: agent().ask("x", max_turns="a"),  # type: ignore[call-overload]
    "ask, a wrong config": lambda: agent().ask("x", config={"nosuch": 1}),  # type: ignore[call-overload]
    "ask, no type": lambda: agent().ask("x", output=object()),  # type: ignore[call-overload]
    "ask, no message": lambda: agent().ask(5),  # type: ignore[call-overload]
    "ask, no history": lambda: agent().ask("x", history=5),  # type: ignore[call-overload]
    "run": lambda: list(agent().run("x")),
    "run, left early": lambda: next(iter(agent().run("x"))),
    "run, an unknown option": lambda: list(agent().run("x", nosuch=1)),
    "run, never read": lambda: agent().run("x"),
    "run_nonstream": lambda: agent().run_nonstream("x"),
    "stream": lambda: list(agent().stream("x")),
    "stream, never read": lambda: agent().stream("x"),
    "stream, an unknown option": lambda: list(agent().stream("x", nosuch=1)),
    "model.chat": lambda: _model().chat("x", stream=False),
    "model.chat, streamed": lambda: list(_model().chat("x", stream=True)),
    "model.chat, never read": lambda: _model().chat("x", stream=True),
    "model.ask": lambda: _model().ask("x"),
    "model.ask, no schema": lambda: _model().ask("x", output={"type": 5}),
    "model.batch": lambda: _model().batch(["x", 5]),  # type: ignore[list-item]
    "a tool": lambda: call_tool(clock, {"zone": "x"}),
    "an async tool": lambda: call_tool(slow_clock, {"zone": "x"}),
    "an async tool, wrong arguments": lambda: call_tool(slow_clock, {"nosuch": "x"}),
    "an async tool, no arguments": lambda: call_tool(slow_clock, 5),  # type: ignore[arg-type]
}
AWAITED: dict[str, Callable[[], Any]] = {
    "aask": lambda: agent().aask("x"),
    "aask, an unknown option": lambda: agent().aask("x", nosuch=1),  # type: ignore[call-overload]
    "aask, no message": lambda: agent().aask(5),  # type: ignore[call-overload]
    "acomplete, a wrong config": lambda: _model().acomplete("x", config={"nosuch": 1}),  # type: ignore[typeddict-unknown-key]
}


async def _in_a_loop(call: Callable[[], Any]) -> None:
    call()


async def _awaited(call: Callable[[], Any]) -> None:
    await call()


async def _cancelled(call: Callable[[], Any]) -> None:
    task = asyncio.ensure_future(call())
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


WAYS: dict[str, Callable[[], Any]] = {
    **CALLS,
    **{f"{name}, in a running loop": lambda call=call: asyncio.run(_in_a_loop(call)) for name, call in CALLS.items()},
    **{name: lambda call=call: asyncio.run(_awaited(call)) for name, call in AWAITED.items()},
    **{f"{name}, cancelled at once": lambda call=call: asyncio.run(_cancelled(call)) for name, call in AWAITED.items()},
}


@pytest.fixture(scope="module")
def freeze_objects() -> None:
    """Have collections look at new objects only: those of the whole test run take a twentieth of a second each time."""
    gc.collect()
    gc.freeze()


@pytest.mark.usefixtures("freeze_objects")
@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_left_unawaited(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    unraisable: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", unraisable.append)  # where a warning in a finaliser ends as an error
    gc.collect()
    unraisable.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            WAYS[way]()
        except JackfieldError as error:
            assert str(error)  # noqa: PT017 - it may be refused, and need not be
        gc.collect()
    assert unraisable == []


def test_the_call_of_an_async_tool_says_that_it_must_be_awaited() -> None:
    closed: list[str] = []

    class Asks(Looks):
        @says_if_not_awaited
        async def call(self, params: Any, *, context: ToolContext[Any] | None = None) -> str:
            """Ask."""
            try:
                await asyncio.sleep(0)
            finally:
                closed.append(params)
            return f"asked {params}" if context is None else f"asked {params} for {context.agent}"

    made = Asks()
    assert (is_async(made.call), made.call.__doc__) == (True, "Ask.")
    assert asyncio.run(made.call("a", context=ToolContext(agent="desk"))) == "asked a for desk"  # type: ignore[arg-type]
    call: Any = made.call("b")
    assert repr(call) == (
        "<tool 'look' has not been called yet: use `await tool.call(...)`, or outside an event loop "
        "`jackfield.sync.run(tool.call(...))`>"
    )
    call.send(None)
    call.close()
    assert closed == ["a", "b"]
    with pytest.raises(RuntimeError):
        call.send(None)
    thrown: Any = made.call("c")
    with pytest.raises(KeyError):
        thrown.throw(KeyError("k"))

    class Called:
        async def __call__(self) -> None: ...

    assert (is_async(Called()), is_async(len), is_async(5)) == (True, False, False)
