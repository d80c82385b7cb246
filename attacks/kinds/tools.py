"""Tools that fail as no tool should: with any exception, any result, or by never returning."""

from __future__ import annotations

import asyncio
import itertools
import math
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from attacks.kind import Attempt, Kind, law
from attacks.speaking import run
from jackfield.agents import FnCallAgent
from jackfield.messages import FUNCTION, ContentItem
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import BaseTool, ToolContext, ToolResult

HANGS_S = 8.0
LONGEST_RESULT = 200_000  # characters; the default limit is 60,000


class _Own(BaseException):
    pass


class _TextRaises(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class _TextIsNone(Exception):
    def __str__(self) -> str:
        return None  # type: ignore[return-value]  # noqa: PLE0307 - that is the attack


class _TextEnds(BaseException):
    def __str__(self) -> str:
        raise KeyboardInterrupt


class _NoType(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise ValueError("no name")


class _NoName(Exception, metaclass=_NoType):
    pass


ERRORS: dict[str, Callable[[], BaseException]] = {
    "Exception": lambda: Exception("plain"),
    "nothing to say": Exception,
    "BaseException": lambda: BaseException("base"),
    "own BaseException": lambda: _Own("own"),
    "CancelledError": asyncio.CancelledError,
    "GeneratorExit": GeneratorExit,
    "StopIteration": lambda: StopIteration(1),
    "StopAsyncIteration": StopAsyncIteration,
    "SystemExit": lambda: SystemExit(3),
    "KeyboardInterrupt": KeyboardInterrupt,
    "TimeoutError": TimeoutError,
    "MemoryError": MemoryError,
    "RecursionError": RecursionError,
    "UnicodeDecodeError": lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
    "ExceptionGroup": lambda: ExceptionGroup("many", [ValueError("a"), ExceptionGroup("more", [KeyError("b")])]),
    "BaseExceptionGroup": lambda: BaseExceptionGroup("many", [_Own("a"), KeyboardInterrupt()]),
    "text raises": _TextRaises,
    "text is None": _TextIsNone,
    "text ends the program": _TextEnds,
    "a type without a name": _NoName,
    "a long text": lambda: ValueError("x" * 10_000_000),
    "half a character": lambda: ValueError("\ud800"),
    "controls": lambda: ValueError("\x1b]0;mine\x07\x00"),
}


class _ReprRaises:
    def __repr__(self) -> str:
        raise RuntimeError("no text")


def _in_itself() -> list[Any]:
    circle: list[Any] = []
    circle.append(circle)
    return circle


def _deep(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


RESULTS: dict[str, Callable[[], Any]] = {
    "50 MB of text": lambda: "x" * 50_000_000,
    "a million numbers": lambda: list(range(1_000_000)),
    "in itself": _in_itself,
    "deep": lambda: _deep(100_000),
    "text raises": _ReprRaises,
    "a generator": lambda: (n for n in range(3)),
    "an endless generator": itertools.count,
    "NaN": lambda: math.nan,
    "bytes": lambda: b"\xff\xfe",
    "a set": lambda: {1, 2},
    "odd keys": lambda: {(1, 2): 3, None: 4},
    "a large number": lambda: 10**10_000,
    "halves of characters": lambda: "\ud83c \udf9b",
    "many items": lambda: [ContentItem(text="y" * 50_000) for _ in range(2_000)],
    "a result of results": lambda: ToolResult(ToolResult("x", {"a": _ReprRaises()}), {"b": _in_itself()}),
    "a class": lambda: dict,
    "an awaitable that fails": lambda: _failing(),  # noqa: PLW0108 - defined below
}


async def _failing() -> None:
    raise _Own("late")


class _Tool(BaseTool):
    description = "Do it."

    def __init__(self, name: str, act: Callable[[], Any], timeout_s: float | None = None) -> None:
        super().__init__()
        self.name = name
        self.timeout_s = timeout_s
        self.act = act
        self.called = 0

    def call(self, params: Any, *, context: ToolContext | None = None) -> Any:
        self.called += 1
        return self.act()


class _AsyncTool(_Tool):
    async def call(self, params: Any, *, context: ToolContext | None = None) -> Any:
        await asyncio.sleep(0)
        self.called += 1
        return self.act()


def _raising(make: Callable[[], BaseException]) -> Callable[[], Any]:
    def act() -> Any:
        raise make()

    return act


def _run_with(tool_class: type[_Tool], act: Callable[[], Any], ends: bool, timeout_s: float | None = None) -> None:
    bad, good = tool_class("bad", act, timeout_s), _AsyncTool("good", lambda: "all is well")
    script = [calls(("good", {}), ("bad", {}), ("good", {})), answer("done")]
    try:
        ended = run(FnCallAgent([bad, good], ScriptedModel(script)))
    except (KeyboardInterrupt, SystemExit, BaseExceptionGroup):
        law(ends, "the run ended in what the tool raised")
        return
    law(ended.reason == "finished", f"the run ended with {ended.reason!r}")
    ended.check_history()
    law((bad.called, good.called) == (1, 2), f"called {bad.called} and {good.called} times")
    results = [message for message in ended.messages if message.role == FUNCTION]
    said = [message.get_text_content() for message in results]
    law([said[0], said[2]] == ["all is well"] * 2, "the good tool's results are lost")
    law(max(map(len, said)) <= LONGEST_RESULT, f"a result has {max(map(len, said)):,} characters")
    for text in said:
        text.encode()


def _cancel_itself() -> Any:
    task = asyncio.current_task()
    if task:
        task.cancel()


async def _cancel_and_wait() -> Any:
    _cancel_itself()
    await asyncio.sleep(60)


def _wait_stubbornly() -> Any:
    threading.Event().wait(60)


async def _swallow_cancelling() -> Any:
    ends_at = time.monotonic() + 2
    while time.monotonic() < ends_at:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0.1)


def _attempts(dice: random.Random) -> Iterator[Attempt]:
    for (name, make), tool_class in itertools.product(ERRORS.items(), (_Tool, _AsyncTool)):
        ends = name in ("KeyboardInterrupt", "SystemExit", "BaseExceptionGroup", "text ends the program")
        act = partial(_run_with, tool_class, _raising(make), ends)
        yield Attempt(f"{tool_class.__name__[1:]} raises {name}", act, timeout_s=HANGS_S)
    for (name, make), tool_class in itertools.product(RESULTS.items(), (_Tool, _AsyncTool)):
        yield Attempt(f"{tool_class.__name__[1:]} gives {name}", partial(_run_with, tool_class, make, False))
    hanging: dict[str, Callable[[], Any]] = {
        "waits for ever": _wait_stubbornly,
        "cancels itself": _cancel_itself,
        "cancels itself and waits": _cancel_and_wait,
        "swallows its cancelling": _swallow_cancelling,
    }
    for name, act in hanging.items():
        tool_class = _AsyncTool if "cancels" in name else _Tool
        law_of_time = partial(_run_with, tool_class, act, False, 0.3)
        yield Attempt(f"{tool_class.__name__[1:]} {name}", law_of_time, timeout_s=HANGS_S)
    yield Attempt("100 tools wait for ever", _many_waiting, timeout_s=40)
    while True:
        tool_class, (name, make) = dice.choice((_Tool, _AsyncTool)), dice.choice(list(ERRORS.items()))
        ends = name in ("KeyboardInterrupt", "SystemExit", "BaseExceptionGroup", "text ends the program")
        nested = partial(_caused_by, make, dice.choice(list(ERRORS.values())))
        act = partial(_run_with, tool_class, nested, ends)
        yield Attempt(f"{tool_class.__name__[1:]} raises {name} from another", act, timeout_s=HANGS_S)


def _caused_by(make: Callable[[], BaseException], cause: Callable[[], BaseException]) -> Any:
    raise make() from cause()


def _many_waiting() -> None:
    """Check that abandoned threads, which cannot be stopped, do not prevent later runs from finishing."""
    for _ in range(10):
        _run_with(_Tool, _wait_stubbornly, False, 0.2)
    _run_with(_Tool, lambda: "x", False)


KIND = Kind("Whatever a tool does, every tool call ends in one result and every run in an answer.", _attempts, quick=28)
