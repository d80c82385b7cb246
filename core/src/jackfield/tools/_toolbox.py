"""The tools of an agent that follow from the run: made when it starts, and again after they change."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Container, Iterable, Sequence
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
class Source:
    """A set whose tools may change, with the names of those that it gave.

    Attributes:
        toolset: The set.
        version: Its `changes.version` when it was asked.
        names: The names of its tools.
    """

    toolset: Toolset
    version: int
    names: frozenset[str]

    def has_changed(self) -> bool:
        """Return whether the set has reported a change since it was asked."""
        changes = self.toolset.changes
        return changes is not None and changes.version != self.version


def sources_of(tools: Iterable[BaseTool]) -> list[Source]:
    """List the sets that gave fixed tools and may change."""
    sources: dict[int, Source] = {}
    for tool in tools:
        toolset, version = tool.origin or (None, 0)
        if isinstance(toolset, Toolset):
            source = sources.setdefault(id(toolset.changes), Source(toolset, version, frozenset()))
            source.names |= {tool.name}
    return list(sources.values())


@dataclass(slots=True, eq=False)
class Toolbox:
    """The tools of the sets that are made for each run, and of those that change; of one run.

    Attributes:
        sets: The sets.
        taken: The names of the tools that the agent has anyhow.
        context: Of the run.
        host: Where names are looked up.
        timeout_s: How long each set may take; all are asked at the same time.
        sources: The sets that have fixed tools and may change. Those of `sets` that may change are added.
    """

    sets: Sequence[Toolset]
    taken: Collection[str]
    context: ToolContext[Any]
    host: PluginHost = field(kw_only=True)
    timeout_s: float = field(kw_only=True)
    sources: list[Source] = field(default_factory=list, kw_only=True)
    _found: dict[str, BaseTool] | None = field(default=None, init=False)

    async def tools(self) -> dict[str, BaseTool]:
        """The tools by name; the sets are asked once.

        Raises:
            ConfigError: A name is taken, or an entry is not a tool.
            PluginError: A set names a tool that is not installed.
            ToolServiceError: A set failed, or took too long.
        """
        if self._found is None:
            versions = [one.changes.version if one.changes is not None else 0 for one in self.sets]
            made = await asyncio.gather(*map(self._of_set, self.sets), return_exceptions=True)
            found: dict[str, BaseTool] = {}
            for one, version, outcome in zip(self.sets, versions, made, strict=True):
                if isinstance(outcome, BaseException):
                    raise outcome
                if one.changes is not None:
                    self.sources.append(Source(one, version, frozenset(tool.name for tool in outcome)))
                for tool in outcome:
                    add_tool(tool, found, self.taken, f", one of them in the set {one.name!r}")
            self._found = found
        return self._found

    def has_changed(self) -> bool:
        """Return whether a set has reported a change since it was asked."""
        return any(source.has_changed() for source in self.sources)

    async def ask_again(self) -> tuple[frozenset[str], dict[str, BaseTool]]:
        """Ask the changed sets again.

        Returns:
            The names of the tools that they had, and the tools that they have now, by name.

        Raises:
            ConfigError, PluginError, ToolServiceError: As `tools`.
        """
        names: frozenset[str] = frozenset()
        replacements: dict[str, BaseTool] = {}
        found = await self.tools()
        for source in self.sources:
            if not source.has_changed():
                continue
            assert source.toolset.changes is not None  # noqa: S101 - it has reported a change
            source.version = source.toolset.changes.version  # first: a change while it answers is asked for again
            tools = await self._of_set(source.toolset)
            others = (set(self.taken) | found.keys() | replacements.keys()) - source.names
            for other in self.sources:
                others |= other.names if other is not source else set()
            where = f", one of them in the set {source.toolset.name!r}"
            own: dict[str, BaseTool] = {}
            for tool in tools:
                add_tool(tool, own, others, where)
            names |= source.names
            source.names = frozenset(own)
            replacements |= own
        return names, replacements

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
