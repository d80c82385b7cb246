"""Run the tool calls of one turn: at once where they may, each with a time-out, results in call order.

Whatever a call does, it ends with a result that the model can read: an unknown tool, broken arguments, an exception, a
time-out and an oversized result are results, too.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import re
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jackfield import sync
from jackfield.errors import BrokenPluginError, ToolServiceError, ToolTimeoutError
from jackfield.events import ToolFinished, ToolProgress, ToolStarted
from jackfield.messages import FUNCTION, ContentItem, FunctionCall, Message
from jackfield.settings import closest
from jackfield.tools.base import BaseTool, ToolContext, ToolResult
from jackfield.tools.plugin_tool import PluginTool

_log = logging.getLogger(__name__)
_PATH = re.compile(r"(?:/[\w.+-]+){2,}/?|[A-Za-z]:\\[^\s'\"]+")

DEFAULT_TIMEOUT_S = 300.0
DEFAULT_MAX_RESULT_CHARS = 60_000
CANCELLED_TEXT = "The call was cancelled before it was done."


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call with its id and its place among the calls of the turn."""

    index: int
    call_id: str
    call: FunctionCall


class ToolExecutor:
    """Calls tools.

    Args:
        tools: By name.
        timeout_s: For tools that set none themselves.
        max_result_chars: Longer texts are cut in the middle, and say so.
    """

    def __init__(
        self,
        tools: Mapping[str, BaseTool],
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        max_result_chars: int = DEFAULT_MAX_RESULT_CHARS,
    ) -> None:
        self._tools = tools
        self._timeout_s = timeout_s
        self._max_result_chars = max_result_chars

    async def run(
        self, calls: Sequence[PlannedCall], context: ToolContext
    ) -> AsyncIterator[ToolStarted | ToolProgress | ToolFinished]:
        """Run the calls; events come as things happen, exactly one `ToolFinished` for each call.

        Closing the generator cancels what still runs.
        """
        events: asyncio.Queue[ToolStarted | ToolProgress | ToolFinished] = asyncio.Queue()
        alone = asyncio.Lock()  # tools that may not run beside others take turns
        loop = asyncio.get_running_loop()
        here = threading.get_ident()

        def reporter(planned: PlannedCall) -> Callable[[str], None]:
            def report(text: str) -> None:
                progress = ToolProgress(planned.index, planned.call_id, text)
                if threading.get_ident() == here:
                    events.put_nowait(progress)
                else:
                    loop.call_soon_threadsafe(events.put_nowait, progress)

            return report

        async def one(planned: PlannedCall) -> None:
            tool = self._tools.get(planned.call.name)
            scoped = replace(context, call_id=planned.call_id, report=reporter(planned))
            if tool is None or tool.concurrent:
                events.put_nowait(ToolStarted(planned.index, planned.call_id, planned.call))
                events.put_nowait(await self.finish(planned, scoped))
                return
            async with alone:
                events.put_nowait(ToolStarted(planned.index, planned.call_id, planned.call))
                events.put_nowait(await self.finish(planned, scoped))

        tasks = [asyncio.create_task(one(planned)) for planned in calls]
        try:
            left = len(tasks)
            while left:
                event = await events.get()
                left -= isinstance(event, ToolFinished)
                yield event
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def finish(self, planned: PlannedCall, context: ToolContext) -> ToolFinished:
        """Run one call to its result; no exception but cancelling leaves it."""
        started = time.perf_counter()
        error = ""
        metadata: dict[str, Any] = {}
        try:
            content, metadata = _as_content(await self._call(planned.call, context))
        except ToolServiceError as problem:
            content, error = problem.message or str(problem), type(problem).__name__
        except (Exception, SystemExit) as problem:  # noqa: BLE001 - any failure of a tool is a result the model reads
            _log.warning("tool %s failed", planned.call.name, exc_info=True)
            content, error = describe_failure(planned.call.name, problem), type(problem).__name__
        message = Message(
            FUNCTION,
            self._cut(content),
            name=planned.call.name,
            extra={"function_id": planned.call_id},
        )
        return ToolFinished(planned.index, planned.call_id, message, time.perf_counter() - started, error, metadata)

    async def _call(self, call: FunctionCall, context: ToolContext) -> Any:
        tool = self._tools.get(call.name)
        if tool is None:
            raise ToolServiceError(f"Tool {call.name} does not exist{closest(call.name, list(self._tools))}")
        arguments = tool.parse_arguments(call.arguments)
        timeout_s = tool.timeout_s or self._timeout_s
        scope = asyncio.timeout(timeout_s)
        try:
            async with scope:
                return await call_tool(tool, arguments, context)
        except TimeoutError as error:
            if not scope.expired():
                raise  # the tool's own
            raise ToolTimeoutError(
                f"Tool {call.name} did not finish in {timeout_s:g} s; ask it for less at once"
            ) from error

    def _cut(self, content: str | list[ContentItem]) -> str | list[ContentItem]:
        def fitting(text: str) -> str:
            return cut_middle(_writable(text), self._max_result_chars)

        if isinstance(content, str):
            return fitting(content)
        return [ContentItem(text=fitting(item.text)) if item.text is not None else item for item in content]


async def call_tool(tool: BaseTool, arguments: Mapping[str, Any], context: ToolContext) -> Any:
    """What a tool gives back; a plain `call` runs in a worker thread, so that nothing else waits for it."""
    if isinstance(tool, PluginTool):
        tool = await sync.in_worker(tool.load)  # its first call imports its module
    target = getattr(tool, "function_called", tool.call)
    if inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(tool.call):
        output = tool.call(arguments, context=context)
    else:
        output = await sync.in_worker(tool.call, arguments, context=context)
    return await output if inspect.isawaitable(output) else output


def _as_content(output: Any) -> tuple[str | list[ContentItem], dict[str, Any]]:
    metadata: dict[str, Any] = {}
    if isinstance(output, ToolResult):
        output, metadata = output.content, dict(output.metadata)
    if isinstance(output, str):
        return output, metadata
    if isinstance(output, list) and all(isinstance(item, ContentItem) for item in output):
        return output, metadata
    if output is None or isinstance(output, bool | int | float):
        return json.dumps(output), metadata
    return json.dumps(_plain(output), indent=4, ensure_ascii=False, default=_plain), metadata


def _plain(value: Any) -> Any:
    """What JSON can hold of a value it does not know: a pydantic model's fields, else its text."""
    if isinstance(value, dict | list | tuple):
        return value
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if callable(dump) else str(value)


def _writable(text: str) -> str:
    """The text as UTF-8 can hold it: file names and broken escapes bring half characters, which no backend can send."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def describe_failure(name: str, error: BaseException) -> str:
    """What the model is told of an exception: its type and text, without traceback, paths or much length."""
    text = _PATH.sub("…", str(error)).strip()
    short = text if len(text) <= 500 else text[:500] + "…"
    if isinstance(error, BrokenPluginError):
        return f"Tool {name} cannot be used: {short}"
    return f"An error occurred when calling tool {name}: {type(error).__name__}: {short}".rstrip(": ")


def cut_middle(text: str, limit: int) -> str:
    """A text cut to about `limit` characters, both ends kept, with a note of how much is missing."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head
    missing = len(text) - limit
    return f"{text[:head]}\n[… {missing} characters left out …]\n{text[len(text) - tail :]}"
