"""Tools that say how far they are: a `call` that is a generator. It yields texts for people, and its result."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from typing import Any

from jackfield import sync
from jackfield.errors import ToolServiceError
from jackfield.streams import closing
from jackfield.tools._base import ToolContext, ToolResult

_NOTHING = object()


async def result_of(output: Any, name: str, context: ToolContext) -> object:
    """Run a generator to its end, and report the texts that it yields.

    Returns:
        The last `ToolResult` that it yields; or what a plain generator returns, unless that is None.

    Raises:
        ToolServiceError: It yields anything else, or has no result.
    """
    result: object = _NOTHING

    def take(item: object) -> None:
        nonlocal result
        if isinstance(item, str):
            context.report(item)
        elif isinstance(item, ToolResult):
            result = item
        else:
            raise ToolServiceError(
                f"Tool {name} cannot be used: it yields {type(item).__name__}, but must yield texts that say "
                f"how far it is, and a ToolResult"
            )

    if inspect.isasyncgen(output):
        async with closing(output) as items:
            async for item in items:
                take(item)
    elif (returned := await _run_plain(output, take)) is not None:
        return returned
    if result is _NOTHING:
        raise ToolServiceError(f"Tool {name} cannot be used: it ended without yielding a ToolResult")
    return result


async def _run_plain(generator: Generator[Any, Any, object], take: Callable[[object], None]) -> object:
    """What a plain generator returns, run in a worker thread; given up, it is closed where it next yields."""
    given_up = False

    def work() -> object:
        try:
            while not given_up:
                take(next(generator))
        except StopIteration as end:
            return end.value
        finally:
            generator.close()
        return None

    try:
        return await sync.in_worker(work)
    finally:
        given_up = True
