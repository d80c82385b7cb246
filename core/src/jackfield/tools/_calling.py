"""Find the tool that an entry means, and call one without an agent."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from jackfield import sync
from jackfield.errors import ConfigError
from jackfield.plugins._host import PluginHost, default_host
from jackfield.runs._resources import RunResources
from jackfield.tools._base import BaseTool, ToolContext
from jackfield.tools._foreign import output_of
from jackfield.tools._function_tool import tool
from jackfield.tools._plugin_tool import find_tool
from jackfield.tools._schema import check_tool_schema, object_schema

ToolEntry: TypeAlias = str | Mapping[str, Any] | BaseTool | type[BaseTool] | Callable[..., Any]
"""A tool: the name or address of an installed one, a dict with `name` and settings, a tool or its class, or a typed
function."""


def as_tool(entry: ToolEntry, host: PluginHost) -> BaseTool:
    """The tool that an entry means.

    Raises:
        ConfigError: It cannot be a tool.
        PluginError: No such tool is installed, or it cannot be described.
    """
    if isinstance(entry, type) and issubclass(entry, BaseTool):
        entry = _instance_of(entry)
    if isinstance(entry, BaseTool):
        check_tool_schema(entry.name, object_schema(entry.name, entry.parameters))
        return entry
    if isinstance(entry, Mapping) and not entry.get("name"):
        raise ConfigError("a tool given as a dict needs a 'name' next to its settings")
    if isinstance(entry, str | Mapping):
        return find_tool(entry, host)
    if callable(entry):
        return tool(entry)
    raise ConfigError(
        f"{entry!r} is not a tool: pass a name, a dict with 'name', a BaseTool, its class, or a typed function"
    )


async def acall_tool(
    entry: ToolEntry,
    arguments: str | Mapping[str, Any] | None = None,
    *,
    context: ToolContext[Any] | None = None,
    host: PluginHost | None = None,
) -> Any:
    """The same as `call_tool`, for code in an event loop."""
    made = as_tool(entry, host or default_host())
    async with RunResources() as own:
        checked = made.parse_arguments(arguments or {})
        return await output_of(made, checked, context or ToolContext(resources=own))


def call_tool(
    entry: ToolEntry,
    arguments: str | Mapping[str, Any] | None = None,
    *,
    context: ToolContext[Any] | None = None,
    host: PluginHost | None = None,
) -> Any:
    """Call a tool once, as an agent does, but without asking for approval.

    Args:
        entry: As for an agent: a tool, the name of an installed one, a typed function, …
        arguments: By name, or as the JSON text that a model would write.
        context: The context that it gets: files, `deps`, the workspace, resources. Without one, it gets an empty
            context, and what it opens is closed when it has answered.
        host: Where names are looked up.

    Returns:
        The tool's result, unchanged.

    Raises:
        ToolArgumentError: The arguments do not fit.
        ToolServiceError: The tool failed.
        ConfigError, PluginError: See `as_tool`.
    """
    return sync.run(acall_tool(entry, arguments, context=context, host=host))


def _instance_of(tool_class: type[BaseTool]) -> BaseTool:
    try:
        inspect.signature(tool_class).bind()
    except TypeError as error:
        raise ConfigError(
            f"tool {tool_class.__name__} cannot be made from its class alone ({error}): pass an instance"
        ) from None
    return tool_class()
