"""Tools that depend on the run, which are created when the run starts and again when they change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Container, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from jackfield.errors import ConfigError, ToolServiceError, ToolTimeoutError
from jackfield.events import PluginEvent, PreparationProgress
from jackfield.plugins._protocol import Plugins
from jackfield.processors import Processor
from jackfield.tools._base import BaseTool, ToolContext
from jackfield.tools._entries import naming_toolset, resolve_entries
from jackfield.tools._foreign import run_isolated
from jackfield.tools._schema import check_tool_name
from jackfield.tools._toolset import Toolset


@dataclass(slots=True, eq=False)
class Source:
    """A toolset whose tools may change, with the tools that it returned last.

    Attributes:
        toolset: The toolset.
        version: The toolset's `changes.version` when it returned these tools.
        names: The names of these tools.
    """

    toolset: Toolset
    version: int
    names: frozenset[str]

    def has_changed(self) -> bool:
        """Return True if the toolset has reported a change since it returned these tools."""
        changes = self.toolset.changes
        return changes is not None and changes.version != self.version


def sources_of(tools: Iterable[BaseTool]) -> list[Source]:
    """Return the changing toolsets that provided these fixed tools."""
    sources: dict[int, Source] = {}
    for tool in tools:
        toolset, version = tool.origin or (None, 0)
        if isinstance(toolset, Toolset):
            source = sources.setdefault(id(toolset.changes), Source(toolset, version, frozenset()))
            source.names |= {tool.name}
    return list(sources.values())


@dataclass(slots=True, eq=False)
class Toolbox:
    """A run's tools from toolsets that create tools for each run or whose tools change.

    Attributes:
        sets: The toolsets that create tools for each run.
        taken: The names of the agent's fixed tools, which every run has.
        context: The run's context.
        host: The plugin host that resolves names.
        timeout_s: Timeout for each toolset, in seconds. All toolsets run concurrently.
        sources: The toolsets with fixed tools that may change. Toolsets from `sets` that may change are added.
    """

    sets: Sequence[Toolset]
    taken: Collection[str]
    context: ToolContext[Any]
    host: Plugins = field(kw_only=True)
    timeout_s: float = field(kw_only=True)
    sources: list[Source] = field(default_factory=list, kw_only=True)
    _tools: dict[str, BaseTool] | None = field(default=None, init=False)

    async def tools(self, report: Callable[[PreparationProgress], None] | None = None) -> dict[str, BaseTool]:
        """Return the tools by name. Each toolset is queried only once.

        Args:
            report: A function that receives the progress that toolsets report with `context.report`.

        Raises:
            ConfigError: A name is taken, or an entry is not a tool.
            PluginError: A toolset names a tool that is not installed.
            ToolServiceError: A toolset failed or timed out.
        """
        if self._tools is None:
            versions = [one.changes.version if one.changes is not None else 0 for one in self.sets]
            context = self.context
            if report is not None:
                context = replace(context, report=lambda text: report(PreparationProgress(text)))
            asking = (self._tools_of(one, context) for one in self.sets)
            outcomes = await asyncio.gather(*asking, return_exceptions=True)
            tools: dict[str, BaseTool] = {}
            for one, version, outcome in zip(self.sets, versions, outcomes, strict=True):
                if isinstance(outcome, BaseException):
                    raise outcome
                if one.changes is not None:
                    self.sources.append(Source(one, version, frozenset(tool.name for tool in outcome)))
                for tool in outcome:
                    add_tool(tool, tools, self.taken, f", one of them in toolset {one.name!r}")
            self._tools = tools
        return self._tools

    def has_changed(self) -> bool:
        """Return True if a toolset has reported a change since it returned its tools."""
        return any(source.has_changed() for source in self.sources)

    async def ask_again(self) -> tuple[frozenset[str], dict[str, BaseTool]]:
        """Query the toolsets that have changed for their tools again.

        Returns:
            The names of these toolsets' previous tools, and their current tools by name.

        Raises:
            ConfigError, PluginError, ToolServiceError: As for `tools`.
        """
        former: frozenset[str] = frozenset()
        replacements: dict[str, BaseTool] = {}
        known = await self.tools()
        for source in self.sources:
            if not source.has_changed():
                continue
            assert source.toolset.changes is not None  # noqa: S101 - the toolset has reported a change
            source.version = (
                source.toolset.changes.version
            )  # read first, so that a change during the answer counts as another change
            tools = await self._tools_of(source.toolset, self.context)
            others = (set(self.taken) | known.keys()) - source.names
            for other in self.sources:
                others |= other.names if other is not source else set()
            where = f", one of them in toolset {source.toolset.name!r}"
            own: dict[str, BaseTool] = {}
            for tool in tools:
                add_tool(tool, own, others, where)
            former |= source.names
            source.names = frozenset(own)
            replacements |= own
        return former, replacements

    def processors(self, reported: Sequence[PluginEvent]) -> list[Processor]:
        """Return the toolsets' processors for this run; see `Toolset.processor_of_run`."""
        processors = (one.processor_of_run(self.context, reported) for one in self.sets)
        return [processor for processor in processors if processor is not None]

    async def _tools_of(self, one: Toolset, context: ToolContext[Any]) -> list[BaseTool]:
        try:
            with naming_toolset(one):
                entries = await run_isolated(
                    partial(one.tools_of_run, context), name=one.name, timeout_s=self.timeout_s
                )
        except ToolTimeoutError as error:
            raise ToolServiceError(f"toolset {one.name!r} was not ready within {self.timeout_s:g} s") from error
        tools: list[BaseTool] = []
        for part in resolve_entries(one, entries, self.host):
            tools += [part] if isinstance(part, BaseTool) else await self._tools_of(part, context)
        return tools


def add_tool(tool: BaseTool, tools: dict[str, BaseTool], taken: Container[str] = (), where: str = "") -> None:
    """Add a tool to `tools` under its name.

    Raises:
        ConfigError: The tool's name is not valid or is already taken.
    """
    check_tool_name(tool.name)
    if tool.name in taken or tool.name in tools:
        raise ConfigError(f"two tools are named {tool.name!r}{where}: pass only one of them to the agent")
    tools[tool.name] = tool
