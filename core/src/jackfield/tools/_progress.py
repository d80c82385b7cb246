"""Tools that say how far they are: a `call` that is a generator. It yields texts for people, and its result."""

from __future__ import annotations

import inspect
from collections.abc import Generator
from typing import Any

from jackfield import sync
from jackfield.errors import ToolServiceError
from jackfield.streams import closing
from jackfield.tools._base import ToolContext, ToolResult

_NOTHING = object()


def gives_progress(output: object) -> bool:
    """Whether this is what `result_of` takes."""
    return inspect.isgenerator(output) or inspect.isasyncgen(output)


async def result_of(output: Any, name: str, context: ToolContext) -> object:
    """Run a generator to its end, and report the texts that it yields.

    Returns:
        The last `ToolResult` that it yields; or what a plain generator returns, unless that is None.

    Raises:
        ToolServiceError: It yields anything else, or has no result.
    """
    told = _Told(name, context)
    if inspect.isasyncgen(output):
        async with closing(output) as items:
            async for item in items:
                told.take(item)
    else:
        await _run_plain(output, told)
    return told.result()


async def _run_plain(generator: Generator[Any, Any, Any], told: _Told) -> None:
    """Run a plain generator in a worker thread; when its caller gives up, it is closed where it next yields."""
    given_up = False

    def work() -> None:
        try:
            while not given_up:
                told.take(next(generator))
        except StopIteration as end:
            told.returned(end.value)
        finally:
            generator.close()

    try:
        await sync.in_worker(work)
    finally:
        given_up = True


class _Told:
    """What a generator has said so far."""

    def __init__(self, name: str, context: ToolContext) -> None:
        self._name = name
        self._report = context.report
        self._result: object = _NOTHING

    def take(self, item: object) -> None:
        match item:
            case str():
                self._report(item)
            case ToolResult():
                self._result = item
            case _:
                raise ToolServiceError(
                    f"Tool {self._name} cannot be used: it yields {type(item).__name__}, but must yield texts that say "
                    f"how far it is, and a ToolResult"
                )

    def returned(self, value: object) -> None:
        if value is not None:
            self._result = value

    def result(self) -> object:
        if self._result is _NOTHING:
            raise ToolServiceError(f"Tool {self._name} cannot be used: it ended without yielding a ToolResult")
        return self._result
