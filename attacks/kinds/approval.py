"""Replies to a call that needs approval. Only True approves it."""

from __future__ import annotations

import asyncio
import itertools
import random
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from attacks.kind import Attempt, Kind, law
from attacks.speaking import run
from jackfield import tool
from jackfield.agents import FnCallAgent
from jackfield.errors import JackfieldError
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import BaseTool, ToolContext


class _Truthy:
    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


class _BoolRaises:
    def __bool__(self) -> bool:
        raise ValueError("neither yes nor no")


class _Stop(BaseException):
    pass


NOT_YES: tuple[Any, ...] = (
    *("n", "no", "y", "yes", "True", "true", b"y", "", 0, 1, 1.0, -1, None, False, [], [True], {"approved": True}, ...),
    *(object(), _Truthy(), _BoolRaises(), int, lambda: True, (True,), {True}, iter([True]), float("nan")),
)
ERRORS: tuple[Callable[[], BaseException], ...] = (
    *(
        ValueError,
        KeyError,
        asyncio.CancelledError,
        _Stop,
        GeneratorExit,
        StopIteration,
        StopAsyncIteration,
        SystemExit,
    ),
    *(KeyboardInterrupt, TimeoutError, RecursionError),
)


class _Guarded(BaseTool):
    """A tool whose class declares that it needs approval."""

    name = "act"
    description = "Act."
    needs_approval = True

    def __init__(self) -> None:
        super().__init__()
        self.done = 0

    def call(self, params: Any, *, context: ToolContext | None = None) -> str:
        self.done += 1
        return "done"


class _ByInstance(_Guarded):
    needs_approval = False

    def __init__(self) -> None:
        super().__init__()
        self.needs_approval = True


class _Odd(_Guarded):
    """A tool whose `needs_approval` is neither True nor False, and so also needs approval."""

    needs_approval = "yes"  # type: ignore[assignment]


TOOLS = (_Guarded, _ByInstance, _Odd)


def _way(kind: str, make: Callable[[], Any]) -> Callable[..., Any]:
    def plain(*_: Any) -> Any:
        return make()

    async def awaited(*_: Any) -> Any:
        await asyncio.sleep(0)
        return make()

    async def twice(*_: Any) -> Any:
        return awaited()

    return {"plain": plain, "async": awaited, "an awaitable in an awaitable": twice}[kind]


def _asked(tool_class: type[_Guarded], approve: Callable[..., Any] | None, done: int, ends: bool = False) -> None:
    guarded = tool_class()
    script = [calls(("act", {}), ("act", {})), answer("done")]
    agent = FnCallAgent([guarded], ScriptedModel(script), approve=approve)
    try:
        ended = run(agent)
    except (KeyboardInterrupt, SystemExit):
        law(ends, "the run ended in what approve raised")
    except JackfieldError:
        pass
    else:
        law(ended.reason == ("finished" if approve else "approval_needed"), f"the run ended with {ended.reason!r}")
        if approve:
            ended.check_history()
    law(guarded.done == done, f"the call was done {guarded.done} times")


def _raise(make: Callable[[], BaseException]) -> Any:
    raise make()


def _code(approve: Callable[..., Any] | None) -> None:
    """Check that unisolated code runs only after approval."""
    with tempfile.TemporaryDirectory() as folder:
        mark = Path(folder) / "was-here"
        script = [calls(("code_interpreter", {"code": f"open({str(mark)!r}, 'w').close()"})), answer("done")]
        ended = run(FnCallAgent(["code_interpreter"], ScriptedModel(script), approve=approve))
        law(not mark.exists(), f"code ran that nobody had allowed; the run ended with {ended.reason!r}")


def _decorated(approve: Callable[..., Any] | None) -> None:
    done = []

    @tool(needs_approval=True)
    def act() -> str:
        """Act."""
        done.append(1)
        return "done"

    run(FnCallAgent([act], ScriptedModel([calls(("act", {})), answer("done")]), approve=approve))
    law(not done, "the call was done")


def _attempts(dice: random.Random) -> Iterator[Attempt]:
    yield Attempt("True", partial(_asked, _Guarded, _way("plain", lambda: True), 2))
    yield Attempt("True, async", partial(_asked, _Guarded, _way("async", lambda: True), 2))
    yield Attempt("code without anybody to ask", partial(_code, None), timeout_s=60)
    yield Attempt("code and a no", partial(_code, lambda *_: False), timeout_s=60)
    yield from (Attempt(f"nobody to ask, {one.__name__[1:]}", partial(_asked, one, None, 0)) for one in TOOLS)
    for value, kind in itertools.product(NOT_YES, ("plain", "async")):
        yield Attempt(
            f"{type(value).__name__} {str(value)[:20]!r}, {kind}", partial(_asked, _Guarded, _given(kind, value), 0)
        )
    for error, kind in itertools.product(ERRORS, ("plain", "async")):
        act = partial(_asked, _Guarded, _way(kind, partial(_raise, error)), 0, True)
        yield Attempt(f"{error.__name__} raised, {kind}", act, timeout_s=8)
    yield Attempt("a decorated tool, nobody to ask", partial(_decorated, None))
    while True:
        value, kind, one = (
            dice.choice(NOT_YES),
            dice.choice(["plain", "async", "an awaitable in an awaitable"]),
            dice.choice(TOOLS),
        )
        yield Attempt(
            f"{type(value).__name__}, {kind}, {one.__name__[1:]}", partial(_asked, one, _given(kind, value), 0)
        )


def _given(kind: str, value: Any) -> Callable[..., Any]:
    return _way(kind, lambda: value)


KIND = Kind(
    "A call that needs approval is never executed without it, and only True approves a call.", _attempts, 0.6, quick=62
)
