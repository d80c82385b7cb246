"""The tools of an agent that follow from the run: of one run, made once, when it starts."""

from __future__ import annotations

import asyncio
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from jackfield.errors import ConfigError, ToolServiceError, ToolTimeoutError
from jackfield.events import PluginEvent
from jackfield.plugins._host import PluginHost
from jackfield.processors import Processor
from jackfield.tools._base import BaseTool, ToolContext
from jackfield.tools._calling import blaming, parts_of
from jackfield.tools._foreign import apart
from jackfield.tools._schema import check_tool_name
from jackfield.tools._toolset import Toolset


@dataclass(slots=True, eq=False)
class Toolbox:
    """The tools of the sets that are made for each run; of one run.

    Attributes:
        sets: The sets.
        taken: The names of the tools that the agent has anyhow.
        context: Of the run.
        host: Where names are looked up.
        timeout_s: How long each set may take; all are asked at the same time.
    """

    sets: Sequence[Toolset]
    taken: Container[str]
    context: ToolContext[Any]
    host: PluginHost = field(kw_only=True)
    timeout_s: float = field(kw_only=True)
    _found: dict[str, BaseTool] | None = field(default=None, init=False)

    async def tools(self) -> dict[str, BaseTool]:
        """The tools by name; the sets are asked once.

        Raises:
            ConfigError: A name is taken, or an entry is not a tool.
            PluginError: A set names a tool that is not installed.
            ToolServiceError: A set failed, or took too long.
        """
        if self._found is None:
            made = await asyncio.gather(*map(self._of_set, self.sets), return_exceptions=True)
            found: dict[str, BaseTool] = {}
            for one, outcome in zip(self.sets, made, strict=True):
                if isinstance(outcome, BaseException):
                    raise outcome
                for tool in outcome:
                    add_tool(tool, found, self.taken, f", one of them in the set {one.name!r}")
            self._found = found
        return self._found

    def processors(self, reported: Sequence[PluginEvent]) -> list[Processor]:
        """What the sets want to act around the model, see `Toolset.processor_of_run`."""
        made = (one.processor_of_run(self.context, reported) for one in self.sets)
        return [processor for processor in made if processor is not None]

    async def _of_set(self, one: Toolset) -> list[BaseTool]:
        try:
            with blaming(one):
                entries = await apart(partial(one.tools_of_run, self.context), name=one.name, timeout_s=self.timeout_s)
        except ToolTimeoutError as error:
            raise ToolServiceError(f"the set of tools {one.name!r} was not ready in {self.timeout_s:g} s") from error
        tools: list[BaseTool] = []
        for part in parts_of(one, entries, self.host):
            tools += [part] if isinstance(part, BaseTool) else await self._of_set(part)
        return tools


def add_tool(made: BaseTool, tools: dict[str, BaseTool], taken: Container[str] = (), where: str = "") -> None:
    """Add a tool under its name.

    Raises:
        ConfigError: It has no valid name, or another tool has it.
    """
    check_tool_name(made.name)
    if made.name in taken or made.name in tools:
        raise ConfigError(f"two tools are named {made.name!r}{where}: give the agent one of them")
    tools[made.name] = made
