"""A set of tools that does all as it should, and sets that do one thing otherwise."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from jackfield import tool
from jackfield.tools import FunctionTool, ToolChanges, ToolContext, ToolEntry, Toolset


@tool
def now() -> str:
    """Tell the time."""
    return "12:00"


@tool
def today() -> str:
    """Tell the date."""
    return "1 May"


class Honest(Toolset):
    async def tools_of_run(self, context: ToolContext[Any]) -> Sequence[ToolEntry]:
        await context.resources.get("clock", self.opened)
        return [now, today]

    async def opened(self) -> object:
        await asyncio.sleep(0)
        return object()


class Fixed(Honest):
    def fixed_tools(self) -> Sequence[ToolEntry]:
        return [now, today]


class Changing(Fixed):
    def __init__(self) -> None:
        super().__init__()
        self.changes = ToolChanges()


class ReportsWhenAsked(Honest):
    def __init__(self) -> None:
        super().__init__()
        self.changes = ToolChanges()

    async def tools_of_run(self, context: ToolContext[Any]) -> Sequence[ToolEntry]:
        if self.changes is not None:
            self.changes.report()
        return await super().tools_of_run(context)


class ConnectsAtOnce(Honest):
    def __init__(self) -> None:
        super().__init__()
        with socket.socket() as connection, suppress(OSError):
            connection.connect(("127.0.0.1", 9))


class LosesOne(Honest):
    async def tools_of_run(self, context: ToolContext[Any]) -> Sequence[ToolEntry]:
        return (await super().tools_of_run(context))[1:]


class GrowsWithRuns(Honest):
    count = 0

    async def tools_of_run(self, context: ToolContext[Any]) -> Sequence[ToolEntry]:
        self.count += 1
        another = tool(name=f"now_{self.count}", description="Tell the time again.")(now.function_called)
        return [*await super().tools_of_run(context), another]


class LeavesATask(Honest):
    async def tools_of_run(self, context: ToolContext[Any]) -> Sequence[ToolEntry]:
        self.task = asyncio.ensure_future(asyncio.Event().wait())
        return await super().tools_of_run(context)


class HoldsOn(Honest):
    async def tools_of_run(self, context: ToolContext[Any]) -> Sequence[ToolEntry]:
        cancelled = False
        for _ in range(60):
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                cancelled = True
        while cancelled:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(60)
        return await super().tools_of_run(context)


class StartsATaskWhenCancelled(Honest):
    async def tools_of_run(self, context: ToolContext[Any]) -> Sequence[ToolEntry]:
        try:
            for _ in range(60):
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.task = asyncio.create_task(asyncio.sleep(60))
            raise
        return await super().tools_of_run(context)


class SaysNothing(Honest):
    """Has tools without descriptions, and schemas that JSON changes."""

    async def tools_of_run(self, context: ToolContext[Any]) -> Sequence[ToolEntry]:
        tools = [FunctionTool(time_of_day, name=name, description=" ") for name in ("now", "today")]
        for one in tools:
            one.parameters = {"type": "object", "properties": {}, "x-order": {1: "first"}}
        return tools


def time_of_day() -> str:
    return "12:00"
