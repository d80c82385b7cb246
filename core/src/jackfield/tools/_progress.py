"""Report the progress of tools whose `call` is a generator that yields progress texts and then the result."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from typing import Any

from jackfield import sync
from jackfield.errors import ToolServiceError
from jackfield.streams import closing
from jackfield.tools._base import ToolContext, ToolResult


async def run_generator(output: Any, name: str, context: ToolContext) -> object:
    """Run a generator to completion, reporting the text that it yields as progress.

    Returns:
        The return value of a plain generator if it is not None, otherwise the last `ToolResult` that was yielded.

    Raises:
        ToolServiceError: The generator yielded an unsupported value, or ended without a result.
    """
    result: ToolResult | None = None

    def receive(item: object) -> None:
        nonlocal result
        if isinstance(item, str):
            context.report(item)
        elif isinstance(item, ToolResult):
            result = item
        else:
            raise ToolServiceError(
                f"Tool {name} cannot be used: it yields {type(item).__name__}, but must yield strings about its "
                "progress and a ToolResult"
            )

    if inspect.isasyncgen(output):
        async with closing(output) as items:
            async for item in items:
                receive(item)
    elif (returned := await _run_plain(output, receive)) is not None:
        return returned
    if result is None:
        advice = "yield it last, as a ToolResult" if inspect.isasyncgen(output) else "return it at the end"
        raise ToolServiceError(f"Tool {name} cannot be used: it ended without a result; {advice}")
    return result


async def _run_plain(generator: Generator[Any, Any, object], receive: Callable[[object], None]) -> object:
    """Run a plain generator in a worker thread and return its value.

    Cancellation closes the generator at the next yield.
    """
    is_cancelled = False

    def work() -> object:
        try:
            while not is_cancelled:
                receive(next(generator))
        except StopIteration as end:
            return end.value
        finally:
            generator.close()
        return None

    try:
        return await sync.in_worker(work)
    finally:
        is_cancelled = True
