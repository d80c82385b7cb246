"""Base classes: a tool that wraps another tool, and a toolset of wrapped tools."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import Field

from jackfield.config import Config
from jackfield.errors import ConfigError
from jackfield.plugins import default_host
from jackfield.request import FunctionSchema
from jackfield.tools import (
    BaseTool,
    Safety,
    StandIn,
    ToolContext,
    ToolEntry,
    ToolResult,
    Toolset,
    content_of,
    run_tool,
    tools_of,
)


class WrappedTool(StandIn):
    """Stands in for another tool, with the same definition and the same safety rules.

    `call` runs after the arguments have been validated and the call approved, and within the call's timeout.

    Attributes:
        inner: The wrapped tool.
    """

    params_as_text = False

    def __init__(self, inner: BaseTool) -> None:
        super().__init__()
        self.inner = inner
        self.name, self.description, self.parameters = inner.name, inner.description, inner.parameters
        self.matches_patterns = inner.matches_patterns

    async def call(self, params: str | Mapping[str, Any], *, context: ToolContext | None = None) -> ToolResult:
        """Call the tool through `around`."""
        return await self.around(self.parse_arguments(params), context or ToolContext())

    @abstractmethod
    async def around(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """Handle a call, using `call_inner` to run the wrapped tool."""

    async def call_inner(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """Run the wrapped tool, and return its result as a model would read it.

        The content is text, or a list of content items with embedded files.
        """
        content, metadata = await content_of(await run_tool(self.inner, dict(arguments), context))
        return ToolResult(content, metadata)

    def claims(self) -> Safety:
        """Return the safety claims of the wrapped tool."""
        return self.inner.safety()

    def schema(self, lang: str = "en") -> FunctionSchema:
        """Return the schema of the wrapped tool."""
        return self.inner.schema(lang)

    def parse_arguments(self, params: str | Mapping[str, object]) -> dict[str, Any]:
        """Validate the arguments with the wrapped tool."""
        return self.inner.parse_arguments(params)

    @property
    def is_loaded(self) -> bool:
        """True if the wrapped tool is loaded."""
        return not isinstance(self.inner, StandIn) or self.inner.is_loaded

    def load(self) -> BaseTool:
        """Load the wrapped tool, and return this one."""
        if isinstance(self.inner, StandIn):
            self.inner.load()
        return self


class WrappingConfig(Config):
    """The tools to wrap."""

    tools: tuple[Any, ...] = Field(min_length=1, description="Tools to wrap, as in function_list")


class WrappingToolset(Toolset):
    """Wraps each of its tools, including those that nested toolsets create per run."""

    config: WrappingConfig
    needs: str = ""  # the attribute that a tool must have for the toolset to have an effect

    @abstractmethod
    def wrapped(self, tool: BaseTool) -> WrappedTool:
        """Wrap a tool."""

    @abstractmethod
    def applies_to(self, safety: Safety) -> bool:
        """Return True if the toolset has an effect on tools with these safety attributes."""

    def fixed_tools(self) -> Sequence[ToolEntry]:
        """Return the wrapped tools.

        Raises:
            ConfigError: The toolset has no effect on a tool that is listed individually.
        """
        tools: list[ToolEntry] = []
        for entry in self.config.tools:
            parts = self.parts_of([entry])
            if len(parts) == 1 and isinstance(parts[0], BaseTool):
                self._check(parts[0])
            tools += self.all_wrapped(parts)
        return tools

    async def tools_of_run(self, context: ToolContext) -> Sequence[ToolEntry]:  # noqa: ARG002 - of the contract
        """Return the fixed tools. Tools that vary per run are inside nested toolsets."""
        return self.fixed_tools()

    def parts_of(self, entries: Iterable[ToolEntry]) -> list[BaseTool | Toolset]:
        """Resolve entries to tools and toolsets."""
        return [part for entry in entries for part in tools_of(entry, self.host or default_host())]

    def all_wrapped(self, parts: Iterable[BaseTool | Toolset]) -> list[BaseTool | Toolset]:
        """Wrap tools and toolsets."""
        return [self._wrapped_part(part) for part in parts]

    def _wrapped_part(self, part: BaseTool | Toolset) -> BaseTool | Toolset:
        if not isinstance(part, BaseTool):
            return _WrappedSet(part, self)
        toolset, version = part.origin or (None, 0)
        if not isinstance(toolset, Toolset):
            return self.wrapped(part)
        # Tools that its toolset adds later are wrapped as well.
        return self.wrapped(part).with_origin(_WrappedSet(toolset, self), version)

    def _check(self, tool: BaseTool) -> None:
        if not self.applies_to(tool.safety()):
            raise ConfigError(
                f"{self.name} has no effect on tool {tool.name!r}, which is not declared {self.needs}: "
                f"list the tool in function_list directly"
            )


class _WrappedSet(Toolset):
    """A toolset whose tools are wrapped when they are created for a run."""

    def __init__(self, inner: Toolset, outer: WrappingToolset) -> None:
        super().__init__()
        self.name, self._inner, self._outer = inner.name, inner, outer
        self.changes = inner.changes

    async def tools_of_run(self, context: ToolContext) -> Sequence[ToolEntry]:
        """Return the inner toolset's tools for the run, wrapped."""
        return self._outer.all_wrapped(self._outer.parts_of(await self._inner.tools_of_run(context)))
